"""One row at a time through a layer, for models that are asked with x and taught with (x, y)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from gradeq.adapters.pairing import Mode, Pairing, content
from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.layers.layer import Layer
from gradeq.layers.making import check_same_settings

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium

HERE = {"self", "regressor", "classifier", "groups", "features", "weight", "pairing", "labels"}


class Serving:
    """A layer, the rows that wait for their labels, and how the two are paired."""

    def __init__(
        self,
        make: Callable[..., Layer],
        groups: Sequence[Any] | None,
        features: Sequence[Any] | None,
        weight: Any,
        pairing: Mode,
    ) -> None:
        for names in (groups, features):
            if isinstance(names, str):
                raise BadInput(f"{names!r} is one name; give a list of keys, [{names!r}]")
        if pairing not in get_args(Mode):
            raise BadInput(f"pairing={pairing!r}: must be one of {', '.join(get_args(Mode))}")
        self.groups, self.features = list(groups or ()), list(features or ())
        self.weight, self.mode = weight, pairing
        self._take(
            make(
                groups=[str(name) for name in self.groups],
                features=[str(name) for name in self.features],
            )
        )

    @property
    def layer(self) -> Any:
        """The layer itself."""
        return self._layer

    @layer.setter
    def layer(self, layer: Layer) -> None:
        check_same_settings(self._layer, layer)
        self._take(layer)

    def _take(self, layer: Any) -> None:
        self._layer = layer
        self.last: tuple[Any, str, Any] | None = None
        self.ttl, self.served = layer.settings["ttl"], layer.in_flight["served"]
        self.pairs = Pairing(layer.ids)

    def ask(self, x: Any, f: Any, id: str | int | None, verb: str) -> Any:
        """Serve a row. Another verb right after, for the same row, is the same question."""
        row = self._content(x)
        question = row if id is None else id
        if self.last is not None and self.last[0] == question and self.last[1] != verb:
            served, self.last = self.last[2], None
            return served
        own = f"row {row} {self._family(x)} {self.served}" if id is None else id
        now = None if self.ttl is None else float(self.served)
        served = self._layer.predict(*self._given(x, f), own, now)
        self.pairs.add(own)
        if self.ttl is not None:
            self.pairs.expire(self.served - self.ttl)
        self.served += 1
        self.last = (question, verb, served)
        return served

    def answer(self, x: Any, y: Any, id: str | int | None, forecast: Callable[[], Any]) -> None:
        """Learn from the label of a row; one that was never served is served now, for it alone."""
        self.last = None
        y = checks.number(y, "label")
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
            layer = self._layer
            with layer._lock:
                label = layer._label(y)
                layer._post(*layer._issue(*layer._asked(*self._given(x, forecast()))), label)
            self.served += 1
            return
        self._layer.update(y, id=own)
        self._layer.forget(own)  # our own ids never come twice
        self.pairs.close(own)

    def _given(self, x: Any, f: Any) -> tuple[Any, ...]:
        """What the layer takes: the forecast, groups, features and weight of a row."""
        groups = {str(name): x.get(name) for name in self.groups} or None
        features = {str(name): x.get(name, 0.0) for name in self.features} or None
        return f, groups, features, 1.0 if self.weight is None else x[self.weight]

    def _content(self, x: Any) -> str:
        return "all" if self.mode == "order" else content(x)

    def _family(self, x: Any) -> str:
        """Rows of the same groups."""
        return "family" + content({name: x.get(name) for name in self.groups})


class Served:
    """A model whose predictions go through a layer, made from the arguments of ``__init__``."""

    def _make(self, kind: Callable[..., Layer], given: dict[str, Any], **fixed: Any) -> None:
        """Keep every argument under its own name, for ``clone``, and make the layer from those that are its own."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})
        own = {name: value for name, value in given.items() if name not in HERE}
        row = (given[name] for name in ("groups", "features", "weight", "pairing"))
        self._serving = Serving(partial(kind, **own, **fixed), *row)

    @property
    def layer_(self) -> Any:
        """The layer: state, certificate, saving."""
        return self._serving.layer

    @layer_.setter
    def layer_(self, layer: Any) -> None:
        self._serving.layer = layer

    @property
    def equilibrium_(self) -> Equilibrium:
        """The certificate: exact averages, bias and loss before and after, the proven bound."""
        found: Equilibrium = self.layer_.equilibrium()
        return found
