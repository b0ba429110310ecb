"""Vowpal Wabbit, row by row: plain SGD on residuals. Its numbers have single precision, and so has what it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.cases import ETA
from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Step, one_by_one

SINGLE = 1e-4
PLAIN = "--quiet --sgd --noconstant --power_t 0 --initial_t 0"
SQUARED = f"{PLAIN} --loss_function squared -l {ETA / 2}"  # its loss is the square, ours half of it
PINBALL = f"{PLAIN} --loss_function quantile --quantile_tau 0.9 -l {ETA}"


def residuals(settings: str, rows: Callable[[Data], list[str]]) -> Any:
    """A linear model of the residuals; the text of every row is made before."""

    def begin(data: Data) -> Callable[[], Step]:
        from vowpalwabbit import Workspace

        f, off = data["f"].tolist(), (data["y"] - data["f"]).tolist()
        text = [f"{y!r} | {x}" for y, x in zip(off, rows(data), strict=True)]

        def start() -> Step:
            model = Workspace(settings)
            parse, predict, learn, end = (
                model.parse, model.predict, model.learn, model.finish_example,
            )  # fmt: skip

            def step(i: int) -> float:
                own = parse(text[i])
                served: float = f[i] + predict(own)
                learn(own)
                end(own)
                return served

            return step

        return start

    return begin


def groups(data: Data) -> list[str]:
    return [f"g{g}" for g in data["g"].tolist()]


def features(data: Data) -> list[str]:
    return [" ".join(f"x{k}:{v!r}" for k, v in enumerate(row)) for row in data["x"].tolist()]


def nothing(data: Data) -> list[str]:
    return ["one"] * int(data["n"])


FLOATS = "single precision"
DOES: dict[str, Entry] = {
    "scalar": one_by_one(50_000, residuals(SQUARED, nothing), SINGLE, FLOATS),
    "groups, integers": one_by_one(50_000, residuals(SQUARED, groups), SINGLE, FLOATS),
    "features": one_by_one(20_000, residuals(SQUARED, features), SINGLE, FLOATS),
    "quantile, linear": one_by_one(
        50_000, residuals(PINBALL, nothing), None, "rounding flips indicators: not compared"
    ),
}
