"""A bound is vacuous exactly if it is not below the raw error; nothing is called vacuous where there is no bound."""

import json
import math

import numpy as np
import pytest

import gradeq as gq
from cli.calling import here, ok
from gradeq.certificates.figures import no_guarantee


def raw_error(errors):
    mean = abs(float(np.mean(errors)))
    return max(mean, float(np.std(errors)) / math.sqrt(len(errors)))


@pytest.mark.parametrize("shift", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("n", [20, 300, 20_000])
@pytest.mark.parametrize("eta", [0.05, "auto"])
def test_a_mean_is_judged_by_its_raw_error_or_its_standard_error(eta, n, shift):
    y = np.random.default_rng(n).normal(shift, 1.0, n)
    layer = gq.Debiaser(eta=eta)
    layer.run(np.zeros(n), y)
    found = layer.equilibrium()
    assert found.vacuous is not (found.bound < raw_error(-y))
    assert found.coordinates[0].vacuous is found.vacuous
    assert (found.needed is not None) == found.vacuous
    said = "no worst-case guarantee yet; it needs about" in str(found)
    assert said == found.vacuous == ("proven limit" not in found.verdict())
    if found.vacuous:
        assert found.needed > n and found.needed == layer.labels_until(raw_error(-y)) + n


def test_the_bound_of_the_issue_is_vacuous():
    """264 minutes for a raw bias of 1.6."""
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.normal(1.6, 40.0, n)
    y[::500] = 1200.0
    layer = gq.Debiaser()
    times = np.arange(float(n))
    layer.run(np.zeros(n), y, times=times, label_times=times + rng.integers(1, 300, n))
    found = layer.equilibrium()
    assert found.bound < 1200.0 and found.bound > raw_error(y) and found.vacuous


def test_each_group_is_judged_by_its_own_raw_error():
    rng = np.random.default_rng(1)
    g = rng.choice(["a", "b"], 2000)
    y = np.where(g == "a", 5.0, 0.0) + rng.normal(size=2000)
    layer = gq.Debiaser(eta=0.05, groups=["g"])
    layer.run(np.zeros(2000), y, groups={"g": g})
    a, b = sorted(layer.equilibrium().coordinates, key=lambda c: c.name)
    assert a.vacuous is False and b.vacuous is True
    for c in (a, b):
        assert c.vacuous is not (c.bound < raw_error(y[g == c.name[-1]]))


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_coverages_are_judged_by_how_far_off_they_were_or_five_points(n):
    y = np.random.default_rng(2).normal(size=n)
    layers = [gq.QuantileTracker(0.5, 0.1), gq.QuantileTracker(0.9, 0.1), gq.IntervalTracker(0.8, 0.1)]
    for layer in layers:
        layer.run(np.zeros(n), y)
        own = layer.coverage
        assert own.vacuous is not (own.bound < max(abs(own.before - own.target), 0.05))


def test_players_are_judged_by_their_win_rate_or_five_points():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 6, 4000)
    b = (a + 1 + rng.integers(0, 5, 4000)) % 6
    elo = gq.Elo(0.2)
    elo.run([f"p{i}" for i in a], [f"p{i}" for i in b], ((a > b) ^ (rng.random(4000) < 0.1)) * 1.0)
    rows = elo.leaderboard()
    assert {row.vacuous for row in rows} == {True, False}
    for row in rows:
        assert row.vacuous == (not row.bound < max(abs(row.win_rate - 0.5), 0.05))


PERFECT = {
    "auto": (gq.Debiaser, 1.0), "plain": (lambda: gq.Debiaser("plain"), 1.0),
    "large": (gq.Debiaser, 1e9), "small": (gq.Debiaser, 1e-9), "zero": (gq.Debiaser, 0.0),
    "groups": (lambda: gq.Debiaser(groups=["g"]), 1.0),
    "overlapping": (lambda: gq.Debiaser(0.1, groups=["g", "h"]), 1.0),
    "keys": (lambda: gq.Keyed(gq.Debiaser()), 1.0), "exp": (lambda: gq.Debiaser(link="exp"), 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", PERFECT)
def test_a_bound_that_is_rounding_is_no_missing_guarantee(name):
    """A model that is always right has a raw error of 0, and no bound is below that."""
    make, unit = PERFECT[name]
    f, two = np.exp(np.random.default_rng(3).normal(size=60)) * unit, ["a", "b"] * 30
    given = {"keys": {"key": two}, "groups": {"groups": {"g": two}}}.get(name, {})
    if name == "overlapping":
        given = {"groups": {"g": two, "h": ["x"] * 60}}
    layer = make()
    layer.run(f, f, **given)
    found = layer.equilibrium()
    assert found.bound <= 1e-9 * unit and "guarantee" not in str(found)
    assert found.vacuous is False and not any(c.vacuous for c in found.coordinates)


def test_a_perfect_group_among_others_is_judged_by_what_others_do_to_it():
    g = np.array(["a", "b"] * 30)
    f = np.random.default_rng(3).normal(size=60)
    layer = gq.Debiaser(groups=["g"])
    layer.run(f, f + 100.0 * ((g == "b") & (np.arange(60) == 7)), groups={"g": g})
    found = {c.name: c for c in layer.equilibrium().coordinates}["g=a"]
    assert found.bias_before == 0.0 < abs(found.bias_after) < found.bound and found.vacuous


def test_nothing_is_vacuous_where_there_is_no_bound():
    layer = gq.Debiaser(eta=0.1)
    for i in range(30):
        layer.predict(0.0, id=i)
        layer.update(1.0, id=i)
    layer.correct(3, 2.0)
    found = layer.equilibrium()
    assert found.bound is None and found.vacuous is None
    assert found.certificate["vacuous"] is None and found.coordinates[0].vacuous is None
    assert json.loads(json.dumps(found.as_dict()))["certificate"]["vacuous"] is None


def test_the_leaderboard_file_holds_no_bound_above_one(tmp_path):
    rng = np.random.default_rng(4)
    lines = [f"p{rng.integers(0, 4)},q{rng.integers(0, 4)},a" for _ in range(60)]
    (tmp_path / "games.csv").write_text("\n".join(["a,b,winner", *lines]))
    sides = ("--a", "a", "--b", "b", "--winner", "winner")
    for eta in (0.01, 3.0):
        ok(here("elo", tmp_path / "games.csv", *sides, "--eta", eta, "-o", tmp_path / "out.csv"))
        header, *rows = (line.split(",") for line in (tmp_path / "out.csv").read_text().split())
        bounds = [row[header.index("bound")] for row in rows]
        assert all(not bound or float(bound) <= 1.0 for bound in bounds)
        assert any(not bound for bound in bounds) or eta == 3.0


def test_what_never_gets_there_says_so():
    assert no_guarantee(None).endswith("more labels would not bring one")
    assert no_guarantee(57) == "no worst-case guarantee yet; it needs about 57 labels"
    assert no_guarantee(10**12).endswith("more than a billion labels")
