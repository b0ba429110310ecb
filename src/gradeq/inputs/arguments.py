"""Single values, checked at the door: numbers become floats, and values of groups, players and keys become names.

A file of text has lost the types of its values, so a text that is how some writer spells a truth value, a whole float
or a moment has the name of that value: 7, 7.0, "7" and "7.0" are one name, and so are True and "true". Any other text
is its own name: "007" is not 7, and the version "1.10" is not "1.1".
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
    """A value as a line shows it, cut where it is long.

    >>> as_shown("x"), as_shown(10**200)[-3:]
    ("'x'", '...')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a number of too many digits, or an object that cannot say what it is
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_float(value: Any) -> float | None:
    """A single number of any kind as a float, nan and infinity included; None for texts, flags, lists and the like.

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
        typed = f"{type(part).__name__}({name}="
        object.__setattr__(part, name, checked_float(typed, getattr(part, name)))


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
    given = getattr(part, name)
    typed = f"{type(part).__name__}({name}="
    if (
        isinstance(given, (str, bytes, bytearray, dict, set))
        or not hasattr(given, "__iter__")
        or getattr(given, "ndim", 1) != 1
    ):
        raise BadInput(f"{typed}{as_shown(given)}): give a list of {items}")
    object.__setattr__(part, name, tuple(checked_float(typed, own) for own in given))


def checked_float(typed: str, value: object) -> float:
    """A number as a float; ``typed``: what stands before it in a call, as in ``Power(eta=``."""
    found = as_float(value)
    if found is None:
        raise BadInput(f"{typed}{as_shown(value)}): this is no number; give one such as 0.1")
    return found


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
    # pandas.NA and NaT are known by name: pandas need not be there, and NA != NA is not a bool.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return not hasattr(value, "__len__") and bool(value != value)


@lru_cache(1 << 14)
def text_name(text: str) -> str:
    """The name of a text: that of the value that it spells, or else itself.

    >>> (text_name("2024-01-01T00:00:00.000"), text_name("2024-01-01 12:30:00.500+02:00"), text_name("007"))
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
    """Column and value of a group's name; an empty value for other names.

    >>> split_name("race=a=b"), split_name("a\\\\=b=c"), split_name("age")
    (('race', 'a=b'), ('a=b', 'c'), ('age', ''))
    """
    found = _GROUP.fullmatch(name)
    return (_MARK.sub(r"\1", found[1]), found[2]) if found else (name, "")
