"""The certificate: one builder for every layer, key, group, level, player and window, read from state and facts.

Averages are over all labelled rows (weighted by their weights); the bias and loss of a coordinate over its own rows.
A coordinate is a parameter, or a parameter at a level. What is proven comes from ``theory.best_bound`` and from the
facts that the two writers recorded, and from nowhere else; where no theorem covers what happened, none is shown and
the reason is said.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

from gradeq.engine.flight import Flight
from gradeq.equilibrium import Average, Coordinate, Equilibrium, averaged, over
from gradeq.kernels.account import (
    BEFORE,
    COLUMNS,
    FIRST,
    GRADIENT,
    HIGH,
    LAST,
    LOSS_AFTER,
    LOSS_BEFORE,
    LOW,
    MOVED,
    PATH,
    REACH,
    ROWS,
    VARIATION,
    WEIGHT,
)
from gradeq.kernels.flight import LATENESS
from gradeq.kernels.flight import LATEST as LATEST_OF_CELL
from gradeq.kernels.limits import CHANGES
from gradeq.learning import learning_of
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.penalties import Lasso, Penalty, Ridge
from gradeq.schedules import Constant, Power, Schedule
from gradeq.theory import Bound, HarmCap, Setting, best_bound, group_bounds, harm_cap, labels_until


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


def certify(layer: Any) -> Equilibrium:
    """Everything that can be said about what a layer has served so far."""
    return replace(certificate(reading_of(layer)), learning=learning_of(layer))


def certificate(reading: Reading) -> Equilibrium:
    """Exact averages, the same from the state, and the proven bound, coordinate by coordinate."""
    terms, width, constant = reading.terms, reading.width, reading.constant
    totals = [reading.total(k) for k in range(width)]
    divisor = totals[0][WEIGHT]
    setting = setting_of(reading)
    whole = proven(reading, setting)
    coordinates, gap = [], 0.0
    for c, (name, bound) in enumerate(
        zip(coordinate_names(reading), coordinate_bounds(reading, setting), strict=True)
    ):
        own = reading.account(c)
        average = averages(reading, c, own, divisor)
        gap = max(gap, average.gap)
        coordinates.append(
            Coordinate(
                name=name,
                rows=int(own[ROWS]),
                average_gradient=average.gradient,
                average_penalty=average.penalty,
                from_state=average.from_state,
                bias_before=over(own[BEFORE], own[WEIGHT]),
                bias_after=over(own[GRADIENT], own[WEIGHT]),
                loss_before=terms.loss_scale * over(own[LOSS_BEFORE], own[WEIGHT]),
                loss_after=terms.loss_scale * over(own[LOSS_AFTER], own[WEIGHT]),
                bound=bound.value,
                vacuous=bound.vacuous,
                weight=own[WEIGHT],
                moved=average.moved,
            )
        )
    before = sum(own[LOSS_BEFORE] for own in totals)
    after = sum(own[LOSS_AFTER] for own in totals)
    single = not terms.levels
    return Equilibrium(
        rows=int(totals[0][ROWS]),
        coordinates=tuple(coordinates),
        bias_before=over(totals[0][BEFORE], divisor) if single else None,
        bias_after=over(totals[0][GRADIENT], divisor) if single else None,
        loss_name=terms.loss_name,
        loss_before=terms.loss_scale * over(before, width * divisor),
        loss_after=terms.loss_scale * over(after, width * divisor),
        gap=gap,
        bound=whole.value,
        bound_from=whole.result,
        vacuous=whole.vacuous,
        exact=constant,
    )


def averages(reading: Reading, c: int, own: Any, divisor: float) -> Average:
    """The averages of one coordinate since the beginning."""
    state, k = reading.state, c % reading.width
    penalised = reading.penalty is not None
    pull = state.pulls[c] if penalised else 0.0
    drag = state.drags[c] if penalised else 0.0
    moved = reading.terms.start[k] - state.u[c]
    eta = state.facts[fact.STEP_HIGH] if reading.constant else None
    return averaged(own[GRADIENT], pull, 0.0, own[MOVED] + drag, moved, divisor, eta)


def coordinate_names(reading: Reading) -> list[str]:
    """The name of each coordinate: its parameter, and its level where there are several."""
    if reading.width == 1:
        return reading.names
    return [f"{name} @ {tau:g}" for name in reading.names for tau in reading.terms.levels]


def proven(reading: Reading, setting: Setting) -> Bound:
    """The bound on the largest coordinate, or none with the reason."""
    bound = best_bound(setting)
    refusal = reading.refusal
    if refusal is not None:
        return bound._replace(value=None, result=refusal, vacuous=True)
    return bound if bound.value is not None else bound._replace(result=bound.reason or bound.result)


def coordinate_bounds(reading: Reading, setting: Setting) -> list[Bound]:
    """A bound for each coordinate over its own rows."""
    width, count = reading.width, len(reading.names)
    if not count:
        return []
    if reading.refusal is not None:
        return [proven(reading, setting)] * (count * width)
    if reading.terms.structure == "scalar":
        return total_bounds(reading, setting)
    if setting.structure == "disjoint" and setting.penalty is None and width > 1:
        return [bound for group in setting.groups for bound in level_bounds(group, width)]
    return [bound for bound in group_bounds(setting) for _ in range(width)]


def total_bounds(reading: Reading, setting: Setting | None = None) -> list[Bound]:
    """A bound for each level on the average over all rows; none where only coordinates are bounded."""
    setting = setting_of(reading) if setting is None else setting
    whole = proven(reading, setting)
    none = whole._replace(value=None, vacuous=True)
    if whole.value is None:
        return [none] * reading.width
    if setting.structure == "disjoint" and setting.penalty is None:
        return _added_up(setting, whole, reading.width)
    if reading.terms.structure == "scalar":
        return level_bounds(setting, reading.width)
    return [none] * reading.width


def level_bounds(setting: Setting, width: int) -> list[Bound]:
    """The bound of each level of one parameter."""
    if setting.structure == "isotonic":
        return list(group_bounds(setting))
    return [best_bound(setting)] * width


def _added_up(setting: Setting, whole: Bound, width: int) -> list[Bound]:
    """Errors of disjoint groups add up to those of all rows, and so do their bounds."""
    bounds = []
    for own in zip(*(level_bounds(group, width) for group in setting.groups), strict=True):
        values = [
            None if bound.value is None else bound.value * group.average_over
            for bound, group in zip(own, setting.groups, strict=True)
            if group.n
        ]
        total = None if None in values else math.fsum(v for v in values if v is not None)
        value = None if total is None else over(total, setting.average_over)
        trivial = max(bound.trivial for bound in own)
        vacuous = value is None or not value < trivial
        bounds.append(whole._replace(value=value, trivial=trivial, vacuous=vacuous))
    return bounds


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

    if terms.structure == "scalar" and count == 1:
        return one(0)
    if terms.structure == "disjoint":
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


def steps_of(reading: Reading, j: int | None) -> dict[str, Any]:
    """The steps given to the labels of a parameter (None: of all): first, last, smallest, largest, their path."""
    state, facts = reading.state, reading.state.facts
    high = facts[fact.STEP_HIGH]
    if not high:
        return {"eta": reading.schedule.step(1)}
    path = state.total_path if j is None else state.path[(j or 0) * PATH : ((j or 0) + 1) * PATH]
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
    width, terms = reading.width, reading.terms
    owns = [reading.total(k) if j is None else reading.account(j * width + k) for k in range(width)]
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
    if width > 1:
        facts |= {"lows": tuple(lows), "highs": tuple(highs)}
        if j is not None:  # the levels of one parameter are bounded by its own gaps (result 8.6)
            gaps = reading.state.gaps[j * (width - 1) : (j + 1) * (width - 1)]
            facts["gaps"] = tuple(gaps)
    return facts


def more_labels(reading: Reading, bound: float) -> int | None:
    """How many more labels until the proven bound falls below this, if things go on as they were."""
    setting = setting_of(reading)
    if reading.refusal is not None:
        return None
    needed = labels_until(setting, bound)
    return None if needed is None else max(0, needed - int(setting.n))


def harm_of(layer: Any, auto: str) -> HarmCap:
    """Most that the step can cost in loss; ``auto`` is the sentence for a layer that chooses its own."""
    if layer.eta == "auto":
        return HarmCap(None, None, "B5", auto)
    reading = reading_of(layer)
    if reading.refusal is not None:
        return HarmCap(None, None, "no theorem fits", f"no harm cap is proven: {reading.refusal}")
    setting = setting_of(reading)
    if not isinstance(reading.schedule, Constant) or reading.schedule.eta != setting.top_eta:
        setting = replace(setting, inverse_variation=math.inf)
    return harm_cap(setting, sinh=reading.terms.sinh)
