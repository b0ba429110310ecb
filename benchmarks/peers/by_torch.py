"""torch: a loop as researchers write it, with autograd and an optimiser, in double precision on one thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import ETA, FADE
from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Step, one_by_one

Loss = Callable[[Any, Any, int], tuple[Any, Any]]


def descending(size: Callable[[Data], int], eta: float, prepare: Callable[[Data, Any], Loss]) -> Any:
    """Gradient descent on theta; ``prepare`` gives what is served and its loss as a function of theta and i."""

    def begin(data: Data) -> Callable[[], Step]:
        import torch

        torch.set_num_threads(1)
        loss_of = prepare(data, torch)

        def start() -> Step:
            theta = torch.zeros(size(data), dtype=torch.float64, requires_grad=True)
            optimiser = torch.optim.SGD([theta], lr=eta)

            def step(i: int) -> float:
                served, loss = loss_of(torch, theta, i)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                return float(served.item())

            return step

        return start

    return begin


def squared(rows: Callable[[Data], Any]) -> Callable[[Data, Any], Loss]:
    """Half the square of f + x'theta - y."""

    def prepare(data: Data, torch: Any) -> Loss:
        x, f, y = (torch.from_numpy(c) for c in (rows(data), data["f"], data["y"]))

        def loss_of(torch: Any, theta: Any, i: int) -> tuple[Any, Any]:
            served = f[i] + x[i] @ theta
            return served, 0.5 * (served - y[i]) ** 2

        return loss_of

    return prepare


def pinball(data: Data, torch: Any) -> Loss:
    """The pinball loss at 0.9; where label and threshold are equal it counts as covered."""
    f, y = torch.from_numpy(data["f"]), torch.from_numpy(data["y"])

    def loss_of(torch: Any, theta: Any, i: int) -> tuple[Any, Any]:
        served = f[i] + theta[0]
        off = y[i] - served
        return served, torch.where(off > 0.0, 0.9 * off, -0.1 * off)

    return loss_of


def logistic(data: Data, torch: Any) -> Loss:
    """The log loss of the probability that a wins."""
    a, b, score = (torch.from_numpy(data[name]) for name in ("a", "b", "score"))

    def loss_of(torch: Any, theta: Any, i: int) -> tuple[Any, Any]:
        m = theta[a[i]] - theta[b[i]]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(m, score[i])
        return torch.sigmoid(m), loss

    return loss_of


def ensemble(data: Data) -> Callable[[], Step]:
    """Eight trackers and the logits of their weights by autograd, then the final tracker in plain Python."""
    import torch

    torch.set_num_threads(1)
    f, y = torch.from_numpy(data["f"]), torch.from_numpy(data["y"])
    nus = torch.from_numpy(data["nus"])

    def start() -> Step:
        theta = torch.zeros(len(nus), dtype=torch.float64, requires_grad=True)
        logits = torch.zeros(len(nus), dtype=torch.float64)
        u = num = den = 0.0

        def step(i: int) -> float:
            nonlocal u, num, den
            weights = torch.softmax(logits, 0)
            mixed = f[i] + weights @ theta.detach()
            miss = 0.1 if float(y[i]) <= float(mixed) else -0.9
            logits.sub_(0.1 * miss * theta.detach())
            off = y[i] - (f[i] + theta)
            theta.grad = None
            torch.where(off > 0.0, 0.9 * off, -0.1 * off).sum().backward()
            with torch.no_grad():
                theta.sub_(nus * theta.grad)
            base, label = float(mixed), float(y[i])
            scale = max(num / den, 1e-9 * abs(base)) if num else 0.0
            served = base + scale * math.sinh(u)
            u -= 0.03 * (0.1 if label <= served else -0.9)
            num, den = FADE * num + abs(label - base), FADE * den + 1.0
            return served

        return step

    return start


def ones(data: Data) -> Any:
    return np.ones((data["n"], 1))


def one_hot(data: Data) -> Any:
    return np.eye(10)[data["g"]]


FEW = 4_000
DOES: dict[str, Entry] = {
    "scalar": one_by_one(FEW, descending(lambda data: 1, ETA, squared(ones))),
    "groups, integers": one_by_one(FEW, descending(lambda data: 10, ETA, squared(one_hot))),
    "features": one_by_one(FEW, descending(lambda data: data["d"], ETA, squared(lambda data: data["x"]))),
    "quantile, linear": one_by_one(FEW, descending(lambda data: 1, ETA, pinball)),
    "ensemble of 8": one_by_one(2_000, ensemble),
    "Elo, integers": one_by_one(FEW, descending(lambda data: data["players"], 0.1, logistic)),
}  # fmt: skip
