"""The theory as experiments: no bound is exceeded, the sharp ones are attained, every erratum is one."""

import math

import numpy as np
import pytest

from gradeq.paper import errata
from gradeq.schedules import Power

ATTAINED = (
    "3.1 quantile", "3.2 squared error", "3.2 squared error, η = 1.5", "3.3 logistic, ε = 0.01",
    "3.4 logistic, hard labels", "3.5 Poisson", "4 disjoint groups, the rare one",
    "5.2 squared error, features", "5.3 quantile, features", "7.3 floored simplex",
    "8.2 missing labels", "8.3 widening range",
)  # fmt: skip


@pytest.mark.parametrize("name", ["bounds-one", "bounds-many", "bounds-more"])
def test_no_run_exceeds_its_bound_and_sharp_bounds_are_attained(found, name) -> None:
    numbers = found(name).numbers
    assert len(numbers) == 8
    for number in numbers:
        assert 0.0 < number.ours <= 1.0 + 1e-9, number.name
        if number.name.removesuffix(": run / bound") in ATTAINED:
            assert number.ours > 0.99, number.name


def test_every_section_of_the_bounds_from_3_to_8_is_tried(found) -> None:
    titles = [n.name for name in ("bounds-one", "bounds-many", "bounds-more") for n in found(name).numbers]
    tried = {title.split()[0] for title in titles}
    assert {"3.1", "3.2", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "6.1", "6.2"} <= tried
    assert {"7.1", "7.3", "7.5", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7"} <= tried


def test_in_every_erratum_a_run_leaves_what_is_printed() -> None:
    found = [erratum() for erratum in errata.ERRATA]
    assert [int(item.panel.title.split()[0]) for item in found] == [
        1, 2, 3, 7, 8, 10, 12, 27, 28, 29, 31, 38, 46, 47, 52,
    ]  # fmt: skip
    for item in found:
        assert item.happens > item.allows, item.panel.title
    by_row = {int(item.panel.title.split()[0]): item for item in found}
    assert by_row[1].happens == pytest.approx(48.95, abs=1e-9)
    assert (by_row[28].happens, by_row[28].allows) == pytest.approx((0.43266, 0.40294), abs=1e-5)
    assert by_row[29].happens == pytest.approx(531441.0)
    for row in (1, 3, 7, 12, 27, 31, 38, 46, 47, 52):
        assert by_row[row].holds < by_row[row].happens


def test_what_is_called_printed_is_the_papers_formula_on_that_run() -> None:
    """The right side of each printed bound with the numbers of the run, worked out by hand; else a limit of 0."""
    allowed = {
        2: 2.0 * 1.0 / 3000,
        7: 0.5 + (1.0 + 0.0) / (1.0 * 1000),
        8: 1.0 * 0.1 + math.log(1.0 / 0.02),
        10: 2.0 * 0.1 + math.log(1.0 / 0.01),
        28: math.sqrt(sum(t**-1.0 for t in range(1, 24)) / 23),
        29: max(1.0, 0.001) + 0.1 * 0.1,
        38: (0.5 + 1.0) / (0.5 * 20_000),
    }
    for item in [erratum() for erratum in errata.ERRATA]:
        row = int(item.panel.title.split()[0])
        assert item.allows == pytest.approx(allowed.get(row, 0.0), rel=1e-9), row
        assert item.limit == (row in {1, 3, 27, 31, 47})


def test_every_counterexample_meets_every_condition_of_what_it_speaks_against() -> None:
    for item in [erratum() for erratum in errata.ERRATA]:
        assert item.assumes
        for condition, is_met in item.assumes.items():
            assert is_met, (item.panel.title, condition)


@pytest.mark.parametrize(
    ("counterexample", "change"),
    [
        (errata.introduction, {"residual": 2.0}),
        (errata.bounded_iterates, {"b": 0.5}),
        (errata.converging_iterates, {"step": Power(0.5, 0.0)}),
        (errata.ties, {"label": 1.0}),
        (errata.logistic_range, {"label": 0.995}),
        (errata.classifier, {"p": 0.001}),
        (errata.classifier, {"y": 0.5}),
        (errata.strong_monotonicity, {"b": 0.5}),
        (errata.strong_monotonicity, {"curvature": 3.0}),
        (errata.strong_monotonicity, {"side": 2.0}),
        (errata.vanishing_steps, {"power": 1.0}),
        (errata.root_term, {"alpha": 1.0}),
        (errata.root_term, {"size": 2.0}),
        (errata.squared_step, {"eta": 0.3}),
        (errata.unsigned_elo, {"rounds": 5}),
        (errata.algorithm_5, {"reach": 1.5}),
        (errata.simplex_cone, {"corner": (0.5, 0.5)}),
        (errata.simplex_support, {"off": 0.5}),
        (errata.cone_test, {"low": 0.0}),
    ],
)
def test_a_run_that_breaks_a_condition_is_no_counterexample(counterexample, change) -> None:
    assert counterexample().is_fair and counterexample().verdict.startswith("printed")
    broken = counterexample(**change)
    assert not broken.is_fair
    assert broken.verdict.startswith("not a counterexample")


def test_the_spiral_without_curvature_attains_its_bound(found) -> None:
    result = found("spiral-bounds")
    assert result.number("zero curvature: largest radius / bound").ours == pytest.approx(1.0)
    assert result.number("positive curvature: largest radius / bound").ours < 1.0


def test_ratings_grow_by_half_of_players_less_one_a_decade(found) -> None:
    result = found("elo-growth")
    for players in (2, 4, 6):
        grown = result.number(f"{players} players: growth over the last tenfold of games").ours
        assert grown == pytest.approx((players - 1) / 2 * math.log(10), rel=0.05)
        assert result.number(f"{players} players: largest rating / bound").ours <= 1.0


def test_examples_separate_regret_from_equilibrium(found) -> None:
    numbers = {n.name: n.ours for n in found("regret-examples").numbers}
    assert numbers["Example 1: θ = 1/t on |θ|: regret / T"] < 0.01
    assert numbers["Example 1: θ = 1/t on |θ|: |average gradient|"] == 1.0
    assert numbers["Example 1: θ = ±1 on |θ|: regret / T"] == 1.0
    assert numbers["Example 1: θ = ±1 on |θ|: |average gradient|"] == 0.0
    assert abs(numbers["Example 2: squared losses: regret / T"]) < 1e-12
    assert numbers["Example 2: squared losses: |average gradient|"] == pytest.approx(
        numbers["Example 2: bias by the paper's formula"]
    )
    for case in ("Example 2: squared losses", "Proposition 1: any labels"):
        assert numbers[f"{case}: largest |regret| / T"] < 1e-12


def test_late_flights_need_the_cap(found) -> None:
    numbers = {n.name: n.ours for n in found("flights-delayed").numbers}
    assert numbers["largest |θ|, not capped, minutes"] > 1e4
    assert numbers["largest |θ|, capped, minutes"] < 100.0
    # The step of a label is at most 0.1 over the peak lateness, here some 840 flights.
    assert numbers["bias after, capped, minutes"] == pytest.approx(-0.257041, abs=1e-6)
    assert abs(numbers["bias after, capped, minutes"]) < 0.2 * abs(numbers["bias before, minutes"])
    after, before = (f"root mean squared error {when}, minutes" for when in ("after, capped", "before"))
    assert numbers[after] < numbers[before]


def test_levels_and_weekdays_are_covered_better_than_before(found) -> None:
    covid = {n.name: n.ours for n in found("covid-quantiles").numbers}
    for h in (1, 2, 3, 4):
        ahead = f"{h} week" if h == 1 else f"{h} weeks"
        tracked = covid[f"mean coverage error, {ahead}, tracked"]
        assert tracked < 0.6 * covid[f"mean coverage error, {ahead}, raw"]
        assert covid[f"rows where levels cross, {ahead}"] == 0.0
    days = {n.name: n.ours for n in found("elec2-groups").numbers}
    assert days["worst weekday's gap, by weekday"] < 0.2 * days["worst weekday's gap, marginal"]


def test_the_frontier_trades_bias_for_loss(found) -> None:
    numbers = {n.name: n.ours for n in found("compas-frontier").numbers}
    for link in ("logit", "shift"):
        biases = [numbers[f"|bias|, {link}, η = {eta:g}, all 6,787 people"] for eta in (0.001, 0.03, 1.0)]
        assert np.all(np.diff(biases) < 0.0)


def test_decaying_steps_end_with_little_of_both_and_within_both_bounds(found) -> None:
    numbers = {n.name: n.ours for n in found("regret-decaying").numbers}
    for case in ("squared error", "quantile 0.9"):
        for what in ("regret / T", "largest |average gradient| from T on"):
            assert numbers[f"{what}, {case}, α = 0.5"] < 0.003
            assert numbers[f"{what}, {case}: run / bound at α = 0.5"] <= 1.0 + 1e-9
        constant = numbers[f"regret / T, {case}, α = 0"]
        assert constant > 10 * numbers[f"regret / T, {case}, α = 0.5"]
