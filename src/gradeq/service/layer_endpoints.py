"""Endpoints of layers: settings, predictions, labels, status, control, journal, receipts."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from gradeq.certificates.figures import learning_of
from gradeq.records import as_dict
from gradeq.report.state_facts import (
    coverage_as_json,
    coverages_of,
    groups_as_json,
    labels_while_paused,
    labels_withdrawn,
    state_sentence,
    with_coverage_bound,
    worse_in_state,
)
from gradeq.service.audit import Receipt, ReceiptComparison, compare_receipts
from gradeq.service.maintenance import export_state
from gradeq.service.problems import LayerStopped, NoSuchLayer, Problem, split_remedy, with_setting_names
from gradeq.service.requests import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    READ_PROBLEMS,
    Call,
    Endpoint,
    Item,
    ItemReader,
    Reply,
    encode,
    read_object,
    read_struct,
    rejected_item,
)
from gradeq.service.schemas import ACCEPTED, ItemAnswer, Label, Prediction, decode_id, decode_json, not_applied
from gradeq.service.store.database import JsonObject
from gradeq.service.store.journal_store import KINDS

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.layer import Layer
    from gradeq.service.desk import Desk
    from gradeq.service.runtime import LayerRuntime


MAX_PARAMETERS = 1_000  # parameters and groups of one answer


class FigurePair(Struct):
    """A figure of the raw predictions and of the served ones; null without labels."""

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
    counts = (served, labelled, max(0, served - labelled), runtime.head.seq)
    learning = not runtime.layer.frozen and not stopped
    return LayerStatus(row.name, str(row.spec["kind"]), settings, row.created, *counts, learning, stopped)


def all_layer_statuses(desk: Desk, tenant: str) -> list[LayerStatus]:
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
    bias = loss = FigurePair(None, None)
    if reached.rows:
        bias = FigurePair(reached.bias_before, reached.bias_after)
        loss = FigurePair(reached.loss_before, reached.loss_after)
    theta = getattr(layer, "theta", {})
    return EquilibriumAnswer(
        layer=runtime.row.name,
        kind=layer.kind,
        verdict=state_sentence(layer, reached),
        rows=reached.rows,
        served=int(traffic["served"]),
        labelled=int(traffic["labelled"]),
        step=layer.step,
        loss={"name": reached.loss_name, "before": loss.before, "after": loss.after},
        certificate=_certificate(layer, reached),
        groups=groups_as_json(layer, reached)[:MAX_PARAMETERS],
        parameters=len(reached.coordinates),
        theta=dict(islice(theta.items(), MAX_PARAMETERS)) if isinstance(theta, dict) else {},
        lateness=asdict(learning_of(layer)),
        warnings=[asdict(with_setting_names(notice)) for notice in worse_in_state(layer, reached)],
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


class Settings(Struct):
    """The settings of a layer under their Python names, with its kind: {"kind": "debias", "groups": ["region"]}.

    ``keyed``: a state for each key. ``tickets``: "signed" for tickets that come back with the labels. ``max_names``:
    number of distinct groups, keys or players. ``state``: a saved state of the library (``to_json``) or the command
    line (``--state``) to start from; it includes kind and settings. All other settings of the layer's class are
    accepted too.
    """

    kind: Literal["conformal", "debias", "elo", "ensemble", "interval", "quantile", "quantiles"] | None = None
    eta: float | str | None = None
    groups: list[str] | None = None
    keyed: bool = False
    tickets: Literal["stored", "signed"] = "stored"
    max_names: int = 10_000
    state: JsonObject | None = None


class LayerCreated(Struct):
    """Whether the layer is new; false if it existed with the same settings."""

    layer: str
    created: bool


class LayerRemoved(Struct):
    """The layer was removed and its name is free; its journal stays in the store."""

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

    ``left``: another key corrected them since, or nothing was learned from them (received during a freeze, or dropped
    ties). Repeating the call takes nothing back and gives the same ``left``.
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
    """Create a layer; repeating the call changes nothing."""
    name, key, service = call.layer, call.caller, call.service
    if not re.fullmatch(NAME, name):
        rule = "give 1 to 100 letters, digits, dots, hyphens or underscores, starting with a letter or digit"
        raise Problem(422, "bad_name", f"the layer's name is {name[:120]!r}", rule)
    spec = read_object(await call.body(service.limits.settings_body))
    state = spec.pop("state", None)
    text = state if isinstance(state, str) or state is None else json.dumps(state)

    def create() -> bool:
        known = service.desk.names(key.tenant)
        if name not in known and len(known) >= service.limits.layers:
            what = f"the limit of {service.limits.layers:,} layers is reached"
            raise Problem(422, "too_many_layers", what, "remove one, or use one layer with keyed set to true")
        return service.desk.create(key.tenant, name, spec, text)

    created = await asyncio.to_thread(create)
    call.log("layer", created=created)
    return Reply(encode(LayerCreated(name, created)), 201 if created else 200)


async def delete_layer(call: Call) -> Reply:
    """Remove a layer; its journal stays in the store."""
    await asyncio.to_thread(call.service.desk.remove, call.caller.tenant, call.layer)
    call.log("layer", removed=True)
    return Reply(encode(LayerRemoved(call.layer)))


async def control_layer(call: Call) -> Reply:
    """Freeze, resume, reset_in_flight or set_step; recorded in the journal."""
    control = read_struct(await call.body(100_000), ControlRequest, "bad_control", CONTROLS)
    arguments = {} if control.eta is None else {"eta": control.eta}
    if (control.do == "set_step") != bool(arguments):
        step = "no eta" if control.eta is None else f"eta {control.eta:g}"
        raise Problem(422, "bad_control", f'do is "{control.do}" with {step}', CONTROLS)
    if not await call.read_layer(lambda runtime: hasattr(runtime.layer, control.do)):
        what = f"a layer of this kind cannot do {control.do}"
        raise Problem(422, "bad_control", what, "create a new one with other settings")
    work = call.service.desk.control(call.caller.tenant, call.layer, control.do, arguments, call.caller.number)
    seq = await call.service.bridge.wait(work)
    call.log("control", done=control.do)
    return Reply(encode(ControlAnswer(call.layer, control.do, seq)))


async def undo_labels(call: Call) -> Reply:
    """Take back every label of one API key; recorded in the journal as reversals."""
    service, tenant = call.service, call.caller.tenant
    prefix = read_struct(await call.body(100_000), UndoRequest, "bad_undo").key
    await service.refresh_keys()
    whose = service.ring.by_prefix(prefix)
    if whose is None or whose.tenant != tenant:
        raise Problem(404, "no_such_key", f"no key has the prefix {prefix[:20]!r}", "`gradeq keys list` lists them")
    counts = await asyncio.to_thread(service.desk.undo, tenant, call.layer, whose.number, call.caller.number)
    call.log("undo", undone=whose.prefix, **as_dict(counts))
    return Reply(encode(UndoAnswer(call.layer, whose.prefix, *counts)))


async def list_layers(call: Call) -> Reply:
    """List the layers of your tenant."""
    return Reply(encode(await asyncio.to_thread(all_layer_statuses, call.service.desk, call.caller.tenant)))


async def get_layer(call: Call) -> Reply:
    """The status of a layer."""
    return Reply(encode(await call.read_layer(layer_status)))


async def get_equilibrium(call: Call) -> Reply:
    """What a layer has achieved: bias or coverage and loss before and after, certificate, bound."""
    return Reply(encode(await call.read_layer(equilibrium_answer)))


async def get_state(call: Call) -> Reply:
    """The layer as the library saves it: for gradeq.from_json, or to create another layer from."""
    row = await call.read_layer(lambda runtime: runtime.row)
    return Reply((await asyncio.to_thread(export_state, call.service.store, row)).encode())


async def get_journal(call: Call) -> Reply:
    """The journal, a page at a time."""
    counts = []
    for name, text in call.query(after="0", limit=str(PAGE)).items():
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise Problem(400, "bad_parameter", f"{name} is {text[:40]!r}", "give a whole number, 0 or more")
        counts.append(int(text))
    after, limit = counts[0], min(counts[1], PAGE)
    number = await call.read_layer(lambda runtime: runtime.number)
    entries = await asyncio.to_thread(lambda: list(islice(call.service.store.entries(number, after), limit)))
    rows = [
        JournalRow(seq, KINDS[kind], decode_id(id), at, author, decode_json(body))
        for seq, kind, id, at, author, _, body in entries
    ]
    return Reply(encode(JournalPage(rows, rows[-1].seq if rows and len(rows) == limit else None)))


STATUS_CODES = {"conflict": 409, "unknown": 404, "expired": 410, "rejected": 422}
INLINE_ITEMS = 200  # items that may be previewed, or queued, while other calls wait
PREDICTIONS, LABELS = ItemReader(Prediction), ItemReader(Label)
ATOMIC = {"atomic": Annotated[bool, Meta(description="All items or none: 422 if one is rejected.")]}


# Desk.predict or Desk.label: tenant, layer, items, number of the key, atomic.
Ask = Callable[[str, str, Sequence[Item], int, bool], Future[list[ItemAnswer]]]


async def predict(call: Call) -> Reply:
    """Adjust one prediction of your model, or a list of them."""
    return await _process_items(call, PREDICTIONS, call.service.desk.predict)


async def label(call: Call) -> Reply:
    """Send one label, or a list of them: in any order, however late; ids make retries safe."""
    return await _process_items(call, LABELS, call.service.desk.label)


async def _process_items(call: Call, reader: ItemReader[Item], ask: Ask[Item]) -> Reply:
    service, key = call.service, call.caller
    flag = call.query(atomic="false")["atomic"]
    if flag not in ("true", "false"):
        raise Problem(400, "bad_parameter", f"atomic is {flag[:40]!r}", "give true or false")
    atomic = flag == "true"
    sent, single = reader.read(await call.body(service.limits.body), service.limits.items)
    if len(sent) > 1:
        service.charge(key, len(sent) - 1)
    if atomic:
        sent = _reject_repeated_ids(sent)
    items = [item for item in sent if not isinstance(item, ItemAnswer)]
    if len(items) == len(sent) or not atomic:
        arguments = (key.tenant, call.layer, items, key.number, atomic)
        if len(items) > INLINE_ITEMS or (key.tenant, call.layer) not in service.desk.layers.runtimes:
            work = await asyncio.to_thread(lambda: ask(*arguments))
        else:
            work = ask(*arguments)
        answers = await service.bridge.wait(work)
        following = iter(answers)
        answers = [one if isinstance(one, ItemAnswer) else next(following) for one in sent]
    else:
        answers = [one if isinstance(one, ItemAnswer) else not_applied(one.id) for one in sent]
    for answer in answers:
        if answer.status == "rejected" and answer.remedy is None and answer.detail is not None:
            answer.detail, answer.remedy = split_remedy(answer.detail)
    for status, count in Counter(answer.status for answer in answers).items():
        service.metrics.items.add(count, kind=reader.item.__name__.lower(), status=status)
    if single:
        return Reply(encode(answers[0]), STATUS_CODES.get(answers[0].status, 200))
    refused = atomic and any(answer.status not in ACCEPTED for answer in answers)
    return Reply(encode(answers), 422 if refused else 200)


def _reject_repeated_ids(sent: Sequence[Item | ItemAnswer]) -> list[Item | ItemAnswer]:
    """Reject an id that occurs twice in an atomic call: the second depends on the first."""
    seen: set[tuple[str | int | None, ...]] = set()
    checked: list[Item | ItemAnswer] = []
    for item in sent:
        known = () if isinstance(item, ItemAnswer) else (item.id, getattr(item, "ticket", None))
        if known in seen and known not in ((), (None, None)):
            item = rejected_item(item.id, f"id {item.id!r} occurs twice in an atomic call", "send it once")
        seen.add(known)
        checked.append(item)
    return checked


class ReceiptList(Struct, forbid_unknown_fields=True):
    """Receipts of a client: kind ("ticket" of a prediction, "posting" of a label), id, journal number."""

    receipts: list[Receipt] = []


class AuditAnswer(Struct):
    """Whether the journal confirms every receipt and the server's own audits found no fault.

    ``seq``: the last journal number; ``audited``: when the server last audited itself (seconds since 1970).
    """

    layer: str
    ok: bool
    seq: int
    audited: float | None
    faults: list[str]
    receipts: ReceiptComparison


async def audit_receipts(call: Call) -> Reply:
    """Compare your receipts with the journal: which events are missing, doubled or moved."""
    service = call.service
    remedy = 'send {"receipts": [["ticket", "order-17", 1], ["posting", "order-17", 2]]}'
    body = await call.body(service.limits.body) or b"{}"
    receipts = read_struct(body, ReceiptList, "bad_receipts", remedy).receipts
    if len(receipts) > service.limits.items:
        what = f"{len(receipts):,} receipts, the limit is {service.limits.items:,}"
        raise Problem(413, "too_many_items", what, "send them in several calls")
    number, head = await call.read_layer(lambda runtime: (runtime.number, runtime.head))
    compared = await asyncio.to_thread(compare_receipts, service.store, number, receipts)
    confirmed = not (compared.missing or compared.doubled or compared.moved)
    call.log("audit", receipts=len(receipts), borne_out=confirmed)
    at, last = service.watch.results.get((call.caller.tenant, call.layer), (None, None))
    faults = [*(last.faults if last else ()), *([head.stopped] if head.stopped else ())]
    return Reply(encode(AuditAnswer(call.layer, confirmed and not faults, head.seq, at, faults, compared)))


PAGE_PARAMETERS = {
    "after": Annotated[int, Meta(ge=0, description="Rows after this number of the journal.")],
    "limit": Annotated[int, Meta(ge=0, le=PAGE, description="Maximum number of rows.")],
}
LAYER = "/v1/layers/{name}"
CREATED, LISTED = {200: LayerCreated, 201: LayerCreated}, {200: list[LayerStatus]}
STATUS, EQUILIBRIUM, JOURNAL = {200: LayerStatus}, {200: EquilibriumAnswer}, {200: JournalPage}
FAULTS, READ_FAULTS = (404, *BODY_PROBLEMS), (503, *READ_PROBLEMS)
ITEM_RESPONSES = {200: ItemAnswer | list[ItemAnswer], 409: ItemAnswer, 422: ItemAnswer | list[ItemAnswer]}
LABEL_RESPONSES = {**ITEM_RESPONSES, 404: ItemAnswer, 410: ItemAnswer}
PREDICTION_BODY, LABEL_BODY = Prediction | list[Prediction], Label | list[Label]
ENDPOINTS = (
    Endpoint("POST", f"{LAYER}/predictions", "predict", predict, ITEM_RESPONSES, FAULTS, PREDICTION_BODY, ATOMIC),
    Endpoint("POST", f"{LAYER}/labels", "label", label, LABEL_RESPONSES, FAULTS, LABEL_BODY, ATOMIC),
    Endpoint("POST", f"{LAYER}/audit", "", audit_receipts, {200: AuditAnswer}, FAULTS, ReceiptList),
    Endpoint("GET", "/v1/layers", "", list_layers, LISTED, (400, *KEY_PROBLEMS), allows_cookie=True),
    Endpoint("PUT", LAYER, "admin", create_layer, CREATED, BODY_PROBLEMS, Settings),
    Endpoint("GET", LAYER, "", get_layer, STATUS, READ_PROBLEMS, allows_cookie=True),
    Endpoint("DELETE", LAYER, "admin", delete_layer, {200: LayerRemoved}, READ_FAULTS),
    Endpoint("GET", f"{LAYER}/equilibrium", "", get_equilibrium, EQUILIBRIUM, READ_PROBLEMS, allows_cookie=True),
    Endpoint("POST", f"{LAYER}/control", "admin", control_layer, {200: ControlAnswer}, FAULTS, ControlRequest),
    Endpoint("POST", f"{LAYER}/undo", "admin", undo_labels, {200: UndoAnswer}, FAULTS, UndoRequest),
    Endpoint("GET", f"{LAYER}/state", "admin", get_state, {200: JsonObject}, READ_PROBLEMS),
    Endpoint("GET", f"{LAYER}/journal", "admin", get_journal, JOURNAL, READ_FAULTS, parameters=PAGE_PARAMETERS),
)
