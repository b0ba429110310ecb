"""Certificates: exact averages of the errors of a layer, their proven bound, coverage, and windows of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import fsum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.certificates import figures
from gradeq.certificates.reading import LN2, MANY, Reading, elo_reading, reading_of, setting_of
from gradeq.equilibrium import MIXED, RELATIVE, Average, Coordinate, Coordinates, Equilibrium, averages_from_sums
from gradeq.errors import BadInput
from gradeq.kernels.account import BEFORE, COLUMNS, GRADIENT, HIGH, LOSS_BEFORE, LOW, MOVED, ROWS, WEIGHT
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.numerics import over
from gradeq.schedules import Constant
from gradeq.tables import LazySequence
from gradeq.theory import Bound, HarmCap, Setting, best_bound, group_bounds, harm_cap, labels_until
from gradeq.theory.harm import JUDGED
from gradeq.theory.setting import Groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gradeq.certificates.contracts import EloLayer, LayerLike


SEVERAL = 16.0  # roundings of one label, that several operations may add up to
PROBABLE = 1e-15  # of a probability: what rounding may hide of it


def certify(layer: LayerLike) -> Equilibrium:
    return replace(certificate(reading_of(layer)), learning=figures.learning_of(layer))


def certificate(reading: Reading) -> Equilibrium:
    """Exact averages, the same from the state, and the proven bound, coordinate by coordinate."""
    if len(reading.names) >= MANY and isinstance(reading.state, State):
        # What coordinates are made from when they are looked at stays as it is now.
        reading = replace(reading, state=reading.state.copy(), names=list(reading.names))
    terms, state, totals = reading.terms, reading.state, reading.totals
    facts, single, divisor, rows = state.facts, not terms.levels, totals[0][WEIGHT], totals[0][ROWS]
    unit = None  # of residuals, if not that of the labels; only needed after corrections
    if terms.sinh and facts[fact.CORRECTED] and hasattr(state, "nums"):
        nums, dens = (np.asarray(getattr(state, name), dtype=float) for name in ("nums", "dens"))
        scales = np.divide(nums, dens, out=np.zeros_like(nums), where=dens > 0.0)
        unit = figures.ResidualUnit(float(scales.max(initial=0.0)), float(nums.max(initial=0.0)))
    setting = setting_of(reading)
    whole = proven_bound(reading, setting)
    coordinates, gap = coordinates_of(reading, coordinate_bounds(reading, setting), divisor, unit)
    raw = figures.raw_error_of_all(reading)
    vacuous = figures.is_vacuous(whole.value, raw)
    means = figures.mean_figures(totals, facts, single, terms.loss_scale, unit)
    unknown = {"bias": means.bias_after, terms.loss_name: means.loss_after}
    lost = max(figures.rounding_loss(account, facts, single)[0] for account in totals)
    weights = ""  # all were 1
    if not (facts[fact.HEAVIEST] <= 1.0 and divisor == rows):
        counts = getattr(state, "weighed", ())  # earlier versions did not make them relative
        weights = MIXED if len(counts) and sum(counts) < rows else RELATIVE
    return Equilibrium(
        rows=int(rows),
        coordinates=coordinates,
        bias_before=means.bias_before if single else None,
        bias_after=means.bias_after if single else None,
        loss_name=terms.loss_name,
        loss_before=means.loss_before,
        loss_after=means.loss_after,
        gap=gap,
        rounding=over(lost, divisor) if reading.constant else facts[fact.STEP_HIGH] * lost,
        hidden=tuple(name for name, value in unknown.items() if value is None),
        bound=whole.value,
        bound_from=whole.result,
        vacuous=vacuous,
        needed=labels_needed(setting, whole.value, raw) if vacuous else None,
        exact=reading.constant,
        negligible=negligible_rise(reading),
        weights=weights,
    )


def negligible_rise(reading: Reading) -> float:
    """The rise of the loss of a perfect model that rounding, the clip or the least scale of link sinh explain.

    Where every prediction was its label, the range of the residuals is what rounding may hide of them.
    """
    terms, totals = reading.terms, reading.totals
    if terms.task in ("probability_logit", "probability_shift"):
        return 4.0 * min(terms.clip or 0.0, JUDGED) ** 2 + PROBABLE**2
    if any(account[LOSS_BEFORE] for account in totals) or not totals[0][ROWS]:
        return 0.0
    if terms.sinh:
        return math.inf
    reach = max(max(-account[LOW], account[HIGH], 0.0) for account in totals)
    return (SEVERAL * reach) ** 2 if terms.task == "mean" and reach < 1e150 else 0.0


def coordinates_of(
    reading: Reading, bounds: Sequence[Bound], divisor: float, unit: figures.ResidualUnit | None
) -> tuple[Sequence[Coordinate], float]:
    """All coordinates (lazily if there are many) and the largest gap."""
    names, terms, facts = coordinate_names(reading), reading.terms, reading.state.facts

    def one(c: int) -> tuple[Coordinate, float]:
        account, bound = reading.account(c), bounds[c].value
        average = averages(reading, account, divisor, reading.terms.start[c % reading.width], itemgetter(c))
        means = figures.mean_figures([account], facts, not terms.levels, terms.loss_scale, unit)
        destroyed = means.bias_after is None
        coordinate = Coordinate(
            name=names[c],
            rows=int(account[ROWS]),
            average_gradient=math.nan if destroyed else average.gradient,
            average_penalty=average.penalty,
            from_state=math.nan if destroyed else average.from_state,
            **vars(means),
            bound=bound,
            vacuous=figures.is_vacuous(bound, float(figures.raw_errors(reading, account)[0])),
            weight=account[WEIGHT],
            moved=average.moved,
        )
        return coordinate, average.gap

    if not (len(reading.names) >= MANY and isinstance(reading.state, State)):
        pairs = [one(c) for c in range(len(names))]
        return tuple(coordinate for coordinate, _ in pairs), max((gap for _, gap in pairs), default=0.0)
    table = reading.state.view("sums").reshape(-1, COLUMNS).T
    starts = np.tile(reading.terms.start, len(reading.state.u) // reading.width)
    every = averages(reading, table, divisor, starts, np.asarray)
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


Column = Any  # a number of one coordinate, or those of all


def averages(
    reading: Reading, account: Column, divisor: float, start: Column, at: Callable[[Column], Column]
) -> Average:
    """The averages since the beginning, of one coordinate or of all: ``at`` picks its entries of a column."""
    state = reading.state
    penalised = reading.penalty is not None
    pull = at(state.pulls) if penalised else 0.0
    drag = at(state.drags) if penalised else 0.0
    eta = state.facts[fact.STEP_HIGH] if reading.constant else None
    moved = start - at(state.u)
    average = averages_from_sums(account[GRADIENT], pull, 0.0, account[MOVED] + drag, moved, divisor, eta)
    if np.all(np.isfinite(account[GRADIENT])):
        return average
    mean = figures.mean_gradient(account, divisor, eta)
    return replace(average, gradient=mean, gap=abs(mean + average.penalty - average.from_state))


def coordinate_names(reading: Reading) -> list[str]:
    """The name of each coordinate: its parameter, and its level where there are several."""
    if reading.width == 1:
        return reading.names
    return [f"{name} @ {tau:g}" for name in reading.names for tau in reading.terms.levels]


def proven_bound(reading: Reading, setting: Setting) -> Bound:
    """The bound on the largest coordinate, or none with the reason."""
    bound = best_bound(setting)
    refusal = reading.refusal
    if refusal is not None:
        return replace(bound, value=None, result=refusal)
    return bound if bound.value is not None else replace(bound, result=bound.reason or bound.result)


def coordinate_bounds(reading: Reading, setting: Setting) -> Sequence[Bound]:
    """A bound for each coordinate over its own rows."""
    width, count = reading.width, len(reading.names)
    if not count:
        return []
    if reading.refusal is not None:
        return [proven_bound(reading, setting)] * (count * width)
    if reading.terms.structure == "scalar":
        return total_bounds(reading, setting)
    if setting.structure == "disjoint" and setting.penalty is None:
        groups = setting.groups
        if not isinstance(groups, Groups):
            return [bound for group in groups for bound in level_bounds(group, width)]
        of_group = lru_cache(1)(lambda j: level_bounds(groups[j], width))  # its levels are read one after the other
        return LazySequence(count * width, lambda c: of_group(c // width)[c % width])
    return [bound for bound in group_bounds(setting) for _ in range(width)]


def total_bounds(reading: Reading, setting: Setting | None = None) -> list[Bound]:
    """A bound for each level on the average over all rows; none where only coordinates are bounded."""
    setting = setting_of(reading) if setting is None else setting
    whole = proven_bound(reading, setting)
    none = replace(whole, value=None)
    if whole.value is None:
        return [none] * reading.width
    if reading.terms.structure == "scalar":
        return level_bounds(setting, reading.width)
    if setting.structure != "disjoint" or setting.penalty is not None:
        return [none] * reading.width
    bounds = []  # errors of disjoint groups add up to those of all rows, and so do their bounds
    for levels in zip(*(level_bounds(group, reading.width) for group in setting.groups), strict=True):
        values = [
            None if bound.value is None else bound.value * group.average_over
            for bound, group in zip(levels, setting.groups, strict=True)
            if group.n
        ]
        total = None if None in values else math.fsum(v for v in values if v is not None)
        value = None if total is None else over(total, setting.average_over)
        bounds.append(replace(whole, value=value, trivial=max(bound.trivial for bound in levels)))
    return bounds


def level_bounds(setting: Setting, width: int) -> list[Bound]:
    if setting.structure == "isotonic":
        return list(group_bounds(setting))
    return [best_bound(setting)] * width


def labels_needed(setting: Setting, bound: float | None, raw: float) -> int | None:
    """About how many labels it takes until a vacuous bound is below the raw error, if the data stay alike."""
    if bound is None or not raw > 0.0 or not math.isfinite(bound):
        return None
    if len(setting.groups) > figures.MANY_PARAMETERS:
        return math.ceil(setting.n * bound / raw)
    return labels_until(setting, raw)


def more_labels(reading: Reading, bound: float, setting: Setting | None = None) -> int | None:
    """How many more labels until the proven bound falls below this, if the data stay alike."""
    if reading.refusal is not None:
        return None
    setting = setting or setting_of(reading)
    needed = labels_until(setting, bound)
    return None if needed is None else max(0, needed - int(setting.n))


def harm_cap_of(layer: LayerLike, auto: str) -> HarmCap:
    """The most that the step can cost in loss. ``auto``: the sentence for an automatic step."""
    if getattr(layer, "eta", None) == "auto":
        return HarmCap(None, None, "B5", auto)
    reading = reading_of(layer)
    if reading.refusal is not None:
        return HarmCap(None, None, "no theorem fits", f"no harm cap is proven: {reading.refusal}")
    setting = setting_of(reading)
    if not isinstance(reading.schedule, Constant) or reading.schedule.eta != setting.top_eta:
        setting = replace(setting, inverse_variation=math.inf)
    return harm_cap(setting, sinh=reading.terms.sinh)


def certify_elo(elo: EloLayer) -> Equilibrium:
    reached = certificate(elo_reading(elo))
    coordinates = [replace(c, loss_before=None, loss_after=None) for c in reached.coordinates]
    if elo.proximal is not None:
        coordinates = [replace(c, average_penalty=0.0, average_normal=c.average_penalty) for c in coordinates]
    before = LN2 if reached.rows else 0.0
    return replace(
        reached, coordinates=tuple(coordinates), bias_name="bias of the first side", loss_before=before,
        learning=figures.learning_of(elo),
    )  # fmt: skip


def player_bounds(
    elo: EloLayer, weights: NDArray[np.float64], win_rates: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The bound on the bias of players with these weights of games, and whether it is vacuous; None: not proven."""
    reading = elo_reading(elo)
    setting = replace(setting_of(reading), counts=(1.0,))
    one = coordinate_bounds(reading, setting)[0]  # of a player with one game
    if one.value is None:
        return np.full(len(weights), None), np.full(len(weights), None)
    values = one.value / weights
    return values, ~(values < figures.rate_error(win_rates - 0.5))


