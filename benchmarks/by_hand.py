"""What a programmer would write for one kind of event: the same arithmetic, and as little of the promises as will do.

Each checks its input, keeps a ticket until the label comes, and adds up what a certificate needs.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from benchmarks.cases import ETA, FADE

MOST = 1.7976931348623157e308


class Scalar:
    """One parameter: the late-label cap, the sum of gradients, bias and loss before and after."""

    __slots__ = (
        "before", "gradient", "high", "loss_after", "loss_before", "low", "moved", "open", "order", "peak", "rows",
        "theta",
    )  # fmt: skip

    def __init__(self) -> None:
        self.theta = self.gradient = self.moved = self.before = 0.0
        self.loss_before, self.loss_after, self.low, self.high = 0.0, 0.0, 1e300, -1e300
        self.rows, self.peak = 0, 1
        self.order: deque[tuple[float, float, float]] = deque()
        self.open: dict[int, tuple[float, float, float]] = {}

    def predict(self, f: float, id: int | None = None) -> float:
        if not -MOST <= f <= MOST:
            raise ValueError(f)
        s, eta = f + self.theta, ETA
        waiting = len(self.order) + len(self.open) + 1
        if waiting > self.peak:
            self.peak = waiting
        if self.peak >= 2:
            eta = min(eta, 0.1 / self.peak)
        if id is None:
            self.order.append((f, s, eta))
        else:
            self.open[id] = f, s, eta
        return s

    def update(self, y: float, id: int | None = None) -> None:
        if not -MOST <= y <= MOST:
            raise ValueError(y)
        f, s, eta = self.order.popleft() if id is None else self.open.pop(id)
        g, r = s - y, y - f
        self.theta -= eta * g
        self.rows += 1
        self.gradient += g
        self.moved += eta * g
        self.before -= r
        self.loss_before += 0.5 * r * r
        self.loss_after += 0.5 * g * g
        self.low, self.high = min(self.low, r), max(self.high, r)


class Grouped:
    """A parameter and an account for each group; a row has one group or several."""

    __slots__ = ("accounts", "order", "theta")

    def __init__(self) -> None:
        self.theta: dict[Any, float] = {}
        self.accounts: dict[Any, list[float]] = {}
        self.order: deque[tuple[float, float, list[Any]]] = deque()

    def predict(self, f: float, groups: dict[str, Any]) -> float:
        if not -MOST <= f <= MOST:
            raise ValueError(f)
        names, m = list(groups.items()), 0.0
        for name in names:
            m = m + self.theta.get(name, 0.0)
        s = f + m
        self.order.append((f, s, names))
        return s

    def update(self, y: float) -> None:
        if not -MOST <= y <= MOST:
            raise ValueError(y)
        f, s, names = self.order.popleft()
        g, r = s - y, f - y
        for name in names:
            self.theta[name] = self.theta.get(name, 0.0) - ETA * g
            account = self.accounts.get(name)
            if account is None:
                account = self.accounts[name] = [0.0] * 5
            account[0] += 1.0
            account[1] += g
            account[2] += r
            account[3] += 0.5 * g * g
            account[4] += 0.5 * r * r


class Keyed:
    """A scalar for each key."""

    __slots__ = ("key", "layers")

    def __init__(self) -> None:
        self.layers: dict[Any, Scalar] = {}
        self.key: Any = None

    def predict(self, f: float, key: Any) -> float:
        layer = self.layers.get(key)
        if layer is None:
            layer = self.layers[key] = Scalar()
        self.key = key
        return layer.predict(f)

    def update(self, y: float) -> None:
        self.layers[self.key].update(y)


class Tracked:
    """Levels that do not cross, in the unit of the running mean error (or as they are), with misses and losses."""

    __slots__ = ("curved", "den", "losses", "misses", "num", "order", "rows", "taus", "u")

    def __init__(self, *taus: float, curved: bool = True) -> None:
        self.taus, self.curved = taus, curved
        self.u, self.misses, self.losses = ([0.0] * len(taus) for _ in range(3))
        self.num = self.den = 0.0
        self.rows = 0
        self.order: deque[tuple[float, list[float]]] = deque()

    def predict(self, f: float) -> Any:
        if not -MOST <= f <= MOST:
            raise ValueError(f)
        if not self.curved:
            served = [f + u for u in self.u]
        elif self.num == 0.0:
            served = [f] * len(self.u)
        else:
            u, scale = self.u, max(self.num / self.den, 1e-9 * abs(f))
            if len(u) == 2 and u[0] > u[1]:
                u = [(u[0] + u[1]) / 2.0] * 2
            served = [f + scale * math.sinh(x) for x in u]
        self.order.append((f, served))
        return served[0] if len(served) == 1 else tuple(served)

    def update(self, y: float) -> None:
        if not -MOST <= y <= MOST:
            raise ValueError(y)
        f, served = self.order.popleft()
        for k, (tau, s) in enumerate(zip(self.taus, served, strict=True)):
            miss = 1.0 - tau if y <= s else -tau
            self.u[k] -= ETA * miss
            self.misses[k] += miss
            self.losses[k] += (s - y) * miss
        self.rows += 1
        if self.curved:
            self.num, self.den = FADE * self.num + abs(y - f), FADE * self.den + 1.0


class Rated:
    """Ratings with games, errors and log loss of each player."""

    __slots__ = ("loss", "players")

    def __init__(self) -> None:
        self.players: dict[Any, list[float]] = {}
        self.loss = 0.0

    def predict(self, a: Any, b: Any) -> float:
        one, two = self.players.get(a), self.players.get(b)
        return self.chance((one[0] if one else 0.0) - (two[0] if two else 0.0))

    def chance(self, m: float) -> float:
        return 1.0 / (1.0 + math.exp(-m))

    def update(self, a: Any, b: Any, score: float) -> None:
        if not 0.0 <= score <= 1.0:
            raise ValueError(score)
        one = self.players.setdefault(a, [0.0, 0.0, 0.0])
        two = self.players.setdefault(b, [0.0, 0.0, 0.0])
        p = self.chance(one[0] - two[0])
        e = p - score
        for player, sign in ((one, 1.0), (two, -1.0)):
            player[0] -= sign * 0.1 * e
            player[1] += 1.0
            player[2] += sign * e
        self.loss -= score * math.log(p) + (1.0 - score) * math.log(1.0 - p)


HANDS = {
    "scalar": Scalar,
    "scalar, ids": Scalar,
    "ten disjoint groups": Grouped,
    "three overlapping groups": Grouped,
    "quantile, linear": lambda: Tracked(0.9, curved=False),
    "quantile, sinh": lambda: Tracked(0.9),
    "interval": lambda: Tracked(0.1, 0.9),
    "keyed": Keyed,
    "Elo": Rated,
}
