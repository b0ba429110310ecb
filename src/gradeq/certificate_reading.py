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
    STEPS,
    VARIATION,
    WEIGHT,
)
from gradeq.kernels.flight import LATENESS
from gradeq.kernels.flight import LATEST as LATEST_OF_CELL
from gradeq.kernels.limits import CHANGES
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.penalties import Lasso, Penalty, Ridge
from gradeq.schedules import Constant, Power, Schedule
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
    def of_rates(self) -> bool:
        """Whether errors are those of a rate: coverage, or wins."""
        return bool(self.terms.levels)

    @property
    def of_players(self) -> bool:
        """Whether coordinates are players, whose errors cancel in all games."""
        return False

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
        rule.schedule, rule.penalty, layer._flight.limit, layer._flight,
    )  # fmt: skip


def setting_of(reading: Reading) -> Setting:
    """What theory needs to know: what is learned, the ranges seen, the steps given, how late labels came."""
    terms, state, width = reading.terms, reading.state, reading.width
    facts, count = state.facts, len(reading.names)
    common: dict[str, Any] = {
        "task": terms.task,
        "clip": terms.clip,
        "weight_max": facts[fact.HEAVIEST],
        "heaviest_step": state.heaviest_step[0] if len(state.heaviest_step) else None,
        "cap": reading.limit,
        "decay": reading.schedule.alpha if isinstance(reading.schedule, Power) else 0.0,
    }
    if terms.levels:
        common["level"] = terms.levels[0]
        common["levels"] = terms.levels if width > 1 else ()
    if isinstance(reading.penalty, (Lasso, Ridge)):
        common["penalty"] = "lasso" if isinstance(reading.penalty, Lasso) else "ridge"
        common["strength"] = reading.penalty.strength
    elif isinstance(reading.penalty, float):
        common |= {"penalty": "proximal lasso", "strength": reading.penalty}
    latest = facts[fact.LATEST]
    layer = {**common, **steps_of(reading, None), **seen(reading, None), "lateness": int(latest)}

    alone = "scalar" if width == 1 else "isotonic"

    def one(j: int) -> Setting:
        own = {**common, **steps_of(reading, j), **seen(reading, j)}
        return Setting(structure=alone, lateness=lateness_of(reading, j), **own)

    def with_facts(row: list[float]) -> Setting:
        owns, gaps, late, steps = read_facts(row, width)
        squares = steps.pop() if hasattr(state, "mix_squares") else None
        own = {
            **common,
            **steps_in(reading, steps[:PATH], steps[PATH:]),
            **seen_in(reading, owns, gaps, squares),
        }
        return Setting(structure=alone, lateness=late, **own)

    if terms.structure == "scalar" and count == 1:
        return one(0)
    if terms.structure == "disjoint":
        groups: Sequence[Setting]
        if count >= MANY and terms.task in ORDERED:
            groups = Groups(*facts_of(reading), with_facts)
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


SUMMED = ("step_mass", "step_squares", "mass_changes", "square_changes")
NUMBERS = [ROWS, WEIGHT, LOSS_BEFORE, REACH]  # of the first level


def facts_of(reading: Reading) -> tuple[Any, Any]:
    """What tells the settings of many groups apart, a row for each: the larger a number, the less is promised.

    Both ends of the residuals of each level (the lower one with the other sign), NUMBERS, lateness, the gaps between
    levels, and how steps varied, if they did. And the kind of each group (``theory.groups``).
    """
    state, width, terms = reading.state, reading.width, reading.terms
    sums = state.view("sums").reshape(-1, width, COLUMNS)
    late: Any = float(int(state.facts[fact.LATEST]))
    if reading.flight.per != "key" and len(state.late):
        late = state.view("late").reshape(-1, LATENESS)[:, LATEST_OF_CELL]
    lateness = np.broadcast_to(late, len(sums))[:, None]
    found = [-sums[:, :, LOW], sums[:, :, HIGH], sums[:, 0, NUMBERS], lateness]
    if width > 1:
        found.append(state.view("gaps").reshape(-1, width - 1))
    if state.born("path"):
        found.append(state.view("path").reshape(-1, PATH))
        unknown = np.full((len(sums), STEPS), math.inf)
        found.append(state.view("steps").reshape(-1, STEPS) if state.born("steps") else unknown)
    if hasattr(state, "mix_squares"):
        found.append(state.view("mix_squares")[:, None])
    zero = terms.task == "poisson" and sums[:, 0, LOW] <= origin_of(terms, terms.start[0])
    return np.concatenate(found, axis=1), 2 * np.asarray(zero) + (lateness[:, 0] >= 2.0)


