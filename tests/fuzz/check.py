"""Everything that a layer prints, computed again by hand from what was served and what was said."""

import math

from gradeq.errors import BadInput

ROUNDING = 1e-9


class Broken(AssertionError):
    """A number that a run contradicts."""


def expect(holds, what, *numbers):
    if not holds:
        raise Broken(f"{what}: {numbers}")


def close(a, b, size):
    return abs(a - b) <= ROUNDING * max(size, 1e-300) + ROUNDING * abs(b)


def learned(life):
    return [row for row in life.rows if row.learned]


def by_hand(life, rows):
    """Sums of w e z by coordinate (and level), sums over all rows, and losses, before and after."""
    case, sums, weights, total, before, after = life.case, {}, {}, {}, 0.0, 0.0
    terms, level_terms, losses = {}, {}, ([], [])
    for row in rows:
        y = abs(row.y - row.base) if case.kind == "conformal" else row.y
        errors = case.error(row.served, y, row.base)
        for k, e in enumerate(errors):
            level_terms.setdefault(k, []).append(row.w * e)
            for name, z in zip(row.coords, row.z, strict=True):
                terms.setdefault((name, k), []).append(row.w * e * z)
        for name, z in zip(row.coords, row.z, strict=True):
            if z != 0.0 or not case.games:  # nobody at home: no game of the first side
                weights[name] = weights.get(name, 0.0) + row.w
        base = row.base
        if case.kind == "conformal":
            base = 0.0
        elif case.forecasts == 1 and len(case.levels) > 1:
            base = (row.base,) * len(case.levels)
        losses[0].append(row.w * case.loss(base, y, row.base))
        losses[1].append(row.w * case.loss(row.served, y, row.base))
    sums = {key: math.fsum(values) for key, values in terms.items()}
    total = {k: math.fsum(values) for k, values in level_terms.items()}
    before, after = (sum(own) for own in losses)
    return sums, weights, total, before, after


def check(life):
    """Compare all that is printed with what was seen; raises ``Broken`` with the numbers."""
    layer, case, rows = life.layer, life.case, learned(life)
    result = layer.equilibrium()
    weight = math.fsum(row.w for row in rows)
    expect(result.rows == len(rows), "rows", result.rows, len(rows))
    if not rows or not weight:
        return result
    sums, weights, total, before, after = by_hand(life, rows)
    errors = [abs(e) for row in rows for e in errors_of(life, row)]
    size = max(errors) * max(max(map(abs, row.z)) for row in rows)
    largest = 0.0
    for c in result.coordinates:
        name, _, level = c.name.partition(" @ ")
        k = 0 if not level else [f"{tau:g}" for tau in case.levels].index(level)
        if (name, k) not in sums:
            expect(c.rows == 0 or c.average_gradient == 0.0, "a coordinate that no row had", c)
            continue
        own = sums[name, k]
        expect(
            close(c.average_gradient, own / weight, size),
            "average",
            c.name,
            c.average_gradient,
            own / weight,
        )
        largest = max(largest, abs(own) / weight)
        bias = own / weights[name]
        expect(
            close(c.bias_after, bias, size * weight / weights[name]),
            "bias",
            c.name,
            c.bias_after,
            bias,
        )
        if c.bound is not None:
            slack = ROUNDING * size * weight / weights[name]
            expect(
                abs(bias) <= c.bound * (1 + ROUNDING) + slack,
                "bound of a coordinate",
                c.name,
                bias,
                c.bound,
            )
    if result.bound is not None:
        expect(
            largest <= result.bound * (1 + ROUNDING) + ROUNDING * size,
            "bound",
            largest,
            result.bound,
            result.bound_from,
        )
    # The identity: exact but for rounding, which is relative to what was summed up (in u, with steps that varied).
    u = max((abs(x) for x in flat(life.layer.theta)), default=0.0) if not case.games else 50.0
    tolerance = ROUNDING * (size + u + life.layer.steps["largest"] * size * weight)
    expect(result.gap <= tolerance, "gap", result.gap, tolerance)
    if result.bias_after is not None and not case.games:
        expect(
            close(result.bias_after, total[0] / weight, size),
            "overall bias",
            result.bias_after,
            total[0] / weight,
        )
    for said, own in ((result.loss_before, before), (result.loss_after, after)):
        if said is not None and math.isfinite(own) and math.isfinite(said):
            expect(close(said, own / weight, abs(own / weight)), "loss", said, own / weight)
    coverage(life, total, weight)
    harm(life, before, after)
    window(life)
    return result


