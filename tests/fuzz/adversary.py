"""What the adversary says, having seen what was served."""

import math

STYLES = (
    "away", "away", "constant", "constant", "constant", "constant", "turning", "random", "ties", "extreme",
    "flat", "edge", "greedy", "seesaw", "bang", "soft", "crossed",
)  # fmt: skip
SEVERAL = (*STYLES, *("anchor",) * 12)  # where there are several forecasts


def ends(case, row):
    """The lowest, the middle and the highest label of ordinary styles, and the served value among them."""
    f, s = row.base, row.served
    middle = s[len(s) // 2] if isinstance(s, tuple) else s
    if case.kind == "risk":
        low, high = case.ends
        return low, low + (high - low) / 2, high, min(high, max(low, middle))
    if case.binary:
        return 0.0, 0.5, 1.0, min(1.0, max(0.0, middle))
    if case.positive:
        return 0.5 * f, f, 2.0 * f, middle
    if case.kind == "conformal":
        f = f[-1] if isinstance(f, tuple) else f
        return f, f + case.scale / 2, f + case.scale, f + middle
    f = f[len(f) // 2] if isinstance(f, tuple) else f
    return f - case.scale, f, f + case.scale, middle


def label(life, row, t):
    """The label of one row, by the style of the life, inside its limits; games end with 0, 1/2 or 1."""
    y = STYLE[life.style](life, row, t)
    if life.case.games:
        return y if y in (0.0, 0.5, 1.0) else float(y > 0.5)
    return life.case.held(float(y))


def away(life, row, t):
    low, centre, high, middle = ends(life.case, row)
    return low if middle > centre else high


def constant(life, row, t):
    return ends(life.case, row)[life.side]


def turning(life, row, t):
    low, _, high, _ = ends(life.case, row)
    return high if (t // 25) % 2 else low


def random(life, row, t):
    low, _, high, _ = ends(life.case, row)
    if life.case.games:
        return float(life.rng.choice([0.0, 0.5, 1.0]))
    return float(life.rng.uniform(low, high))


def ties(life, row, t):
    """The served value itself: exactly covered."""
    return ends(life.case, row)[3]


def extreme(life, row, t):
    low, centre, high, _ = ends(life.case, row)
    if life.case.binary:
        return float(life.rng.random() < 0.9)
    if life.case.kind == "risk":
        return float(life.rng.choice([low, high]))
    if life.case.positive:
        return float(row.base * life.rng.choice([0.0, 0.1, 3.0]))
    return centre + (high - centre) * 30.0 * float(life.rng.normal())


def flat(life, row, t):
    """The forecast itself, as long as it pleases: the sinh link has no scale until then."""
    return ends(life.case, row)[1] if t < life.turn else away(life, row, t)


def edge(life, row, t):
    """The next number above or below what was served."""
    low, _, high, middle = ends(life.case, row)
    beside = math.nextafter(middle, math.inf if life.rng.random() < 0.5 else -math.inf)
    return min(high, max(low, beside)) if life.case.binary or life.case.kind == "risk" else beside


def greedy(life, row, t):
    """Of a few labels the one that makes the largest sum of errors largest."""
    case, found = life.case, []
    for y in ends(case, row):
        errors = case.error(row.served, y, row.base)
        sums = [
            abs(life.sums.get((name, k), 0.0) + row.w * e * z)
            for k, e in enumerate(errors)
            for name, z in zip(row.coords, row.z, strict=True)
        ]
        found.append((max(sums), y))
    return max(found)[1]


def seesaw(life, row, t):
    """Up with small steps, which count much in the average, and down again with large ones, which count little."""
    low, _, high, _ = ends(life.case, row)
    return high if row.step <= life.usual else low


def bang(life, row, t):
    """From one end to the other, so that the state is thrown about."""
    low, _, high, _ = ends(life.case, row)
    return high if t % 2 else low


def crossed(life, row, t):
    """Up where the first and the last group go together and down where they do not: no sum of two is right."""
    low, _, high, _ = ends(life.case, row)
    odd = sum(ord(name.removesuffix(life.part)[-1]) for name in row.coords) % 2
    return high if odd else low


def anchor(life, row, t):
    """Always the lowest or the highest forecast, which the others leave and meet again (see ``Life.base``)."""
    return row.base[-1 if life.side else 0]


def soft(life, row, t):
    """Well inside the range."""
    low, _, high, _ = ends(life.case, row)
    return low + (high - low) * float(life.rng.uniform(0.3, 0.7))


STYLE = {
    "away": away, "constant": constant, "turning": turning, "random": random, "ties": ties, "extreme": extreme,
    "flat": flat, "edge": edge, "greedy": greedy, "seesaw": seesaw, "bang": bang, "soft": soft,
    "anchor": anchor, "crossed": crossed,
}  # fmt: skip
