"""The accounts of many keys added up, as if one layer had had all their rows."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np

from gradeq.engine.mix import Mix
from gradeq.kernels.loops import COLUMNS, HIGH, LOW
from gradeq.theory import Setting


def gather(
    mine: Any, theirs: Any, start: Any, own: Any, places: Any, whole: list[int] | None
) -> None:
    """Give one layer's heads the sums of the parameters ``own``; ``places`` says which parameter each is there.

    ``whole``: parameters whose accounts add up to those of all rows; None takes theirs.
    """
    for one, many in zip(heads(mine), heads(theirs), strict=True):
        merge(one, many, start, own, places, whole)


def heads(head: Any) -> list[Any]:
    """The heads that keep accounts."""
    return [*head.experts, head.final] if isinstance(head, Mix) else [head]


def merge(
    mine: Any, theirs: Any, start: Any, own: Any, places: Any, whole: list[int] | None
) -> None:
    """As ``gather``, for one head."""
    width, count = len(start), len(mine.u) // len(start)
    cells = (places[:, None] * width + np.arange(width)).ravel()
    every = (
        slice(0, len(own)) if len(own) and own[-1] == len(own) - 1 else own
    )  # a slice copies nothing
    u = np.frombuffer(theirs.u).reshape(-1, width)[every]
    sums = np.frombuffer(theirs.sums).reshape(-1, width, COLUMNS)[every].reshape(-1, COLUMNS)
    together = added(sums, cells, count * width)
    displaced = np.bincount(cells, (u - start).ravel(), count * width)
    mine.u = array("d", (np.tile(start, count) + displaced).tobytes())
    mine.sums = array("d", together.tobytes())
    mine.pace = theirs.pace
    if theirs.total:
        mine.total = theirs.total[:]
        if whole is not None:
            rows = together.reshape(count, width, COLUMNS)[whole].reshape(-1, COLUMNS)
            level = np.tile(np.arange(width), len(whole))
            mine.total = array("d", added(rows, level, width).tobytes())
    if hasattr(theirs, "gaps"):
        gaps = np.frombuffer(theirs.gaps).reshape(-1, width)[every].ravel()
        widest = largest(gaps, cells, count * width, 0.0)
        mine.gaps, mine.widest = array("d", widest.tobytes()), theirs.widest[:]


def added(sums: Any, cells: Any, count: int) -> Any:
    """Accounts added up cell by cell; ranges become the widest."""
    together = np.empty((count, COLUMNS))
    for c in range(COLUMNS):
        together[:, c] = np.bincount(cells, sums[:, c], count)
    together[:, LOW] = -largest(-sums[:, LOW], cells, count, -math.inf)
    together[:, HIGH] = largest(sums[:, HIGH], cells, count, -math.inf)
    return together


def largest(values: Any, cells: Any, count: int, least: float) -> Any:
    """The largest value of each cell, at least ``least``."""
    found = np.full(count, least)
    np.maximum.at(found, cells, values)
    return found


def start_of(layer: Any) -> Any:
    """u_1 of one key."""
    return np.array(getattr(layer, "start", [0.0]))


def setting_of(layer: Any) -> Setting:
    """What the theory needs to know of a layer."""
    if layer.kind == "debias":
        from gradeq.layers import certify

        return certify.setting_of(layer)
    from gradeq.layers import coverage

    return coverage.setting_of(layer)
