"""Layers from the body of a PUT: the settings under their Python names, and what only the service knows.

``keyed``: one layer for each key (``pool``: with a common start). ``tickets``: "stored", or "signed" ones that the
client sends back with the label. ``max_names``: groups, keys or players that are kept apart.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from gradeq.errors import BadInput, GradeqError
from gradeq.layers.layer import Layer
from gradeq.layers.predicting import arguments
from gradeq.layers.registry import KINDS, layer_class
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Power, check_decay
from gradeq.service.wording import a

OURS = ("kind", "keyed", "pool", "tickets", "max_names", "decay", "strength", "state")
TICKETS = ("stored", "signed")
MAX_NAMES = 10_000
MOST_NAMES = 10_000_000


def layer_of(spec: dict[str, Any]) -> Layer:
    """A fresh layer from its spec; one line says what is wrong with it."""
    kind = checked(spec)
    cls = layer_class(kind)
    known = _settings(cls)
    given = {name: value for name, value in spec.items() if name not in OURS}
    for name in given:
        if name not in known:
            raise BadInput(
                f"{name!r} is no setting of {a(kind)} layer; it takes {', '.join([*known, *OURS[1:5]])}"
            )
    for name in ("decay", "strength"):
        if name in spec and name not in known:
            raise BadInput(f"{a(kind)} layer has no {name}; leave it out")
    for name in _needed(cls):
        if name not in given:
            raise BadInput(f"the setting {name!r} is missing; {a(kind)} layer needs it")
    if "decay" in spec:
        _check_numbers(decay=spec["decay"], eta=given.get("eta"))
        check_decay("decay", spec["decay"])
    if "penalty" in given or "strength" in spec:
        given["penalty"] = _penalty(given.get("penalty"), spec.get("strength"))
    try:
        if "decay" in spec:
            given["schedule"] = Power(given.pop("eta", None), spec["decay"])
        layer = cls(**given)
        if spec.get("keyed", False):
            from gradeq.layers.keyed import Keyed

            return Keyed(layer, spec.get("pool", False))
    except GradeqError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise BadInput(
            f"these settings make no {kind} layer; see what each may be in the documentation of the service"
        ) from None
    return layer


def checked(spec: dict[str, Any]) -> str:
    """The kind of a spec whose own settings make sense."""
    kind = spec.get("kind")
    kinds = [name for name in KINDS if name != "keyed"]
    if not isinstance(kind, str) or kind not in kinds:
        raise BadInput(f"kind={kind!r}: give one of {', '.join(kinds)}")
    for name in ("keyed", "pool"):
        if not isinstance(spec.get(name, False), bool):
            raise BadInput(f"{name}={spec[name]!r}: give true or false")
    if spec.get("pool") and not spec.get("keyed"):
        raise BadInput("pool is for layers with keys; set keyed as well")
    if spec.get("tickets", "stored") not in TICKETS:
        raise BadInput(f"tickets={spec['tickets']!r}: give 'stored' or 'signed'")
    if spec.get("tickets") == "signed" and spec.get("maturity"):
        raise BadInput(
            "with signed tickets the client keeps them, and sends a label when its row is mature; leave out maturity"
        )
    most = spec.get("max_names", MAX_NAMES)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_NAMES:
        raise BadInput(f"max_names={most!r}: give a whole number from 1 to {MOST_NAMES:,}")
    return kind


def _settings(cls: type[Layer]) -> list[str]:
    """What can be set of a layer in JSON: a schedule by its decay, a penalty by name and strength."""
    own = [name for name in arguments(cls) if name != "schedule"]
    decay = ["decay"] if "schedule" in arguments(cls) else []
    return [*own, *decay, *(["strength"] if "penalty" in own else [])]


def _needed(cls: type[Layer]) -> list[str]:
    """What must be set."""
    given = signature(cls).parameters.values()
    return [
        one.name
        for one in given
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]


def _check_numbers(**given: Any) -> None:
    """Refuse a falling step that is not two numbers."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadInput(
                f"{name}={value!r} is not a number; a step that falls has an eta and a decay"
            )


def _penalty(name: Any, strength: Any) -> Any:
    if name not in ("ridge", "lasso") or not isinstance(strength, (int, float)):
        raise BadInput(
            f"penalty={name!r}, strength={strength!r}: give 'ridge' or 'lasso' and a number"
        )
    return (Ridge if name == "ridge" else Lasso)(strength)
