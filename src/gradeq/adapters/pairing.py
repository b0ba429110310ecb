"""Which served row a label belongs to, when all that comes with the label is the row itself.

A row is known by its content: the same keys with the same values, in any order, 1 and 1.0 alike. Rows of equal
content are answered first in, first out. The content is written into the ticket's id, so that pairs survive a layer
that is saved and loaded again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any, Literal

REMEMBERED = 10_000  # expired rows whose labels are still recognised, as the layer does
Mode = Literal["auto", "content", "order"]
ALL = ""  # the key under which every row waits


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
    """Ids of rows that wait for a label, by content and by family (the rows that may stand in for each other).

    An id of ours is "row", content, family and number; ids that a user chose are left alone. ``ids``: those that a
    layer remembers, and whether each is open or expired.
    """

    def __init__(self, ids: Mapping[Any, str] | None = None) -> None:
        self.waiting: dict[str, OrderedDict[str, None]] = {}
        self.lapsed: OrderedDict[str, bool] = OrderedDict()
        for id, status in (ids or {}).items():
            if status == "open":
                self.add(id)
            elif status == "expired":
                self._lapse(id)

    def add(self, id: Any) -> None:
        """A row that was served now."""
        for key in keys_of(id):
            self.waiting.setdefault(key, OrderedDict())[id] = None

    def oldest(self, key: str) -> str | None:
        """The row of this content or family that has waited longest."""
        return next(iter(self.waiting.get(key, ())), None)

    def close(self, id: str) -> None:
        """The row has its label, or will have none."""
        for key in keys_of(id):
            ids = self.waiting[key]
            del ids[id]
            if not ids:
                del self.waiting[key]

    def expire(self, before: float) -> None:
        """Rows numbered below this wait no longer; their labels, if they come, are recognised and passed over."""
        while (id := self.oldest(ALL)) is not None and int(id.split(" ")[3]) < before:
            self.close(id)
            self._lapse(id)

    def _lapse(self, id: Any) -> None:
        for row in keys_of(id)[:1]:
            self.lapsed[row] = True
            if len(self.lapsed) > REMEMBERED:
                self.lapsed.popitem(last=False)


def keys_of(id: Any) -> tuple[str, ...]:
    """What an id of ours is found by: content, family, all; nothing for an id that a user chose."""
    parts = id.split(" ") if isinstance(id, str) else []
    return (parts[1], parts[2], ALL) if len(parts) == 4 and parts[0] == "row" else ()
