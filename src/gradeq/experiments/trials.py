"""A bound against a run that does its worst: one panel on logarithmic axes, and how near they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.learned import State
from gradeq.engine.learner import Learner
from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Number
from gradeq.experiments.sheet import AFTER, BOUND, Line, Mark, Panel, Sheet, thinned

SLACK = 1e-9  # rounding
FLOOR = 1e-4  # a run below it is drawn there: a logarithmic axis has no zero
# A player sees theta and the round, and chooses the row (None: one parameter) and the label.
Player = Callable[[Floats, int], tuple[Any, float]]


class Trial(NamedTuple):
    """The size of the average gradient after ``at`` rounds, what is proven of it, and further lines for the panel."""

    title: str
    at: Any
    run: Floats
    bound: Floats
    unit: str = "|average gradient|"
    more: tuple[Line, ...] = ()

    @property
    def ratio(self) -> float:
        """The nearest that the run comes to its bound; never above 1."""
        return float((self.run / self.bound).max())

    @property
    def drawn(self) -> Floats:
        """The run as a logarithmic axis can show it: what is below the floor is drawn there."""
        return np.maximum(self.run, FLOOR) if self.run.min() < FLOOR else self.run

    @property
    def axis(self) -> str:
        """The unit, with the floor where the run falls below it."""
        return f"{self.unit}, at least {FLOOR:g}" if self.run.min() < FLOOR else self.unit


def horizons(rounds: int) -> Any:
    """Rounds at which to look, evenly on a logarithmic axis."""
    return thinned(rounds, log=True, most=80) + 1


def descend(learner: Learner, state: State, player: Player, rounds: int) -> list[State]:
    """The states after each of the horizons, every label known before the next row."""
    kept, wanted = [], set(horizons(rounds).tolist())
    for t in range(1, rounds + 1):
        row, y = player(state.theta, t)
        state, ticket = learner.ticket(state, row)
        state = learner.update(state, ticket, y)
        if t in wanted:
            kept.append(state)
    return kept


def averages(states: Sequence[State], normal: bool = False) -> Floats:
    """The norm of the average gradient, of gradient plus normal part where a set constrains."""
    return np.array(
        [float(np.linalg.norm(s.gradients + (s.normals if normal else 0.0)) / s.n) for s in states]
    )


def constant(y: float) -> Player:
    """The same label for ever."""
    return lambda theta, t: (None, y)


def spiral(y: float, margin: float, c: float = 1.0) -> Player:
    """Rows of norm c in the plane with this margin, the rest at right angles to theta: the norm grows most."""

    def play(theta: Floats, t: int) -> tuple[Any, float]:
        length = float(np.linalg.norm(theta))
        if length * c <= abs(margin):
            return np.array([c, 0.0]) if t == 1 or length == 0.0 else c * theta / length, y
        along = margin / (c * length)
        across = math.sqrt(1.0 - along * along)
        turned = np.array([-theta[1], theta[0]])
        return c * (along * theta + across * turned) / length, y

    return play


def sheet(trials: Sequence[Trial], columns: int = 4) -> Sheet:
    """One panel per trial."""
    panels = []
    for trial in trials:
        marks: list[Mark] = [
            Line(trial.at, trial.drawn, "run", AFTER),
            Line(trial.at, trial.bound, "bound", BOUND),
            *trial.more,
        ]
        panels.append(
            Panel(trial.title, "rounds T", trial.axis, marks, x_scale="log", y_scale="log")
        )
    rows = math.ceil(len(trials) / columns)
    return Sheet(panels, (rows, columns), (3.7 * columns, 3.1 * rows))


def ratios(trials: Sequence[Trial]) -> tuple[Number, ...]:
    """How near each run comes to its bound."""
    return tuple(Number(f"{trial.title}: run / bound", trial.ratio) for trial in trials)


def summary(trials: Sequence[Trial]) -> str:
    """How many bounds are nearly attained, and which is the farthest from it."""
    near = [trial for trial in trials if trial.ratio > 0.9]
    far = min(trials, key=lambda trial: trial.ratio)
    above = [trial.title for trial in trials if trial.ratio > 1.0 + SLACK]
    first = f"ABOVE THEIR BOUND: {', '.join(above)}." if above else "No run exceeds its bound."
    return (
        f"{first} {len(near)} of {len(trials)} come within a tenth of it at some horizon; the loosest "
        f"here is {far.title} ({far.ratio:.2f} of its bound)."
    )
