"""Cells of a table as text: which mean missing, which need a guard, and how to speak of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from gradeq.errors import BadInput
from gradeq.files.formats import separated_otherwise

# A label cell that says "not known": these words in any case, with or without blanks around.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\0")


def is_missing(cell: str) -> bool:
    """Whether a text cell means that there is no value.

    >>> is_missing(" NaN "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING


def is_utf8(name: str) -> bool:
    """Whether a name can be written; one from the command line may hold bytes that are no text."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def guard_formula(text: str) -> str:
    """Text of our own making that a spreadsheet will show and never run as a formula.

    Only for names that we write into tables of ours; cells of the input are copied as they are.

    >>> guard_formula("=1+1"), guard_formula("Brazil")
    ("'=1+1", 'Brazil')
    """
    return "'" + text if text.startswith(_FORMULA) else text


def row_name(row: int, file: str = "") -> str:
    """How an error names a data row (from 1, the header not counted), with its file among several.

    >>> row_name(17), row_name(17, "b.csv")
    ('row 17', 'b.csv row 17')
    """
    return f"{file} row {row}" if file else f"row {row}"


def shown(cell: object, width: int = 40) -> str:
    """A cell's value as an error prints it: quoted, on one line, cut when long.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    text = repr(cell)
    return text if len(text) <= width else text[:width] + "..."


def no_such_column(name: str, names: Iterable[str], where: str) -> BadInput:
    """The error for a column that is not there, with the nearest name that is."""
    known = list(names)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        folded = {other.strip().casefold(): other for other in known}
        near = [folded[key] for key in [name.strip().casefold()] if key in folded]
    if (otherwise := separated_otherwise(known)) is not None:
        remedy = f"its only column is {shown(known[0])}: {otherwise}"
    elif near:
        remedy = f"did you mean {near[0]!r}?"
    else:
        listed = ", ".join(repr(other) for other in known[:12]) + (", ..." if known[12:] else "")
        remedy = f"the columns are {listed}"
    return BadInput(f"{where} has no column {name!r}; {remedy}")
