"""Everything that a layer prints, computed again by hand from what was served and what was said."""

import math
from typing import NamedTuple

from fuzz.printed import check_printed
from fuzz.promises import harm, labels_until, vacuous
from fuzz.telling import ROUNDING, Broken, close, expect
from gradeq.certificates.reading import reading_of, setting_of
from gradeq.errors import BadInput, OtherSettings
from gradeq.ledger import facts as fact


def learned(life):
    return [row for row in life.rows if row.learned]


class Sums(NamedTuple):
    """By hand: sums of w e z by coordinate and level, weights by coordinate, sums over all rows, losses."""

    gradients: dict
    before: dict
    weights: dict
    rows: dict
    losses: dict
    total: dict
    weight: float
    loss: tuple


def by_hand(life, rows):
    """What these rows add up to, as the outside world saw them."""
    case, terms, raw, level_terms = life.case, {}, {}, {}
    weights, counts, losses, loss = {}, {}, {}, ([], [])
    for row in rows:
        base = case.raw(row.base)
        errors = case.error(row.served, row.y, row.base)
        firsts = case.error(base, row.y, row.base) if case.kind != "risk" else errors
        costs = tuple(row.w * case.loss(s, row.y, row.base) for s in (base, row.served))
        for own, cost in zip(loss, costs, strict=True):
            own.append(cost)
        for k, (e, first) in enumerate(zip(errors, firsts, strict=True)):
            level_terms.setdefault(k, []).append(row.w * e)
            for name, z in zip(row.coords, row.z, strict=True):
                terms.setdefault((name, k), []).append(row.w * e * z)
                raw.setdefault((name, k), []).append(row.w * first * z)
        for name, z in zip(row.coords, row.z, strict=True):
            if z != 0.0 or not case.games:  # nobody at home: no game of the first side
                weights.setdefault(name, []).append(row.w)
                counts[name] = counts.get(name, 0) + 1
                for k, cost in enumerate(costs):
                    losses.setdefault((name, k), []).append(cost)
    found = [{key: added(own) for key, own in group.items()} for group in (terms, raw, weights, losses, level_terms)]
    gradients, before, weights, losses, total = found
    weight = math.fsum(row.w for row in rows)
    return Sums(gradients, before, weights, counts, losses, total, weight, tuple(map(added, loss)))


def added(terms):
    """Their sum, nan if that is too large for a number."""
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.nan


def check(life, whole=True):
    """Compare all that is printed with what was seen; raises ``Broken`` with the numbers."""
    layer, rows = life.layer, learned(life)
    result = layer.equilibrium()
    expect(result.rows == len(rows), "rows", result.rows, len(rows))
    traffic(life)
    if life.corrected or life.shared:  # no single run did that, so nothing is proven about it
        expect(result.bound is None, "a bound after corrections, or of what was merged", result.bound)
    if life.stray:
        expect(result.bound is None, "a bound with a ticket from a lost future", result.bound)
    own = by_hand(life, rows)
    if not rows or not own.weight:
        return result
    size = averages(life, result, rows, own)
    check_printed(life, result, own, size)
    vacuous(life, result, rows)
    own_steps(life, result, rows, own)
    coverage(life, own)
    harm(life, rows, own)
    window(life)
    leaderboard(life, own)
    keys(life, rows)
    if life.case.kind == "risk":
        risk = own.loss[1] / own.weight
        expect(close(layer.risk, risk, life.case.told["most"]), "risk", layer.risk, risk)
    # The identity: exact but for rounding, which is relative to what was summed up (in u, with steps that varied).
    u = max((abs(x) for x in flat(layer.theta)), default=0.0) if not life.case.games else 50.0
    size += pull(life.case)
    tolerance = ROUNDING * (size + u + layer.steps["largest"] * size * own.weight)
    smallest = layer.steps["smallest"]
    if smallest > 0.0:  # of next to no weight: the last digit of a parameter that hardly moved
        tolerance += 1e-15 * u / (smallest * own.weight)
    expect(result.gap <= tolerance, "gap", result.gap, tolerance)
    if whole:
        labels_until(life, result, rows)
    return result