def more_games(elo: EloLayer, target: float) -> int | None:
    """More games until the bound of the player with the fewest is below ``target``; None if that is never."""
    reading = elo_reading(elo)
    setting = setting_of(reading)
    shares = [weight / setting.weights for weight in setting.counts[int(elo.internals.names.home) :] if weight]
    # A player's bound is the whole's divided by the player's share of the games.
    return more_labels(reading, target * min(shares), replace(setting, counts=())) if shares else None


def elo_harm_cap(elo: EloLayer) -> HarmCap:
    """What the step can cost at most against p = 1/2 (result B2: constant step, scores at once)."""
    if elo.proximal is not None:
        return HarmCap(None, None, "no theorem fits", "no harm cap is proven with a penalty")
    return harm_cap_of(elo, "auto follows the best of its forecasters to within ln 10 in all")


class Coverage(NamedTuple):
    """The share of labels covered by the base forecast and by what was served, and the bound on |after - target|.

    The bound is that of all rows together; None where none is proven (overlapping groups, features). ``clipped``:
    with a support the share covered by the values as shown, inside its limits; ``after`` is judged before them.
    """

    target: float
    before: float
    after: float
    bound: float | None
    vacuous: bool | None
    clipped: float | None = None


def coverages(layer: LayerLike) -> list[Coverage]:
    """The coverage of each level over all labelled rows; nan before there are any."""
    reading = reading_of(layer)
    shares = []
    parts = zip(reading.terms.levels, reading.totals, total_bounds(reading), strict=True)
    for k, (tau, account, bound) in enumerate(parts):
        weight = account[WEIGHT] if account[WEIGHT] > 0.0 else math.nan
        before, after = (add_shares(tau, account[column] / weight) for column in (BEFORE, GRADIENT))
        more = reading.limited(k)
        clipped = None if more is None else add_shares(after, more / weight)
        vacuous = figures.is_vacuous(bound.value, float(figures.rate_error(before - tau)))
        shares.append(Coverage(tau, before, after, bound.value, vacuous, clipped))
    return shares


