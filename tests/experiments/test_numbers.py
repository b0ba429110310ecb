"""Our numbers beside the authors': equal where the data are the same, after their scale and slips are corrected."""

import math

import numpy as np
import pytest

from gradeq.experiments import experiments
from gradeq.experiments.mimic_ensemble import STEPS
from gradeq.experiments.sheet import Heat

NAMES = list(experiments())


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_and_meets_the_corrected_numbers(found, name) -> None:
    result = found(name)
    assert result.found and result.sheets
    for number in result.numbers:
        assert not math.isnan(number.ours), number.name
        if number.corrected is not None:
            assert abs(number.ours - number.corrected) <= number.within, number.name


@pytest.mark.parametrize("name", NAMES)
def test_every_sheet_has_axes_and_finite_series(found, name) -> None:
    for sheet in found(name).sheets.values():
        assert len(sheet.panels) <= sheet.grid[0] * sheet.grid[1]
        for panel in sheet.panels:
            assert panel.title and panel.marks
            assert panel.x or "by" in panel.title or "Share" in panel.title
            names = [series.name for mark in panel.marks for series in mark.series()]
            assert all(names)
        for _, series in sheet.series():
            assert len(series.x) == len(series.y) > 0


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("regret-bias", 7),
        ("helpsteer-debias", 20),
        ("compas-debias", 32),
        ("compas-statistics", 13),
        ("spirals", 2),
    ],
)
def test_the_numbers_that_the_authors_print_are_all_compared(found, name, compared) -> None:
    tight = [n for n in found(name).numbers if n.corrected is not None and n.within <= 1e-3]
    assert len(tight) >= compared


def test_the_published_regret_is_the_one_of_the_slips(found) -> None:
    result = found("regret-bias")
    assert result.number("regret / T, η = 0.2").ours == pytest.approx(0.061658, abs=1e-6)
    assert result.number("regret / T as their script has it").ours == pytest.approx(
        0.790020, abs=1e-6
    )


def test_the_sex_rows_of_figure_15_are_the_biases_of_the_sexes(found) -> None:
    result = found("compas-groups")
    assert result.number("bias of Female, η = 0").ours == pytest.approx(-0.076248, abs=1e-6)
    assert result.number("bias of Male, η = 0").ours == pytest.approx(-0.121738, abs=1e-6)
    shown = result.number("what Figure 15 shows for Female, η = 0").ours
    assert abs(2 * shown - 0.076248) > 0.01


def test_a_stand_in_is_named_as_one(found) -> None:
    for name in ("mimic-groups", "mimic-series", "mimic-ensemble"):
        assert "in place of MIMIC" in found(name).data
    for name in ("arena-elo", "arena-lasso", "arena-decaying", "arena-wins"):
        assert "in place of the paper's battles" in found(name).data
        assert set(found(name).sheets) == {"", "football"}


def test_high_scores_overpredict_least_for_african_american_defendants(found) -> None:
    result = found("compas-statistics")
    over = [
        result.number(f"overprediction at scores of 0.6 or more, {race}").ours
        for race in ("African-American", "Caucasian", "Hispanic")
    ]
    assert over == pytest.approx([0.046, 0.076, 0.111], abs=5e-4) and over == sorted(over)
    rates = {
        race: [result.number(f"re-arrested, {race}, score {k / 10:g}").ours for k in range(1, 11)]
        for race in ("African-American", "Caucasian")
    }
    assert rates["African-American"] == pytest.approx(
        [0.309, 0.431, 0.535, 0.545, 0.619, 0.611, 0.684, 0.752, 0.778, 0.787], abs=5e-4
    )
    assert all(a > b for a, b in zip(*rates.values(), strict=True))
    assert "at all ten scores" in result.found


def test_what_rounding_decides_is_shown_as_a_range(found) -> None:
    result = found("compas-calibration")
    names = {number.name for number in result.numbers}
    for variant in ("per bin", "by block"):
        which = f"calibration error, {variant}, their rate 0.05"
        assert which not in names
        low, high = (result.number(f"{which}, {end}").ours for end in ("least", "most"))
        assert high - low > 0.05
    settled = result.number("calibration error, raw bin, their rate 0.05").ours
    assert settled == pytest.approx(0.0031371, abs=1e-7)


def test_the_tables_of_the_ensemble_have_every_tracker_and_weights_that_add_up(found) -> None:
    panels = found("mimic-ensemble").sheets[""].panels
    tables = [panel.marks[0] for panel in panels if isinstance(panel.marks[0], Heat)]
    assert len(tables) == 3
    for table in tables:
        assert table.rows == tuple(f"η = {eta:g}" for eta in STEPS)
        assert table.table.shape == (8, 20) and np.abs(table.table).max() <= table.top
    assert tables[0].table.sum(axis=0) == pytest.approx(np.ones(20))
    # What is drawn as lines lies on the axes.
    for panel in panels[:6]:
        assert panel.y_limits is None
