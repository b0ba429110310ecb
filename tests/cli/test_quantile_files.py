"""gradeq quantile on files gives what the library gives, and says how much is covered."""

from pathlib import Path

import numpy as np
import pytest

from cli.calling import column, gradeq, here, ok, prices, refused, table, write
from gradeq.layers.ensemble import QuantileEnsemble
from gradeq.layers.quantile import IntervalTracker, MultiQuantileTracker, QuantileTracker

LABEL = ("--label", "price")
ONE = ("--prediction", "forecast", *LABEL)
TWO = ("--prediction", "low", "--prediction", "high", *LABEL)


@pytest.fixture
def rows():
    return prices()


@pytest.fixture
def file(rows, tmp_path: Path) -> Path:
    return write(tmp_path / "prices.csv", rows)


def numbers(rows, *names: str) -> np.ndarray:
    found = np.array([[row[name] for name in names] for row in rows], dtype=float)
    return found[:, 0] if len(names) == 1 else found


def test_one_level_is_the_tracker_s_and_its_coverage_is_counted(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    done = gradeq("quantile", file, *ONE, "--level", "0.9", "-o", out, "--json", cwd=tmp_path)
    found = ok(done).json
    y = numbers(rows, "price")
    run = QuantileTracker(0.9).run(numbers(rows, "forecast"), y)
    served = np.array(column(out, "adjusted"))
    np.testing.assert_array_equal(served, run.served)
    assert found["eta"] == 0.03 and found["command"] == "quantile"
    assert found["coverage"]["target"] == 0.9
    assert found["coverage"]["after"] == pytest.approx((y <= served).mean(), abs=1e-15)
    assert found["coverage"]["before"] == pytest.approx((y <= numbers(rows, "forecast")).mean(), abs=1e-15)
    pinball = np.where(y > served, 0.9 * (y - served), 0.1 * (served - y)).mean()
    assert found["loss"]["name"] == "pinball"
    assert found["loss"]["after"] == pytest.approx(pinball, abs=1e-14)
    certificate = found["certificate"]
    assert certificate["gap"] < 1e-14
    gap = certificate["average_gradient"]["(all)"] - (found["coverage"]["after"] - 0.9)
    assert abs(gap) < 1e-14 and abs(found["coverage"]["after"] - 0.9) <= certificate["bound"]


@pytest.mark.parametrize("typed", [("0.10", "0.5", "0.9"), ("0.9", "0.10", "0.5")])
def test_several_levels_never_cross_and_keep_their_names_as_typed(file, rows, tmp_path, typed):
    out = tmp_path / "out.csv"
    given = {"0.10": "low", "0.5": "forecast", "0.9": "high"}
    options = [o for level in typed for o in ("--level", level, "--prediction", given[level])]
    found = ok(here("quantile", file, *LABEL, *options, "-o", out, "--json")).json
    names = ["adjusted_0.10", "adjusted_0.5", "adjusted_0.9"]
    served = np.array([column(out, name) for name in names]).T
    layer = MultiQuantileTracker([0.1, 0.5, 0.9])
    run = layer.run(numbers(rows, "low", "forecast", "high"), numbers(rows, "price"))
    np.testing.assert_array_equal(served, run.served)
    assert (np.diff(served, axis=1) >= 0.0).all()
    assert [entry["level"] for entry in found["coverage"]] == [0.1, 0.5, 0.9]
    assert found["certificate"]["gap"] < 1e-14
    assert found["theta"] == layer.theta


def test_an_interval_by_group_has_lower_and_upper(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    options = ("--interval", "0.8", "--by", "weekday")
    found = ok(here("quantile", file, *TWO, *options, "-o", out, "--json")).json
    layer = IntervalTracker(0.8, groups=["weekday"])
    weekdays = {"weekday": [row["weekday"] for row in rows]}
    run = layer.run(numbers(rows, "low", "high"), numbers(rows, "price"), groups=weekdays)
    ends = np.array([column(out, "lower"), column(out, "upper")]).T
    np.testing.assert_array_equal(ends, run.served)
    y = numbers(rows, "price")
    inside = (ends[:, 0] < y) & (y <= ends[:, 1])
    assert found["coverage"]["after"] == pytest.approx(inside.mean(), abs=1e-15)
    monday = next(group for group in found["groups"] if group["name"] == "weekday=M0")
    mine = np.array([row["weekday"] == "M0" for row in rows])
    assert monday["coverage"]["after"] == pytest.approx(inside[mine].mean(), abs=1e-15)
    assert found["certificate"]["gap"] < 1e-14


def test_an_ensemble_alone_says_that_coverage_is_not_guaranteed(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    options = ("--level", "0.9", "--ensemble", "0.01,0.1,1", "--ensemble-eta", "0.5", "-o", out)
    found = ok(here("quantile", file, *ONE, *options, "--json")).json
    plain = QuantileEnsemble(0.9, [0.01, 0.1, 1.0], 0.5, final_eta=None, link="linear")
    run = plain.run(numbers(rows, "forecast"), numbers(rows, "price"))
    np.testing.assert_array_equal(column(out, "adjusted"), run.served)
    assert found["weights"] == plain.tracker_weights
    assert any("not guaranteed" in warning["claim"] for warning in found["warnings"])
    found = ok(here("quantile", file, *ONE, *options, "--eta", "0.05", "--json")).json
    final = QuantileEnsemble(0.9, [0.01, 0.1, 1.0], 0.5, final_eta=0.05)
    run = final.run(numbers(rows, "forecast"), numbers(rows, "price"))
    np.testing.assert_array_equal(column(out, "adjusted"), run.served)
    assert not any("not guaranteed" in warning["claim"] for warning in found["warnings"])


def test_the_linear_link_needs_a_step_and_states_resume(file, rows, tmp_path):
    line = refused(here("quantile", file, *ONE, "--level", "0.9", "--link", "linear"))
    assert "eta is required" in line
    halves = [write(tmp_path / f"{k}.csv", part) for k, part in enumerate((rows[:99], rows[99:]))]
    state, values = tmp_path / "s.json", []
    for half in halves:
        out = tmp_path / "out.csv"
        ok(here("quantile", half, *TWO, "--interval", "0.8", "--state", state, "-o", out))
        values += [(row["lower"], row["upper"]) for row in table(out)]
    ok(here("quantile", file, *TWO, "--interval", "0.8", "-o", tmp_path / "whole.csv"))
    assert values == [(row["lower"], row["upper"]) for row in table(tmp_path / "whole.csv")]


def test_column_renames_what_is_new(file, tmp_path):
    out = tmp_path / "out.csv"
    ok(here("quantile", file, *ONE, "--level", "0.9", "--column", "q", "-o", out, "--quiet"))
    assert list(table(out)[0])[-1] == "q"
    ok(here("quantile", file, *TWO, "--interval", "0.9", "--column", "q", "-o", out, "--quiet"))
    assert list(table(out)[0])[-2:] == ["q_lower", "q_upper"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([*ONE, "--level", "1.5"], "(0, 1)"),
        ([*ONE, "--level", "0"], "(0, 1)"),
        ([*ONE, "--level", "high"], "number"),
        ([*ONE], "--interval"),
        ([*ONE, "--level", "0.9", "--interval", "0.8"], "one of the two"),
        ([*TWO, "--level", "0.9"], "--prediction"),
        ([*ONE, "--level", "0.5", "--level", "0.50"], "twice"),
        ([*ONE, "--level", "0.9", "--ensemble", "0.1,-1", "--ensemble-eta", "1"], "-1"),
        ([*ONE, "--level", "0.9", "--ensemble", "0.1"], "--ensemble-eta"),
        ([*ONE, "--level", "0.1", "--level", "0.9", "--ensemble", "1", "--ensemble-eta", "1"],
         "one level"),
    ],
)  # fmt: skip
def test_levels_that_make_no_sense_are_refused(file, options, word):
    assert word in refused(here("quantile", file, *options))


def test_an_ensemble_without_a_final_tracker_takes_no_other_link_than_linear(file, tmp_path):
    options = ("--prediction", "forecast", "--label", "price", "--level", "0.9")
    options += ("--ensemble", "0.1,1", "--ensemble-eta", "0.1")
    line = refused(here("quantile", file, *options, "--link", "sinh"))
    assert "--link sinh" in line and "give --eta" in line
    plain = ok(here("quantile", file, *options, "--json")).json
    assert ok(here("quantile", file, *options, "--link", "linear", "--json")).json == plain
    state = tmp_path / "s.json"
    ok(here("quantile", file, *options, "--link", "sinh", "--eta", "0.1", "--state", state))
    ok(here("quantile", file, *options, "--link", "sinh", "--state", state, "--again"))
