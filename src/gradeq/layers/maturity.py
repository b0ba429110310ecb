"""Labels that are learned only when their rows are mature, however early or late they come.

Where the delay of a label depends on its value (churn is known when it happens, "stayed" after 30 days) the labels
that come first are no sample of all. With a maturity a label waits until its row is that old, and what is learned
does not depend on when it came before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.engine.checks import number
from gradeq.engine.tickets import Book, Opened, just_after
from gradeq.errors import BadInput, LabelConflict
from gradeq.layers.columns import Moment, moment
from gradeq.layers.making import span_of_dates
from gradeq.layers.settling import settle
from gradeq.spans import spelled

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


def age_of_maturity(maturity: float | str | None) -> float | None:
    """How old a row must be, in the unit of times; a span such as 30d is for dates, which are nanoseconds."""
    if maturity is None:
        return None
    if isinstance(maturity, str):
        return span_of_dates("maturity", maturity)
    if isinstance(maturity, bool) or not number(maturity, "maturity") >= 0.0:
        raise BadInput(
            f"maturity={maturity!r}: give a span such as '30d', a number above 0, or 0 to learn from every label "
            "as it comes"
        )
    return float(maturity)


def check_maturity(book: Book) -> None:
    """Refuse settings that do not go together."""
    if book.missing_is is not None and not book.maturity:
        raise BadInput(
            "missing_is says what a label counts as that has not come when its row is mature; give maturity as well"
        )
    if book.missing_is is not None and book.ttl is not None:
        raise BadInput(
            "with missing_is every row is closed when it is mature, so none outlives ttl; leave out one of the two"
        )
    if book.maturity and book.ttl is not None and book.ttl <= book.maturity:
        raise BadInput(
            f"ttl {spelled(book.ttl)} is not above maturity {spelled(book.maturity)}: every row would be given up "
            "before its label may be learned; give a longer ttl, or none"
        )


def advance(layer: Layer, now: float, serving: bool = False) -> int:
    """Move the clock of a layer on: labels of rows that are mature by now are learned; how many there were.

    In the order in which they became due. ``serving``: rows of this very time may still be served. Those that become
    mature at this time are then left out: with dates, labels that come on the last day come after that day's rows
    were served, and those that came before must not be learned without them.
    """
    until = now if serving else just_after(now)
    layer._book.count_missing(until)
    return settle(layer, now, until)


def arrive(layer: Layer, opened: Opened, y: Any, time: Moment | None) -> str | None:
    """What becomes of a label that has come: ``waiting``, ``duplicate``, or None: it is to be learned now."""
    ticket, _, id, served_at = opened
    book = layer._book
    if served_at is None:
        whose = "its row" if id is None else f"id {id!r}"
        raise BadInput(
            f"{whose} was served without a time, so nobody knows when it is mature; with maturity "
            "give every prediction its time: predict(..., time=)"
        )
    now = None if time is None else moment(time, book)
    if book.now is not None:
        now = book.now if now is None else max(now, book.now)
    assert book.maturity is not None
    due = served_at + book.maturity
    mature = now is not None and now > due  # as for labels that came before: the whole day together
    if mature and book.missing_is is not None and y != book.missing_is:
        raise LabelConflict(
            f"{'the row' if id is None else f'id {id!r}'} became mature without a label and counts as "
            f"{book.missing_is!r}, not {y!r}; use correct(id, label) to change it"
        )
    if now is not None:
        advance(layer, now, serving=True)
    if ticket[0] not in book.opened:  # it counts as missing_is by now, which is the same
        return "duplicate"
    if mature:
        return None
    book.wait(opened, y, just_after(due))
    return "waiting"


def mature_columns(book: Book, y: Any, times: Any, label_times: Any, kept: bool) -> tuple[Any, Any]:
    """Labels, and when each is learned: not before its row is mature.

    ``kept``: rows without a label wait for it beyond this run, so that only those count as missing that become
    mature in it.
    """
    if not book.maturity:
        return y, label_times
    if times is None:
        raise BadInput("a layer with maturity needs times: when each row was served")
    mature = later(times, book.maturity)
    due = mature if label_times is None else np.maximum(mature, label_times)
    due = np.where(np.isnan(y), mature, due)
    if book.missing_is is None:
        return y, due
    missing = np.isnan(y) | (due > mature)
    if kept and len(y):
        missing &= mature <= times.max()
    return np.where(missing, book.missing_is, y), np.where(missing, mature, due)


def later(times: Any, span: float) -> Any:
    """Times plus a span; whole numbers stop at the last one that there is."""
    if times.dtype.kind != "i":
        return times + span
    whole = round(span)
    return np.minimum(times, np.iinfo(np.int64).max - whole) + whole
