"""What a kind of comparison is made of: streams, rules, measures; and how streams are put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.quality import typical

Figures = dict[str, float | None]  # by the key of the measure; None: there is nothing to measure


class Measure(NamedTuple):
    """One figure, lower is better. ``how`` "mean": over streams; "ratio": over that of ours, then geometric mean."""

    key: str
    title: str
    format: str
    how: Literal["mean", "ratio"]


class Rule(NamedTuple):
    """``about``: what it is, in one line with its source; ``serve``: what was in force before each row of a stream.

    ``serve`` gives None where a rule has no meaning.
    """

    about: str
    serve: Callable[[Any], Any]


class Kind(NamedTuple):
    """``ours`` is the rule that others are held against; ``measured`` takes a stream and what was served."""

    name: str
    title: str
    explained: str
    ours: str
    measures: tuple[Measure, ...]
    rules: dict[str, Rule]
    streams: Callable[[], Iterator[tuple[str, Any]]]
    measured: Callable[[Any, Any], Figures]

    def of(self, stream: Any) -> dict[str, Figures]:
        """Every rule on one stream; ratios are already over those of ours."""
        found = {}
        for name, rule in self.rules.items():
            served = rule.serve(stream)
            nothing: Figures = {measure.key: None for measure in self.measures}
            found[name] = nothing if served is None else self.measured(stream, served)
        ours = found[self.ours].copy()
        for own in found.values():
            for key, _, _, how in self.measures:
                if how == "ratio":
                    own[key] = over(own[key], ours[key])
        return found

    def overall(self, streams: dict[str, dict[str, Figures]]) -> dict[str, Figures]:
        """Every rule over all streams where it has a figure."""
        return {
            rule: {
                measure.key: joined(measure, (own[rule][measure.key] for own in streams.values()))
                for measure in self.measures
            }
            for rule in self.rules
        }


def over(one: float | None, other: float | None) -> float | None:
    """Their ratio; None, which means leave out, where either is 0 or missing."""
    return one / other if one and other else None


def joined(measure: Measure, figures: Iterable[float | None]) -> float | None:
    """Figures of several streams as one."""
    known = [figure for figure in figures if figure is not None]
    if not known:
        return None
    return typical(known) if measure.how == "ratio" else float(np.mean(known))
