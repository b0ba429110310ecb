"""Loops of the automatic step: weights of several experts by their loss, then their mix (results B5).

Arrays of several experts are flat: entry i * experts + k belongs to row i and expert k.
"""

from __future__ import annotations

import math

from gradeq.kernels.loops import Floats, Ints
from gradeq.losses import Loss


def weigh(totals: Floats, at: int, experts: int, rate: float, out: Floats, to: int) -> None:
    """Weights proportional to exp(-rate L_k); an infinite rate stands for uniform weights (nothing learned yet)."""
    if math.isinf(rate):
        for k in range(experts):
            out[to + k] = 1.0 / experts
        return
    least = totals[at]
    for k in range(1, experts):
        least = min(least, totals[at + k])
    mass = 0.0
    for k in range(experts):
        out[to + k] = math.exp(-rate * (totals[at + k] - least))
        mass = mass + out[to + k]
    for k in range(experts):
        out[to + k] = out[to + k] / mass


def slack(weights: Floats, at: int, losses: Floats, on: int, experts: int, rate: float) -> float:
    """What mixing costs beyond the mix loss: h - mixloss >= 0, by log-sum-exp (AdaHedge's increment)."""
    h = 0.0
    least = math.inf
    for k in range(experts):
        h = h + weights[at + k] * losses[on + k]
        if weights[at + k] > 0.0:
            least = min(least, losses[on + k])
    if math.isinf(rate):
        return max(0.0, h - least)
    mass = 0.0
    for k in range(experts):
        if weights[at + k] > 0.0:
            mass = mass + weights[at + k] * math.exp(-rate * (losses[on + k] - least))
    return max(0.0, h - (least - math.log(mass) / rate))


def learning_rate(adaptive: bool, delta: float, experts: int) -> float:
    """1 for log loss (Bayes weights); ln(K + 1) / Delta for AdaHedge, infinite while Delta is 0."""
    if not adaptive:
        return 1.0
    if delta > 0.0:
        return math.log(experts) / delta
    return math.inf


def settle(
    adaptive: bool,
    experts: int,
    weights: Floats,
    at: int,
    rate: float,
    crowd: float,
    losses: Floats,
    on: int,
    totals: Floats,
    deltas: Floats,
    unit: int,
) -> None:
    """Enter the experts' losses on one posted label."""
    if adaptive:
        deltas[unit] = deltas[unit] + max(1.0, crowd) * slack(
            weights, at, losses, on, experts, rate
        )
    for k in range(experts):
        totals[unit * experts + k] = totals[unit * experts + k] + losses[on + k]


def blend(weights: Floats, at: int, values: Floats, on: int, experts: int) -> float:
    """The weighted mean of what the experts serve."""
    m = 0.0
    for k in range(experts):
        m = m + weights[at + k] * values[on + k]
    return m


def hedged(
    adaptive: bool,
    experts: int,
    units: Ints,
    first: int,
    cuts: Ints,
    posts: Ints,
    crowd: Floats,
    losses: Floats,
    totals: Floats,
    deltas: Floats,
    rates: Floats,
    weights: Floats,
) -> None:
    """The weights of each row at serving, given the experts' losses on posted labels."""
    p = 0
    for i in range(first, len(units)):
        while p < cuts[i]:
            j = posts[p]
            settle(
                adaptive, experts, weights, j * experts, rates[j], crowd[j], losses, j * experts,
                totals, deltas, units[j],
            )  # fmt: skip
            p += 1
        rates[i] = learning_rate(adaptive, deltas[units[i]], experts)
        weigh(totals, units[i] * experts, experts, rates[i], weights, i * experts)
    while p < len(posts):
        j = posts[p]
        settle(
            adaptive, experts, weights, j * experts, rates[j], crowd[j], losses, j * experts,
            totals, deltas, units[j],
        )  # fmt: skip
        p += 1


def blended(experts: int, weights: Floats, values: Floats, mixed: Floats) -> None:
    """The mix of each row."""
    for i in range(len(mixed)):
        mixed[i] = blend(weights, i * experts, values, i * experts, experts)


def judged(loss: Loss, values: Floats, labels: Floats, losses: Floats) -> None:
    """The loss of each served value; rows without a label get 0."""
    for i in range(len(values)):
        losses[i] = loss.value(values[i], labels[i]) if labels[i] == labels[i] else 0.0