def own_steps(life, result, rows, own):
    """Where steps vary and rows share parameters: what each coordinate is bounded by, added up by hand."""
    case, layer = life.case, life.layer
    if case.keyed or case.games:
        return
    said = setting_of(reading_of(layer)).own_steps
    if said is None or life.corrected or life.stray:
        return
    squares, mass = {}, {}
    for row in rows:
        (e, *_) = case.error(row.served, row.y, row.base)
        for name in row.coords:
            squares.setdefault(name, []).append(row.w * e * e)
            if row.posting is not None:
                mass.setdefault(name, []).append(row.w * row.posting.eta)
    for j, name in enumerate(layer.internals.names.names):
        mine = own.weights.get(name, 0.0)
        expect(close(float(said.weights[j]), mine, mine), "own weight", name, said.weights[j], mine)
        total = added(squares.get(name, [0.0]))
        if math.isfinite(float(said.errors[j])) and math.isfinite(total) and total > 1e-290:
            slack = total + error_size(case, rows) ** 2 * 1e-6
            expect(close(float(said.errors[j]), total, slack), "own errors", said.errors[j], total)
        if len(mass.get(name, ())) == own.rows.get(name, -1) and math.isfinite(said.mass[j]):
            total = math.fsum(mass[name])
            expect(close(float(said.mass[j]), total, total), "own steps", said.mass[j], total)
    for c in result.coordinates:  # no coordinate is promised less than all of them
        if c.bound is not None and result.bound is not None and c.weight:
            most = result.bound * own.weight / c.weight
            expect(c.bound <= most * (1 + ROUNDING), "bound above that of all", c, result.bound)


def place(case, name):
    """Coordinate and level of a printed name."""
    coordinate, _, level = name.partition(" @ ")
    return coordinate, 0 if not level else [f"{tau:g}" for tau in case.levels].index(level)


def averages(life, result, rows, own):
    """Averages, bias, losses and bounds of the whole and of every coordinate; the size of what was added up."""
    case, weight = life.case, own.weight
    largest = error_size(case, rows)
    size = largest * max(max(map(abs, row.z)) for row in rows)
    most = 0.0
    for c in result.coordinates:
        name, k = place(case, c.name)
        if (name, k) not in own.gradients or not own.weights.get(name):
            expect(c.rows == 0 or c.average_gradient == 0.0, "a coordinate that no row had", c)
            continue
        total, mine = own.gradients[name, k], own.weights[name]
        if not math.isfinite(total) or not math.isfinite(own.before[name, k]):
            expect(c.bound is None, "a bound on what is no number", c)
            continue
        slack = size * weight / mine
        most = max(most, abs(total) / weight)
        expect(c.rows == own.rows[name], "rows of", c.name, c.rows, own.rows[name])
        expect(close(c.weight, mine, mine), "weight of", c.name, c.weight, mine)
        average = total / weight
        if math.isnan(c.average_gradient):  # not known: a correction took its digits
            expect(life.layer.internals.state.facts[fact.CORRECTED] and c.bias_after is None, "not known", c)
            continue
        expect(close(c.average_gradient, average, size), "average", c.name, c.average_gradient, average)
        expect(close(c.bias_after, total / mine, slack), "bias", c.name, c.bias_after, total / mine)
        if c.bias_before is not None:
            raw = own.before[name, k] / mine
            scale = slack + abs(raw) + case.scale * max(map(abs, rows[0].z)) * weight / mine
            expect(close(c.bias_before, raw, scale), "bias before", c.name, c.bias_before, raw)
        if len(case.levels) < 2:
            both = own.losses[name, 0], own.losses[name, 1]
            for said, lost in zip((c.loss_before, c.loss_after), both, strict=True):
                alike(f"loss of {c.name}", said, lost, mine, both if life.corrected else ())
        if c.bound is not None:
            within("bound of a coordinate", total / mine, c.bound, slack, c.name, result.bound_from)
    if result.bound is not None:
        within("bound", most, result.bound, size, result.bound_from)
    if result.bias_after is not None and not case.games:
        bias = own.total[0] / weight
        expect(close(result.bias_after, bias, largest), "overall bias", result.bias_after, bias)
    for said, total in zip((result.loss_before, result.loss_after), own.loss, strict=True):
        alike("loss", said, total, weight, own.loss if life.corrected else ())
    return size


