"""Results in notebooks: the same sentence as in print, a small table, and no text that becomes markup."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import gradeq as gq

EVIL = "<script>alert(1)</script>&\"'"
TAGS = {"p", "table", "thead", "tbody", "tr", "th", "td", "bdi"}


class Parsed(HTMLParser):
    """The tags of a piece of HTML with their attributes, its text, and whether every tag is closed in order."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[Any] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def results(rows: int, name: str = EVIL) -> dict[str, Any]:
    """Every result that has a face in notebooks, of layers that saw this many rows of groups of this name."""
    rng = np.random.default_rng(0)
    f, groups = rng.normal(100, 10, rows), np.full(rows, name, dtype=object)
    y = f + 3 + rng.normal(0, 5, rows)
    layer, interval = gq.Debiaser(eta=0.05, groups=["who"]), gq.IntervalTracker(0.9)
    many, elo = gq.Keyed(gq.Debiaser(eta=0.05)), gq.Elo()
    keys = np.array([f"{name}{k % 15}" for k in range(rows)], dtype=object)
    run = layer.run(f, y, groups={"who": groups})
    many.run(f, y, key=keys)
    elo.run(keys, np.roll(keys, 1), np.tile([0.0, 1.0, 0.5], rows)[:rows])
    return {
        "Equilibrium": layer.equilibrium(),
        "Run": run,
        "Run of intervals": interval.run(f, y),
        "KeyTable": many.table(),
        "Board": elo.board(),
    }


@pytest.mark.parametrize("kind", list(results(2, "a")))
@pytest.mark.parametrize("rows", [0, 60])
def test_no_name_becomes_markup_and_nothing_is_styled(kind: str, rows: int) -> None:
    markup = results(rows)[kind]._repr_html_()
    parsed = Parsed(markup)
    assert parsed.tags <= TAGS and not parsed.attributes and not parsed.open
    markup.encode("utf-8")
    if rows and not kind.startswith("Run"):
        assert "<script>" in "".join(parsed.text)


def test_the_sentence_is_the_printed_one() -> None:
    found = results(60, "a")
    assert Parsed(found["Equilibrium"]._repr_html_()).text[0] == found["Equilibrium"].verdict()
    assert Parsed(found["Run"]._repr_html_()).text[0] == repr(found["Run"])
    assert Parsed(found["KeyTable"]._repr_html_()).text[0] == repr(found["KeyTable"])
    assert Parsed(found["Board"]._repr_html_()).text[0].startswith(found["Board"].lines[0])


def test_the_cells_are_those_of_the_printed_table() -> None:
    layer = gq.Debiaser(eta=0.05, groups=["who"])
    layer.run([1.0, 2.0, 3.0], [2.0, 2.0, 5.0], groups={"who": ["a", "b", "a"]})
    found = layer.equilibrium()
    printed = str(found).splitlines()[2:]
    shown = Parsed(found._repr_html_()).text
    assert len(printed) == 2
    for line in printed:
        for cell in re.split(" {2,}", line):
            assert cell in shown


def test_long_results_are_cut_short_and_say_so() -> None:
    keys = [f"key {k}" for k in range(3000)]
    many = gq.Keyed(gq.Debiaser(eta=0.05))
    many.run(np.zeros(3000), np.arange(3000.0), key=keys)
    layer = gq.Debiaser(eta=0.05, groups=["who"])
    layer.run(np.zeros(3000), np.arange(3000.0), groups={"who": keys})
    for found, more in ((many.table(), "2,990"), (layer.equilibrium(), "2,980")):
        markup = found._repr_html_()
        assert f"... and {more} with less" in markup and len(markup) < 5000
        assert "key 2999" in markup


def test_controls_and_broken_surrogates_are_shown_as_such() -> None:
    from gradeq.tables import html_table

    markup = html_table("a\ud800b", ["x"], [["c\x00d"]])
    assert "\ufffd" in markup and "\x00" not in markup
    markup.encode("utf-8")
