"""Figures printed with --weight are found again by numpy: plain weighted means, relative ones where that is said."""

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from cli.calling import column, here, ok, write
from gradeq.report.numerals import short

WEIGHTS = {
    "mild": lambda rng, n: rng.uniform(0.5, 2.0, n),
    "wide": lambda rng, n: 10.0 ** rng.uniform(-6, 6, n),
    "zeros": lambda rng, n: rng.choice([0.0, 0.5, 3.0], n),
    "falling": lambda rng, n: np.exp(-np.arange(n) / 60.0),
}
SETTINGS = [(), ("--by", "g"), ("--key", "k"), ("--by", "g", "--key", "k"), ("--by", "g", "--by", "k")]
BY_RELATIVE_WEIGHT = "by relative weight: each weight divided by the mean of the positive ones served so far"


def relative(w):
    """The documented line: each positive weight over the mean of those so far."""
    return w / (np.cumsum(w) / np.arange(1, len(w) + 1))


def mean(values, weights):
    return float(np.average(values, weights=weights))


class Made(NamedTuple):
    """A file as arrays, the weights that its rows are learned with, what was served, and what was printed."""

    columns: dict[str, Any]
    relative: Any
    served: Any
    json: Any
    text: str


def made(tmp_path, weights, command, more, y=None):
    rng, n = np.random.default_rng(len(weights) + len(more)), 300
    f = rng.normal(50.0, 5.0, n) if y is None else rng.uniform(0.1, 0.9, n)
    w = WEIGHTS[weights](rng, n)
    label = f + rng.normal(1.0, 2.0, n) + (w > np.median(w)) if y is None else y(rng, n)
    own = {"f": f, "y": label, "w": w, "g": rng.choice(["a", "b"], n), "k": rng.choice(["p", "q"], n)}
    file = write(tmp_path / "in.csv", [dict(zip(own, row, strict=True)) for row in zip(*own.values(), strict=True)])
    call = (command, file, "--prediction", "f", "--label", "y", "--weight", "w", *more)
    out = tmp_path / "out.csv"
    json, text = ok(here(*call, "-o", out, "--json")).json, ok(here(*call)).out
    share = np.zeros(n)
    for key in np.unique(own["k"]) if "--key" in more else [None]:
        mine = (w > 0) if key is None else (w > 0) & (own["k"] == key)
        share[mine] = relative(w[mine])
    (new,) = [c for c in out.read_text().splitlines()[0].split(",") if c not in own]
    return Made(own, share, np.array(column(out, new)), json, text)


def pinball(y, q, tau=0.8):
    return np.maximum(tau * (y - q), (tau - 1) * (y - q))


def near(said, value):
    assert said == pytest.approx(value, rel=1e-9, abs=1e-9)


def check(own, what, measures, losses):
    """All figures of a file: ``measures`` and ``losses`` of each row, before and after."""
    w, found, first = own.columns["w"], own.json, own.text.splitlines()[0]
    for said, rows in ((found[what], measures), (found["loss"], losses)):
        for when, values in zip(("before", "after"), rows, strict=True):
            near(said[when], mean(values, w))
    arrows = [" -> ".join(short(mean(v, w)) for v in rows) for rows in (measures, losses)]
    assert first.split("; certificate")[0].count(arrows[0]) == 1 and f"loss {arrows[1]};" in first.replace(
        "squared error", "loss"
    )
    groups = {group["name"]: group for group in found["groups"]}
    for name, group in groups.items():
        mine = own.columns[name[0]] == name[2:]
        for said, rows in ((group[what], measures), (group["loss"], losses)):
            for when, values in zip(("before", "after"), rows, strict=True):
                near(said[when], mean(values[mine], w[mine]))
        cells = [short(mean(v[mine], w[mine])) for v in (*measures, *losses)]
        assert re.search(rf"^{name} +[\d,]+ +{' +'.join(map(re.escape, cells))} ", own.text, re.M), own.text
    certified(own, what, measures, losses)
    series(own, what, measures, losses)


