"""The Python examples of README.md and docs/ are run, and print what they say they print."""

import doctest
from pathlib import Path

import pytest

from spark.local_spark import PANDAS, missing

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples_of(page: str) -> str:
    """The page with all but its python blocks blanked, so that line numbers stay true."""
    kept, inside = [], False
    for line in page.splitlines():
        fence = line.strip()
        if fence.startswith("```"):
            inside = not inside and fence.removeprefix("```").split()[:1] == ["python"]
            kept.append("")
        else:
            kept.append(line if inside else "")
    return "\n".join(kept) + "\n"


def run(page: str, name: str) -> tuple[int, str]:
    """Runs the examples of a page in one namespace: how many ran, and what went wrong."""
    source = examples_of(page)
    parsed = doctest.DocTestParser().get_doctest(source, {"__name__": "__main__"}, name, name, 0)
    wrong: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    ran = doctest.DocTestRunner(optionflags=flags, verbose=False).run(parsed, out=wrong.append)
    if not parsed.examples and source.strip():
        wrong.append(f"{name}: python blocks are written as >>> sessions, so that they can be run")
    return ran.attempted, "".join(wrong)


@pytest.mark.filterwarnings(PANDAS)
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name.startswith("spark") and (why := missing()):
        pytest.skip(why)
    monkeypatch.chdir(tmp_path)
    _, wrong = run(page.read_text(encoding="utf-8"), page.name)
    assert not wrong, wrong


def test_a_wrong_output_is_found() -> None:
    page = "Text.\n\n```python\n>>> 1 + 1\n{}\n```\n\n```sh\n>>> not python\n```\n"
    assert run(page.format(2), "page") == (1, "")
    assert "line 4" in run(page.format(3), "page")[1].lower()


def test_a_block_that_cannot_be_run_is_found() -> None:
    assert run("```python\nx = 1\n```\n", "page")[1]
