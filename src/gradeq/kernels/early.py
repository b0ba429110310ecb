"""Late labels counted one after the other: do their delays depend on their values?

``sums`` holds what is remembered of them; labels and predictions are added up as differences from the first label.
"""

from __future__ import annotations

from gradeq.kernels.account import Floats

SIZE = 17
LABELS, SURPLUS, SPREAD, D, DD, Y, YY, DY, F, FF, DF, FY = range(12)  # numbers of labels, sums
ORIGIN, OUTSIDE, NEWEST, LONGEST, SETTLED = range(12, SIZE)
# the first label; whether a label or a prediction was outside [0, 1]; the largest number of a row with a late label;
# the longest delay; whether nothing need be looked at any more

DOUBT, DOUBT_ERRORS = (0.8, 9.0)  # labels more or fewer than the predictions say; squared standard errors
GROSS = 1.5  # about the offset in log-odds: a factor of 4.5 in the odds
TREND, FEW = 0.6, 10.0  # the squared correlation of labels and their delays, from so many labels on
CHANCE = 3.0  # more than that by so much over their number
BOTH = 3.0  # sum of squares of labels about their mean from which delays are compared (0/1: 3 of the rarer)
SLIGHT, SLIGHT_ERRORS = 0.05, 9.0  # squared correlations, alone and times n, that are none
ENOUGH = 1000.0  # labels without any doubt, after which none is looked for
LEAST = 1e-3  # the least variance of a label that a probability may claim
FAR = 1e30  # larger numbers are added up as this
ROUNDING = 1e-9  # the share of a variance below which it is rounding


def clipped(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def add_label(sums: Floats, y: float, f: float, delay: float, number: float) -> None:
    """Count a late label."""
    y = clipped(y, -FAR, FAR)
    f = clipped(f, -FAR, FAR)
    if sums[LABELS] == 0.0:
        sums[ORIGIN] = y
    if y < 0.0 or y > 1.0 or f < 0.0 or f > 1.0:
        sums[OUTSIDE] = 1.0
    chance = clipped(f, 0.0, 1.0)
    label = y - sums[ORIGIN]
    told = f - sums[ORIGIN]
    sums[LABELS] += 1.0
    sums[SURPLUS] += y - f
    sums[SPREAD] += max(chance * (1.0 - chance), LEAST)
    sums[D] += delay
    sums[DD] += delay * delay
    sums[Y] += label
    sums[YY] += label * label
    sums[DY] += delay * label
    sums[F] += told
    sums[FF] += told * told
    sums[DF] += delay * told
    sums[FY] += told * label
    sums[NEWEST] = max(sums[NEWEST], number)
    sums[LONGEST] = max(sums[LONGEST], delay)


def gross(sums: Floats, least: float, errors: float) -> bool:
    """Whether labels contradict probabilities beyond chance, by a factor of 4.5 in the odds."""
    off = abs(sums[SURPLUS])
    return bool(
        sums[OUTSIDE] == 0.0 and off >= least and off * off > errors * sums[SPREAD] and off > GROSS * sums[SPREAD]
    )


def equally_late(sums: Floats) -> bool:
    """Whether labels of different values have come, and their delays hardly depend on them."""
    n = sums[LABELS]
    delays = n * sums[DD] - sums[D] * sums[D]
    labels = n * sums[YY] - sums[Y] * sums[Y]
    both = n * sums[DY] - sums[D] * sums[Y]
    alike = max(SLIGHT, SLIGHT_ERRORS / max(n, 1.0))
    return bool(labels >= BOTH * n and both * both <= alike * delays * labels)


def slope(sums: Floats) -> float:
    """The squared correlation of labels and delays among rows of the same prediction, with its sign; 0: slight.

    So where predictions say all of the labels or of the delays.
    """
    n = sums[LABELS]
    delays = n * sums[DD] - sums[D] * sums[D]
    labels = n * sums[YY] - sums[Y] * sums[Y]
    both = n * sums[DY] - sums[D] * sums[Y]
    least_delays = ROUNDING * n * sums[DD]
    least_labels = ROUNDING * n * sums[YY]
    told = n * sums[FF] - sums[F] * sums[F]
    if told > ROUNDING * n * sums[FF]:
        delays_told = n * sums[DF] - sums[D] * sums[F]
        labels_told = n * sums[FY] - sums[F] * sums[Y]
        delays -= delays_told * (delays_told / told)
        labels -= labels_told * (labels_told / told)
        both -= delays_told * (labels_told / told)
    found = 0.0
    if n >= FEW and delays > least_delays and labels > least_labels:
        found = (both / delays) * (abs(both) / labels)
    return found if abs(found) > TREND + CHANCE / max(n, 1.0) else 0.0


def doubtful(sums: Floats) -> bool:
    """Whether labels look as if their delay depended on their value.

    A model that is grossly wrong looks the same until labels of both values have come; then these are equally late.
    """
    if gross(sums, DOUBT, DOUBT_ERRORS) and not equally_late(sums):
        return True
    return slope(sums) != 0.0


def settled(sums: Floats, now: float) -> bool:
    """Whether enough labels have come, and rows been served long enough, to stop looking."""
    return bool(sums[LABELS] >= ENOUGH and now >= 2.0 * sums[LONGEST])


def watched(sums: Floats, y: Floats, f: Floats, delay: Floats, number: Floats, posted: float) -> int:
    """Count labels in the order in which they come; which of them is the first to be held back.

    A label with a delay of 1 is known before the next row, and only counts as ``posted``. While most rows served
    before the newest with a late label have one themselves, nothing is held back.
    """
    for k in range(len(y)):
        posted += 1.0
        if delay[k] > 1.0:
            if settled(sums, number[k] + delay[k] - 1.0):
                sums[SETTLED] = 1.0
                return len(y)
            add_label(sums, y[k], f[k], delay[k], number[k])
            if sums[NEWEST] > 2.0 * posted and doubtful(sums):
                return k
    return len(y)