def error_size(case, rows):
    """The largest error, and a little for what was rounded before it was compared."""
    largest = max(abs(e) for row in rows for e in case.error(row.served, row.y, row.base))
    if case.levels or case.kind == "risk":
        return largest
    unit = [row.served / row.base if case.positive else row.served for row in rows]
    return largest + 1e-4 * max(map(abs, unit))


def within(what, value, bound, size, *more):
    expect(abs(value) <= bound * (1 + ROUNDING) + ROUNDING * size, what, value, bound, *more)


def alike(what, said, total, weight, both=()):
    """A mean of losses, if it is a number; after a correction 0 where it is nothing beside the other one."""
    if said == 0.0 and both and total <= 2e-9 * max(both):
        return
    if said is not None and math.isfinite(total) and math.isfinite(said):
        mean = total / weight
        rounding = 1e-18 + 1e-6 * math.sqrt(abs(mean))  # of errors that were squared
        expect(close(said, mean, abs(mean) + rounding), what, said, mean)


def pull(case):
    """How strongly a penalty pulls beside the errors."""
    shrinking = case.told.get("penalty")
    return case.told.get("proximal", 0.0) if shrinking is None else shrinking.strength


def flat(theta):
    """The parameters of any layer, one after the other."""
    for value in theta.values():
        yield from value if isinstance(value, tuple) else (value,)


def traffic(life):
    """How many were served and heard, and how long labels took, in predictions served in between."""
    said = life.layer.traffic
    expect(said["served"] == life.served, "served", said, life.served)
    if not (life.corrected and life.case.games):  # a tie that was dropped may be a game after all
        expect(said["labelled"] == life.heard, "labelled", said, life.heard)
        mean = sum(life.waited) / life.heard if life.heard else 0.0
        if not life.stray:  # how late a ticket of another future is, nobody knows
            expect(close(said["mean_delay"], mean, 1.0), "mean delay", said, mean)
            expect(said["longest_delay"] == max(life.waited, default=0), "longest delay", said)
    waiting = sum(row.y is None and row.id is not None and not row.lapsed for row in life.rows)
    waiting += len(life.waiting) + sum(row.id is None for row in life.line)
    if life.single:
        learning = life.layer.equilibrium().learning
        told = sum(life.layer.internals.tickets.replaced.values()) if learning is None else learning.replaced
        expect(told == life.replaced, "predictions that were replaced", told, life.replaced)
    expect(said["open"] == waiting, "open", said, waiting)


def coverage(life, own):
    """Coverage of every level (or of the interval), and its bound over all rows."""
    found = getattr(life.layer, "coverage", None)
    case, weight = life.case, own.weight
    if found is None or not case.levels:
        return
    if case.kind == "interval":
        upper, lower = (own.total[1] / weight + case.levels[1], own.total[0] / weight + case.levels[0])
        pairs = [(found, upper - lower - found.target)]
    else:
        listed = found if isinstance(found, list) else [found]
        pairs = [(one, own.total[k] / weight) for k, one in enumerate(listed)]
    # Only what is bounded in each of several groups apart adds up to a bound of all rows.
    apart = not case.features and len(case.groups) < 2 and not (case.groups and case.told.get("penalty"))
    limits(life, [one for one, _ in pairs])
    for one, error in pairs:
        expect(apart or one.bound is None, "a coordinate's bound as that of coverage", one)
        expect(abs(one.after - one.target - error) < 1e-8, "coverage", one, error)
        expect((one.bound is None) == (one.vacuous is None), "vacuous without a bound", one)
        if one.bound is not None:
            within("bound of coverage", error, one.bound, 1.0, one)
            raw = max(abs(one.before - one.target), 0.05)
            if abs(one.bound - raw) > 1e-6:
                expect(one.vacuous == (one.bound > raw), "vacuous coverage", one)


