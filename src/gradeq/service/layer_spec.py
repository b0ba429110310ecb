"""Layers from JSON settings and back: the settings of the Python classes, and those of the service."""

from __future__ import annotations

from contextlib import suppress
from inspect import signature
from typing import Any

from gradeq.engine.label_stats import HELD
from gradeq.engine.tickets import TicketBook
from gradeq.errors import BadInput, GradeqError
from gradeq.inputs.durations import NUMBERS
from gradeq.layers.keyed import Keyed
from gradeq.layers.layer import Layer
from gradeq.layers.registry import KINDS, from_json, layer_class
from gradeq.layers.serialization import arguments, plain
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Power, check_decay
from gradeq.service.problems import with_article
from gradeq.service.store.database import JsonObject

SERVICE_SETTINGS = ("kind", "keyed", "pool", "tickets", "max_names", "decay", "strength", "state")
TICKETS = ("stored", "signed")
MAX_NAMES = 10_000
MAX_NAMES_LIMIT = 10_000_000
PENALTIES: dict[str, type[Ridge] | type[Lasso]] = {"ridge": Ridge, "lasso": Lasso}
NANO = 1e9  # dates are nanoseconds in the library, and seconds here
DATES = 1e16  # larger times are dates: in seconds they would be 300 million years


def layer_of(spec: JsonObject) -> Layer:
    kind = check_service_settings(spec)
    cls = layer_class(kind)
    known = _settings(cls)
    settings = {name: value for name, value in spec.items() if name not in SERVICE_SETTINGS}
    a_layer = f"{with_article(kind)} layer"
    for name in settings:
        if name not in known:
            takes = ", ".join([*known, *SERVICE_SETTINGS[1:5]])
            raise BadInput(f"{a_layer} has no setting {name!r}; it takes {takes}")
    for name in ("decay", "strength"):
        if name in spec and name not in known:
            raise BadInput(f"{a_layer} has no {name}; remove it")
    for name in _required_settings(cls):
        if name not in settings:
            raise BadInput(f"the setting {name!r} is missing; {a_layer} needs it")
    if "decay" in spec:
        for name, value in (("decay", spec["decay"]), ("eta", settings.get("eta"))):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise BadInput(f"{name}={value!r} is not a number; a falling step needs an eta and a decay")
        check_decay("decay", spec["decay"])
    if "penalty" in settings or "strength" in spec:
        penalty, strength = settings.get("penalty"), spec.get("strength")
        if not isinstance(penalty, str) or penalty not in PENALTIES or not isinstance(strength, (int, float)):
            raise BadInput(f"penalty={penalty!r}, strength={strength!r}: give 'ridge' or 'lasso' and a number")
        settings["penalty"] = PENALTIES[penalty](strength)
    try:
        if "decay" in spec:
            settings["schedule"] = Power(settings.pop("eta", None), spec["decay"])
        layer: Any = cls(**settings)
        return Keyed(layer, spec.get("pool", False)) if spec.get("keyed") else layer
    except GradeqError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise BadInput(f"these settings are not valid for {a_layer}; see the documentation of the service") from None


def check_service_settings(spec: JsonObject) -> str:
    """The kind in the settings, after checking those that only the service has."""
    kind = spec.get("kind")
    kinds = [name for name in KINDS if name != "keyed"]
    if not isinstance(kind, str) or kind not in kinds:
        raise BadInput(f"kind={kind!r}: give one of {', '.join(kinds)}")
    for name in ("keyed", "pool"):
        if not isinstance(spec.get(name, False), bool):
            raise BadInput(f"{name}={spec[name]!r}: give true or false")
    if spec.get("pool") and not spec.get("keyed"):
        raise BadInput("pool needs keyed; set keyed to true as well")
    if spec.get("tickets", "stored") not in TICKETS:
        raise BadInput(f"tickets={spec['tickets']!r}: give 'stored' or 'signed'")
    if spec.get("tickets") == "signed" and spec.get("maturity"):
        raise BadInput("with signed tickets the client sends a label when its row is mature; remove maturity")
    most = spec.get("max_names", MAX_NAMES)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_NAMES_LIMIT:
        raise BadInput(f"max_names={most!r}: give a whole number from 1 to {MAX_NAMES_LIMIT:,}")
    return kind


def _settings(cls: type[Layer]) -> list[str]:
    """The settings of a layer in JSON: a schedule by its decay, a penalty by name and strength."""
    names = [name for name in arguments(cls) if name != "schedule"]
    decay = ["decay"] if "schedule" in arguments(cls) else []
    return [*names, *decay, *(["strength"] if "penalty" in names else [])]


def _required_settings(cls: type[Layer]) -> list[str]:
    parameters = signature(cls).parameters.values()
    return [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


def uses_dates(book: TicketBook) -> bool:
    times = [time for _, _, time in book.tickets()]
    times += [book.now, *(label.time for label in book.waiting.values() if label.time != HELD)]
    kind = book.desk.get("times", {}).get("kind")
    dated = kind is not None and kind != NUMBERS
    return dated or any(time is not None and time > DATES for time in times)


def spec_of(layer: Layer) -> JsonObject:
    """The settings that create this layer in a store; raises if it has settings that a store does not offer."""
    inner = layer.layer if isinstance(layer, Keyed) else layer
    settings, parameters = dict(inner.settings), signature(type(inner)).parameters
    schedule, penalty = settings.pop("schedule", None), settings.pop("penalty", None)
    spec: JsonObject = {"kind": inner.kind}
    spec |= {name: value for name, value in settings.items() if value != parameters[name].default}
    if isinstance(schedule, Power):
        spec |= {"eta": schedule.eta, "decay": schedule.alpha}
    for name, kind in PENALTIES.items():
        if isinstance(penalty, kind):
            spec |= {"penalty": name, "strength": penalty.strength}
    if isinstance(layer, Keyed):
        spec |= {"keyed": True, **({"pool": True} if layer.settings.get("pool") else {})}
    for name in ("ttl", "maturity"):
        if spec.get(name) and uses_dates(layer.internals.tickets):
            spec[name] = f"{spec[name] / NANO!r}s"
    count = layer.internals.names.count + layer.internals.names.keys
    if count > MAX_NAMES:
        spec["max_names"] = min(2 * count, MAX_NAMES_LIMIT)
    plain_spec: JsonObject = plain(spec)
    with suppress(BadInput):
        if plain(layer_of(plain_spec).settings) == plain(layer.settings):
            return plain_spec
    raise BadInput(
        "this layer has settings that a service does not offer; it has constant steps, decay, ridge, lasso"
    )


def merged_spec(spec: JsonObject, text: str) -> JsonObject:
    """The settings of a saved state with those that only a service has; any others must agree with the state."""
    saved = spec_of(from_json(text))
    service = {name: value for name, value in spec.items() if name in ("tickets", "max_names")}
    for name, value in spec.items():
        if name not in service and saved.get(name) != value:
            raise BadInput(f"the state has {name}={saved.get(name)!r}, not {value!r}; leave the settings out")
    return {**saved, **service}
