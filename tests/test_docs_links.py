"""Links between the pages lead to files and headings that exist, and every page is in the index."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / link).resolve() for link in LINK.findall(index.read_text("utf-8"))}
    assert set(DOCS) - {index} <= listed


def test_the_site_and_the_index_list_the_pages_in_the_same_order() -> None:
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    in_site = re.findall(r"- ([\w/-]+\.md)$", site, re.MULTILINE)
    assert {ROOT / "docs" / page for page in in_site} == set(DOCS)
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rows = [line for line in index.splitlines() if line.startswith("| [")]
    in_index = [link for row in rows for link in LINK.findall(row) if link.endswith(".md")]
    assert ["index.md", *in_index] == in_site


def test_pictures_are_small_and_used() -> None:
    pictures = sorted((ROOT / "docs" / "images").glob("*"))
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 200_000, picture.name
        assert f"images/{picture.name})" in text, picture.name
