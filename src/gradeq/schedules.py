"""Schedules: the step at time t = 1, 2, ... A schedule is a frozen value with ``step(t)``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_float, as_shown, check_magnitude, checked_float, take_floats, take_tuple


class Schedule(Protocol):
    """Anything with a step for every time."""

    def step(self, t: int) -> float:
        """The step at time t, counted from 1."""


@dataclass(frozen=True)
class Constant:
    """The same step at all times: the only schedule whose average gradient follows from the parameters of two states.

    From one state to a later one it is (u_before - u_after) / (eta n) over the n labels learned from in between.

    >>> Constant(0.05).step(7)
    0.05
    """

    eta: float

    def __post_init__(self) -> None:
        take_floats(self, "eta")
        check_step("Constant(eta=", self.eta)

    def step(self, t: int) -> float:
        return self.eta


@dataclass(frozen=True)
class Power:
    """eta t^-alpha. For 0 < alpha < 1 both the bias and the cost in loss go to zero, slowly (paper Section 4).

    At alpha = 1 the proven bound, 2 R / eta, holds but does not fall with more labels (R is a radius that no
    parameter leaves): the average then vanishes only if the parameters do, theta_{t+1} = o(1)
    (prop:gd_sublinear_lrt). Above 1 the sum of all steps is finite, and the average need not vanish.

    >>> Power(1.0, 0.5).step(4)
    0.5
    """

    eta: float
    alpha: float

    def __post_init__(self) -> None:
        take_floats(self, "eta", "alpha")
        check_step("Power(eta=", self.eta)
        if not 0.0 <= self.alpha <= 1.0:
            raise BadInput(
                f"Power(alpha={self.alpha}): alpha must lie in [0, 1]; above 1 the sum of all steps is finite, "
                "and equilibrium is lost"
            )

    def step(self, t: int) -> float:
        return self.eta * math.pow(t, -self.alpha)


@dataclass(frozen=True)
class Piecewise:
    """steps[0] until time ends[0], then steps[1] until ends[1], ..., finally the last step.

    >>> [Piecewise((0.1, 0.01), (2,)).step(t) for t in (1, 2, 3)]
    [0.1, 0.1, 0.01]
    """

    steps: tuple[float, ...]
    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        take_tuple(self, "steps", "steps such as (0.1, 0.01)")
        take_tuple(self, "ends", "times such as (1000,)")
        if any(end != end // 1.0 for end in self.ends):
            raise BadInput(f"Piecewise(ends={self.ends}): ends are times: give whole numbers")
        object.__setattr__(self, "ends", tuple(map(int, self.ends)))
        if len(self.steps) != len(self.ends) + 1:
            raise BadInput(
                f"Piecewise: {len(self.steps)} steps need {len(self.steps) - 1} ends, got {len(self.ends)}"
            )
        for eta in self.steps:
            check_step("Piecewise(step=", eta)
        if any(b <= a for a, b in zip((0, *self.ends), self.ends, strict=False)):
            raise BadInput(f"Piecewise(ends={self.ends}): ends must increase from 1")

    def step(self, t: int) -> float:
        for k in range(len(self.ends)):
            if t <= self.ends[k]:
                return self.steps[k]
        return self.steps[len(self.ends)]


@dataclass(frozen=True)
class Listed:
    """steps[t - 1] at time t; a time after the last step is an error.

    >>> Listed((0.3, 0.2)).step(2)
    0.2
    """

    steps: tuple[float, ...]

    def __post_init__(self) -> None:
        take_tuple(self, "steps", "steps such as (0.3, 0.2, 0.1)")
        if not self.steps:
            raise BadInput("Listed(steps=()): give at least one step")
        for eta in self.steps:
            check_step("Listed(step=", eta)

    def step(self, t: int) -> float:
        if t > len(self.steps):
            raise BadInput(f"Listed: time {t} lies past the last of {len(self.steps)} steps; give more steps")
        return self.steps[t - 1]


@dataclass(frozen=True)
class Called:
    """Any function of t; each value is checked when it is used. Cannot be saved as JSON.

    >>> Called(lambda t: 1 / (1 + t)).step(1)
    0.5
    """

    function: Callable[[int], float]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise BadInput(
                f"Called(function={as_shown(self.function)}): give a function of t such as lambda t: 1 / (1 + t)"
            )

    def step(self, t: int) -> float:
        eta = checked_float(f"Called(t={t}): eta=", self.function(t))
        check_step(f"Called(t={t}): eta=", eta)
        return eta


def as_schedule(eta: float | Schedule) -> Schedule:
    """A number as a constant step; a schedule as it is."""
    number = as_float(eta)
    if number is not None:
        return Constant(number)
    if not isinstance(eta, type) and callable(getattr(eta, "step", None)):
        schedule: Schedule = eta  # type: ignore[assignment]
        return schedule
    raise BadInput(f"schedule={as_shown(eta)}: give a positive number or a schedule such as gradeq.Power(0.1, 0.5)")


def check_decay(option: str, alpha: float) -> None:
    """Raise for a decay of 1 or more: no bound then falls with more labels. In Python ``Power`` also takes 1."""
    if not 0.0 <= alpha < 1.0:
        raise BadInput(
            f"{option} {alpha:g} must be at least 0 and below 1; with 1 or more no bound falls with more labels"
        )


def check_step(message_start: str, eta: float) -> None:
    """Raise unless a step is positive, finite and of usable size. ``message_start``: text such as ``Power(eta=``."""
    check_magnitude(message_start, eta, "step")
