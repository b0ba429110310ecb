"""Online calibration of the COMPAS score: the variants that the authors' code has and their paper does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.calibrators import (
    GRID,
    Calibrated,
    by_block,
    calibration_error,
    per_bin,
    per_raw_bin,
)
from gradeq.experiments.compas_data import stream
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import (
    RATES,
    TRUTH,
    Band,
    Dots,
    Line,
    Look,
    Mark,
    Panel,
    Sheet,
    thinned,
)
from gradeq.experiments.source import Source
from gradeq.experiments.tables import numeral

Variant = Callable[[Floats, Floats, float], Calibrated]

FIRST = 5000  # rows before everybody is re-arrested
THEIRS = (0.0, 0.001, 0.01, 0.05)
TRIES, TINY = 8, 1e-12  # steps on either side of each, and how far apart, relative
ROUNDING, SEEN = (
    1e-9,
    1e-3,
)  # a spread below the first is none; one below the second is about as wide as a line
WILD = 99  # rows before the averages are drawn
# The last variant descends on the squared error without the 1/2, so its eta is twice their rate.
VARIANTS: tuple[tuple[str, Variant, float], ...] = (
    ("per bin", per_bin, 1.0),
    ("by block", by_block, 1.0),
    ("raw bin", per_raw_bin, 2.0),
)


class Course(NamedTuple):
    """Calibration error and Brier score after every row, one row of each for each step that was tried."""

    errors: Floats
    scores: Floats
    runs: tuple[Calibrated, ...]

    def end(self, of: Floats) -> tuple[float, float]:
        """The least and the most that the steps end at."""
        return float(of[:, -1].min()), float(of[:, -1].max())


def courses(variant: Variant, f: Floats, y: Floats, eta: float) -> Course:
    """The variant at eta and at steps that differ from it by rounding only; the middle one is eta itself."""
    runs = tuple(variant(f, y, eta * (1.0 + k * TINY)) for k in range(-TRIES, TRIES + 1))
    errors = np.array([calibration_error(done.served, done.cells, y) for done in runs])
    scores = np.array([running_mean((done.served - y) ** 2) for done in runs])
    return Course(errors, scores, runs)


def run(source: Source) -> Result:
    """Twenty grid points; each variant at four steps, on the first 5,000 people."""
    data, name, _ = stream(source)
    f, y = data.violent_score[:FIRST], data.is_recid[:FIRST]
    panels: list[Panel] = []
    numbers: list[Number] = []
    ends: dict[tuple[str, float], Course] = {}
    for title, variant, factor in VARIANTS:
        errors: list[Mark] = []
        scores: list[Mark] = []
        for rate, look in zip(THEIRS, RATES, strict=True):
            found = ends[title, rate] = courses(variant, f, y, factor * rate)
            label = f"η = {factor * rate:g}" if rate else "no step"
            for what, of, marks in (
                ("calibration error", found.errors, errors),
                ("Brier score", found.scores, scores),
            ):
                marks.append(_drawn(of, label, look))
                numbers += _ended(f"{what}, {title}, their rate {rate:g}", *found.end(of))
        shown, still = ends[title, THEIRS[2]].runs[TRIES], ends[title, THEIRS[0]].runs[TRIES]
        panels += [
            Panel(f"Calibration error, {title}", "people", "|served − rate| so far", errors, y_limits=(0.0, None)),
            Panel(f"Brier score, {title}", "people", "mean squared error so far", scores, legend=""),
            Panel(
                f"Reliability, {title}, η = {factor * THEIRS[2]:g}", "served", "share re-arrested",
                _reliability(still, shown, y), x_limits=(0.0, 1.02), y_limits=(0.0, 1.02), square=True,
            ),
        ]  # fmt: skip

    def ended(title: str, rate: float) -> str:
        found = ends[title, rate]
        error, score = found.end(found.errors), found.end(found.scores)
        return f"{_between(*error, 3)} (Brier {_between(*score, 4)})"

    found_text = (
        "Calibration error after 5,000 people, without a step and at their rate 0.01: "
        + "; ".join(
            f"{title} {ended(title, 0.0)} and {ended(title, 0.01)}" for title, _, _ in VARIANTS
        )
        + f". (For raw bin η is twice their rate.) "
        f"At their rate 0.05 it is {ended('raw bin', 0.05)} for raw bin, and no number for the other two: steps "
        f"that differ from it by at most {numeral(TRIES * TINY)} of it end anywhere from "
        f"{ended('per bin', 0.05)} per bin and from {ended('by block', 0.05)} by block, because rounding decides "
        "on which side of a grid point a value falls. Bands show that spread (17 steps each). A parameter that "
        "is read in one cell and moved in another need not settle."
    )
    sheet = Sheet(panels, (3, 3), (13.0, 10.0))
    return Result(found_text, tuple(numbers), {"": sheet}, f"{name}, the first {FIRST:,}")


def _drawn(of: Floats, label: str, look: Look) -> Mark:
    """A line where all steps agree, and the room between the least and the most where they do not."""
    shown = of[:, WILD:]
    places = thinned(shown.shape[1])
    x, low, high = places + 1 + WILD, shown.min(axis=0)[places], shown.max(axis=0)[places]
    if (high - low).max() < SEEN:
        return Line(x, shown[TRIES][places], label, look)
    return Band(x, low, high, label, look)


def _ended(what: str, low: float, high: float) -> list[Number]:
    if high - low < ROUNDING:
        return [Number(what, low)]
    return [Number(f"{what}, least", low), Number(f"{what}, most", high)]


def _between(low: float, high: float, digits: int) -> str:
    ends = (f"{low:.{digits}f}", f"{high:.{digits}f}")
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _reliability(before: Calibrated, after: Calibrated, y: np.ndarray) -> list[Mark]:
    marks: list[Mark] = [Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "calibrated", TRUTH)]
    for label, done, look in (("no step", before, RATES[0]), ("served", after, RATES[3])):
        cells = [k for k in range(len(GRID)) if (done.cells == k).sum() >= 25]
        x = np.array([done.served[done.cells == k].mean() for k in cells])
        rate = np.array([y[done.cells == k].mean() for k in cells])
        marks.append(Dots(x, rate, label, look._replace(marker="s" if look is RATES[0] else "o")))
    return marks


EXPERIMENT = Experiment(
    name="compas-calibration",
    title="Online calibration of a recidivism score, three variants",
    figure="in the authors' code, not in the paper",
    chapter="beyond",
    needs=("compas",),
    shows="Does a parameter per grid point make the score calibrated, not only unbiased? Per bin reads the parameter "
    "of the raw score and moves that of the served one; by block moves all in between; raw bin debiases each raw "
    "score.",
    corrected="In the authors' repository the figure of the third variant is a copy of the first one's: it reads the "
    "wrong cache. Its error is judged here within each raw bin, not by distinct forecast.",
    run=run,
)