def interval_coverage(lower: Coverage, upper: Coverage, target: float) -> Coverage:
    """Of the interval between two levels that never cross: the difference, the two bounds added (result 8.4)."""
    bound, vacuous = joint_bound((lower, upper), target)
    before, after = add_shares(upper.before, -lower.before), add_shares(upper.after, -lower.after)
    clipped = None
    if lower.clipped is not None and upper.clipped is not None:
        clipped = add_shares(upper.clipped, -lower.clipped)
    return Coverage(target, before, after, bound, vacuous, clipped)


def joint_bound(
    parts: Sequence[Coordinate | Coverage], target: float | None = None
) -> tuple[float | None, bool | None]:
    """The largest bound of several parameters, and whether it is vacuous; None if one has no bound.

    With a ``target`` they are the ends of an interval: their bounds add up.
    """
    known = [part.bound for part in parts if part.bound is not None]
    if not known or len(known) < len(parts):
        return None, None
    if target is None:
        return max(known), any(part.vacuous for part in parts)
    off = [p.before - p.target if isinstance(p, Coverage) else float(p.bias_before or 0.0) for p in parts]  # when raw
    bound = math.fsum(known)
    return bound, figures.is_vacuous(bound, float(figures.rate_error(off[-1] - off[0])))


def add_shares(a: float, b: float) -> float:
    """a + b, rounded to 10 decimals: long sums lose the last digits."""
    return round(a + b, 10) + 0.0


