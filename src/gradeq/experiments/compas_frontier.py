"""Bias against loss: what each step buys and what it costs, on all of COMPAS and without its end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.compas_data import stream
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import AFTER, BEFORE, SECOND, THIRD, Dots, Line, Look, Panel, Sheet
from gradeq.experiments.source import Source
from gradeq.layers.debiaser import Debiaser, LinkName

ROOM = 0.007  # left of the leftmost point, for the names of the steps
STEPS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LINKS: dict[LinkName, Look] = {
    "logit": AFTER._replace(marker="o"),
    "shift": SECOND._replace(marker="s"),
}


class Point(NamedTuple):
    """Where one setting ends: mean squared error and absolute bias."""

    loss: float
    bias: float


def point(served: Floats, y: Floats) -> Point:
    """Both sides of the bargain."""
    return Point(float(((served - y) ** 2).mean()), abs(float((served - y).mean())))


def run(source: Source) -> Result:
    """Seven steps and two links, and the automatic step."""
    data, name, _ = stream(source)
    p, y = data.violent_score, data.is_recid
    last = int(np.flatnonzero(y == 0)[-1]) + 1
    panels, numbers, said = [], [], []
    for title, rows in (
        ("all 6,787 people", len(y)),
        (f"the first {last:,} people, before the artefact", last),
    ):
        f, label = p[:rows], y[:rows]
        base = point(f, label)
        marks: list[Line | Dots] = []
        for link, look in LINKS.items():
            ends = [
                point(
                    np.asarray(Debiaser(eta, outcome="binary", link=link).run(f, label).served),
                    label,
                )
                for eta in STEPS
            ]
            x, height = (np.array(column) for column in zip(*ends, strict=True))
            marks.append(Line(x, height, f"link {link}", look, quiet=True))
            names = tuple(f"{eta:g}" for eta in STEPS) if link == "logit" else ()
            marks.append(
                Dots(x, height, f"link {link}, η = {STEPS[0]:g} to {STEPS[-1]:g}", look, names)
            )
            numbers += [
                Number(f"{quantity}, {link}, η = {eta:g}, {title}", value)
                for eta, end in zip(STEPS, ends, strict=True)
                for quantity, value in (("squared error", end.loss), ("|bias|", end.bias))
            ]
            if link == "logit":
                cheapest = min(ends, key=lambda end: end.loss)
                said.append(
                    f"On {title}, the base model has bias {base.bias:.4f} and squared error {base.loss:.4f}; the "
                    f"cheapest step (η = {STEPS[ends.index(cheapest)]:g}) has {cheapest.bias:.4f} and "
                    f"{cheapest.loss:.4f}, the largest {ends[-1].bias:.4f} and {ends[-1].loss:.4f}."
                )
        auto = point(np.asarray(Debiaser("auto", outcome="binary").run(f, label).served), label)
        numbers += [
            Number(f"squared error, auto, {title}", auto.loss),
            Number(f"|bias|, auto, {title}", auto.bias),
        ]
        marks += [
            Dots(np.array([auto.loss]), np.array([auto.bias]), "auto", THIRD._replace(marker="D")),
            Dots(np.array([base.loss]), np.array([base.bias]), "base model", BEFORE._replace(marker="X")),
        ]  # fmt: skip
        panels.append(
            Panel(
                f"In hindsight, {title}",
                "mean squared error",
                "|bias|",
                marks,
                y_scale="log",
                x_limits=(min(float(mark.x.min()) for mark in marks) - ROOM, None),
            )
        )
    return Result(" ".join(said), tuple(numbers), {"": Sheet(panels, (1, 2), (11.5, 4.3))}, name)


EXPERIMENT = Experiment(
    name="compas-frontier",
    title="Bias against loss on COMPAS, step by step",
    figure="beyond the paper",
    chapter="beyond",
    needs=("compas",),
    shows="Lower left is better. How much accuracy does each step cost, and would one have known? The sweep is on "
    "these same rows, so it is no forecast.",
    corrected="The paper says that the loss is not significantly impacted by the step; it claims no gain. The gain "
    "that the whole file shows here comes from its end, where everybody was re-arrested; without it small steps "
    "hardly change the loss, and large ones cost.",
    run=run,
)