def certified(own, what, measures, losses):
    """The certificate and what was learned from are by relative weight, and say so."""
    w, learned, text = own.relative, own.json["learned_from"], " ".join(own.text.split())
    assert learned["weights"] == own.json["certificate"]["weights"] == "relative"
    known = [(learned["loss"], losses), *([(learned[what], measures)] if what in learned else [])]
    for said, rows in known:
        for when, values in zip(("before", "after"), rows, strict=True):
            near(said[when], mean(values, w))
    shown = [" -> ".join(short(mean(v, w)) for v in rows) for rows in (measures, losses)]
    name = "squared error" if what == "bias" else "pinball loss"
    first = f"{what} {shown[0]}, " if what in learned else ""  # series with groups have no coverage of their own
    assert f"learned from, by relative weight: {first}{name} {shown[1]}, " in text
    assert BY_RELATIVE_WEIGHT in text and "plain weighted means, sum(w x) / sum(w)" in text
    error = measures[1] - (0.0 if what == "bias" else 0.8)
    for name, average in own.json["certificate"]["average_gradient"].items():
        if name == "(all)" or name[:2] in ("g=", "k="):
            mine = np.ones(len(w), bool) if name == "(all)" else own.columns[name[0]] == name[2:]
            near(average, float(np.sum((w * error)[mine]) / w.sum()))


def series(own, what, measures, losses):
    if "series" not in own.json:
        return
    found = own.json["series"]
    assert found["weights"] == "relative" and "(averages of a series: by relative weight)" in own.text
    for one in found["worst"]:
        key, _, group = one["key"].partition(", g=")
        mine = (own.columns["k"] == key) & ((own.columns["g"] == group) | (group == ""))
        for said, rows in ((one[what], measures), (one["loss"], losses)):
            for when, values in zip(("before", "after"), rows, strict=True):
                near(said[when], mean(values[mine], own.relative[mine]))
        cells = [short(mean(v[mine], own.relative[mine])) for v in (*measures, *losses)]
        line = rf"^{one['key']} +[\d,]+ +{' +'.join(map(re.escape, cells))}$"
        assert len(re.findall(line, own.text, re.M)) == 2, own.text


@pytest.mark.parametrize("more", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weighted_bias_and_squared_error_are_found_again(tmp_path, weights, more):
    own = made(tmp_path, weights, "debias", (*more, "--eta", "0.05"))
    e = [value - own.columns["y"] for value in (own.columns["f"], own.served)]
    check(own, "bias", e, [values**2 for values in e])


@pytest.mark.parametrize("more", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weighted_coverage_and_pinball_loss_are_found_again(tmp_path, weights, more):
    own = made(tmp_path, weights, "quantile", (*more, "--level", "0.8", "--eta", "0.05"))
    y, values = own.columns["y"], (own.columns["f"], own.served)
    check(own, "coverage", [(y <= q).astype(float) for q in values], [pinball(y, q) for q in values])
    assert re.search(r" of [\d,]+ labels by weight; target 80 %", " ".join(own.text.split()))


def test_weighted_log_loss_is_found_again(tmp_path):
    own = made(tmp_path, "wide", "debias", ("--outcome", "binary"), lambda rng, n: rng.integers(0, 2, n))
    y = own.columns["y"]
    for when, p in (("before", own.columns["f"]), ("after", own.served)):
        near(own.json["log_loss"][when], mean(-np.log(np.where(y == 1, p, 1 - p)), own.columns["w"]))


@pytest.mark.parametrize("more", [("--by", "g"), ("--key", "k")], ids=" ".join)
def test_the_page_says_which_weights_its_figures_are_over(tmp_path, more):
    made(tmp_path, "mild", "debias", (*more, "--eta", "0.05"))
    page = tmp_path / "r.html"
    call = ("--prediction", "f", "--label", "y", "--weight", "w", *more, "--report", page, "--quiet")
    ok(here("debias", tmp_path / "in.csv", *call))
    text = page.read_text()
    assert BY_RELATIVE_WEIGHT in text and "learned from, by relative weight" in text


def test_equal_weights_need_no_second_set_of_figures(tmp_path):
    file = write(tmp_path / "in.csv", [{"f": i % 7, "y": i % 5, "w": 2500.0} for i in range(100)])
    call = ("debias", file, "--prediction", "f", "--label", "y", "--weight", "w", "--eta", "0.1")
    assert "relative" not in ok(here(*call)).out
    assert "weights" not in ok(here(*call, "--json")).json["certificate"]


def test_a_state_says_that_its_averages_are_by_relative_weight(tmp_path):
    """Also in a run without weights that continues it, in `gradeq audit`, and in Python."""
    made(tmp_path, "mild", "debias", ("--eta", "0.05"))
    call = ("--prediction", "f", "--label", "y", "--eta", "0.05", "--state", tmp_path / "s.json")
    ok(here("debias", tmp_path / "in.csv", *call, "--weight", "w"))
    said = " ".join(ok(here("debias", tmp_path / "in.csv", *call, "--again")).out.split())
    assert "since the state began, by relative weight" in said and BY_RELATIVE_WEIGHT in said
    assert "plain weighted means" not in said
    assert "by relative weight" in ok(here("audit", tmp_path / "s.json")).out
