"""Which continuation of a saved state served a ticket: tickets of a lost future are not learned from.

A state that was saved may go on more than once: in the process that saved it, and wherever it is restored. All of
them count their rows on from the same number, so a number does not say whose ticket it is. So each continuation has a
mark of its own: a layer as it was made has ``ROOT``, one that was copied or restored after it had served rows has a
mark chosen by chance. Tickets in a caller's hands carry it, and the state keeps which numbers were given away under
which mark (nothing where there is only ``ROOT``). A previewed ticket carries the mark of the state that served it.
"""

from __future__ import annotations

import os
from typing import Any

ROOT = "0"
MOST = 1_000  # continuations that are remembered
LABELS = 10_000  # posted tickets that are remembered, as closed ids are
PREVIEWED, CONTENT = "~", "="  # begin marks of previewed tickets: of a known number, of a state by its content

_forks = [0]  # of this process: a child is another continuation
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forks.append(0))


class Branches:
    """The ticket numbers issued under each mark, the latest last.

    ``unmarked``: up to this number, tickets of earlier versions without a mark are accepted. ``trusting``: the caller
    knows the layer's tickets (from a journal), so marks are neither written nor checked.
    """

    __slots__ = ("continued", "forks", "given", "own", "posted", "trusting", "unmarked")

    def __init__(self) -> None:
        self.given: list[tuple[int, int, str]] = []
        self.own, self.forks, self.unmarked, self.trusting = "", len(_forks), 0, False
        self.continued = False
        # Tickets whose label came, the latest last; None once partitions were merged, whose numbers are the same.
        self.posted: dict[tuple[int, str], None] | None = {}

    def __copy__(self) -> Branches:
        """Those of another continuation: it has the same past and no mark yet."""
        twin = Branches()
        twin.continued = True
        twin.posted = None if self.posted is None else dict(self.posted)
        twin.given, twin.unmarked, twin.trusting = list(self.given), self.unmarked, self.trusting
        return twin

    def give(self, number: int) -> str:
        """The mark of a ticket with this number, which is given away now."""
        if self.trusting:
            return ""
        forked = self.forks != len(_forks)
        if not self.own or forked:
            first = number == 1 or not (self.continued or forked)
            self.own, self.forks = ROOT if first else os.urandom(6).hex(), len(_forks)
        self.note(number, self.own)
        return self.own

    def note(self, number: int, mark: str) -> None:
        """This number is one of this mark."""
        if self.trusting or (mark and self.knows(number, mark)):
            return
        if not mark:
            self.unmarked = max(self.unmarked, number)
        elif self.given and self.given[-1][2] == mark:
            first, last, _ = self.given[-1]
            self.given[-1] = (min(first, number), max(last, number), mark)
        else:
            self.given.append((number, number, mark))
            del self.given[:-MOST]

    def knows(self, number: int, mark: str) -> bool:
        """Whether a ticket with this number and mark is of this past."""
        if not mark:
            return number <= self.unmarked
        return any(first <= number <= last and mark == own for first, last, own in self.given)

    def has_label(self, number: int, mark: str) -> bool:
        """Whether the label of this ticket was posted here, as far as is remembered."""
        return self.posted is not None and (number, mark) in self.posted

    def note_label(self, number: int, mark: str) -> None:
        if self.posted is not None and not self.trusting:
            self.posted[number, mark] = None
            if len(self.posted) > LABELS:
                del self.posted[next(iter(self.posted))]

    def mark_of(self, number: int) -> str:
        """The mark of the state after this many rows; "" if unknown."""
        for first, last, mark in reversed(self.given):
            if first <= number <= last:
                return mark
        return ""

    def merge(self, other: Branches) -> None:
        """Know the tickets of a partition too."""
        self.given[:0] = other.given
        self.posted = None
        self.unmarked = max(self.unmarked, other.unmarked)

    def state(self) -> dict[str, Any]:
        """Ready for the codec; nothing where no ticket was given away, or only by the layer as it was made."""
        if all(mark == ROOT for _, _, mark in self.given):
            return {}
        return {"branches": [list(own) for own in self.given], "unmarked": self.unmarked}

    def restore(self, state: dict[str, Any], served: int) -> None:
        """Take up what was saved; a state without marks may have given away any of its numbers."""
        self.continued = True
        self.given = [(first, last, own) for first, last, own in state.get("branches", ())]
        self.unmarked = state["unmarked"] if self.given else served
        counts = [self.unmarked, *(number for first, last, _ in self.given for number in (first, last))]
        if any(type(number) is not int for number in counts) or any(type(own) is not str for _, _, own in self.given):
            raise ValueError("the marks of tickets make no sense")
        if not self.given and served:
            self.given = [(1, served, ROOT)]
        if self.unmarked > served or any(not 0 <= first <= last <= served for first, last, _ in self.given):
            raise ValueError("a ticket was given away that was never served")
