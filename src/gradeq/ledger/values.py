"""Tickets and postings: flat, immutable, JSON in and out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradeq.errors import BadInput
from gradeq.records import as_dict

new = tuple.__new__  # new(Ticket, fields) is half the time of Ticket(*fields); for those made at every event


class Row(NamedTuple):
    """Where a prediction belongs: the parameters it touches, by name, their values z, and its series."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    key: str | None = None


class Place(NamedTuple):
    """The same as places in a state: parameters, the cells whose rows are counted, the clock, the series."""

    params: tuple[int, ...]
    cells: tuple[int, ...]
    clock: int
    key: int


class Ticket(NamedTuple):
    """What serving left behind, enough for the label on its own.

    ``weight`` is the one that is learned with: ``given`` over the mean of those served so far. ``step`` is the
    scheduled one, limited by the size of the row; ``counts`` the rows that each of its cells had served by then, this
    one included; ``memo`` what the rule noted (a scale, what its experts said); ``slopes`` those of a penalty at the
    parameters that served. ``branch`` is of a ticket in its caller's hands: which continuation of a saved state it is
    from (see ``engine.branches``).
    """

    number: int
    row: Row
    base: object
    served: float | tuple[float, ...]
    weight: float
    step: float
    counts: tuple[int, ...]
    memo: tuple[float, ...] = ()
    slopes: tuple[float, ...] = ()
    given: float = 1.0
    branch: str = ""

    def to_json(self) -> str:
        """One line of JSON that reads back bit for bit."""
        return _text("ticket", self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Ticket:
        """The ticket that ``to_json`` wrote; anything else is refused in one line."""
        return cls(*_checked(cls, "ticket", text))


class Posting(NamedTuple):
    """What one label adds to the state; with sign -1 it is taken back, with sign 0 it was heard and not learned from.

    ``weight``, ``given`` and ``step`` are the ticket's, ``eta`` the step that the label was given, ``late`` how many
    rows of each of its cells were served from the ticket to the label (1: at once; empty for a label that comes in
    the place of another).
    ``errors`` and ``losses`` are of what was served, then of the base prediction, each with one entry a level.
    """

    number: int
    row: Row
    base: object
    served: float | tuple[float, ...]
    weight: float
    step: float
    eta: float
    late: tuple[int, ...]
    y: Any
    errors: tuple[float, ...]
    losses: tuple[float, ...]
    memo: tuple[float, ...] = ()
    slopes: tuple[float, ...] = ()
    sign: float = 1.0
    given: float = 1.0

    @property
    def first(self) -> bool:
        """Whether this is the first label of its ticket: one that is taken back, or comes in its place, is not."""
        return self.sign > 0.0 and len(self.late) > 0

    def to_json(self) -> str:
        """One line of JSON that reads back bit for bit."""
        return _text("posting", self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Posting:
        """The posting that ``to_json`` wrote; anything else is refused in one line."""
        return cls(*_checked(cls, "posting", text))


def _text(what: str, value: Any) -> str:
    try:
        fields = as_dict(value)
        if value.given == value.weight:  # as in all that were written before weights were relative
            del fields["given"]
        if not fields.get("branch", True):
            del fields["branch"]
        if "losses" in fields:  # of absurd labels they may be infinite
            fields["losses"] = [x if math.isfinite(x) else repr(x) for x in fields["losses"]]
        return json.dumps({what: fields}, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"this {what} has no JSON form: {error}") from None


def _checked(cls: Any, what: str, text: str | bytes) -> tuple[Any, ...]:
    try:
        read = json.loads(text)
        later = {"branch": ""} if cls is Ticket else {}
        fields = {"given": read[what]["weight"], **later} | read[what]
        if set(fields) != set(cls._fields):
            raise ValueError("missing or unknown fields")
        return checked_fields(cls, [fields[name] for name in cls._fields])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:100]
        raise BadInput(f"this is not a {what} written by gradeq: {reason}") from None


def checked_fields(cls: Any, values: Sequence[Any]) -> tuple[Any, ...]:
    """The fields of a ticket or posting that were read from JSON; ``ValueError`` or ``TypeError`` for any other."""
    wanted = _FIELDS[cls]
    given = cls._fields.index("given")
    if len(values) == given:
        values = [*values, values[cls._fields.index("weight")]]
    if len(values) == given + 1 and cls is Ticket:
        values = [*values, ""]
    return tuple([read(value) for read, value in zip(wanted, values, strict=True)])


def brief(entry: Any) -> Any:
    """A ticket or posting as it is saved: the weight that was given only where it is not the one learned with."""
    end = entry._fields.index("given")
    return entry[: end if entry.given == entry.weight else end + 1]


def _row(value: Any) -> Row:
    names, values, key = value
    if not all([isinstance(each, str) for each in names]) or len(names) != len(values):
        raise ValueError("a row needs one value for each name")
    if key is not None and not isinstance(key, str):
        raise ValueError("a key is text")
    return Row(tuple(names), _finite(values), key)


def _finite(values: Any) -> tuple[float, ...]:
    numbers = tuple(map(float, values))
    if not all(map(math.isfinite, numbers)):
        raise ValueError("a number is not finite")
    return numbers


def _number(value: Any) -> float:
    return _finite((value,))[0]


def _mark(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError("a branch is a short text")
    return value


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(map(float, values))


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _counts(values: Any) -> tuple[int, ...]:
    return tuple(map(_count, values))


def _served(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_READ: dict[str, Callable[[Any], Any]] = {
    "branch": _mark,
    "number": _count, "row": _row, "weight": _number, "given": _number, "step": _number, "eta": _number,
    "sign": _number, "counts": _counts, "late": _counts, "errors": _finite, "losses": _floats, "memo": _finite,
    "slopes": _finite,
}  # fmt: skip
_FIELDS = {cls: [_READ.get(name, _served) for name in cls._fields] for cls in (Ticket, Posting)}
