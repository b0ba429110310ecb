"""Layers by the name of their kind, and the way back from JSON."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, get_origin, overload

from gradeq.errors import BadInput, StateError
from gradeq.layers import serialization
from gradeq.layers.layer import Layer
from gradeq.layers.serialization import Saved, restore_layer

KINDS = {
    "conformal": ("gradeq.layers.conformal", "Conformal"),
    "debias": ("gradeq.layers.debiaser", "Debiaser"),
    "elo": ("gradeq.layers.elo", "Elo"),
    "ensemble": ("gradeq.layers.ensemble", "QuantileEnsemble"),
    "interval": ("gradeq.layers.quantile", "IntervalTracker"),
    "keyed": ("gradeq.layers.keyed", "Keyed"),
    "quantile": ("gradeq.layers.quantile", "QuantileTracker"),
    "quantiles": ("gradeq.layers.quantile", "MultiQuantileTracker"),
}
LayerType = TypeVar("LayerType", bound=Layer)
WITH_FUNCTION = {"risk": "RiskControl.from_json(text, error)"}


def layer_class(kind: str) -> type[Layer]:
    if kind in WITH_FUNCTION:
        raise StateError(f"a {kind} layer is saved without its function: use {WITH_FUNCTION[kind]}")
    if kind not in KINDS:
        raise StateError(f"the state is of kind {kind!r}, which this gradeq does not know: {', '.join(KINDS)}")
    module, name = KINDS[kind]
    cls: type[Layer] = getattr(import_module(module), name)
    return cls


def make(kind: str, settings: Saved) -> Layer:
    """A fresh layer of this kind; for a keyed one, its pattern is made first."""
    if kind == "keyed":
        from gradeq.layers.keyed import Keyed

        pattern: Any = make(settings["kind"], settings["settings"])
        return Keyed(pattern, settings.get("pool", False))
    return layer_class(kind)(**settings)


@overload
def from_json(text: str | bytes) -> Layer: ...
@overload
def from_json(text: str | bytes, layer_type: type[LayerType]) -> LayerType: ...
def from_json(text: str | bytes, layer_type: type[Layer] = Layer) -> Layer:
    """A layer from what ``to_json`` gave: settings, state, open tickets; damaged or newer text is refused.

    Name its class, as in ``from_json(text, Debiaser)``, and type checkers know what it serves; a state of another
    class is refused.

    >>> from gradeq.layers.debiaser import Debiaser
    >>> layer = Debiaser(eta=0.5)
    >>> layer.predict(1.0), layer.update(2.0)
    (1.0, 'applied')
    >>> from_json(layer.to_json()).theta
    {'(all)': 0.5}
    """
    kind, settings, state = serialization.load(text)
    layer = restore_layer(partial(make, kind), kind, settings, state)
    expected = get_origin(layer_type) or layer_type  # Keyed[Debiaser] is checked as Keyed
    if not isinstance(layer, expected):
        raise StateError(
            f"the state is of a {type(layer).__name__}, not of a {expected.__name__}; give its own class, or none"
        )
    return layer


@overload
def load(path: str | PathLike[str]) -> Layer: ...
@overload
def load(path: str | PathLike[str], layer_type: type[LayerType]) -> LayerType: ...
def load(path: str | PathLike[str], layer_type: type[Layer] = Layer) -> Layer:
    """A layer from the file that ``layer.save(path)`` wrote; see ``from_json`` for ``layer_type``."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (TypeError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise StateError(f"{path} cannot be read as a state: {error}") from None
        raise BadInput(f"{path!r} is not the name of a file; give a path") from None
    except OSError as error:
        raise StateError(f"{path} cannot be read as a state: {error}") from None
    return from_json(text, layer_type)
