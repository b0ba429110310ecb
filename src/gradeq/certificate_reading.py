"""What a certificate is read from: a layer's state, names and settings, and what theory needs to know of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.flight import Flight
from gradeq.kernels.account import (
    COLUMNS,
    FIRST,
    HIGH,
    LAST,
    LOSS_BEFORE,
    LOW,
    PATH,
    REACH,
    ROWS,
    VARIATION,
    WEIGHT,
)
from gradeq.kernels.flight import LATENESS
from gradeq.kernels.flight import LATEST as LATEST_OF_CELL
from gradeq.kernels.limits import CHANGES
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.penalties import Lasso, Penalty, Ridge
from gradeq.schedules import Power, Schedule
from gradeq.theory import Setting
from gradeq.theory.groups import ORDERED, Groups

MANY = 1000  # coordinates; so many are made when they are looked at


class Terms(NamedTuple):
    """How a layer's sums are to be read.

    ``task``: what theory calls it; ``levels``: of quantiles; ``structure``: "scalar", "disjoint" groups or "features"
    (overlapping groups too); ``start``: u_1 of each level; ``loss_scale``: what a mean loss is multiplied by (the
    value of ``Squared`` is half the squared error); ``size``: squared norm of a row without features; ``centre``:
    where residuals are measured from; ``certified``: whether u sums up the errors (in an ensemble alone none does).
    """

    task: str
    structure: str
    loss_name: str
    levels: tuple[float, ...] = ()
    start: tuple[float, ...] = (0.0,)
    loss_scale: float = 1.0
    size: float = 1.0
    clip: float | None = None
    sinh: bool = False
    centre: float = 0.0
    certified: bool = True


class Reading(NamedTuple):
    """All that a certificate is read from: a state (of one layer, or of one series), its names and its settings."""

    terms: Terms
    names: list[str]
    state: State
    schedule: Schedule
    penalty: Penalty | None
    limit: float | None
    flight: Flight

    @property
    def width(self) -> int:
        """Coordinates of a parameter: its levels."""
        return len(self.terms.start)

    def account(self, c: int) -> Any:
        """The account of coordinate c."""
        return self.state.sums[c * COLUMNS : (c + 1) * COLUMNS]

    def total(self, k: int) -> Any:
        """The account of level k over all rows."""
        at = slice(k * COLUMNS, (k + 1) * COLUMNS)
        whole = getattr(self.state, "total", None)
        if whole is not None:
            return whole[at]
        if len(self.names) == 1:
            return self.state.sums[at]
        own = self.state.view("sums").reshape(len(self.names), -1)[:, at]
        added = own.sum(axis=0)
        added[LOW], added[HIGH] = (
            own[:, LOW].min(initial=math.inf),
            own[:, HIGH].max(initial=-math.inf),
        )
        return added.tolist()

    def limited(self, k: int) -> float | None:
        """How much weight the limits of a support add to the coverage of level k; None without one."""
        found = getattr(self.state, "total_limited", getattr(self.state, "limited", None))
        return None if found is None else math.fsum(found[CHANGES * k :: CHANGES * self.width])

    @property
    def constant(self) -> bool:
        """Whether every label was given the same step, so that two states alone give the average."""
        facts = self.state.facts
        return self.terms.certified and bool(facts[fact.STEP_LOW] >= facts[fact.STEP_HIGH])

    @property
    def refusal(self) -> str | None:
        """Why no theorem covers what happened, whatever the settings."""
        facts = self.state.facts
        if facts[fact.CORRECTED]:
            return "labels were corrected after others had been served"
        if not self.terms.certified:
            return "weights in equilibrium say nothing about coverage; add a final tracker"
        if facts[fact.MERGED]:
            return "partitions that had learned about the same parameters were merged"
        return None


def reading_of(layer: Any, names: list[str] | None = None) -> Reading:
    """What the certificate of a layer is read from; with ``names`` its own are not spelled out."""
    if hasattr(layer, "_reading"):
        own: Reading = layer._reading()
        return own
    rule = layer._rule
    return Reading(
        layer._terms, layer._names.names if names is None else names, layer._state,
        rule.schedule, rule.penalty, layer._limit, layer._flight,
    )  # fmt: skip


def setting_of(reading: Reading) -> Setting:
    """What theory needs to know: what is learned, the ranges seen, the steps given, how late labels came."""
    terms, state, width = reading.terms, reading.state, reading.width
    facts, count = state.facts, len(reading.names)
    common: dict[str, Any] = {
        "task": terms.task,
        "clip": terms.clip,
        "weight_max": facts[fact.HEAVIEST],
        "cap": reading.limit,
        "decay": reading.schedule.alpha if isinstance(reading.schedule, Power) else 0.0,
    }
    if terms.levels:
        common["level"] = terms.levels[0]
        common["levels"] = terms.levels if width > 1 else ()
    if isinstance(reading.penalty, (Lasso, Ridge)):
        common["penalty"] = "lasso" if isinstance(reading.penalty, Lasso) else "ridge"
        common["strength"] = reading.penalty.strength
    latest = facts[fact.LATEST]
    layer = {**common, **steps_of(reading, None), **seen(reading, None), "lateness": int(latest)}

    def one(j: int) -> Setting:
        alone = "scalar" if width == 1 else "isotonic"
        own = {**common, **steps_of(reading, j), **seen(reading, j)}
        return Setting(structure=alone, lateness=lateness_of(reading, j), **own)

    def with_facts(row: list[float]) -> Setting:
        own = [0.0] * COLUMNS
        own[LOW], own[HIGH] = -row[0], row[1]
        own[ROWS], own[WEIGHT], own[LOSS_BEFORE], own[REACH] = row[2:6]
        given = {**common, **steps_in(reading, row[7:]), **seen_in(reading, [own])}
        return Setting(structure="scalar", lateness=int(row[6]), **given)

    if terms.structure == "scalar" and count == 1:
        return one(0)
    if terms.structure == "disjoint":
        groups: Sequence[Setting]
        if count >= MANY and width == 1 and terms.task in ORDERED:
            rows = facts_of(reading)
            groups = Groups(rows, rows[:, 6] >= 2.0, with_facts)
        else:
            groups = tuple(one(j) for j in range(count))
        return Setting(structure="disjoint", groups=groups, dimension=count * width, **layer)
    featured = reading.flight.featured
    return Setting(
        structure="features" if featured else "overlapping",
        counts=tuple(state.sums[WEIGHT :: COLUMNS * width]),
        size=max(facts[fact.NORM], terms.size) if featured else terms.size,
        largest=facts[fact.LARGEST] if featured else 1.0,
        dimension=count * width,
        **layer,
    )


def lateness_of(reading: Reading, j: int) -> int:
    """The largest lateness of a label of parameter j, in rows of its cell."""
    late = reading.state.late
    if reading.flight.per == "key" or not len(late):
        return int(reading.state.facts[fact.LATEST])
    return int(late[j * LATENESS + LATEST_OF_CELL])


def facts_of(reading: Reading) -> Any:
    """What tells the settings of many groups apart, a row for each: the larger a number, the less is promised."""
    sums = reading.state.view("sums").reshape(-1, COLUMNS)
    path = reading.state.view("path").reshape(-1, PATH)
    found = np.empty((len(sums), 7 + (PATH if len(path) else 0)))
    if len(
        path
    ):  # steps from the inverse of the first on; those of all groups are the smallest and the largest
        found[:, 7:] = path
    found[:, 0], found[:, 1:6] = -sums[:, LOW], sums[:, [HIGH, ROWS, WEIGHT, LOSS_BEFORE, REACH]]
    late = reading.state.late
    if reading.flight.per == "key" or not len(late):
        found[:, 6] = int(reading.state.facts[fact.LATEST])
    else:
        found[:, 6] = reading.state.view("late").reshape(-1, LATENESS)[:, LATEST_OF_CELL]
    return found


def steps_of(reading: Reading, j: int | None) -> dict[str, Any]:
    """The steps given to the labels of a parameter (None: of all): first, last, smallest, largest, their path."""
    state = reading.state
    return steps_in(
        reading, state.total_path if j is None else state.path[j * PATH : (j + 1) * PATH]
    )


def steps_in(reading: Reading, path: Any) -> dict[str, Any]:
    """The steps of a path of steps, which is empty where they never varied."""
    facts = reading.state.facts
    high = facts[fact.STEP_HIGH]
    if not high:
        return {"eta": reading.schedule.step(1)}
    if not len(path) or not path[FIRST]:
        return {"eta": high}
    return {
        "eta": 1.0 / path[FIRST],
        "eta_last": 1.0 / path[LAST],
        "eta_min": facts[fact.STEP_LOW],
        "eta_max": high,
        "inverse_variation": path[VARIATION],
    }


def seen(reading: Reading, j: int | None) -> dict[str, Any]:
    """Counts and ranges of one parameter (None: of all rows); ranges are measured from u_1."""
    width = reading.width
    owns = [reading.total(k) if j is None else reading.account(j * width + k) for k in range(width)]
    facts = seen_in(reading, owns)
    if width > 1 and j is not None:  # the levels of one parameter are bounded by its own gaps (8.6)
        facts["gaps"] = tuple(reading.state.gaps[j * (width - 1) : (j + 1) * (width - 1)])
    return facts


def seen_in(reading: Reading, owns: list[Any]) -> dict[str, Any]:
    """Counts and ranges in the accounts of one parameter, one for each level."""
    terms = reading.terms
    lows, highs = [], []
    for own, start in zip(owns, terms.start, strict=True):
        ranged = own[LOW] <= own[HIGH]
        origin = start * terms.size - terms.centre
        lows.append(own[LOW] - origin if ranged else 0.0)
        highs.append(own[HIGH] - origin if ranged else 0.0)
    facts: dict[str, Any] = {
        "n": owns[0][ROWS],
        "weight_sum": owns[0][WEIGHT],
        "low": min(lows),
        "high": max(highs),
    }
    if terms.task == "probability_logit":  # its accounts hold the range of labels
        facts |= {"label_low": max(0.0, facts["low"]), "label_high": min(1.0, facts["high"])}
        if not owns[0][ROWS]:
            facts |= {"label_low": 0.0, "label_high": 1.0}
    # Ranges are widened by rounding; some ends are known exactly.
    if terms.task == "poisson" and -1e-9 < facts["low"] < 0.0:
        facts["low"] = 0.0
    if terms.task == "probability_shift":
        facts |= {"low": max(-1.0, facts["low"]), "high": min(1.0, facts["high"])}
    if not terms.levels:
        # Under auto the final layer moves a mix, whose squares are not summed: those here are of the raw prediction.
        squares = None if hasattr(reading.state, "losses") else 2.0 * owns[0][LOSS_BEFORE]
        return {**facts, "square_sum": squares, "odds_sum": owns[0][REACH]}
    if terms.sinh:
        facts["zero_scale_rounds"] = owns[0][REACH]
    if len(owns) > 1:
        facts |= {"lows": tuple(lows), "highs": tuple(highs)}
    return facts
