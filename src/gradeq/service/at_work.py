"""The layers that a server has at work, as the store has them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import RLock

from gradeq.errors import StateError
from gradeq.service.failures import LayerStopped, NoSuchLayer
from gradeq.service.live import Live
from gradeq.service.store.rows import LayerRow
from gradeq.service.store.store import Store

Key = tuple[str, str]  # tenant and name


class AtWork:
    """Layers by tenant and name; those whose part of the store is damaged are set aside, and others go on."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.changing = RLock()
        self._live: dict[Key, Live] = {}
        self.damaged: dict[Key, str] = {}
        self.looked = time.monotonic()  # when this server last knew all that others had written

    def __iter__(self) -> Iterator[Live]:
        return iter(list(self._live.values()))

    def __len__(self) -> int:
        return len(self._live) + len(self.damaged)

    def load_all(self) -> None:
        """All layers of the store."""
        for row in self.store.layers():
            self.load(row)

    def get(self, key: Key) -> Live:
        """The layer of this name; another server may just have created it."""
        found = self._live.get(key)
        if found is None:
            self.discover(key[0])
            found = self._live.get(key)
        if found is None and key in self.damaged:
            raise LayerStopped(self.damaged[key])
        if found is None:
            raise NoSuchLayer(f"there is no layer {key[1]!r}; create it first")
        return found

    def current(self, key: Key) -> Live:
        """The same, read again from the store if it is ahead of it because a commit failed."""
        live = self.get(key)
        if not live.stale:
            return live
        row = self.store.layer(*key)
        if row is None:
            raise NoSuchLayer(f"there is no layer {key[1]!r}; create it first")
        with self.changing:
            self._live[key] = Live.load(self.store, row)
        return self._live[key]

    def known(self, key: Key) -> Live | None:
        """The layer, if it is here."""
        return self._live.get(key)

    def names(self, tenant: str) -> list[str]:
        """The layers of a tenant, damaged ones too."""
        self.discover(tenant)
        return [name for own, name in [*self._live, *self.damaged] if own == tenant]

    def stopped(self) -> list[Key]:
        """Layers that do not learn because something is wrong with them; not those frozen by hand."""
        return [*(live.key for live in self if live.stopped), *list(self.damaged)]

    def forget(self, key: Key) -> None:
        """A layer that was removed."""
        self._live.pop(key, None)
        self.damaged.pop(key, None)

    def discover(self, tenant: str) -> None:
        """Layers that another server created or removed."""
        if not self.store.shared:
            return
        with self.changing:
            rows = {row.name: row for row in self.store.layers(tenant)}
            for key in [key for key in self._live if key[0] == tenant and key[1] not in rows]:
                self.forget(key)
            for name, row in rows.items():
                known = self._live.get((tenant, name))
                if known is None or known.number != row.number:
                    self.load(row)

    def load(self, row: LayerRow) -> None:
        """A layer as the store has it."""
        key = (row.tenant, row.name)
        try:
            self._live[key] = Live.load(self.store, row)
            self.damaged.pop(key, None)
        except StateError as error:
            self.damaged[key] = str(error)

    def refresh(self) -> None:
        """What other servers wrote since this one looked last."""
        for live in self:
            head = self.store.head(live.number)
            live.behind = head.seq - live.head.seq
            live.most_behind = max(live.behind, live.most_behind)
            if live.behind > 0 and not live.stale:
                live.catch_up(self.store.entries(live.number, live.head.seq, head.seq))
                live.head = head
        self.looked = time.monotonic()

    @property
    def age(self) -> float:
        """How many seconds ago this server knew all that others had written; 0 where there are no others."""
        return time.monotonic() - self.looked if self.store.shared else 0.0
