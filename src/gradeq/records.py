"""Copies and fields of named tuples, by names without an underscore."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

Record = TypeVar("Record", bound=NamedTuple)


def copy_with(record: Record, **changes: object) -> Record:
    """A copy of a named tuple with some fields changed, as ``dataclasses.replace`` makes of a data class.

    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float
    >>> copy_with(Point(1.0, 2.0), y=0.0)
    Point(x=1.0, y=0.0)
    """
    return record._replace(**changes)


def as_dict(record: NamedTuple) -> dict[str, Any]:
    """The fields of a named tuple by name."""
    return record._asdict()
