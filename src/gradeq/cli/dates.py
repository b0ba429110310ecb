"""Labels that are dated before their own rows: a sign that the two columns of times are swapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.cli.reading import Piece
from gradeq.report.late_notices import dated_before
from gradeq.report.story import Notice
from gradeq.spans import NUMBERS, shown_time


class Dates:
    """Counts the labels that have a time, and those whose time lies before that of their row."""

    def __init__(self) -> None:
        self.labels = self.early = 0
        self.first = ""

    def add(self, piece: Piece, known: Any) -> None:
        """Take a piece of rows; ``known``: which of them have a label. Equal times are in order."""
        if piece.due is None or piece.never is None:
            return  # no column says when labels came
        dated = known & ~piece.never
        self.labels += int(np.count_nonzero(dated))
        early = dated & (piece.due < piece.times)
        if early.any() and not self.early:
            i = int(np.argmax(early))
            self.first = before(piece.row(i), piece.due[i], piece.times[i], piece.kind)
        self.early += int(np.count_nonzero(early))

    def notice(self) -> Notice | None:
        """What is said of them, if there are any."""
        return dated_before(self.early, self.labels, self.first) if self.early else None


def before(row: str, due: Any, time: Any, kind: str | None) -> str:
    """An example: a row, when its label was known, and when it was served."""
    dates = kind != NUMBERS
    return f"{row}, {shown_time(due, dates)} before {shown_time(time, dates)}"
