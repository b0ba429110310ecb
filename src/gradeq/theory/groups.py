"""Many disjoint groups: a setting is made when one is looked at, and the worst is found without looking at all."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gradeq.tables import Lazily

if TYPE_CHECKING:
    from gradeq.theory.setting import Setting

# Where facts have one direction.
ORDERED = ("mean", "quantile", "probability_logit", "probability_shift", "glm", "poisson")
FEW = 8  # groups that are looked at one by one
ROUNDING = 1e-12  # relative: what logarithms may lose where a fact grows

Found = TypeVar("Found", bound=tuple[Any, ...])


class Groups(Lazily["Setting"]):
    """The settings of disjoint groups, a row of facts each; ``make`` makes a setting of a row.

    Facts are such that no sum of gradients is bounded by less when one of them grows: ends of ranges, counts, sums
    of positive terms, lateness. So the largest facts of several groups give a setting that is no better than any.
    Groups of another ``kind`` are compared apart, since other results hold for them and may promise more: where
    labels came late, and where those of an exponential mean may be 0 (result 3.5).
    """

    def __init__(self, facts: Any, kinds: Any, make: Callable[[list[float]], Setting]) -> None:
        super().__init__(len(facts), lambda j: make(facts[j].tolist()))
        self._facts, self._kinds = facts, kinds
        self._of_facts = make
        self.widest = make(facts.max(axis=0).tolist())

    def worst(self, total: Callable[[Setting], Found], start: Found) -> Found:
        """The largest total of any group, of equal ones a later one; one without a value as soon as it is met.

        Best first: a set of groups is split until it is one group, or no better than what was found.
        """
        facts, worst, at = self._facts, start, -1
        numbered = count()
        exact = self.widest.task in ("mean", "quantile") and not self.widest.has_late_labels
        apart = [np.flatnonzero(self._kinds == kind) for kind in np.unique(self._kinds)]
        waiting: list[tuple[Any, ...]] = [(-np.inf, 0, next(numbered), own) for own in apart]
        while waiting:
            least, *_, own = heapq.heappop(waiting)
            if -least < worst[0] * (1.0 if exact else 1.0 - ROUNDING):
                return worst
            if exact and -least == worst[0] and own[-1] < at:
                continue
            low, high = facts[own].min(axis=0), facts[own].max(axis=0)
            alike = bool((low == high).all())
            if alike or len(own) <= FEW:
                for j in (own[-1:] if alike else own).tolist():
                    found = total(self[j])
                    if found[0] is None:
                        return found
                    if (found[0], j) > (worst[0], at):
                        worst, at = found, j
                continue
            for part in split(own, facts, low, high):
                most = total(self._of_facts(facts[part].max(axis=0).tolist()))[0]
                least = -np.inf if most is None else -most
                heapq.heappush(waiting, (least, -int(part[-1]), next(numbered), part))
        return worst


def split(own: Any, facts: Any, low: Any, high: Any) -> list[Any]:
    """Groups in two parts, by the middle of the fact that differs most for its size; neither is empty."""
    with np.errstate(invalid="ignore", over="ignore"):
        differ = (high - low) / np.maximum(np.abs(low), np.abs(high))
    k = int(np.argmax(np.nan_to_num(differ, nan=0.0, posinf=2.0)))
    column = facts[own, k]
    middle = low[k] / 2.0 + high[k] / 2.0
    above = column > (middle if low[k] <= middle < high[k] else low[k])
    return [own[above], own[~above]]
