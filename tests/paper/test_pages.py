"""The pages beside the gallery: every label has an anchor, and every link leads to one."""

import re
import tomllib
from pathlib import Path

import pytest

from gradeq.paper import experiments
from gradeq.paper.errata import ERRATA
from gradeq.paper.gallery import TITLES, anchors, labelled, linked, page, source_of, to_html

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TITLES)
def test_links_of_a_page_lead_to_anchors_that_exist(name: str) -> None:
    text = page(name)
    links = re.findall(r'href="([^"]+)"', text)
    assert links
    for link in links:
        where, _, anchor = link.partition("#")
        if "://" not in link and where != "index.html":
            leads = where.removesuffix(".html") or name
            assert leads in TITLES, link
            assert not anchor or anchor in anchors(leads), link
    assert "default-src 'none'" in text and not re.search(r"<script|<link|<img|\bstyle=", text)


@pytest.mark.parametrize("name", TITLES)
def test_a_page_has_every_word_of_its_source(name: str) -> None:
    shown = re.sub(r"<[^>]+>", " ", page(name))
    for row in re.findall(r"^\| ([^|]+) \|", source_of(name), re.MULTILINE):
        if not row.startswith("---"):
            assert row.strip("`") in shown, row
    assert "**" not in shown and "```" not in shown and "](" not in shown


def test_every_anchor_is_there_once() -> None:
    for name in TITLES:
        found = re.findall(r'\bid="([^"]+)"', page(name))
        assert len(found) == len(set(found))


@pytest.mark.parametrize("name", TITLES)
def test_no_label_is_explained_twice(name: str) -> None:
    rows = re.findall(r"^\| ((?:[A-DG]?\d)[^|]*) \|", source_of(name), re.MULTILINE)
    assert len(rows) == len(set(rows)) > 20


def test_every_panel_of_the_errata_is_explained() -> None:
    for item in [erratum() for erratum in ERRATA]:
        number = item.panel.title.split()[0]
        assert number in anchors("errata")
        assert labelled(item.panel.title, "errata").startswith(f'<a href="errata.html#{number}">')


def test_every_erratum_names_its_place_in_the_paper_and_every_condition_that_its_run_checks() -> None:
    sections = re.findall(r"^### (\d+) .*\n((?:(?!^##).*\n)*)", source_of("errata"), re.MULTILINE)
    text = {number: " ".join(section.split()) for number, section in sections}
    found = {item.panel.title.split()[0]: item for item in [erratum() for erratum in ERRATA]}
    assert list(text) == list(found)
    for number, item in found.items():
        assert item.place in text[number], number
        for condition in item.assumes:
            assert condition in text[number], (number, condition)
        assert item.verdict in text[number]


def test_every_erratum_has_one_number_and_every_number_one_place() -> None:
    rows = re.findall(r"^(?:\| |### )([\d, ]+) (?:\||\w)", source_of("errata"), re.MULTILINE)
    numbers = [int(number) for row in rows for number in row.split(",")]
    right = [18, 20]  # named in the last paragraph: right as printed
    assert sorted([*numbers, *right]) == list(range(1, 59))


def test_every_result_that_a_caption_names_is_linked() -> None:
    named = 0
    for experiment in experiments().values():
        for text in (experiment.figure, experiment.shows, experiment.corrected):
            named += len(re.findall(r"\bresults? \d", text))
            assert not re.search(r"\bresults? \d", linked(text)), text
    assert named >= 6


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("(result 8.5)", '(result <a href="bounds.html#8.5">8.5</a>)'),
        ("results 5 and A1", 'results <a href="bounds.html#5">5</a> and <a href="bounds.html#A1">A1</a>'),
        ("result 9.9 <b>", "result 9.9 &lt;b&gt;"),
        ("severity A", '<a href="errata.html#severity-a">severity A</a>'),
        ("from -0.45 to 2014-04-01", "from −0.45 to 2014-04-01"),
        ("as in Figure 2, not Figure 20", 'as in <a href="#two">Figure 2</a>, not Figure 20'),
    ],
)  # fmt: skip
def test_text_is_escaped_and_linked(text: str, html: str) -> None:
    assert linked(text, {"Figure 2": "two"}) == html


def test_a_label_that_no_page_explains_is_plain_text() -> None:
    assert labelled("99 <b>", "errata") == "99 &lt;b&gt;"
    assert labelled("3.1 quantile", "") == "3.1 quantile"


def test_markup_in_a_page_is_text() -> None:
    shown = to_html("# A <i>\n\n| a |\n|---|\n| <b> |\n\n[<u>](x)", lambda target: target)
    assert "<i>" not in shown and "<b>" not in shown and "<u>" not in shown


def test_the_package_takes_the_pages_with_it() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert built["targets"]["wheel"]["force-include"] == {
        f"docs/{name}.md": f"gradeq/paper/documents/{name}.md" for name in TITLES
    }
