"""What is given to a package index: a long description without dead links, real addresses, and a whole source."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LINK = re.compile(r"!?\[[^\]]*\]\(([^)]*)\)")


def long_description() -> str:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.long_description((ROOT / "README.md").read_text(encoding="utf-8"))
    return text


def test_the_long_description_has_neither_images_nor_relative_links():
    text = long_description()
    assert "![" not in text
    targets = LINK.findall(text)
    assert targets and all(target.startswith("https://") for target in targets)
    assert "docs/tutorial.md" in text and "## More" in text


def test_the_long_description_keeps_every_block_and_heading_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for part in (r"(?m)^#+ .*$", r"(?ms)^```.*?^```"):
        assert re.findall(part, long_description()) == re.findall(part, readme)


def test_the_addresses_of_the_project_are_those_that_exist():
    assert PROJECT["project"]["urls"] == {"Paper": "https://arxiv.org/abs/2501.08330"}


@pytest.mark.parametrize("name", ["mkdocs.yml", "hatch_build.py", "Makefile", "constraints.txt"])
def test_files_that_tests_and_builds_read_are_in_the_source_distribution(name):
    assert f"/{name}" in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert (ROOT / name).exists()


def test_lowest_versions_are_exactly_those_of_the_project():
    """`make test-lowest` installs what the project says is enough."""
    pinned = dict(
        line.split("==")
        for line in (ROOT / "scripts" / "lowest.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [*PROJECT["project"]["dependencies"], *extras["pandas"], *extras["polars"]]
    bounds = dict(re.fullmatch(r"([a-z]+)>=([\d.]+)", each).groups() for each in asked)
    assert pinned == bounds
