"""Checks of single arguments: numbers become floats; values of groups, players and keys become names.

Text files lose the types of values, so a text that spells a boolean, a whole float or a date has the name of that
value: 7, 7.0, "7" and "7.0" have one name, and so have True and "true". Any other text is its own name: "007" is not
7, and the version "1.10" is not "1.1".
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gradeq.errors import BadInput
from gradeq.numerics import SMALLEST


def as_shown(value: object) -> str:
    """A value in an error message, shortened if it is long.

    >>> as_shown("x"), as_shown(10**200)[-3:]
    ("'x'", '...')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # too many digits, or a broken __repr__
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_float(value: Any) -> float | None:
    """A single number of any kind as a float, nan and infinity included; None for text, booleans, lists and others.

    >>> as_float(1), as_float("1"), as_float(True), as_float([1.0])
    (1.0, None, None, None)
    """
    if type(value) is float:
        return value
    if isinstance(value, (bool, str, bytes, bytearray)):
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if kind not in ("i", "u", "f", "O") or getattr(value, "ndim", None):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, ArithmeticError):
        return None


def take_floats(part: Any, *names: str) -> None:
    """Convert these fields of a frozen part to floats; an error names the field."""
    for name in names:
        call = f"{type(part).__name__}({name}="
        object.__setattr__(part, name, checked_float(call, getattr(part, name)))


def take_float_between(part: Any, name: str, low: float, high: float) -> None:
    """Convert this field of a frozen part to a float; raise unless it lies strictly between low and high."""
    take_floats(part, name)
    value = getattr(part, name)
    if not low < value < high:
        rule = "be positive and finite" if high == math.inf else f"lie strictly between {low:g} and {high:g}"
        raise BadInput(f"{type(part).__name__}({name}={value}): {name} must {rule}")


def take_range(part: Any) -> None:
    """Convert the fields ``low`` and ``high`` of a frozen part to floats; raise unless they are a finite range."""
    take_floats(part, "low", "high")
    if not -math.inf < part.low < part.high < math.inf:
        raise BadInput(f"{type(part).__name__}(low={part.low}, high={part.high}): needs finite low < high")


def check_magnitude(call: str, value: float, noun: str, remedy: str = "") -> None:
    """Raise unless a step or a strength is positive, finite, and keeps its digits when multiplied by errors."""
    if not 0.0 < value < math.inf:
        raise BadInput(f"{call}{value}): a {noun} must be positive and finite{remedy}")
    if not SMALLEST <= value <= 1.0 / SMALLEST:
        limits = f"below {SMALLEST:g} or above {1.0 / SMALLEST:g}"
        raise BadInput(f"{call}{value}): a {noun} {limits} is lost in rounding; give one nearer to 1")


def take_tuple(part: Any, name: str, items: str) -> None:
    """Make this field of a frozen part a tuple of floats."""
    values, call = getattr(part, name), f"{type(part).__name__}({name}="
    unordered = isinstance(values, (str, bytes, bytearray, dict, set))
    if unordered or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) != 1:
        raise BadInput(f"{call}{as_shown(values)}): give a list of {items}")
    object.__setattr__(part, name, tuple(checked_float(call, value) for value in values))


def checked_float(call: str, value: object) -> float:
    """A number as a float; ``call``: the text before it in an error message, as in ``Power(eta=``."""
    number = as_float(value)
    if number is None:
        raise BadInput(f"{call}{as_shown(value)}): not a number; give one such as 0.1")
    return number


MISSING_NAME = "(missing)"
WHOLE = 2.0**53  # floats below it hold every whole number

_FIRST = frozenset("-0123456789tTfF")  # first letters of text that _SPELLED may match
_SPELLED = re.compile(
    r"(?P<boolean>true|TRUE|false|FALSE)"
    r"|(?P<whole>-?(?:0|[1-9]\d{0,15}))\.0+|(?P<float>-0|-?\d(?:\.\d+)?e[+-]\d\d+)"
    r"|(?P<day>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d(?::\d\d){0,2})(?:\.(?P<part>\d+))?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_GROUP_NAME = re.compile(r"((?:[^\\=]|\\.)+)=(.+)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def name_of(value: object) -> str:
    """The name of a group value; "(missing)" for an absent or empty one.

    >>> name_of(3), name_of(3.0), name_of("3.0"), name_of(True), name_of("true"), name_of("")
    ('3', '3', '3', 'True', 'True', '(missing)')
    """
    if type(value) is int:
        return str(value)
    if isinstance(value, str):
        return text_name(str.__str__(value))  # a string enum prints its class name
    if is_absent(value):
        return MISSING_NAME
    if hasattr(value, "__len__") and not isinstance(value, bytes):
        raise BadInput(f"{as_shown(value)} ({type(value).__name__}) is not a name; give text or a number")
    number: Any = value
    if hasattr(value, "is_integer") and type(value).__name__ not in ("Decimal", "timedelta64"):
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
    """Whether a value is missing: None, nan, NaT, pandas.NA. A list or array never is."""
    # pandas.NA and NaT are recognised by name: pandas may not be installed, and NA != NA is not a bool.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return not hasattr(value, "__len__") and bool(value != value)


@lru_cache(1 << 14)
def text_name(text: str) -> str:
    """The name of a text: that of the value it spells, or the text itself.

    >>> (text_name("2024-01-01T00:00:00.000"), text_name("2024-01-01 12:30:00.500+02:00"), text_name("007"))
    ('2024-01-01', '2024-01-01 10:30:00.5+00:00', '007')
    """
    if not text:
        return MISSING_NAME
    match = _SPELLED.fullmatch(text) if text[0] in _FIRST else None
    if match is None:
        return text
    if match["boolean"]:
        return text.capitalize()
    if match["whole"]:
        return str(int(match["whole"])) if abs(int(match["whole"])) < WHOLE else text
    if match["float"]:
        return name_of(float(text))
    return _date_name(text, **match.groupdict(""))


def _date_name(text: str, day: str, clock: str, part: str, zone: str, **_: str) -> str:
    """A date at midnight, else date and time without trailing zeros; in UTC if there is a zone."""
    part = f".{part.rstrip('0')}".rstrip(".")
    try:
        when = datetime.fromisoformat(f"{day}T{clock}{zone}")
        if zone:
            return f"{when.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}{part}+00:00"
    except (ValueError, OverflowError):  # not a valid date
        return text
    return f"{when.isoformat(' ')}{part}".removesuffix(" 00:00:00")


def column_name(column: str) -> str:
    """A column before "=" in a group's name, with its own "=" escaped, so that names stay unique.

    >>> column_name("race"), column_name("a=b")
    ('race', 'a\\\\=b')
    """
    return column.replace("\\", "\\\\").replace("=", "\\=")


def split_name(name: str) -> tuple[str, str]:
    """Column and value of a group's name; an empty value for other names.

    >>> split_name("race=a=b"), split_name("a\\\\=b=c"), split_name("age")
    (('race', 'a=b'), ('a=b', 'c'), ('age', ''))
    """
    match = _GROUP_NAME.fullmatch(name)
    return (_ESCAPED.sub(r"\1", match[1]), match[2]) if match else (name, "")
