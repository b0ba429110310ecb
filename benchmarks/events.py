"""One event at a time: predict and update of a scalar layer against a class written by hand for just this."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np

from benchmarks.timing import Row, best
from gradeq import Debiaser, IntervalTracker, Keyed, QuantileTracker

N, FEW, KEYS = 100_000, 20_000, 200_000
MOST = 1.7976931348623157e308


class ByHand:
    """Input checked, ticket, late-label cap, sum of gradients, bias and loss before and after, as in the layer."""

    __slots__ = (
        "before", "eta", "gradient", "high", "loss_after", "loss_before", "low", "moved", "peak", "queue", "rows",
        "served", "theta",
    )  # fmt: skip

    def __init__(self, eta: float) -> None:
        self.theta, self.eta, self.gradient, self.moved, self.before = 0.0, eta, 0.0, 0.0, 0.0
        self.loss_before, self.loss_after, self.low, self.high = 0.0, 0.0, 1e300, -1e300
        self.rows = self.served = 0
        self.peak = 1
        self.queue: deque[tuple[float, float, float]] = deque()

    def predict(self, f: float) -> float:
        if not -MOST <= f <= MOST:
            raise ValueError(f)
        s = f + self.theta
        queue, eta = self.queue, self.eta
        waiting = len(queue) + 1
        if waiting > self.peak:
            self.peak = waiting
        if self.peak >= 2:
            eta = min(eta, 0.1 / self.peak)
        queue.append((f, s, eta))
        self.served += 1
        return s

    def update(self, y: float) -> None:
        if not -MOST <= y <= MOST:
            raise ValueError(y)
        f, s, eta = self.queue.popleft()
        g = s - y
        self.theta -= eta * g
        self.rows += 1
        self.gradient += g
        self.moved += eta * g
        r = y - f
        self.before -= r
        self.loss_before += 0.5 * r * r
        self.loss_after += 0.5 * g * g
        if r < self.low:
            self.low = r
        if r > self.high:
            self.high = r


def drive(layer: Any, data: list[tuple[float, float]]) -> float:
    predict, update = layer.predict, layer.update
    s = 0.0
    for f, y in data:
        s = predict(f)
        update(y)
    return s


def main() -> list[Row]:
    rnd = random.Random(0)
    data = [(rnd.random(), rnd.random()) for _ in range(N)]
    if drive(ByHand(0.05), data) != drive(Debiaser(eta=0.05), data):
        raise AssertionError("the layer and the class written by hand differ")
    times = best(
        {
            "gradeq": lambda: drive(Debiaser(eta=0.05), data),
            "by hand": lambda: drive(ByHand(0.05), data),
        },
        N,
    )
    return [
        Row("predict + update, one parameter", times["gradeq"],
            {"of by hand": times["gradeq"] / times["by hand"]}, "<= 1.3x, <= 1,000 ns"),
        *others(data[:FEW]),
    ]  # fmt: skip


def others(data: list[tuple[float, float]]) -> list[Row]:
    """What does not fit the quick lane: tickets on the desk, accounts of groups, levels and keys."""
    many = Keyed(Debiaser(eta=0.05))
    keys = np.arange(KEYS)
    many.run(np.zeros(KEYS), np.zeros(KEYS), key=keys)

    def drive_by(layer: Any, events: list[tuple[Any, ...]], ids: bool = False) -> None:
        for i, (y, *given) in enumerate(events):
            layer.predict(*given, id=i if ids else None)
            layer.update(y, id=i if ids else None)

    plain = [(y, f) for f, y in data]
    grouped = [(y, f, {"g": i % 10}) for i, (f, y) in enumerate(data)]
    keyed = [(y, f, i % 1_000) for i, (f, y) in enumerate(data)]
    times = best(
        {
            "ten groups": lambda: drive_by(Debiaser(eta=0.05, groups=["g"]), grouped),
            "with ids": lambda: drive_by(Debiaser(eta=0.05), plain, ids=True),
            "quantile, sinh link": lambda: drive_by(QuantileTracker(0.9, eta=0.05), plain),
            "interval": lambda: drive_by(IntervalTracker(0.8, eta=0.05), plain),
            f"one of {KEYS:,} keys": lambda: drive_by(many, keyed),
        },
        len(data),
        3,
    )
    return [Row(f"predict + update, {name}", ns, {}) for name, ns in times.items()]
