"""Which served row a label belongs to, when all that comes with the label is the row itself.

A row is known by its content: the same keys with the same values, in any order, 1 and 1.0 alike. Rows of equal
content are answered first in, first out. The content is written into the ticket's id, so that pairs survive a layer
that is saved and loaded again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any

REMEMBERED = 10_000  # expired rows whose labels are still recognised, as the layer does
MODES = ("auto", "content", "order")


def content(x: Any) -> str:
    """A short fingerprint of a row's content.

    >>> content({"a": 1, "b": "u"}) == content({"b": "u", "a": 1.0})
    True
    >>> content({"a": 1}) == content({"a": "1"})
    False
    """
    cells = x.items() if isinstance(x, dict) else [("", x)]
    text = repr(sorted((spelled(key), spelled(value)) for key, value in cells))
    return blake2b(text.encode(), digest_size=10).hexdigest()


def spelled(value: Any) -> str:
    """One value as text: equal numbers alike, arrays in full."""
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return repr(value.tolist() if hasattr(value, "tolist") else value)


class Pairing:
    """Ids of rows that wait for a label, by content and by family (the rows that may stand in for each other)."""

    def __init__(self, open_ids: Iterable[Any] = (), lapsed_ids: Iterable[Any] = ()) -> None:
        self.waiting: dict[str, OrderedDict[str, None]] = {}
        self.lapsed: OrderedDict[str, bool] = OrderedDict()
        for id in open_ids:
            if parts := parsed(id):
                self._add(id, parts)
        for id in lapsed_ids:
            if parts := parsed(id):
                self._lapse(parts[0])

    def ask(self, row: str, family: str, number: int) -> str:
        """A new id for a row that is served now."""
        id = f"row {row} {family} {number}"
        self._add(id, (row, family))
        return id

    def oldest(self, key: str) -> str | None:
        """The row of this content or family that has waited longest."""
        return next(iter(self.waiting.get(key, ())), None)

    def close(self, id: str) -> None:
        """The row has its label, or will have none."""
        for key in parsed(id) or ():
            ids = self.waiting.get(key)
            if ids is not None and id in ids:
                del ids[id]
                if not ids:
                    del self.waiting[key]

    def expire(self, id: Any) -> None:
        """The row waits no longer; its label, if it comes, will be recognised and passed over."""
        if parts := parsed(id):
            self.close(id)
            self._lapse(parts[0])

    def _add(self, id: str, parts: tuple[str, str]) -> None:
        for key in parts:
            self.waiting.setdefault(key, OrderedDict())[id] = None

    def _lapse(self, row: str) -> None:
        self.lapsed[row] = True
        if len(self.lapsed) > REMEMBERED:
            self.lapsed.popitem(last=False)


def parsed(id: Any) -> tuple[str, str] | None:
    """Content and family in an id of ours; None for an id that a user chose."""
    parts = id.split(" ") if isinstance(id, str) else []
    return (parts[1], parts[2]) if len(parts) == 4 and parts[0] == "row" else None
