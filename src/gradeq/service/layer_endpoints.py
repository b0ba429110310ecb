"""Endpoints of layers: create, list, show, control, remove, journal."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from gradeq.certificates.figures import learning_of
from gradeq.records import as_dict
from gradeq.report.state_facts import (
    coverage_as_json,
    coverages_of,
    groups_as_json,
    labels_while_paused,
    labels_withdrawn,
    state_harm_notices,
    state_sentence,
    with_coverage_bound,
)
from gradeq.service.auth import ApiKey
from gradeq.service.maintenance import export_state
from gradeq.service.problems import LayerStopped, NoSuchLayer, Problem, with_setting_names
from gradeq.service.requests import Call, Endpoint, Reply, encode, explain_validation, read_object
from gradeq.service.schemas import decode_id, decode_json
from gradeq.service.store.database import KINDS, JsonObject

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.layer import Layer
    from gradeq.service.desk import Desk
    from gradeq.service.runtime import LayerRuntime


MAX_PARAMETERS = 1_000  # parameters and groups of one answer


class FigurePair(Struct):
    """A figure of the raw predictions and of the served ones; null where there is none."""

    before: float | None
    after: float | None


class LayerStatus(Struct):
    """The status of a layer.

    ``learning`` is false while the layer is frozen or stopped, ``stopped`` says why; ``seq`` is the last number of
    its journal; ``open`` counts predictions still without a label.
    """

    layer: str
    kind: str
    settings: JsonObject
    created: float
    served: int
    labelled: int
    open: int
    seq: int
    learning: bool
    stopped: str


def layer_status(runtime: LayerRuntime) -> LayerStatus:
    row, traffic, stopped = runtime.row, runtime.layer.traffic, runtime.stopped
    served, labelled = int(traffic["served"]), int(traffic["labelled"])
    settings = {name: value for name, value in row.spec.items() if name not in ("kind", "state")}
    return LayerStatus(
        row.name, str(row.spec["kind"]), settings, row.created, served, labelled, max(0, served - labelled),
        runtime.head.seq, not runtime.layer.frozen and not stopped, stopped,
    )  # fmt: skip


def all_layer_statuses(desk: Desk, tenant: str) -> list[LayerStatus]:
    """The status of all layers of a tenant, damaged ones included."""
    statuses = []
    for name in desk.names(tenant):
        try:
            with desk.reading(tenant, name) as runtime:
                statuses.append(layer_status(runtime))
        except LayerStopped as error:
            row = desk.store.layer(tenant, name)
            kind, created = ("", 0.0) if row is None else (str(row.spec["kind"]), row.created)
            statuses.append(LayerStatus(name, kind, {}, created, 0, 0, 0, 0, False, str(error)))
        except NoSuchLayer:
            continue  # removed meanwhile
    return statuses


class EquilibriumAnswer(Struct):
    """What a layer has achieved, over the labels it learned from.

    ``bias`` or ``coverage`` and ``loss``, before and after; ``certificate``: the averages from the labels, the same
    read off the state (``gap``: their difference; ``exact``: it is rounding only; ``constant_step``: all labels had
    one step) and the proven bound, null without one, ``vacuous`` if it says no more than what holds without learning.
    ``parameters``: how many there are; at most 1,000 are listed, largest averages first. ``learning`` is false while
    the layer is frozen or stopped, ``stopped`` says why. ``shadow``: raw values are served, and ``after`` is what
    would have been. ``paused``: labels received while frozen; ``taken_back``: labels that were undone; both are part
    of ``labelled`` and of no average.
    """

    layer: str
    kind: str
    verdict: str
    rows: int
    served: int
    labelled: int
    step: float
    loss: JsonObject
    certificate: JsonObject
    groups: list[JsonObject]
    parameters: int
    theta: JsonObject
    lateness: JsonObject
    warnings: list[dict[str, str]]
    learning: bool = True
    stopped: str = ""
    bias: FigurePair | None = None
    coverage: JsonObject | list[JsonObject] | None = None
    shadow: bool = False
    paused: int = 0
    taken_back: int = 0


def equilibrium_answer(runtime: LayerRuntime) -> EquilibriumAnswer:
    layer: Layer = runtime.layer
    reached, traffic = layer.equilibrium(), layer.traffic
    coverage = coverage_as_json(layer, reached).get("coverage")
    some = bool(reached.rows)
    bias = FigurePair(reached.bias_before if some else None, reached.bias_after if some else None)
    theta = getattr(layer, "theta", {})
    return EquilibriumAnswer(
        layer=runtime.row.name,
        kind=layer.kind,
        verdict=state_sentence(layer, reached),
        rows=reached.rows,
        served=int(traffic["served"]),
        labelled=int(traffic["labelled"]),
        step=layer.step,
        loss={
            "name": reached.loss_name,
            "before": reached.loss_before if some else None,
            "after": reached.loss_after if some else None,
        },
        certificate=_certificate(layer, reached),
        groups=groups_as_json(layer, reached)[:MAX_PARAMETERS],
        parameters=len(reached.coordinates),
        theta=dict(islice(theta.items(), MAX_PARAMETERS)) if isinstance(theta, dict) else {},
        lateness=asdict(learning_of(layer)),
        warnings=[asdict(with_setting_names(notice)) for notice in state_harm_notices(layer, reached)],
        learning=not layer.frozen and not runtime.stopped,
        stopped=runtime.stopped,
        bias=bias if coverage is None else None,
        coverage=coverage,
        shadow=bool(layer.shadow),
        paused=labels_while_paused(layer),
        taken_back=labels_withdrawn(layer, reached),
    )


def _certificate(layer: Layer, reached: Equilibrium) -> JsonObject:
    """The certificate, with exact and vacuous as in the verdict; of many parameters the largest averages."""
    verdict = with_coverage_bound(reached, coverages_of(layer, reached) if reached.rows else [])
    proven = verdict.bound is not None and math.isfinite(verdict.bound)
    certificate: JsonObject = {**verdict.certificate}
    averages = certificate["average_gradient"]
    if len(averages) > MAX_PARAMETERS:
        largest = sorted(averages, key=lambda name: -abs(averages[name] or 0.0))[:MAX_PARAMETERS]
        for part, value in certificate.items():
            if isinstance(value, dict):
                certificate[part] = {name: value[name] for name in largest}
    return {
        **certificate,
        "vacuous": bool(verdict.vacuous) if proven and reached.rows else None,
        "exact": reached.balance != "broken",
        "constant_step": reached.exact,
        **({"gradient_bound": reached.certificate["bound"]} if verdict.bounded else {}),
    }


NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
CONTROLS = 'send {"do": "freeze"}, "resume" or "reset_in_flight", or {"do": "set_step", "eta": 0.02}'
PAGE = 1_000  # rows of the journal in one answer
T = TypeVar("T")


class Settings(Struct):
    """The settings of a layer under their Python names, with its kind: {"kind": "debias", "groups": ["region"]}.

    ``keyed``: a state for each key. ``tickets``: "signed" for tickets that come back with the labels. ``max_names``:
    groups, keys or players that are kept apart. ``state``: what ``to_json`` of the library or ``--state`` of the
    command line wrote, to go on from there; it knows its kind and settings. Whatever else the class of the layer
    takes is taken here too.
    """

    kind: Literal["conformal", "debias", "elo", "ensemble", "interval", "quantile", "quantiles"] | None = None
    eta: float | str | None = None
    groups: list[str] | None = None
    keyed: bool = False
    tickets: Literal["stored", "signed"] = "stored"
    max_names: int = 10_000
    state: JsonObject | None = None


class LayerCreated(Struct):
    """Whether the layer is new; false: it was there with the same settings."""

    layer: str
    created: bool


class LayerRemoved(Struct):
    """The layer is out of use and its name is free; its journal stays in the store."""

    layer: str
    removed: bool = True


class ControlRequest(Struct, forbid_unknown_fields=True):
    """A control: {"do": "freeze"}, or {"do": "set_step", "eta": 0.02}."""

    do: Literal["freeze", "resume", "reset_in_flight", "set_step"]
    eta: float | None = None


class ControlAnswer(Struct):
    """The control was applied and journalled under this number."""

    layer: str
    done: str
    seq: int


class UndoRequest(Struct, forbid_unknown_fields=True):
    """Whose labels to take back: {"key": "abcdefgh"}, the prefix of an API key of your tenant."""

    key: str


class UndoAnswer(Struct):
    """How many labels of the key were taken back, replaced by the one before, or ``left`` as they are.

    ``left``: another key corrected them since, or they taught nothing (received during a freeze, or ties that the
    layer drops). Repeating the call takes nothing back and gives the same ``left``.
    """

    layer: str
    key: str
    taken_back: int
    restored: int
    left: int


class JournalRow(Struct):
    """One row of a journal: what was served or learned, when, and with which key (its number)."""

    seq: int
    kind: str
    id: str | int | None
    at: float
    key: int
    body: Any


class JournalPage(Struct):
    """Rows of a journal in order; ``after`` is where the next page begins, null after the last."""

    rows: list[JournalRow]
    after: int | None


async def create_layer(call: Call) -> Reply:
    name = call.path_param("name")
    call.query()
    if not re.fullmatch(NAME, name):
        rule = "give 1 to 100 letters, digits, points, hyphens and underscores, a letter or digit first"
        raise Problem(422, "bad_name", f"the layer's name {name[:120]!r}", rule)
    spec = read_object(await call.body(call.service.limits.settings_body))
    key, service = caller_key(call), call.service
    state = spec.pop("state", None)
    text = state if isinstance(state, str) or state is None else json.dumps(state)

    def create() -> bool:
        known = service.desk.names(key.tenant)
        if name not in known and len(known) >= service.limits.layers:
            what = f"the limit of {service.limits.layers:,} layers is reached"
            raise Problem(422, "too_many_layers", what, "remove one, or use one layer with keyed set to true")
        return service.desk.create(key.tenant, name, spec, text)

    created = await asyncio.to_thread(create)
    service.log("layer", layer=name, tenant=key.tenant, created=created, key=key.prefix)
    return Reply(encode(LayerCreated(name, created)), 201 if created else 200)


async def delete_layer(call: Call) -> Reply:
    name, key = call.path_param("name"), caller_key(call)
    call.query()
    await asyncio.to_thread(call.service.desk.remove, key.tenant, name)
    call.service.log("layer", layer=name, tenant=key.tenant, removed=True, key=key.prefix)
    return Reply(encode(LayerRemoved(name)))


async def control_layer(call: Call) -> Reply:
    name, key = call.path_param("name"), caller_key(call)
    call.query()
    body = read_object(await call.body(100_000))
    try:
        asked = convert(body, ControlRequest)
    except ValidationError as error:
        raise Problem(422, "bad_control", explain_validation(str(error), body)[0], CONTROLS) from None
    given = {} if asked.eta is None else {"eta": asked.eta}
    if (asked.do == "set_step") != bool(given):
        step = "no eta" if asked.eta is None else f"eta {asked.eta:g}"
        raise Problem(422, "bad_control", f'do is "{asked.do}" with {step}', CONTROLS)
    if not await read_layer(call, lambda runtime: hasattr(runtime.layer, asked.do)):
        what = f"a layer of this kind cannot do {asked.do}"
        raise Problem(422, "bad_control", what, "create a new one with other settings")
    desk = call.service.desk
    seq = await call.service.bridge.wait(desk.control(key.tenant, name, asked.do, given, key.number))
    call.service.log("control", layer=name, tenant=key.tenant, done=asked.do, key=key.prefix)
    return Reply(encode(ControlAnswer(name, asked.do, seq)))


async def undo_labels(call: Call) -> Reply:
    name, key, service = call.path_param("name"), caller_key(call), call.service
    call.query()
    body = read_object(await call.body(100_000))
    try:
        prefix = convert(body, UndoRequest).key
    except ValidationError as error:
        raise Problem(422, "bad_undo", *explain_validation(str(error), body)) from None
    await service.refresh_keys()
    whose = service.ring.by_prefix(prefix)
    if whose is None or whose.tenant != key.tenant:
        raise Problem(404, "no_such_key", f"no key has the prefix {prefix[:20]!r}", "`gradeq keys list` lists them")
    counts = await asyncio.to_thread(service.desk.undo, key.tenant, name, whose.number, key.number)
    service.log("undo", layer=name, tenant=key.tenant, undone=whose.prefix, **as_dict(counts), key=key.prefix)
    return Reply(encode(UndoAnswer(name, whose.prefix, *counts)))


async def list_layers(call: Call) -> Reply:
    call.query()
    found = await asyncio.to_thread(all_layer_statuses, call.service.desk, caller_key(call).tenant)
    return Reply(encode(found))


async def get_layer(call: Call) -> Reply:
    call.query()
    return Reply(encode(await read_layer(call, layer_status)))


async def get_equilibrium(call: Call) -> Reply:
    call.query()
    return Reply(encode(await read_layer(call, equilibrium_answer)))


async def get_state(call: Call) -> Reply:
    call.query()
    row = await read_layer(call, lambda runtime: runtime.row)
    text = await asyncio.to_thread(export_state, call.service.store, row)
    return Reply(text.encode())


async def get_journal(call: Call) -> Reply:
    counts = []
    for name, text in call.query(after="0", limit=str(PAGE)).items():
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise Problem(400, "bad_parameter", f"{name} is {text[:40]!r}", "give a whole number, 0 or more")
        counts.append(int(text))
    after, limit = counts[0], min(counts[1], PAGE)
    number = await read_layer(call, lambda runtime: runtime.number)
    entries = await asyncio.to_thread(lambda: list(islice(call.service.store.entries(number, after), limit)))
    rows = [
        JournalRow(seq, KINDS[kind], decode_id(id), at, author, decode_json(body))
        for seq, kind, id, at, author, _, body in entries
    ]
    following = rows[-1].seq if rows and len(rows) == limit else None
    return Reply(encode(JournalPage(rows, following)))


def caller_key(call: Call) -> ApiKey:
    assert call.key is not None
    return call.key


async def read_layer(call: Call, look: Callable[[LayerRuntime], T]) -> T:
    """Read something of a layer in a thread, while the layer is locked."""
    tenant, name, desk = caller_key(call).tenant, call.path_param("name"), call.service.desk

    def read() -> T:
        with desk.reading(tenant, name) as runtime:
            return look(runtime)

    return await asyncio.to_thread(read)


KEY_PROBLEMS = (401, 403, 429)
AFTER_PARAM = Annotated[int, Meta(ge=0, description="Rows after this number of the journal.")]
LIMIT_PARAM = Annotated[int, Meta(ge=0, le=PAGE, description="Maximum number of rows.")]

ENDPOINTS = (
    Endpoint(
        "GET", "/v1/layers", "", list_layers, "List the layers of your tenant.",
        responses={200: list[LayerStatus]}, problems=(400, *KEY_PROBLEMS), allows_cookie=True,
    ),
    Endpoint(
        "PUT", "/v1/layers/{name}", "admin", create_layer, "Create a layer; repeating the call changes nothing.",
        Settings, {200: LayerCreated, 201: LayerCreated}, (400, 408, 409, 413, 415, 422, 503, *KEY_PROBLEMS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}", "", get_layer, "The status of a layer.",
        responses={200: LayerStatus}, problems=(400, 404, *KEY_PROBLEMS), allows_cookie=True,
    ),
    Endpoint(
        "DELETE", "/v1/layers/{name}", "admin", delete_layer, "Take a layer out of use; its journal stays.",
        responses={200: LayerRemoved}, problems=(400, 404, 503, *KEY_PROBLEMS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/equilibrium", "", get_equilibrium,
        "What a layer has achieved: bias or coverage and loss before and after, certificate, bound.",
        responses={200: EquilibriumAnswer}, problems=(400, 404, *KEY_PROBLEMS), allows_cookie=True,
    ),
    Endpoint(
        "POST", "/v1/layers/{name}/control", "admin", control_layer,
        "Freeze, resume, reset_in_flight or set_step; recorded in the journal.",
        ControlRequest, {200: ControlAnswer}, (400, 404, 408, 409, 413, 415, 422, 503, *KEY_PROBLEMS),
    ),
    Endpoint(
        "POST", "/v1/layers/{name}/undo", "admin", undo_labels,
        "Take back every label of one API key; recorded in the journal as reversals.",
        UndoRequest, {200: UndoAnswer}, (400, 404, 408, 409, 413, 415, 422, 503, *KEY_PROBLEMS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/state", "admin", get_state,
        "The layer as the library saves it: for gradeq.from_json, or to create another layer from.",
        responses={200: JsonObject}, problems=(400, 404, *KEY_PROBLEMS),
    ),
    Endpoint(
        "GET", "/v1/layers/{name}/journal", "admin", get_journal, "The journal, a page at a time.",
        responses={200: JournalPage}, problems=(400, 404, 503, *KEY_PROBLEMS),
        parameters={"after": AFTER_PARAM, "limit": LIMIT_PARAM},
    ),
)  # fmt: skip
