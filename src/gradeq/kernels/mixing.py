"""Experts weighted by their posted losses (AdaHedge) where labels may come late: one text for means and quantiles.

Weights are proportional to exp(-rate L_k), rate = ln K / Delta. Delta grows by what mixing cost beyond the mix loss,
times 1 + 2 D, D the mean lateness of labels in rows of the layer (results B5). A cost below 1e-9 of the mean loss is
rounding and does not count: else two builds that round differently would go apart.
"""

from __future__ import annotations

import math
from typing import Any

from gradeq.kernels.account import Floats

# Numbers of ``hedge``: Delta, and the mean lateness.
DELTA, LATENESS = range(2)
HEDGE = 2
ROUNDING = 1e-9
LARGEST = 1e280  # of a loss: above it sums would no longer be finite
SILENT = 40.0  # an expert whose weight is e^-40 of the best's changes no digit of the mix,
SHARP = 4.0  # nor of the mix loss, unless a label costs e^4: then no expert is silent
UNKNOWN = -1.0  # stands for the first weight until they are asked for
RECENT = 1000.0  # labels (or four times the mean lateness, if that is more) over which lateness is averaged


def learning_rate(delta: float, experts: int) -> float:
    """ln K / Delta; 0, that is equal weights, while mixing has cost nothing."""
    return min(1e300, math.log(experts) / delta) if delta > 0.0 else 0.0


def weigh(losses: Floats, delta: float, silent: float, weights: Floats) -> None:
    """The weights that the next row is mixed with; 0 for who is e^-silent of the best."""
    experts = len(losses)
    rate = learning_rate(delta, experts)
    least = losses[0]
    for k in range(1, experts):
        if losses[k] < least:
            least = losses[k]
    mass = 0.0
    for k in range(experts):
        behind = rate * (losses[k] - least)
        weights[k] = math.exp(-behind) if behind < silent else 0.0
        mass = mass + weights[k]
    for k in range(experts):
        weights[k] = weights[k] / mass


def ready(state: Any, weights: Floats) -> None:
    """See that the weights are those of the losses by now: many rows may be served between two labels."""
    if weights[0] == UNKNOWN:
        weigh(state.losses, state.hedge[DELTA], SILENT, weights)


def blend(weights: Floats, values: Floats, at: int) -> float:
    """The weighted mean of what the experts say."""
    m = 0.0
    for k in range(len(weights)):
        m = m + weights[k] * values[at + k]
    return m


def cost(weights: Floats, lost: Floats, least: float, rate: float) -> float:
    """What mixing costs beyond the mix loss; 0 if it is no more than rounding.

    Losses beyond 700 / rate count as no more in the mix loss: a label far larger than all before it ends a rate that
    was far too sharp for it.
    """
    h = 0.0
    mass = 0.0
    for k in range(len(weights)):
        if weights[k] > 0.0:
            h = h + weights[k] * lost[k]
            mass = mass + weights[k] * math.exp(-min(700.0, rate * lost[k]))
    more = h - (-math.log(mass + 1e-300) / rate if rate > 0.0 else least)
    return more if more > ROUNDING * h else 0.0


def settle(state: Any, waited: float, lost: Floats, weights: Floats) -> None:
    """Enter what each expert lost by one label, ``waited`` rows late."""
    state.heard[0] = state.heard[0] + 1.0
    mean = state.hedge[LATENESS]
    mean = mean + (waited - mean) / min(state.heard[0], max(RECENT, 4.0 * mean))
    state.hedge[LATENESS] = mean
    delta = state.hedge[DELTA]
    rate = learning_rate(delta, len(state.losses))
    least, most = lost[0], lost[0]
    for k in range(1, len(lost)):
        if lost[k] < least:
            least = lost[k]
        elif lost[k] > most:
            most = lost[k]
    if rate * most > SHARP:
        weigh(state.losses, delta, math.inf, weights)
    else:
        ready(state, weights)
    more = cost(weights, lost, least, rate)
    state.hedge[DELTA] = delta + more * (1.0 + 2.0 * mean)
    for k in range(len(state.losses)):
        state.losses[k] = state.losses[k] + lost[k]
    weights[0] = UNKNOWN
