"""Labels of one API key, taken back: reversals are posted, so sums are what they were without them, to the last bit.

Nothing is rewritten. What was served stays as it was; the journal has the labels, and that they were taken back.
A label that the key put in the place of another's makes room for that one again; one that somebody else has
corrected since is not the key's any more.
"""

from __future__ import annotations

from typing import NamedTuple

from gradeq.layers.journal import withdraw
from gradeq.service.bodies import posting_in
from gradeq.service.page import Page
from gradeq.service.store.rows import ENTRY, Entry, entry_of
from gradeq.service.store.schema import CORRECTION, POSTING, REVERSAL

SOME = 500  # labels in one transaction


class Undone(NamedTuple):
    """What became of the labels of a key: taken back, replaced by the one before, or left to who corrected them."""

    taken_back: int = 0
    restored: int = 0
    left: int = 0

    def plus(self, other: Undone) -> Undone:
        """Both together."""
        return Undone(*(a + b for a, b in zip(self, other, strict=True)))


def undo_some(page: Page, key: int, after: int, until: int, author: int) -> tuple[Undone, int]:
    """Take back the next labels of a key; how many, and where to go on."""
    number, own = page.live.number, page.tx.own
    sql = f"{ENTRY} WHERE layer = ? AND author = ? AND kind IN (?, ?) AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    given = (number, key, POSTING, CORRECTION, after, until, SOME)
    rows = [entry_of(row) for row in own.execute(sql, given)]
    found = Undone()
    for text in dict.fromkeys(entry.id for entry in rows):
        found = found.plus(_undone(page, key, text, author))
    return found, rows[-1].seq if len(rows) == SOME else until


def _undone(page: Page, key: int, text: str, author: int) -> Undone:
    """Take back the label of one id, if the one that stands is the key's."""
    said = _labels(page, text)
    last = page.changed_last(text) or said[0]
    if last.kind == REVERSAL:
        return Undone()  # it was taken back before
    old, before, layer = posting_in(last.body), _before(said, key), page.live.layer
    if before is not None and posting_in(before.body).y == old.y:
        return Undone()  # the label before the key's stands again
    if last.author != key:
        return Undone(left=1)
    learns = layer._learns
    if old.sign == 0.0 or (learns is not None and not learns(old.y)):
        return Undone(left=1)  # it taught nothing
    if before is not None:
        back, new = layer.repost(old, posting_in(before.body).y)
        page.change(REVERSAL, text, back, author)
        page.change(CORRECTION, text, new, author)
        return Undone(restored=1)
    with layer._lock:
        back = withdraw(layer, old)
    page.change(REVERSAL, text, back, author)
    return Undone(taken_back=1)


def _before(said: list[Entry], key: int) -> Entry | None:
    """The label of somebody else that the last one of this key took the place of."""
    last = max(k for k, entry in enumerate(said) if entry.author == key)
    return next((entry for entry in said[last::-1] if entry.author != key), None)


def _labels(page: Page, text: str) -> list[Entry]:
    """The labels that an id has had, in order."""
    number = page.live.number
    first = page.tx.find(number, [text])[text, POSTING]
    sql = f"{ENTRY} WHERE layer = ? AND kind > 2 AND id = ? ORDER BY seq"
    changes = [entry_of(row) for row in page.tx.own.execute(sql, (number, text))]
    return [first, *(entry for entry in changes if entry.kind == CORRECTION)]