UNRELATED = "since: this is not an earlier state of this layer:"
ROUNDED = 1.0 + 1e-9  # a corrected label takes its weight away and adds it again
REMEDY = "give a copy that was made of it, or one that was read back"


class Revision(NamedTuple):
    """A posting that was taken back (sign -1) or put in the place of another, as far as its sums go.

    ``number``: that of its ticket. ``params`` and ``values``: its parameters and their z; ``errors``: by level.
    """

    number: int
    sign: float
    weight: float
    eta: float
    params: tuple[int, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...]


class Window(NamedTuple):
    """Averages over the labels posted between two states, summed row by row and read off the states.

    ``rows``: labels in the window. ``average_gradient`` and ``from_state``: by coordinate, over all its rows;
    ``bias``: by coordinate, over its own rows. ``gap``: the largest disagreement of the two, rounding apart 0 (with a
    step that varied, of the sum of eta times gradient and the move of the parameter).
    """

    rows: int
    average_gradient: dict[str, float]
    from_state: dict[str, float]
    bias: dict[str, float]
    gap: float


def window(first: Reading, last: Reading, older: Sequence[Revision] = (), skipped: int = 0) -> Window:
    """What happened between two states of one layer (copies, or read back from JSON).

    ``older``: revisions of labels from before the first state, which are left out; ``skipped``: parameters of the
    layer that come before the first of the readings.
    """
    posted = [reading.state.facts[fact.POSTED] for reading in (first, last)]
    if posted[0] > posted[1] or len(first.names) > len(last.names):
        raise BadInput("window: the first state is later than the second; give the earlier one first")
    known = {name: c for c, name in enumerate(coordinate_names(first))}
    check_prefix(first, last, revised=bool(older))
    whole = [reading.totals[0] for reading in (first, last)]
    divisor = whole[1][WEIGHT] - whole[0][WEIGHT] - fsum(r.sign * r.weight for r in older)
    rows = whole[1][ROWS] - whole[0][ROWS] - fsum(r.sign for r in older)
    revised = revision_sums(older, last.width, skipped)
    eta = last.state.facts[fact.STEP_HIGH] if last.constant else None
    average, state, bias, gap = {}, {}, {}, 0.0
    for c, name in enumerate(coordinate_names(last)):
        at = known.get(name)
        after = last.account(c)
        before = [0.0] * len(after) if at is None else first.account(at)
        u = last.terms.start[c % last.width] if at is None else first.state.u[at]
        gradient, applied = after[GRADIENT] - before[GRADIENT], after[MOVED] - before[MOVED]
        weight = after[WEIGHT] - before[WEIGHT]
        pulled = 0.0
        if last.penalty is not None:
            applied += last.state.drags[c] - (0.0 if at is None else first.state.drags[at])
            pulled = last.state.pulls[c] - (0.0 if at is None else first.state.pulls[at])
        if c in revised:
            heavier, error, moved = revised[c]
            weight, gradient, applied = weight - heavier, gradient - error, applied - moved
            u -= moved
        means = averages_from_sums(gradient, pulled, 0.0, applied, u - last.state.u[c], divisor, eta)
        average[name], state[name], gap = means.gradient, means.from_state, max(gap, means.gap)
        bias[name] = over(gradient, weight)
    return Window(int(rows), average, state, bias, gap)


