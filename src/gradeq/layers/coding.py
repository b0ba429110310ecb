"""A column of players as codes and names: quick ways for what games usually come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.errors import BadInput

if TYPE_CHECKING:
    from gradeq.ledger.batch import Ints


def coded(column: Any, what: str) -> tuple[Ints, list[str]]:
    """The code of each row and the name of each code (some may have no row); an absent name is refused."""
    from gradeq import frames

    found = None
    if isinstance(column, np.ndarray) and column.ndim == 1:
        if column.dtype.kind in "iu" and column.dtype != np.uint64:
            found = of_integers(column)
    elif type(column).__module__.partition(".")[0] == "pyarrow":
        found = of_dictionary(column)
    codes, names = found if found is not None else frames.codes(column, what)
    if frames.MISSING_NAME in names:
        absent = np.flatnonzero(codes == names.index(frames.MISSING_NAME))
        if len(absent):
            raise BadInput(f"row {absent[0]}: {what} has no name; drop the game or name the player")
    return codes, names


def of_integers(column: Any) -> tuple[Ints, list[str]] | None:
    """Numbers that lie close together are their own codes, counted from the smallest."""
    if not len(column):
        return None
    low, high = int(column.min()), int(column.max())
    if high - low > 2 * len(column) + 1000:
        return None
    codes = column.astype(np.int64) - low
    return codes, [str(low + code) for code in range(high - low + 1)]


def of_dictionary(column: Any) -> tuple[Ints, list[str]] | None:
    """An arrow dictionary without absent values as it is."""
    import pyarrow as pa

    from gradeq.files.codebook import names_of

    if not pa.types.is_dictionary(column.type):
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            return None
    names = names_of(column.dictionary)
    if column.null_count or len(set(names)) < len(names):
        return None
    return column.indices.to_numpy(zero_copy_only=False).astype(np.int64), names
