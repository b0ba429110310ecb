"""What a bound may assume: facts about a layer's life, recorded by those who write, one number each.

They are a column of the state, so they are saved, undone and merged with it, and nothing forgets them.
"""

from __future__ import annotations

import math

from gradeq.ledger.state import LEAST, MOST, SUM, Column

# name: (start, how two partitions are joined)
_FACTS = {
    "SERVED": (0.0, SUM),  # predictions served
    "POSTED": (0.0, SUM),  # labels heard
    "SKIPPED": (0.0, SUM),  # of these, heard while learning was frozen
    "CORRECTED": (0.0, SUM),  # labels replaced by others
    "HELD": (0.0, SUM),  # labels whose step the late-label cap made smaller
    "RESIZED": (0.0, SUM),  # rows too large for their step, which was made smaller
    "DELAY_SUM": (0.0, SUM),  # predictions served between a row and its label, added up
    "DELAY_MOST": (0.0, MOST),
    "LATEST": (1.0, MOST),  # the largest lateness of a label in rows of its cell, 1 = at once
    "HEAVIEST": (1.0, MOST),  # the largest weight learned from
    "LARGEST": (0.0, MOST),  # the largest |z| learned from
    "NORM": (0.0, MOST),  # the largest squared norm of a row learned from
    "STEP_LOW": (math.inf, LEAST),  # the smallest and the largest step that a label was given
    "STEP_HIGH": (0.0, MOST),
    "RESETS": (0.0, SUM),  # times that the lateness was forgotten by hand
    "MERGED": (0.0, MOST),  # 1: a partition was merged that had served parameters which another had learned
}
(
    SERVED, POSTED, SKIPPED, CORRECTED, HELD, RESIZED, DELAY_SUM, DELAY_MOST, LATEST, HEAVIEST, LARGEST, NORM,
    STEP_LOW, STEP_HIGH, RESETS, MERGED,
) = range(len(_FACTS))  # fmt: skip

MEASURED = (HEAVIEST, LARGEST, NORM, STEP_LOW, STEP_HIGH)  # in units of the user's; the rest are counts

FACTS = Column(
    "facts",
    "layer",
    tuple(start for start, _ in _FACTS.values()),
    tuple(how for _, how in _FACTS.values()),
    low=tuple(0.0 if how == LEAST else start for start, how in _FACTS.values()),
)
