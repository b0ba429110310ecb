"""Layers from the body of a PUT and back: the settings under their Python names, and what only the service knows.

``keyed``: one layer for each key (``pool``: with a common start). ``tickets``: "stored", or "signed" ones that the
client sends back with the label. ``max_names``: groups, keys or players that are kept apart.
"""

from __future__ import annotations

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
DATES = 1e16  # times above this are dates: in seconds they would be later than the sun


def layer_of(spec: JsonObject) -> Layer:
    kind = check_service_settings(spec)
    cls = layer_class(kind)
    known = _settings(cls)
    given = {name: value for name, value in spec.items() if name not in SERVICE_SETTINGS}
    for name in given:
        if name not in known:
            takes = ", ".join([*known, *SERVICE_SETTINGS[1:5]])
            raise BadInput(f"{with_article(kind)} layer has no setting {name!r}; it takes {takes}")
    for name in ("decay", "strength"):
        if name in spec and name not in known:
            raise BadInput(f"{with_article(kind)} layer has no {name}; remove it")
    for name in _required_settings(cls):
        if name not in given:
            raise BadInput(f"the setting {name!r} is missing; {with_article(kind)} layer needs it")
    if "decay" in spec:
        for name, value in (("decay", spec["decay"]), ("eta", given.get("eta"))):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise BadInput(f"{name}={value!r} is not a number; a falling step needs an eta and a decay")
        check_decay("decay", spec["decay"])
    if "penalty" in given or "strength" in spec:
        penalty, strength = given.get("penalty"), spec.get("strength")
        if not isinstance(penalty, str) or penalty not in PENALTIES or not isinstance(strength, (int, float)):
            raise BadInput(f"penalty={penalty!r}, strength={strength!r}: give 'ridge' or 'lasso' and a number")
        given["penalty"] = PENALTIES[penalty](strength)
    try:
        if "decay" in spec:
            given["schedule"] = Power(given.pop("eta", None), spec["decay"])
        layer = cls(**given)
        if spec.get("keyed", False):
            pattern: Any = layer
            return Keyed(pattern, spec.get("pool", False))
    except GradeqError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise BadInput(
            f"these settings are not valid for {with_article(kind)} layer; see the documentation of the service"
        ) from None
    return layer


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
    own = [name for name in arguments(cls) if name != "schedule"]
    decay = ["decay"] if "schedule" in arguments(cls) else []
    return [*own, *decay, *(["strength"] if "penalty" in own else [])]


def _required_settings(cls: type[Layer]) -> list[str]:
    given = signature(cls).parameters.values()
    return [one.name for one in given if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


def uses_dates(book: TicketBook) -> bool:
    times = [time for _, _, time in book.tickets()]
    times += [book.now, *(label.time for label in book.waiting.values() if label.time != HELD)]
    kind = book.desk.get("times", {}).get("kind")
    dated = kind is not None and kind != NUMBERS
    return dated or any(time is not None and time > DATES for time in times)


def spec_of(layer: Layer) -> JsonObject:
    """The settings that create this layer in a store; raises if it has settings that a store does not offer."""
    inner = layer.layer if isinstance(layer, Keyed) else layer
    given, usual = dict(inner.settings), signature(type(inner)).parameters
    schedule, penalty = given.pop("schedule", None), given.pop("penalty", None)
    spec: JsonObject = {"kind": inner.kind}
    spec |= {name: value for name, value in given.items() if value != usual[name].default}
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
    try:
        same = plain(layer_of(plain_spec).settings) == plain(layer.settings)
    except BadInput:
        same = False
    if not same:
        raise BadInput(
            "this layer has settings that a service does not offer; it has a constant step, decay, ridge and lasso"
        )
    return plain_spec


def merged_spec(spec: JsonObject, text: str) -> JsonObject:
    """The settings of a saved state with those that only a service has; any others must agree with the state."""
    saved = spec_of(from_json(text))
    service = {name: value for name, value in spec.items() if name in ("tickets", "max_names")}
    for name, value in spec.items():
        if name not in service and saved.get(name) != value:
            raise BadInput(
                f"the state was made with {name}={saved.get(name)!r}, not {value!r}; leave the settings out"
            )
    return {**saved, **service}
