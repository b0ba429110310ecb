"""A column whose values are to name groups, keys, players or rows, made ready once: other code meets few types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradeq.errors import BadInput
from gradeq.files.codebook import Codebook
from gradeq.files.failures import using
from gradeq.files.numbers import is_text, plain

if TYPE_CHECKING:
    import pyarrow as pa


def nameable(column: pa.Array, name: str) -> pa.Array:
    """The column itself where it is text, numbers or booleans; else the names of its values."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string_view(kind):
        return plain(column)
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
    if is_text(kind) or any(is_kind(kind) for is_kind in known):
        return column
    if pa.types.is_nested(kind):
        raise BadInput(
            f"column {name!r} holds {kind} values, which name nothing; give text or whole numbers"
        )
    with using(f"column {name!r} holds {kind} values", "name groups by text or whole numbers"):
        book = Codebook()
        codes = book.codes(column)
        return pa.DictionaryArray.from_arrays(codes, pa.array(book.names, pa.large_string()))
