"""The theory as experiments: no bound is exceeded, the sharp ones are attained, every erratum is one."""

import math

import numpy as np
import pytest

from gradeq.experiments.errata import errata

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
    titles = [
        n.name for name in ("bounds-one", "bounds-many", "bounds-more") for n in found(name).numbers
    ]
    tried = {title.split()[0] for title in titles}
    assert {"3.1", "3.2", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "6.1", "6.2"} <= tried
    assert {"7.1", "7.3", "7.5", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7"} <= tried


def test_in_every_erratum_a_run_leaves_what_is_printed() -> None:
    found = errata()
    assert [int(item.panel.title.split()[0]) for item in found] == [
        1, 2, 3, 7, 8, 10, 12, 13, 21, 27, 28, 29, 31, 36, 38, 39, 46, 47, 48, 52,
    ]  # fmt: skip
    for item in found:
        assert item.happens > item.allows, item.panel.title
    by_row = {int(item.panel.title.split()[0]): item for item in found}
    assert by_row[1].happens == pytest.approx(48.95, abs=1e-9)
    assert (by_row[28].happens, by_row[28].allows) == pytest.approx((0.43266, 0.40294), abs=1e-5)
    assert by_row[29].happens == pytest.approx(531441.0)
    for row in (1, 3, 7, 31, 36, 38, 39, 47, 48):
        assert by_row[row].holds < by_row[row].happens


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
    after, before = (
        f"root mean squared error {when}, minutes" for when in ("after, capped", "before")
    )
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
        biases = [
            numbers[f"|bias|, {link}, η = {eta:g}, all 6,787 people"] for eta in (0.001, 0.03, 1.0)
        ]
        assert np.all(np.diff(biases) < 0.0)


def test_decaying_steps_end_with_little_of_both_and_within_both_bounds(found) -> None:
    numbers = {n.name: n.ours for n in found("regret-decaying").numbers}
    for case in ("squared error", "quantile 0.9"):
        for what in ("regret / T", "largest |average gradient| from T on"):
            assert numbers[f"{what}, {case}, α = 0.5"] < 0.003
            assert numbers[f"{what}, {case}: run / bound at α = 0.5"] <= 1.0 + 1e-9
        constant = numbers[f"regret / T, {case}, α = 0"]
        assert constant > 10 * numbers[f"regret / T, {case}, α = 0.5"]
