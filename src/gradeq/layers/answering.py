"""What a layer does with the labels of ids: many at once, corrected, forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradeq.engine.checks import is_missing
from gradeq.engine.tickets import Book, Id, id_of
from gradeq.errors import (
    BadInput,
    ExpiredTicket,
    GradeqError,
    LabelConflict,
    UnknownTicket,
)
from gradeq.layers.columns import Moment, moment
from gradeq.layers.guard import Guarded
from gradeq.rules.rule import Rule, judged

if TYPE_CHECKING:
    from gradeq.ledger.values import Posting

WORDS: dict[type[GradeqError], str] = {
    LabelConflict: "conflict",
    UnknownTicket: "unknown",
    ExpiredTicket: "expired",
    BadInput: "rejected",
}


class Answering(Guarded):
    """The verbs of a layer whose tickets have ids."""

    _book: Book
    _rule: Rule
    _update: Callable[..., str]
    repost: Callable[..., tuple[Posting, Posting]]
    _label: Callable[[Any], Any]

    def update_many(self, labels: Any, ids: Any = None, *, times: Any = None) -> Any:
        """Learn from many labels in row order, as ``update`` does: the outcome of each row, in the labels' form.

        "applied", "duplicate", "conflict", "unknown", "expired", with ``maturity`` "waiting", or "rejected" for what
        is no label. ``times``: when each came, for a layer with ``maturity``. Without ``ids`` labels go to the oldest
        open predictions of ``predict_many``, and a missing one closes its prediction ("skipped"). A frame with
        columns ``label`` and ``id`` comes back with ``outcome``.
        """
        from gradeq.layers.many import answer_many

        return answer_many(self._answer, labels, {"id": ids, "time": times})

    def _answer(
        self, y: Any, id: Any = None, key: Any = None, *, time: Moment | None = None
    ) -> str:
        """A label of ``update_many``: one that is missing leaves a prediction with an id open."""
        if id is not None and is_missing(y):
            raise BadInput(f"label {y!r} is missing; skip(id) closes a prediction that gets none")
        return self._update(y, id, key, batch=True, time=time)

    def _duplicate(self, y: Any, id: Id) -> str:
        book = self._book
        known = (book.waiting[book.held[id]] if id in book.held else book.closed[id]).y
        if known == y:
            return "duplicate"
        raise LabelConflict(
            f"id {id!r} already has the label {known!r}, not {y!r}; use correct(id, label) to change it"
        )

    def expire(self, now: Moment) -> int:
        """Drop tickets older than ``ttl``; later labels for them are refused. Returns how many were dropped."""
        return len(self._book.expire(moment(now, self._book)))

    def correct(self, id: Id, y: Any) -> str:
        """Replace the posted label of this id: the old posting is taken back, the new one put in its place.

        Bias, loss, certificate and the final step are what they would be had it come right, rounding apart. The
        running means of ``eta="auto"`` and the scale of link sinh heard the old label and forget it only gradually.
        """
        id = id_of(id)
        y = self._label(y)
        book = self._book
        number = book.held.get(id)  # its label is known but not due: the new one waits in its place
        if id not in book.closed and number is None:
            raise UnknownTicket(
                f"id {id!r} has no posted label to correct (the last {book.remember:,} are kept)"
            )
        if (book.closed[id] if number is None else book.waiting[number]).y == y:
            return "duplicate"
        if number is None:
            book.closed[id] = self.repost(judged(self._rule, book.closed[id]), y)[1]
        else:
            book.waiting[number] = book.waiting[number]._replace(y=y)
        return "corrected"

    @property
    def ids(self) -> dict[Id, str]:
        """Every id that is remembered, and what became of it: "open", "closed" or "expired"."""
        book = self._book
        found = dict.fromkeys(book.closed, "closed") | dict.fromkeys(book.lapsed, "expired")
        return found | dict.fromkeys(book.by_id, "open") | dict.fromkeys(book.held, "open")

    def forget(self, id: Id) -> None:
        """Forget an id: its label is no longer waited for and cannot be corrected, and the id may come again."""
        id = id_of(id)
        self._book.drop(id)


def outcome_of(verb: Callable[[], str]) -> str:
    """What became of a label: what the verb says, or the refusal as one word; others are raised."""
    try:
        return verb()
    except (LabelConflict, UnknownTicket, ExpiredTicket, BadInput) as refusal:
        return WORDS[type(refusal)]
