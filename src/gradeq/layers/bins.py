"""Groups by bins of the prediction itself: unbiased among the low ones, the middling and the high ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradeq.engine import checks
from gradeq.engine.names import is_given, is_mapping
from gradeq.errors import BadInput

COLUMN = "prediction"


class Bins:
    """Half-open bins [edge, next edge); below the first and from the last edge on are bins too.

    >>> Bins([0.2, 0.8]).name(0.5)
    '[0.2, 0.8)'
    """

    def __init__(self, edges: Sequence[float]) -> None:
        edges = checks.several(edges, "bins", "numbers")
        self.edges = [checks.number(edge, "edge of bins:") for edge in edges]
        if not self.edges or any(b <= a for a, b in pairwise(self.edges)):
            raise BadInput(f"bins={list(edges)}: give edges in increasing order, at least one")
        shown = [f"{edge:g}" for edge in self.edges]
        between = [f"[{a}, {b})" for a, b in pairwise(shown)]
        self.names = [f"below {shown[0]}", *between, f"from {shown[-1]}"]

    def name(self, f: float) -> str:
        """The bin of one prediction."""
        return self.names[bisect_right(self.edges, f)]

    def added(self, groups: Mapping[str, Any] | None, f: float) -> dict[str, Any]:
        """The groups of one event, its bin included."""
        if is_given(groups) and not is_mapping(groups):
            raise BadInput(f"groups={groups!r}: give a mapping from columns to values")
        return {**(groups or {}), COLUMN: self.name(f)}

    def added_columns(self, groups: Any, wanted: Sequence[str], base: Any) -> dict[str, Any]:
        """The group columns of a run, the bins included."""
        places = np.searchsorted(self.edges, base, side="right")
        own = (
            {name: groups[name] for name in wanted if name != COLUMN} if groups is not None else {}
        )
        return {**own, COLUMN: np.array(self.names, dtype=object)[places]}