def limits(life, found):
    """The coverage of what was shown, inside the limits; the lower end of an interval is inclusive at one."""
    case, rows = life.case, learned(life)
    if "support" not in case.told:
        expect(all(one.clipped is None for one in found), "clipped without limits", found)
        return
    weight = math.fsum(row.w for row in rows)
    for k, one in enumerate(found):
        inside = 0.0
        for row in rows:
            shown = [case.held(s) for s in (row.served if case.kind in ("quantiles", "interval") else (row.served,))]
            covered = row.y <= shown[k]
            if case.kind == "interval":
                low, high = shown
                at_limit = low in case.support and row.y == low
                covered = (low < row.y or at_limit) and row.y <= high
            inside += row.w * covered
        expect(abs(one.clipped - inside / weight) < 1e-8, "clipped coverage", one, inside / weight)


def leaderboard(life, own):
    """What is shown of each player."""
    for one in life.layer.leaderboard() if life.case.games else ():
        mine = own.weights[one.player]
        bias = own.gradients[one.player, 0] / mine
        expect(one.games == own.rows[one.player], "games", one)
        expect(close(one.bias, bias, own.weight / mine), "bias of a player", one, bias)
        won = 0.5 - own.before[one.player, 0] / mine
        expect(close(one.win_rate, won, own.weight / mine), "win rate", one, won)
        if one.bound is not None:
            within("bound of a player", bias, one.bound, own.weight / mine, one)


def keys(life, rows):
    """Each key by itself: its own averages and its own bound."""
    case = life.case
    if not case.keyed or (case.features and not case.groups):
        return
    for key in sorted({row.key for row in rows}):
        mine = [row for row in rows if row.key == key]
        own, result = by_hand(life, mine), life.layer.equilibrium(key)
        expect(result.rows == len(mine), "rows of a key", key, result.rows, len(mine))
        if own.weight:
            averages(life, result, mine, own)


def window(life):
    """Averages of the labels posted since an earlier state."""
    if life.earlier is None or life.case.keyed:
        return
    try:
        between = life.layer.since(life.earlier)
    except BadInput:
        return
    except OtherSettings:
        expect(life.stepped, "a window of other settings")
        return
    expect(math.isfinite(between.gap), "gap of a window", between.gap)
    if life.corrected:
        return
    expect(between.rows == len(life.later), "rows of a window", between.rows, len(life.later))
    own = by_hand(life, life.later)
    if not own.weight:
        return
    case, everything = life.case, learned(life)
    largest = error_size(case, everything) * max(max(map(abs, row.z)) for row in everything)
    largest += pull(case)
    whole = math.fsum(row.w for row in everything) * largest
    for name, value in between.bias.items():
        coordinate, k = place(case, name)
        total, mine = own.gradients.get((coordinate, k), 0.0), own.weights.get(coordinate, 0.0)
        # A difference of two sums: rounding is relative to the whole, and so is that of the weights.
        for what, said, weight in (
            ("bias", value, mine), ("average", between.average_gradient[name], own.weight),
        ):  # fmt: skip
            if weight and math.isfinite(whole):
                mean, slack = total / weight, 1e-11 * whole / weight
                expect(abs(said - mean) <= 1e-9 * abs(mean) + slack, f"{what} of a window", name, said, mean)
    u = max((abs(x) for x in flat(life.layer.theta)), default=0.0) if not case.games else 50.0
    steps = life.layer.steps["largest"]
    tolerance = 1e-9 * (largest + u + steps * whole) + 1e-11 * (whole + u / steps) / own.weight
    expect(between.gap <= tolerance, "gap of a window", between.gap, tolerance)


__all__ = ["Broken", "check"]
