"""End to end from arrays: a layer's run against loops that users write, and libraries where installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.timing import Row, best
from gradeq import Debiaser

N, SHORT = 1_000_000, 4_000


def plain_python(f: list[float], y: list[float], eta: float) -> list[float]:
    theta, served = 0.0, []
    for a, b in zip(f, y, strict=True):
        s = a + theta
        served.append(s)
        theta = theta - eta * (s - b)
    return served


def numpy_loop(f: Any, y: Any, eta: float) -> Any:
    theta, served = np.zeros(1), np.empty(len(f))
    for i in range(len(f)):
        served[i] = f[i] + theta[0]
        theta -= eta * (served[i] - y[i])
    return served


def torch_loop(f: Any, y: Any, eta: float) -> Any:
    import torch

    theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([theta], lr=eta)
    served = np.empty(len(f))
    for i in range(len(f)):
        s = theta + f[i]
        served[i] = s.item()
        loss = 0.5 * ((s - y[i]) ** 2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return served


def river_loop(f: Any, y: Any, eta: float) -> Any:
    from river import linear_model, optim

    model = linear_model.LinearRegression(
        optimizer=optim.SGD(0.0), intercept_lr=optim.schedulers.Constant(eta / 2)
    )
    served = np.empty(len(f))
    for i in range(len(f)):
        served[i] = f[i] + model.predict_one({})
        model.learn_one({}, y[i] - f[i])
    return served


def main() -> list[Row]:
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=N), rng.normal(size=N)
    short_f, short_y = f[:SHORT], y[:SHORT]
    expected = Debiaser(eta=0.05).run(short_f, short_y).served
    ours = best({"gradeq": lambda: Debiaser(eta=0.05).run(f, y)}, N, 5)["gradeq"]
    lists = short_f.tolist(), short_y.tolist()
    ratios = {}
    for name, loop in {
        "plain Python": lambda: plain_python(*lists, 0.05),
        "numpy loop": lambda: numpy_loop(short_f, short_y, 0.05),
        "torch autograd": lambda: torch_loop(short_f, short_y, 0.05),
        "river": lambda: river_loop(short_f, short_y, 0.05),
    }.items():
        try:
            served = loop()
        except ImportError:
            print(f"  {name} is not installed: left out")
            continue
        if not np.allclose(served, expected, atol=1e-9):
            raise AssertionError(
                f"{name} serves other values, by {np.abs(served - expected).max()}"
            )
        ratios[name] = best({name: loop}, SHORT, 3)[name] / ours
    return [Row("Debiaser.run, accounts included", ours, ratios, ">= 5,000x torch, >= 100x river")]
