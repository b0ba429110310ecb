"""How cells are written in a file: what separates them, the decimal mark, and the texts that mean missing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gradeq.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

# What other programs write for a missing value, beside the words that always mean it.
MARKERS = frozenset(
    {"#n/a", "#na", "-", "--", "\\n", "<na>", "nat", ".", "?", "missing", "unknown"}
)
_COMMA = re.compile(r"[+-]?[\d.]*,\d+([eE][+-]?\d+)?")
_WORDS = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True)
class Format:
    """The format of all cells of a table; the default is that of plain CSV."""

    separator: str = ","
    decimal: str = "."
    missing: tuple[str, ...] = ()

    @cached_property
    def _absent(self) -> frozenset[str]:
        return frozenset(text.strip() for text in self.missing)

    def known(self, column: pa.Array) -> pa.Array:
        """The column without the cells that mean missing: text as it is written, numbers by their value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from gradeq.files.numbers import is_text, plain, read_number

        if not self.missing:
            return column
        column = plain(column)
        if is_text(column.type):
            words = pc.utf8_trim_whitespace(column)
            absent = pc.is_in(words, value_set=pa.array(sorted(self._absent), words.type))
        elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = [read_number(text, self.decimal) for text in self._absent]
            own = pa.array([number for number in numbers if number is not None], pa.float64())
            absent = pc.is_in(pc.cast(column, pa.float64(), safe=False), value_set=own)
        else:
            return column
        return pc.if_else(absent, pa.scalar(None, column.type), column)


PLAIN = Format()


def format_of(separator: str | None, decimal: str, missing: tuple[str, ...]) -> Format:
    """The format that options ask for."""
    sign = "," if separator is None else _WORDS.get(separator, separator)
    if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0':
        raise BadInput(
            f"--separator {separator!r} is not a separator; give one character such as ';' or '|', or tab"
        )
    return Format(sign, decimal, missing)


def remedy(cell: str, missing: bool, decimal: str) -> str:
    """What to do about a cell that is not a number; ``missing``: whether it may mean that there is none."""
    text = cell.strip()
    if decimal == "," and "." in text:
        return "with --decimal , a number has a comma and no point"
    if decimal == "." and _COMMA.fullmatch(text):
        return "for decimal commas give --decimal ,"
    if missing and text.lower() in MARKERS:
        return f"if it means missing, give --missing {quoted(text)}"
    return "correct the cell or drop the row"


def separated_otherwise(names: list[str]) -> str | None:
    """What to do about a header of one column in which other separators stand; None for any other header."""
    if len(names) != 1:
        return None
    for sign, said in ((";", "';'"), ("\t", "tab"), ("|", "'|'")):
        if sign in names[0]:
            return f"give --separator {said}"
    return None


def quoted(text: str) -> str:
    """A text as one types it in a shell."""
    import shlex

    return shlex.quote(text)
