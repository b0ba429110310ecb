"""The documentation builds as a site without a warning, has all that is public, and asks nobody for anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gradeq
from gradeq import theory

ROOT = Path(__file__).parents[1]
ASKED = re.compile(
    r"""(?:<(?:script|img|iframe|source|video)\b[^>]*\bsrc|<link\b[^>]*\bhref)=["'](?:https?:)?//[^"']+"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason='the site needs pip install "gradeq[docs]"')
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(place)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr
    return place


def test_no_page_asks_for_anything_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        assert not ASKED.findall(page.read_text(encoding="utf-8")), page.name


def test_the_reference_has_everything_that_is_public(site: Path) -> None:
    text = "".join(page.read_text("utf-8") for page in (site / "reference").glob("*.html"))
    found = set(re.findall(r'id="([\w.]+)"', text))
    parts = {"losses", "links", "penalties", "schedules"}  # each of theirs stands on its own
    modules = {f"gradeq.{name}" for name in ("errors", "datasets", "geometries", "regret", "theory")}
    wanted = {f"gradeq.{name}" for name in gradeq.__all__ if name not in parts | {"__version__"}}
    wanted |= {f"gradeq.theory.{name}" for name in theory.__all__ if not name.isupper()}
    missing = {
        name
        for name in wanted - modules
        if not any(own == name or own.endswith("." + name.split(".")[-1]) for own in found)
    }
    assert not missing
    code = re.compile(r"<pre.*?</pre>", re.DOTALL)
    assert "&gt;&gt;&gt;" in "".join(code.findall(text)), "examples are blocks of code"
    assert "&gt;&gt;&gt;" not in code.sub("", text)
