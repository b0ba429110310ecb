"""What a value of a group, a player or a key is called: 7, 7.0 and "7" are one name."""

from __future__ import annotations

from typing import Any

MISSING_NAME = "(missing)"
WHOLE = 2.0**53  # floats below it hold every whole number


def name_of(value: object) -> str:
    """The name of a group value, as Python prints it; "(missing)" for an absent or empty one.

    A whole number is called the same whatever its type: one missing key turns a column of integers into floats.

    >>> name_of(3), name_of(3.0), name_of(True), name_of("a"), name_of(""), name_of(float("nan"))
    ('3', '3', 'True', 'a', '(missing)', '(missing)')
    """
    if isinstance(value, str):
        return str.__str__(value) or MISSING_NAME  # an enumeration of texts prints itself otherwise
    # pandas.NA and NaT are known by name: pandas need not be there, and NA != NA is not a bool.
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return MISSING_NAME
    number: Any = value
    if hasattr(value, "is_integer") and number.is_integer() and abs(number) < WHOLE:
        return str(int(number)) if not isinstance(value, bool) else str(value)
    return str(value) or MISSING_NAME
