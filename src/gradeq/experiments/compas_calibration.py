"""Online calibration of the COMPAS score: the variants that the authors' code has and their paper does not."""

from __future__ import annotations

import numpy as np

from gradeq.experiments.averages import running_mean
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
from gradeq.experiments.sheet import RATES, TRUTH, Dots, Line, Mark, Panel, Sheet, course
from gradeq.experiments.source import Source

FIRST = 5000  # rows before everybody is re-arrested
THEIRS = (0.0, 0.001, 0.01, 0.05)
# The last variant descends on the squared error without the 1/2, so its eta is twice their rate.
VARIANTS = (("per bin", per_bin, 1.0), ("by block", by_block, 1.0), ("raw bin", per_raw_bin, 2.0))


def run(source: Source) -> Result:
    """Twenty grid points; each variant at four steps, on the first 5,000 people."""
    data, name, _ = stream(source)
    f, y = data.violent_score[:FIRST], data.is_recid[:FIRST]
    panels, numbers = [], []
    for title, variant, factor in VARIANTS:
        done = [variant(f, y, factor * rate) for rate in THEIRS]
        errors: list[Mark] = []
        scores: list[Mark] = []
        for rate, found, look in zip(THEIRS, done, RATES, strict=True):
            label = f"η = {factor * rate:g}" if rate else "no step"
            ece = calibration_error(found.served, found.cells, y)
            brier = running_mean((found.served - y) ** 2)
            errors.append(course(ece, label, look))
            scores.append(course(brier, label, look))
            numbers += [
                Number(f"calibration error, {title}, their rate {rate:g}", float(ece[-1])),
                Number(f"Brier score, {title}, their rate {rate:g}", float(brier[-1])),
            ]
        panels += [
            Panel(f"Calibration error, {title}", "people", "ECE so far", errors, y_limits=(0.0, 0.2)),
            Panel(
                f"Brier score, {title}", "people", "mean squared error so far", scores,
                y_limits=(0.18, 0.27), legend="",
            ),
            Panel(
                f"Reliability, {title}, η = {factor * THEIRS[2]:g}", "served", "share re-arrested",
                _reliability(done[0], done[2], y), x_limits=(0.0, 1.02), y_limits=(0.0, 1.0), square=True,
            ),
        ]  # fmt: skip
    ends = {number.name: number.ours for number in numbers}

    def end(what: str, title: str, rate: str) -> float:
        return ends[f"{what}, {title}, their rate {rate}"]

    found_text = (
        "Calibration error after 5,000 people, without a step and at their rate 0.01: "
        + "; ".join(
            f"{title} {end('calibration error', title, '0'):.3f} to {end('calibration error', title, '0.01'):.3f} "
            f"(Brier {end('Brier score', title, '0'):.4f} to {end('Brier score', title, '0.01'):.4f})"
            for title, _, _ in VARIANTS
        )
        + f". Per bin at rate 0.05 it rises to {end('calibration error', 'per bin', '0.05'):.3f}: a parameter that "
        "is read in one cell and moved in another need not settle."
    )
    sheet = Sheet(panels, (3, 3), (13.0, 10.0))
    return Result(found_text, tuple(numbers), {"": sheet}, f"{name}, the first {FIRST:,}")


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
