"""What a value of a group, a player or a key is called: one name for a value, whatever file or type it comes in.

A file of text has lost the types of its values, so a text that is how some writer spells a truth value, a whole float
or a moment has the name of that value: 7, 7.0, "7" and "7.0" are one name, and so are True and "true". Any other text
is its own name: "007" is not 7, and the version "1.10" is not "1.1".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gradeq.errors import BadInput

MISSING_NAME = "(missing)"
WHOLE = 2.0**53  # floats below it hold every whole number

_FIRST = frozenset("-0123456789tTfF")  # how a text begins that may be spelled otherwise
_SPELLED = re.compile(
    r"(?P<truth>true|TRUE|false|FALSE)"
    r"|(?P<whole>-?(?:0|[1-9]\d{0,15}))\.0+|(?P<float>-0|-?\d(?:\.\d+)?e[+-]\d\d+)"
    r"|(?P<day>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d(?::\d\d){0,2})(?:\.(?P<part>\d+))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_GROUP = re.compile(r"((?:[^\\=]|\\.)+)=(.+)", re.DOTALL)
_MARK = re.compile(r"\\(.)", re.DOTALL)


def name_of(value: object) -> str:
    """The name of a group value; "(missing)" for an absent or empty one.

    >>> name_of(3), name_of(3.0), name_of("3.0"), name_of(True), name_of("true"), name_of("")
    ('3', '3', '3', 'True', 'True', '(missing)')
    """
    if type(value) is int:
        return str(value)
    if isinstance(value, str):
        return text_name(str.__str__(value))  # an enumeration of texts prints itself otherwise
    if is_absent(value):
        return MISSING_NAME
    if hasattr(value, "__len__") and not isinstance(value, bytes):
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= 40 else f"{shown[:40]}..."
        raise BadInput(f"{shown} ({type(value).__name__}) names nothing; give text or a number")
    number: Any = value
    if hasattr(value, "is_integer") and not isinstance(value, Decimal):
        if number.is_integer() and abs(number) < WHOLE:
            return str(int(number)) if not isinstance(value, bool) else str(value)
        return str(value)
    if isinstance(value, bytes):
        return text_name(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, Decimal):
        return text_name(format(value, "f"))
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)
    return text_name(str(value))


def is_absent(value: object) -> bool:
    """Whether a value stands for none: None, nan, NaT, pandas.NA; a list or array does not, whatever it holds."""
    # pandas.NA and NaT are known by name: pandas need not be there, and NA != NA is not a bool.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return not hasattr(value, "__len__") and bool(value != value)


@lru_cache(1 << 14)
def text_name(text: str) -> str:
    """The name of a text: that of the value that it spells, or else itself.

    >>> (
    ...     text_name("2024-01-01T00:00:00.000"),
    ...     text_name("2024-01-01 12:30:00.500+02:00"),
    ...     text_name("007"),
    ... )
    ('2024-01-01', '2024-01-01 10:30:00.5+00:00', '007')
    """
    if not text:
        return MISSING_NAME
    found = _SPELLED.fullmatch(text) if text[0] in _FIRST else None
    if found is None:
        return text
    if found["truth"]:
        return text.capitalize()
    if found["whole"]:
        return str(int(found["whole"])) if abs(int(found["whole"])) < WHOLE else text
    if found["float"]:
        return name_of(float(text))
    return _moment(text, **found.groupdict(""))


def _moment(text: str, day: str, clock: str, part: str, zone: str, **_: str) -> str:
    """A day where it is midnight, else to the second and as far as it is not 0; with a zone in UTC."""
    part = f".{part.rstrip('0')}".rstrip(".")
    try:
        when = datetime.fromisoformat(f"{day}T{clock}{zone}")
        if zone:
            return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}{part}+00:00"
    except (ValueError, OverflowError):  # no moment, or none that a calendar has
        return text
    return f"{when.isoformat(' ')}{part}".removesuffix(" 00:00:00")


def column_name(column: str) -> str:
    """A column in front of "=": its own "=" are marked, so that no two columns and values have one name.

    >>> column_name("race"), column_name("a=b")
    ('race', 'a\\\\=b')
    """
    return column.replace("\\", "\\\\").replace("=", "\\=")


def split_name(name: str) -> tuple[str, str]:
    """Column and value of a group's name; no value for what is no group.

    >>> split_name("race=a=b"), split_name("a\\\\=b=c"), split_name("age")
    (('race', 'a=b'), ('a=b', 'c'), ('age', ''))
    """
    found = _GROUP.fullmatch(name)
    return (_MARK.sub(r"\1", found[1]), found[2]) if found else (name, "")