def read_facts(row: list[float], width: int) -> tuple[list[Any], tuple[float, ...], int, Any]:
    """The accounts of a group, the gaps between its levels, its lateness, and what is known of its steps."""
    ends, rest = row[: 2 * width], row[2 * width :]
    owns = [[0.0] * COLUMNS for _ in range(width)]
    for k, own in enumerate(owns):
        own[LOW], own[HIGH] = -ends[k], ends[width + k]
    for c, number in zip(NUMBERS, rest, strict=False):
        owns[0][c] = number
    late, gaps = len(NUMBERS), len(NUMBERS) + 1
    return owns, tuple(rest[gaps : gaps + width - 1]), int(rest[late]), rest[gaps + width - 1 :]


def steps_of(reading: Reading, j: int | None) -> dict[str, Any]:
    """The steps given to the labels of a parameter (None: of all): first, last, smallest, largest, their path."""
    state = reading.state
    if j is None:
        return steps_in(reading, state.total_path, state.total_steps)
    return steps_in(
        reading, state.path[j * PATH : (j + 1) * PATH], state.steps[j * STEPS : (j + 1) * STEPS]
    )


def steps_in(reading: Reading, path: Any, sums: Any) -> dict[str, Any]:
    """The steps of a path of steps and their sums, which are empty where they never varied (or were not added up)."""
    facts = reading.state.facts
    high = facts[fact.STEP_HIGH]
    if not high:
        return {"eta": reading.schedule.step(1)}
    if not len(path) or not path[FIRST]:
        # Nobody had to follow them, also where a cap held all of them to one and the same.
        same = type(reading.schedule) is Constant and facts[fact.STEP_LOW] >= high
        return {"eta": high, "inverse_variation": 0.0} if same else {"eta": high}
    return {
        "eta": 1.0 / path[FIRST],
        "eta_last": 1.0 / path[LAST],
        "eta_min": facts[fact.STEP_LOW],
        "eta_max": high,
        "inverse_variation": path[VARIATION],
        **dict(zip(SUMMED, sums, strict=False)),
    }


def seen(reading: Reading, j: int | None) -> dict[str, Any]:
    """Counts and ranges of one parameter (None: of all rows); ranges are measured from u_1."""
    width = reading.width
    owns = [reading.total(k) if j is None else reading.account(j * width + k) for k in range(width)]
    gaps = (
        ()
        if j is None or width == 1
        else reading.state.gaps[j * (width - 1) : (j + 1) * (width - 1)]
    )
    state, squares = reading.state, None
    if hasattr(state, "mix_squares"):
        whole = (
            state.total_mix_squares if hasattr(state, "total_mix_squares") else state.mix_squares
        )
        squares = math.fsum(whole) if j is None else state.mix_squares[j]
    return seen_in(reading, owns, tuple(gaps), squares)


def origin_of(terms: Terms, start: float) -> float:
    """Where the residuals of a level are measured from."""
    return start * terms.size - terms.centre


def seen_in(
    reading: Reading, owns: list[Any], gaps: tuple[float, ...], mix_squares: float | None
) -> dict[str, Any]:
    """Counts and ranges in the accounts of one parameter, one for each level, which its own gaps bound (8.6)."""
    terms = reading.terms
    lows, highs = [], []
    for own, start in zip(owns, terms.start, strict=True):
        ranged = own[LOW] <= own[HIGH]
        origin = origin_of(terms, start)
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
        # Under auto the final layer moves a mix: the losses here are those of the raw prediction.
        auto = hasattr(reading.state, "losses")
        squares = mix_squares if auto else 2.0 * owns[0][LOSS_BEFORE]
        return {**facts, "square_sum": squares, "odds_sum": owns[0][REACH]}
    if terms.sinh:
        facts["zero_scale_rounds"] = owns[0][REACH]
    if len(owns) > 1:
        facts |= {"lows": tuple(lows), "highs": tuple(highs), "gaps": gaps}
    return facts
