"""The benchmark of quality measures what it says: rivals written out, no label before its time, a page by itself."""

import numpy as np
import pytest

from benchmarks import quality
from benchmarks.quality_delays import DELAYS
from benchmarks.quality_exact import gap
from benchmarks.quality_page import late_page
from benchmarks.quality_rules import MONTH, RULES
from benchmarks.quality_streams import LEVEL, Stream

KINDS = ("real", "binary", "quantile")


def invented(kind, n=400):
    rng = np.random.default_rng(3)
    served = 19000.0 + np.sort(rng.uniform(0.0, 90.0, n))
    group = rng.choice(["a", "b"], n)
    f = rng.uniform(0.2, 0.8, n)
    y = (rng.random(n) < f).astype(float) if kind == "binary" else f + rng.normal(0.3, 1.0, n)
    return Stream("invented", "design", kind, f, y, group, served, served + 0.5)


def by_hand(stream, due, begin, end):
    """Row by row: the labels of its group that came within (begin, end] of the row, and before the row."""
    served = []
    for i, (f, g) in enumerate(zip(stream.f, stream.group, strict=True)):
        came = stream.served if due is None else due
        known = (came > begin[i]) & (came <= end[i]) & (stream.group == g)
        if due is None:
            known[i:] = False
        residuals = (stream.y - stream.f)[known]
        offset = 0.0
        if len(residuals) >= 5:
            quantile = stream.kind == "quantile"
            offset = np.quantile(residuals, LEVEL) if quantile else residuals.mean()
        served.append(f + offset)
    return np.clip(served, 0.0, 1.0) if stream.kind == "binary" else np.array(served)


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_by_hand_are_what_they_say(kind, delay):
    stream = invented(kind)
    due = None if DELAYS[delay] is None else DELAYS[delay](stream)
    now = np.floor(stream.served) if kind == "quantile" else stream.served
    expected = by_hand(stream, due, now - 14.0, now)
    assert RULES["rolling 14 d"](stream, due).values == pytest.approx(expected, abs=1e-12)
    turn = np.floor(stream.served / MONTH) * MONTH
    expected = by_hand(stream, due, turn - MONTH, turn)
    assert RULES["monthly"](stream, due).values == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("delay", ["at once", "3 days, 8 % lost", "outage of 30 days"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_holds_auto_against_the_plain_program(kind, delay):
    stream = invented(kind)
    assert quality.one(stream, delay, 0).gap < 1e-9
    due = None if DELAYS[delay] is None else DELAYS[delay](stream)
    served = RULES["auto"](stream, due).values.copy()
    served[-1] += 1e-6
    assert gap(stream, due, served, len(served)) > 1e-7
    assert gap(stream, due, served, len(served) - 1) < 1e-9


def test_no_rule_knows_a_label_before_it_comes():
    for kind in KINDS:
        stream = invented(kind)
        due = DELAYS["outage of 30 days"](stream)
        other = stream._replace(y=np.where(due > stream.served[200], 1.0 - stream.y, stream.y))
        for rule in RULES.values():
            one, two = (rule(each, due).values[:201] for each in (stream, other))
            assert np.array_equal(one, two)


def test_the_page_stands_by_itself_and_has_every_figure():
    found = [quality.one(invented(kind), delay, 50) for kind in KINDS for delay in DELAYS]
    held = list(quality.targets(found))
    text = late_page(found, held)
    assert "http" not in text.replace("http://www.w3.org", "") and "<script" not in text
    assert all(f"<td>{rule}</td>" in text for rule in RULES)
    assert all(target.split(":")[0] in text for _, target in held)
    assert f"All {len(found) * len(RULES):,} figures" in text