def flat(theta):
    """The parameters of any layer, one after the other."""
    for value in theta.values():
        yield from value if isinstance(value, tuple) else (value,)


def coverage(life, total, weight):
    """Coverage of every level (or of the interval), and its bound over all rows."""
    found = getattr(life.layer, "coverage", None)
    if found is None or not life.case.levels:
        return
    case = life.case
    if case.kind == "interval":
        upper, lower = total[1] / weight + case.levels[1], total[0] / weight + case.levels[0]
        pairs = [(found, upper - lower - found.target)]
    else:
        listed = found if isinstance(found, list) else [found]
        pairs = [(own, total[k] / weight) for k, own in enumerate(listed)]
    for own, error in pairs:
        expect(abs(own.after - own.target - error) < 1e-8, "coverage", own, error)
        if own.bound is not None:
            expect(
                abs(error) <= own.bound * (1 + ROUNDING) + ROUNDING, "bound of coverage", own, error
            )


def harm(life, before, after):
    """What the step can cost at most, where that is proven."""
    if not hasattr(life.layer, "harm_cap"):
        return
    cap = life.layer.harm_cap()
    if life.case.binary and not life.case.games:
        log_harm(life, cap)
        return
    weight = math.fsum(row.w for row in learned(life))
    if cap.factor is not None and not life.case.games:
        expect(
            after <= before * cap.factor * (1 + ROUNDING) + 1e-280, "harm cap", before, after, cap
        )
    if cap.added is not None and life.case.levels:
        expect(
            after / weight <= before / weight + cap.added * (1 + ROUNDING),
            "harm cap",
            before,
            after,
            cap,
        )


def log_harm(life, cap):
    """With link logit the cap speaks of the log loss of 0/1 labels."""
    rows = learned(life)
    if cap.factor is None or any(row.y not in (0.0, 1.0) for row in rows):
        return
    clip = life.case.told.get("clip", 1e-6)

    def cost(p, y):
        return -math.log(p if y == 1.0 else 1.0 - p)

    before = math.fsum(row.w * cost(min(1 - clip, max(clip, row.base)), row.y) for row in rows)
    after = math.fsum(row.w * cost(min(1 - 1e-16, max(1e-300, row.served)), row.y) for row in rows)
    expect(
        after <= before * cap.factor * (1 + 1e-6), "harm cap of the log loss", before, after, cap
    )


def window(life):
    """Averages of the labels posted since an earlier state."""
    if life.earlier is None or life.case.keyed:
        return
    try:
        between = life.layer.since(life.earlier)
    except BadInput:
        return
    except Exception as error:
        if type(error).__name__ == "OtherSettings" and life.stepped:
            return
        raise
    expect(math.isfinite(between.gap), "gap of a window", between.gap)
    if life.corrected or life.stepped:
        return
    expect(between.rows == len(life.later), "rows of a window", between.rows, len(life.later))
    if not math.fsum(row.w for row in life.later):
        return
    sums, weights, _, _, _ = by_hand(life, life.later)
    everything = learned(life)
    largest = max(abs(e) for row in everything for e in errors_of(life, row))
    largest *= max(max(map(abs, row.z)) for row in everything)
    whole = math.fsum(row.w for row in everything) * largest
    for name, value in between.bias.items():
        coordinate, _, level = name.partition(" @ ")
        k = 0 if not level else [f"{tau:g}" for tau in life.case.levels].index(level)
        if (coordinate, k) in sums and weights.get(coordinate):
            own = sums[coordinate, k] / weights[coordinate]
            # A difference of two sums: rounding is relative to the whole, and so is that of the weights.
            slack = 1e-11 * whole / weights[coordinate]
            expect(
                abs(value - own) <= 1e-9 * abs(own) + slack, "bias of a window", name, value, own
            )


def errors_of(life, row):
    """The errors of one row, by level."""
    y = abs(row.y - row.base) if life.case.kind == "conformal" else row.y
    return life.case.error(row.served, y, row.base)
