"""Postings that came in the place of others, remembered: a window leaves out those of labels from before it."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradeq.errors import BadInput, StateError
from gradeq.ledger import facts as fact
from gradeq.ledger.values import Place, Posting

KEPT = 2_000  # two for each corrected label


class Revision(NamedTuple):
    """A posting that was taken back (sign -1) or put in the place of another, as far as its sums go.

    ``number``: that of its ticket. ``params`` and ``values``: its parameters and their z; ``errors``: by level.
    """

    number: int
    sign: float
    weight: float
    eta: float
    params: tuple[int, ...]
    values: tuple[float, ...]
    errors: tuple[float, ...]


class Revisions:
    """The last revisions of a layer, and how many there have been."""

    def __init__(self) -> None:
        self.count = 0
        self.last: list[Revision] = []

    def add(self, posting: Posting, place: Place, width: int) -> None:
        """Remember a posting that is entered late, without a label of its own."""
        if posting.sign == 0.0 or not posting.weight > 0.0:
            return
        row = (tuple(place.params), tuple(posting.row.values), tuple(posting.errors[:width]))
        self.count += 1
        self.last.append(Revision(posting.number, posting.sign, posting.weight, posting.eta, *row))
        del self.last[:-KEPT]

    def merge(self, other: Revisions) -> None:
        """Those of another partition: all its labels are new here."""
        self.count += other.count
        self.last = [*self.last, *(own._replace(number=1 << 62) for own in other.last)][-KEPT:]

    def state(self) -> dict[str, Any]:
        """Ready for the codec; nothing while nothing was revised."""
        return {"revisions": [self.count, [list(own) for own in self.last]]} if self.count else {}

    def restore(self, state: dict[str, Any], parameters: int, width: int) -> None:
        """Take up what was saved; earlier versions saved none."""
        self.count, last = state.get("revisions", (0, []))
        self.last = [
            Revision(number, sign, weight, eta, tuple(params), tuple(values), tuple(errors))
            for number, sign, weight, eta, params, values, errors in last
        ]
        for own in self.last:
            floats = (own.sign, own.weight, own.eta, *own.values, *own.errors)
            known = all(type(j) is int and 0 <= j < parameters for j in own.params)
            sized = len(own.params) == len(own.values) and len(own.errors) == width
            if not (known and sized and type(own.number) is int) or any(
                type(x) is not float or x - x != 0.0 for x in floats
            ):
                raise StateError("the state is damaged: a revision is not one of this layer")
        if type(self.count) is not int or not len(self.last) <= self.count:
            raise StateError("the state is damaged: its revisions are not as many as they were")


def older(layer: Any, earlier: Any) -> list[Revision]:
    """What was revised since an earlier state of this layer, of labels that had been posted by then."""
    made = layer._revisions.count - earlier._revisions.count
    since = layer._revisions.last[-made:] if made > 0 else []
    corrected = layer._state.facts[fact.CORRECTED] - earlier._state.facts[fact.CORRECTED]
    taken = sum(own.sign < 0.0 for own in since)
    if len(since) < made or taken < corrected:
        raise BadInput(
            f"since: {corrected:,.0f} labels were corrected in between, and only the last {KEPT // 2:,} corrections "
            "are remembered (none from before this version); compare with a later state"
        )
    served, book = earlier._state.facts[fact.SERVED], earlier._book
    opened = {ticket.number for ticket, _, _ in book.tickets()}
    opened |= {own.ticket.number for own in book.waiting.values()}
    return [own for own in since if own.number <= served and own.number not in opened]
