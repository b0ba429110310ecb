"""Input that is taken and was perhaps not meant: Python warns of it once, the command line in its summary."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.errors import GradeqWarning
from gradeq.spans import NAIVE, NUMBERS, shown_time

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer

ENOUGH = 30  # labels
PROBABILITIES = (
    "these look like probabilities with 0/1 labels, corrected as plain numbers: every prediction lies in [0, 1] and "
    'every label is 0 or 1; make the layer with outcome="binary", and what is served stays in [0, 1]'
)


class Doubts:
    """What was seen of the rows of a layer, and what was said about them; not part of its state."""

    def __init__(self, plain: bool) -> None:
        # Plain numbers could be probabilities until a row says otherwise.
        self.probable, self.labels = plain, 0
        self.evidence: set[str] = set()
        self.silent = False
        self.said: set[str] = set()

    def look(self, base: Any, y: Any) -> None:
        """Take predictions and their labels (nan: none)."""
        if not self.probable:
            return
        f, label = np.asarray(base, np.float64), np.asarray(y, np.float64)
        known = ~np.isnan(label)
        self.probable = bool(
            ((f >= 0.0) & (f <= 1.0)).all() and np.isin(label[known], (0.0, 1.0)).all()
        )
        self.labels += int(np.count_nonzero(known))
        for name, there in (
            ("0", label == 0.0),
            ("1", label == 1.0),
            ("between", (f > 0.0) & (f < 1.0)),
        ):
            self.evidence |= {name} if there.any() else set()

    def warn(self) -> None:
        """Say once that these look like probabilities, if they do."""
        if self.probable and self.labels >= ENOUGH and len(self.evidence) == 3:
            self.say(PROBABILITIES)

    def say(self, text: str | None) -> None:
        """Warn of something once."""
        if text is None or self.silent or text in self.said:
            return
        self.said.add(text)
        warnings.warn(text, GradeqWarning, stacklevel=caller())


def caller() -> int:
    """How far up the line stands that called gradeq."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gradeq."):
        frame, depth = frame.f_back, depth + 1
    return depth


def silenced(layer: Layer) -> Layer:
    """The same layer, without warnings: whoever has it says such things otherwise."""
    layer._doubts.silent = True
    return layer


def dated_before(times: Any, due: Any, y: Any, kind: str | None) -> str | None:
    """What is said of labels that are dated before their own rows, with an example; None without any."""
    if due is None:
        return None
    known = ~np.isnan(y)
    wrong = known & (due < times)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    i, dates = int(np.argmax(wrong)), kind not in (None, NUMBERS)
    first = f"row {i}, {shown_time(due[i], dates)} before {shown_time(times[i], dates)}"
    return (
        f"{count:,} of {int(np.count_nonzero(known)):,} labels have a label time before the time of their row "
        f"(first: {first}); a label cannot be known before its row is served, so each was taken as known "
        "right after it; are times and label_times swapped?"
    )


def clocks_changed(times: Any, kind: str | None) -> str | None:
    """What is said of local times in which an hour comes twice; None of others."""
    if times is None or kind != NAIVE:
        return None
    from gradeq.files.times import Turns

    told = Turns().look(times).told
    if told is None:
        return None
    return (
        f"times without a zone go back by {told}: were clocks changed? rows are served in the order of the written "
        "times, so rows of that hour may be in the wrong order; give times with a zone, or in UTC"
    )
