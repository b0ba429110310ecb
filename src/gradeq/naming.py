"""What a value of a group, a player or a key is called: 7 and "7" are one name."""

from __future__ import annotations

MISSING_NAME = "(missing)"


def name_of(value: object) -> str:
    """The name of a group value, as Python prints it; "(missing)" for an absent or empty one.

    >>> name_of(3), name_of(True), name_of("a"), name_of(""), name_of(float("nan"))
    ('3', 'True', 'a', '(missing)', '(missing)')
    """
    if isinstance(value, str):
        return str.__str__(value) or MISSING_NAME  # an enumeration of texts prints itself otherwise
    # pandas.NA and NaT are known by name: pandas need not be there, and NA != NA is not a bool.
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return MISSING_NAME
    return str(value) or MISSING_NAME
