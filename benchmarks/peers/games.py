"""Games as the rating packages take them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.inputs import Data

POINTS = 400.0 / math.log(10.0)  # of Elo for one natural unit
K = 0.1 * POINTS  # the step 0.1 in points


def names(data: Data) -> tuple[list[str], list[str]]:
    """Players by name, as Python text."""
    return data["a name"].to_pylist(), data["b name"].to_pylist()


def players(data: Data) -> list[str]:
    return [f"player-{k}" for k in range(data["players"])]


def natural(points: Any, zero: float) -> Any:
    """Ratings in natural units around 0."""
    return (np.asarray(points, dtype=float) - zero) / POINTS
