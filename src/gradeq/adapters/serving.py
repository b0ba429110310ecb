"""One row at a time through a layer, for models that are asked with x and taught with (x, y)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradeq.adapters.pairing import MODES, Pairing, content
from gradeq.errors import BadInput
from gradeq.layers.layer import Layer, check_same_settings


class Serving:
    """A layer, the rows that wait for their labels, and how the two are paired."""

    def __init__(
        self,
        make: Callable[..., Layer],
        groups: Sequence[Any] | None,
        features: Sequence[Any] | None,
        weight: Any,
        pairing: str,
    ) -> None:
        for names in (groups, features):
            if isinstance(names, str):
                raise BadInput(f"{names!r} is one name; give a list of keys, [{names!r}]")
        if pairing not in MODES:
            raise BadInput(f"pairing={pairing!r}: must be one of {', '.join(MODES)}")
        self.groups, self.features = list(groups or ()), list(features or ())
        self.weight, self.mode = weight, pairing
        self._layer: Any = make(
            groups=[str(name) for name in self.groups],
            features=[str(name) for name in self.features],
        )
        self.pairs = Pairing()
        self.last: tuple[Any, str, Any] | None = None

    @property
    def layer(self) -> Any:
        """The layer itself."""
        return self._layer

    @layer.setter
    def layer(self, layer: Layer) -> None:
        check_same_settings(self._layer, layer)
        self._layer, self.last = layer, None
        self.pairs = Pairing(layer.desk.by_id, layer.desk.lapsed)

    def ask(self, x: Any, f: Any, id: str | int | None, verb: str) -> Any:
        """Serve a row. Another verb right after, for the same row, is the same question."""
        row = self._content(x)
        question = row if id is None else id
        if self.last is not None and self.last[0] == question and self.last[1] != verb:
            served, self.last = self.last[2], None
            return served
        served = self._open(x, f, row, id)[0]
        self.last = (question, verb, served)
        return served

    def answer(self, x: Any, y: Any, id: str | int | None, forecast: Callable[[], Any]) -> None:
        """Learn from the label of a row; one that was never served is served now, for it alone."""
        self.last = None
        y = self._layer.label(y)
        if id is not None:
            self._layer.update(y, id=id)
            return
        row = self._content(x)
        own = self.pairs.oldest(row)
        if own is None and self.mode != "order" and self.pairs.lapsed.pop(row, False):
            return
        if own is None and self.mode == "auto":
            own = self.pairs.oldest(self._family(x))
        if own is None:
            own = self._open(x, forecast(), row, None)[1]
        self._layer.update(y, id=own)
        self.pairs.close(own)
        # Our own ids never come twice, so the layer need not remember them.
        self._layer.desk.closed.pop(own, None)

    def _open(self, x: Any, f: Any, row: str, id: str | int | None) -> tuple[Any, Any]:
        desk = self._layer.desk
        now = None if desk.ttl is None else float(desk.served)
        if now is not None:
            for ticket in desk.expire(now):
                self.pairs.expire(ticket.id)
        number = desk.served + 1
        own = self.pairs.ask(row, self._family(x), number) if id is None else id
        try:
            served = self._layer.predict(
                f,
                {str(name): x.get(name) for name in self.groups} or None,
                {str(name): x.get(name, 0.0) for name in self.features} or None,
                1.0 if self.weight is None else x[self.weight],
                own,
                now,
            )
        except Exception:
            if id is None:
                self.pairs.close(str(own))
            raise
        return served, own

    def _content(self, x: Any) -> str:
        return "all" if self.mode == "order" else content(x)

    def _family(self, x: Any) -> str:
        """Rows of the same groups."""
        return "family" + content({name: x.get(name) for name in self.groups})
