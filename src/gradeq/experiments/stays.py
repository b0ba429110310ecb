"""The stream of the MIMIC figures: hospital stays where the user has the files, else flights, named as such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gradeq.datasets import flights, mimic
from gradeq.experiments.averages import Floats
from gradeq.experiments.descent import Descent, debias_reals, indicators
from gradeq.experiments.source import Source

STEPS = (0.0, 0.001, 0.01, 0.05)
LAST = 10_000
DRAWN = 4  # groups of one kind that are drawn, the largest ones


class Stays(NamedTuple):
    """Predictions and labels in order, groups of two kinds that overlap, and the unit."""

    data: str
    prediction: Floats
    label: Floats
    when: Any
    kinds: Mapping[str, Any]
    unit: str
    is_paper: bool

    @property
    def members(self) -> dict[str, dict[str, Any]]:
        """For each kind the largest groups, largest first, with their members."""
        chosen: dict[str, dict[str, Any]] = {}
        for kind, column in self.kinds.items():
            names, counts = np.unique(column, return_counts=True)
            largest = names[np.argsort(-counts, kind="stable")][:DRAWN]
            chosen[kind] = {str(name): column == name for name in largest}
        return chosen


def stays(source: Source) -> Stays:
    """The last 10,000 stays of MIMIC-IV, or else all flights of 2013 from April on, without label delay."""
    if source.has(mimic.DATASET):
        data = source.load(mimic.load)
        kinds = {"ethnicity": data.ethnicity, "marital status": data.marital_status}
        name = f"MIMIC-IV, the last {len(data.days):,} stays"
        return Stays(name, data.prediction, data.days, data.admitted, kinds, "days", True)
    flown = source.load(flights.load)
    name = (
        f"{len(flown.delay):,} flights out of New York from April to December 2013, in place of MIMIC, whose files "
        "are not there: delay at arrival in minutes, each label known before the next row, carriers (UA United, B6 "
        "JetBlue, EV ExpressJet, DL Delta) and airports (EWR Newark, JFK Kennedy, LGA LaGuardia) by their codes"
    )
    kinds = {"carrier": flown.carrier, "origin": flown.origin}
    when = flown.served.astype("datetime64[D]")
    return Stays(name, flown.prediction, flown.delay, when, kinds, "minutes", False)


def debiased(source: Source) -> tuple[Stays, Floats, list[Descent]]:
    """The stream, its indicators, and a run of alg:multigroup-debias-squared for every step."""

    def compute() -> tuple[Stays, Floats, list[Descent]]:
        stream = stays(source)
        rows, _ = indicators(*stream.kinds.values())
        f, y = stream.prediction, stream.label
        return stream, rows, [debias_reals(f, y, step or None, rows) for step in STEPS]

    return source.once("stays by group", compute)
