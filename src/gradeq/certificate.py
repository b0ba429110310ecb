"""The certificate: one builder for every layer, key, group, level, player and window, read from state and facts.

Averages are over all labelled rows (weighted by their weights); the bias and loss of a coordinate over its own rows.
A coordinate is a parameter, or a parameter at a level. What is proven comes from ``theory.best_bound`` and from the
facts that the two writers recorded, and from nowhere else; where no theorem covers what happened, none is shown and
the reason is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from gradeq.certificate_reading import MANY, Reading, reading_of, setting_of
from gradeq.equilibrium import Average, Coordinate, Coordinates, Equilibrium, averaged
from gradeq.informative import MANY as MANY_PARAMETERS
from gradeq.informative import is_vacuous, raw_error_of_all, raw_errors
from gradeq.kernels.account import (
    COLUMNS,
    GRADIENT,
    HIGH,
    LOSS_BEFORE,
    LOW,
    MOVED,
    ROWS,
    WEIGHT,
)
from gradeq.learning import learning_of
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.numerics import over
from gradeq.rounding import Unit, figures, hidden, mean_gradient
from gradeq.schedules import Constant
from gradeq.tables import Lazily
from gradeq.theory import Bound, HarmCap, Setting, best_bound, group_bounds, harm_cap, labels_until
from gradeq.theory.cap import JUDGED
from gradeq.theory.groups import Groups

SEVERAL = 16.0  # roundings of one label, that several operations may add up to
PROBABLE = 1e-15  # of a probability: what rounding may hide of it


def certify(layer: Any) -> Equilibrium:
    """Everything that can be said about what a layer has served so far."""
    return replace(certificate(reading_of(layer)), learning=learning_of(layer))


def certificate(reading: Reading) -> Equilibrium:
    """Exact averages, the same from the state, and the proven bound, coordinate by coordinate."""
    if len(reading.names) >= MANY and isinstance(reading.state, State):
        # What coordinates are made from when they are looked at stays as it is now.
        reading = reading._replace(state=reading.state.copy(), names=list(reading.names))
    terms, width, constant = reading.terms, reading.width, reading.constant
    totals = [reading.total(k) for k in range(width)]
    divisor = totals[0][WEIGHT]
    setting = setting_of(reading)
    whole = proven(reading, setting)
    coordinates, gap = coordinates_of(reading, coordinate_bounds(reading, setting), divisor)
    raw = raw_error_of_all(reading)
    vacuous = is_vacuous(whole.value, raw)
    facts, single = reading.state.facts, not terms.levels
    shown = figures(totals, facts, single, terms.loss_scale, unit_of(reading))
    unknown = {"bias": shown.bias_after, terms.loss_name: shown.loss_after}
    lost = max(hidden(own, facts, single).gradient for own in totals)
    return Equilibrium(
        rows=int(totals[0][ROWS]),
        coordinates=coordinates,
        bias_before=shown.bias_before if single else None,
        bias_after=shown.bias_after if single else None,
        loss_name=terms.loss_name,
        loss_before=shown.loss_before,
        loss_after=shown.loss_after,
        gap=gap,
        rounding=over(lost, divisor) if constant else facts[fact.STEP_HIGH] * lost,
        hidden=tuple(name for name, value in unknown.items() if value is None),
        bound=whole.value,
        bound_from=whole.result,
        vacuous=vacuous,
        needed=labels_needed(setting, whole.value, raw) if vacuous else None,
        exact=constant,
        negligible=negligible(reading, totals),
    )


def negligible(reading: Reading, totals: Sequence[Any]) -> float:
    """The rise of the loss of a perfect model that rounding, the clip or the least scale of link sinh explain.

    Where every prediction was its label, the range of the residuals is what rounding may hide of them.
    """
    terms = reading.terms
    if terms.task in ("probability_logit", "probability_shift"):
        return 4.0 * min(terms.clip or 0.0, JUDGED) ** 2 + PROBABLE**2
    if any(own[LOSS_BEFORE] for own in totals) or not totals[0][ROWS]:
        return 0.0
    if terms.sinh:
        return math.inf
    reach = max(max(-own[LOW], own[HIGH], 0.0) for own in totals)
    return (SEVERAL * reach) ** 2 if terms.task == "mean" and reach < 1e150 else 0.0


def unit_of(reading: Reading) -> Unit | None:
    """What residuals are measured in, where that is not the unit of the labels: only asked for after corrections."""
    state = reading.state
    if not (reading.terms.sinh and state.facts[fact.CORRECTED] and hasattr(state, "nums")):
        return None
    nums, dens = (np.asarray(getattr(state, name), dtype=float) for name in ("nums", "dens"))
    scales = np.divide(nums, dens, out=np.zeros_like(nums), where=dens > 0.0)
    return Unit(float(scales.max(initial=0.0)), float(nums.max(initial=0.0)))


def coordinates_of(
    reading: Reading, bounds: Sequence[Bound], divisor: float
) -> tuple[Sequence[Coordinate], float]:
    """Every coordinate, made when it is looked at where there are many; the largest gap of any."""
    names = coordinate_names(reading)
    terms, facts, unit = reading.terms, reading.state.facts, unit_of(reading)

    def one(c: int) -> tuple[Coordinate, float]:
        own, bound = reading.account(c), bounds[c]
        average = averages(reading, own, divisor, c % reading.width, itemgetter(c))
        shown = figures([own], facts, not terms.levels, terms.loss_scale, unit)
        destroyed = shown.bias_after is None
        made = Coordinate(
            name=names[c],
            rows=int(own[ROWS]),
            average_gradient=math.nan if destroyed else average.gradient,
            average_penalty=average.penalty,
            from_state=math.nan if destroyed else average.from_state,
            **shown._asdict(),
            bound=bound.value,
            vacuous=is_vacuous(bound.value, float(raw_errors(reading, own)[0])),
            weight=own[WEIGHT],
            moved=average.moved,
        )
        return made, average.gap

    if not (len(reading.names) >= MANY and isinstance(reading.state, State)):
        found = [one(c) for c in range(len(names))]
        return tuple(made for made, _ in found), max((gap for _, gap in found), default=0.0)
    table = reading.state.view("sums").reshape(-1, COLUMNS).T
    every = averages(reading, table, divisor, None, np.asarray)
    left = np.zeros(len(names))
    np.divide(table[GRADIENT], table[WEIGHT], out=left, where=table[WEIGHT] > 0.0)
    known = {
        "name": names,
        "rows": table[ROWS].astype(np.int64),
        "weight": table[WEIGHT],
        "average_gradient": every.gradient,
        "average_penalty": every.penalty,
        "average_normal": every.normal,
        "from_state": every.from_state,
        "bias_after": left,
    }
    if facts[fact.CORRECTED]:  # rounding may have destroyed some: ask each
        for name in ("average_gradient", "from_state", "bias_after"):
            del known[name]
    lazily = Coordinates(len(names), lambda c: one(c)[0], known)
    return lazily, max(0.0, float(np.max(every.gap)))


def averages(reading: Reading, own: Any, divisor: float, level: Any, at: Any) -> Average:
    """The averages since the beginning, of one coordinate or of all: ``at`` picks its entries of a column."""
    state = reading.state
    penalised = reading.penalty is not None
    pull = at(state.pulls) if penalised else 0.0
    drag = at(state.drags) if penalised else 0.0
    u = at(state.u)
    start = (
        np.tile(reading.terms.start, len(u) // reading.width)
        if level is None
        else reading.terms.start[level]
    )
    eta = state.facts[fact.STEP_HIGH] if reading.constant else None
    found = averaged(own[GRADIENT], pull, 0.0, own[MOVED] + drag, start - u, divisor, eta)
    if np.all(np.isfinite(own[GRADIENT])):
        return found
    mean = mean_gradient(own, divisor, eta)
    return found._replace(gradient=mean, gap=abs(mean + found.penalty - found.from_state))


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
        return bound._replace(value=None, result=refusal)
    return bound if bound.value is not None else bound._replace(result=bound.reason or bound.result)


def coordinate_bounds(reading: Reading, setting: Setting) -> Sequence[Bound]:
    """A bound for each coordinate over its own rows."""
    width, count = reading.width, len(reading.names)
    if not count:
        return []
    if reading.refusal is not None:
        return [proven(reading, setting)] * (count * width)
    if reading.terms.structure == "scalar":
        return total_bounds(reading, setting)
    if setting.structure == "disjoint" and setting.penalty is None:

        @lru_cache(1)  # the levels of a group are read one after the other
        def of_group(j: int) -> list[Bound]:
            return level_bounds(setting.groups[j], width)

        bounds = Lazily(count * width, lambda c: of_group(c // width)[c % width])
        return bounds if isinstance(setting.groups, Groups) else tuple(bounds)
    return [bound for bound in group_bounds(setting) for _ in range(width)]


def total_bounds(reading: Reading, setting: Setting | None = None) -> list[Bound]:
    """A bound for each level on the average over all rows; none where only coordinates are bounded."""
    setting = setting_of(reading) if setting is None else setting
    whole = proven(reading, setting)
    none = whole._replace(value=None)
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
        bounds.append(whole._replace(value=value, trivial=trivial))
    return bounds


def labels_needed(setting: Setting, bound: float | None, raw: float) -> int | None:
    """About how many labels in all until a vacuous bound is below the raw error, if things go on as they were."""
    if bound is None or not raw > 0.0 or not math.isfinite(bound):
        return None
    if len(setting.groups) > MANY_PARAMETERS:
        return math.ceil(setting.n * bound / raw)
    return labels_until(setting, raw)


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