def check_prefix(first: Reading, last: Reading, revised: bool) -> None:
    """Raise unless the second state can have followed from the first.

    Rows and weights only grow, and where no label came in between and none was corrected no sum has moved.
    """
    names = coordinate_names(last)
    places = {name: c for c, name in enumerate(names)}
    facts = (first.state.facts, last.state.facts)
    still = not revised and all(facts[0][k] == facts[1][k] for k in (fact.POSTED, fact.CORRECTED))
    grown = facts[0][fact.SERVED] <= facts[1][fact.SERVED]
    for c, name in enumerate(coordinate_names(first)):
        if name not in places:
            raise BadInput(f"{UNRELATED} it knows {name!r}, and the later state does not; {REMEDY}")
        before, after = first.account(c), last.account(places[name])
        grown = grown and all(before[k] <= after[k] * ROUNDED for k in (ROWS, WEIGHT))
        if still and any(before[k] != after[k] for k in (ROWS, WEIGHT, GRADIENT, MOVED)):
            raise BadInput(f"{UNRELATED} no label came in between, and yet the sums of {name!r} differ; {REMEDY}")
    if not grown:
        raise BadInput(f"{UNRELATED} it has served or learned from more rows; {REMEDY}")


def revision_sums(revisions: Sequence[Revision], width: int, skipped: int) -> dict[int, list[float]]:
    """What revisions added to each coordinate: to its weight, its gradients, and its gradients times the step."""
    terms: dict[int, list[tuple[float, float, float]]] = {}
    for revision in revisions:
        weight = revision.sign * revision.weight
        for j, z in zip(revision.params, revision.values, strict=True):
            for k, error in enumerate(revision.errors):
                gradient = weight * error * z
                of_coordinate = terms.setdefault((j - skipped) * width + k, [])
                of_coordinate.append((weight, gradient, revision.eta * gradient))
    return {c: [fsum(column) for column in zip(*rows, strict=True)] for c, rows in terms.items()}
