"""Which common diagnoses and procedures a person has had: the indicators of the MIMIC model."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gradeq.datasets.columns import Floats

if TYPE_CHECKING:
    import pandas as pd

COMMON = 50


def code_columns(stays: pd.DataFrame, *, leak: bool, early: int) -> Floats:
    """One row per stay, one column per common code, and one each for all other codes.

    With ``leak`` a person's codes are those of all stays, also later ones, as in the paper.
    Without it they are those of earlier stays, and only the first ``early`` stays decide which
    codes are common.
    """
    counted = stays if leak else stays.iloc[: max(early, 1)]
    diagnoses = _common(counted, "diagnoses", "procedures")
    procedures = [
        code for code in _common(counted, "procedures", "diagnoses") if code not in diagnoses
    ]
    here = np.hstack(
        [_indicators(stays, "diagnoses", diagnoses), _indicators(stays, "procedures", procedures)]
    )
    return _of_person(stays, here, leak)


def _common(stays: pd.DataFrame, name: str, other: str) -> list[str]:
    """The most frequent codes. A stay's codes count once per code of the other kind.

    That is how the authors count: their table has one row per pair of the two kinds.
    """
    counts: Counter[str] = Counter()
    for codes, pairs in zip(stays[name], stays[other], strict=True):
        for code in codes:
            counts[code] += len(pairs)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [code for code, _ in ranked[:COMMON]]


def _indicators(stays: pd.DataFrame, name: str, common: list[str]) -> Floats:
    place = {code: k for k, code in enumerate(common)}
    rows = np.zeros((len(stays), len(common) + 1))
    for i, codes in enumerate(stays[name]):
        rows[i, [place.get(code, len(common)) for code in codes]] = 1.0
    return rows


def _of_person(stays: pd.DataFrame, here: Floats, leak: bool) -> Floats:
    """Each stay's row over all stays of the person, or over the earlier ones."""
    persons = np.unique(stays["subject_id"].to_numpy(), return_inverse=True)[1]
    if leak:
        ever = np.zeros((int(persons.max()) + 1, here.shape[1]))
        np.maximum.at(ever, persons, here)
        result: Floats = ever[persons]
        return result
    seen = np.zeros((int(persons.max()) + 1, here.shape[1]))
    before = np.empty_like(here)
    for i, person in enumerate(persons):
        before[i] = seen[person]
        np.maximum(seen[person], here[i], out=seen[person])
    return before
