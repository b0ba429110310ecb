"""``python -m benchmarks.tickets``: what an open ticket takes, in memory and in a saved state."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import gradeq as gq

N = 20_000
LAYERS: dict[str, Callable[[], Any]] = {
    "mean, plain": lambda: gq.Debiaser("plain", groups=["g"]),
    "mean, auto": lambda: gq.Debiaser(groups=["g"]),
    "quantile, plain": lambda: gq.QuantileTracker(0.9, "plain", groups=["g"]),
    "quantile, auto": lambda: gq.QuantileTracker(0.9, groups=["g"]),
}


def main() -> None:
    """One line for each layer: N tickets opened after 100 labels, none closed."""
    for name, make in LAYERS.items():
        layer, rnd = make(), random.Random(0)
        for _ in range(100):
            layer.predict(rnd.gauss(0, 1), {"g": "a"})
            layer.update(rnd.gauss(0, 1))
        values = [rnd.gauss(0, 1) for _ in range(N)]
        empty = len(layer.to_json())
        gc.collect()
        tracemalloc.start()
        for i, f in enumerate(values):
            layer.predict(f, {"g": "a"}, id=i)
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        saved = len(layer.to_json()) - empty
        print(f"{name:<16} {memory / N:5.0f} bytes in memory, {saved / N:5.0f} in a saved state")


if __name__ == "__main__":
    main()
