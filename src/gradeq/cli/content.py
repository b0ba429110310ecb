"""The content of a run: one hash of the columns it used, in the order of serving, however it was cut into pieces."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np


class Content:
    """Grows with each piece; two runs have the same one if they had the same rows."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}

    def numbers(self, name: str, column: Any) -> None:
        """The numbers of a piece; what is missing counts as such."""
        if column is None:
            return
        values = np.ascontiguousarray(column)
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.nan, values)
        self._of(name).update(values.view(np.uint8).data)

    def cells(self, name: str, column: Any) -> None:
        """The cells of a piece as text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.cast(column, pa.large_string())
        lengths = pc.fill_null(pc.binary_length(text), -1).to_numpy(zero_copy_only=False)
        filled = pc.fill_null(text, "")
        _, ends, letters = filled.buffers()
        bounds = np.frombuffer(ends, np.int64)[filled.offset : filled.offset + len(filled) + 1]
        self._of(f"{name} lengths").update(np.ascontiguousarray(lengths, np.int64).data)
        if letters is not None and len(bounds):
            self._of(name).update(memoryview(letters)[int(bounds[0]) : int(bounds[-1])])

    def _of(self, name: str) -> Any:
        return self._columns.setdefault(name, hashlib.sha256())

    def digest(self, command: str) -> str:
        """The content as text."""
        whole = hashlib.sha256(command.encode())
        for name in sorted(self._columns):
            whole.update(name.encode() + self._columns[name].digest())
        return whole.hexdigest()
