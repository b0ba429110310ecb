"""Named columns of a CSV file as numpy arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gradeq.files import open_table

Texts = npt.NDArray[np.str_]
Floats = npt.NDArray[np.float64]
Days = npt.NDArray[np.datetime64]


class Columns:
    """The columns of one file that were asked for, read once; each is given out as one type."""

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str]) -> None:
        chunks = list(open_table([path]).batches(list(names)))
        self._parts: dict[str, list[Any]] = {
            name: [chunk.batch.column(name) for chunk in chunks] for name in names
        }
        self._chunks = chunks

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """A column of numbers; an absent one is nan where that is allowed."""
        return np.concatenate([chunk.numbers(name, missing=missing) for chunk in self._chunks])

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """A column of whole numbers."""
        return self.numbers(name).astype(np.int64)

    def texts(self, name: str) -> Texts:
        """A column of text."""
        return np.array([cell for part in self._parts[name] for cell in part.to_pylist()], str)

    def moments(self, name: str, unit: str = "D") -> Days:
        """A column of dates or times written as 2024-01-31 17:05:00."""
        return self.texts(name).astype(f"datetime64[{unit}]")
