"""Layers by the name of their kind, and the way back from JSON."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from gradeq import codec
from gradeq.errors import BadInput, StateError
from gradeq.layers.layer import Layer
from gradeq.layers.making import revive

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
WITH_FUNCTION = {"risk": "RiskControl.from_json(text, error)"}


def layer_class(kind: str) -> type[Layer]:
    """The class of this kind."""
    if kind in WITH_FUNCTION:
        raise StateError(f"a {kind} layer is saved without its function: use {WITH_FUNCTION[kind]}")
    if kind not in KINDS:
        raise StateError(
            f"the state is of kind {kind!r}, which this gradeq does not know: {', '.join(KINDS)}"
        )
    module, name = KINDS[kind]
    found: type[Layer] = getattr(import_module(module), name)
    return found


def make(kind: str, settings: dict[str, Any]) -> Layer:
    """A fresh layer of this kind; the layer inside a keyed one is made first."""
    if kind == "keyed":
        from gradeq.layers.keyed import Keyed

        return Keyed(make(settings["kind"], settings["settings"]), settings.get("pool", False))
    return layer_class(kind)(**settings)


def from_json(text: str | bytes) -> Layer:
    """A layer from what ``to_json`` gave: settings, state, open tickets; damaged or newer text is refused.

    >>> from gradeq.layers.debiaser import Debiaser
    >>> layer = Debiaser(eta=0.5)
    >>> layer.predict(1.0), layer.update(2.0)
    (1.0, 'applied')
    >>> from_json(layer.to_json()).theta
    {'(all)': 0.5}
    """
    kind, settings, state = codec.load(text)
    return revive(partial(make, kind), kind, settings, state)


def load(path: str | PathLike[str]) -> Layer:
    """A layer from the file that ``layer.save(path)`` wrote."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (TypeError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise StateError(f"{path} cannot be read as a state: {error}") from None
        raise BadInput(f"{path!r} is no name of a file; give a path") from None
    except OSError as error:
        raise StateError(f"{path} cannot be read as a state: {error}") from None
    return from_json(text)
