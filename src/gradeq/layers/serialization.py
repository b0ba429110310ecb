"""Save layers as versioned, canonical JSON with a checksum, and restore them exactly."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import sys
from array import array
from collections.abc import Callable, Iterator
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from gradeq import losses, penalties, schedules
from gradeq._version import __version__
from gradeq.engine.lateness import weighed_otherwise
from gradeq.engine.validation import check_book, check_columns, check_log
from gradeq.errors import OtherSettings, StateError
from gradeq.inputs.durations import as_span, format_span
from gradeq.ledger import facts as fact
from gradeq.rules.rule import judged
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer

Saved = dict[str, Any]  # settings or state as JSON values

FORMAT = 2  # format 1 (gradeq 0.1) stored different sums
NOT_OURS = "this is not a gradeq state: name a file that gradeq saved"
LONG = 512  # columns of more numbers are stored in base64
HASH_CHUNK = 1 << 20  # characters
SHA256 = re.compile('"sha256":"([0-9a-f]{64})",')
PIECE = 3 << 12  # items per chunk; a multiple of three, so that base64 chunks join

_PARTS = {
    cls.__name__: cls
    for module in (losses, penalties, schedules)
    for cls in vars(module).values()
    if dataclasses.is_dataclass(cls) and isinstance(cls, type) and cls.__module__ == module.__name__
}


@cache
def arguments(layer_type: type[Layer]) -> tuple[str, ...]:
    return tuple(signature(layer_type).parameters)


def layer_json(layer: Layer) -> Iterator[str]:
    """A layer as one line of canonical JSON with its checksum, in pieces: even a million keys need little memory."""
    parts = layer.internals
    closed = parts.tickets.closed
    for id, posting in closed.items():
        closed[id] = judged(parts.rule, posting)
    state = parts.names.state() | {"columns": parts.state.saved(), "tickets": parts.tickets.state()}
    state |= {"frozen": parts.frozen, "log": parts.log} | parts.revisions.state()
    return dump(layer.kind, saved_settings(layer.settings), state)


def dump(kind: str, settings: Saved, state: Saved) -> Iterator[str]:
    body = {"format": FORMAT, "gradeq": __version__, "kind": kind, "settings": settings, "state": state}
    return pieces({**body, "sha256": checksum(body)})


def load(text: str | bytes) -> tuple[str, Saved, Saved]:
    """Kind, settings and state; raises ``StateError`` if the text is damaged, newer or foreign."""
    if not isinstance(text, (str, bytes, bytearray)):
        raise StateError(f"{type(text).__name__} is not the text of a state; pass the text that to_json returned")
    verified = has_valid_checksum(text)

    def read_object(pairs: list[tuple[str, object]]) -> object:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ValueError("a key occurs twice")
        return _decode_object(fields) if verified else fields

    def refuse_constant(name: str) -> float:
        raise ValueError(f"{name} is not a number")

    try:
        body = json.loads(text, object_pairs_hook=read_object, parse_constant=refuse_constant)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        first = text.strip()[:1]
        if first and first not in ("{", b"{"):
            raise StateError(NOT_OURS) from None
        raise StateError(f"the state is damaged: its JSON was changed ({_short(error)}); restore a backup") from None
    if not isinstance(body, dict) or "format" not in body or "sha256" not in body:
        raise StateError(NOT_OURS)
    form, version = body["format"], body.get("gradeq")
    if form != FORMAT or isinstance(form, bool):
        by = f"written by gradeq {version}, " if isinstance(version, str) else ""
        if type(form) is int and 0 < form < FORMAT:
            raise StateError(
                f"the state was {by}format {form}; gradeq {__version__} reads only format {FORMAT}; "
                "keep using that version, or start a new state"
            )
        raise StateError(
            f"the state was {by}format {form!r}, which gradeq {__version__} does not know ({FORMAT}); "
            "upgrade gradeq to read it"
        )
    digest = body.pop("sha256")
    if not verified and digest != checksum(body):
        raise StateError("the state is damaged: its checksum does not match; restore a backup")
    try:
        body = body if verified else decode(body)
        return str(body["kind"]), body["settings"], body["state"]
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise StateError(f"the state is damaged: {_short(error)}") from None


def has_valid_checksum(text: str | bytes) -> bool:
    """Whether the checksum matches the text itself, so that it need not be encoded again."""
    try:
        text = text if isinstance(text, str) else text.decode()
        stored = SHA256.search(text)
        digest = hashlib.sha256()
        for start, stop in ((0, stored.start()), (stored.end(), len(text))) if stored else ():
            for k in range(start, stop, HASH_CHUNK):
                digest.update(text[k : min(k + HASH_CHUNK, stop)].rstrip("\n").encode())
    except (TypeError, AttributeError, UnicodeError):
        return False
    return stored is not None and stored[1] == digest.hexdigest()


def checksum(body: Saved) -> str:
    digest = hashlib.sha256()
    for piece in pieces(body):
        digest.update(piece.encode())
    return digest.hexdigest()


def pieces(value: object) -> Iterator[str]:
    """The canonical text of a value, in pieces of bounded length.

    >>> "".join(pieces({"b": [1.0, math.inf], "a": ()}))
    '{"a":[],"b":[1.0,{"$float":"inf"}]}'
    """
    if isinstance(value, dict) and value:
        items = {str(key): item for key, item in value.items()}
        for k, key in enumerate(sorted(items)):
            yield f"{',' if k else '{'}{canonical(key)}:"
            yield from pieces(items[key])
        yield "}"
    elif isinstance(value, str) and len(value) > PIECE:
        yield '"'
        for k in range(0, len(value), PIECE):
            yield canonical(value[k : k + PIECE])[1:-1]
        yield '"'
    elif isinstance(value, (list, tuple)) and len(value) > PIECE:
        for k in range(0, len(value), PIECE):
            part = value[k : k + PIECE]
            try:  # most values are plain already
                text = canonical(part)
            except (TypeError, ValueError):  # for example an infinite loss or a column
                text = canonical(plain(part))
            yield f"{',' if k else '['}{text[1:-1]}"
        yield "]"
    elif isinstance(value, array) and len(value) > LONG:
        yield f'{{"$array":{canonical(value.typecode)},"base64":"'
        for k in range(0, len(value), PIECE):
            column = value[k : k + PIECE]
            if sys.byteorder == "big":
                column.byteswap()
            yield base64.b64encode(column).decode()
        yield '"}'
    else:
        yield canonical(plain(value))


def canonical(body: object) -> str:
    """One spelling for each value: sorted keys, no spaces, shortest exact floats."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(value: object) -> Any:
    """The value encoded with dictionaries, lists, strings and numbers only."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, array):
        return {"$array": value.typecode, "values": [plain(x) for x in value]}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value).__name__ in _PARTS and type(value) is _PARTS[type(value).__name__]:
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"$part": type(value).__name__, **fields}
    raise StateError(
        f"{value!r} cannot be saved: only built-in schedules, penalties and losses have a safe JSON form"
    )


def decode(value: object) -> Any:
    """The inverse of ``plain`` (tuples become lists)."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        return _decode_object({key: decode(item) for key, item in value.items()})
    return value


def _decode_object(value: Saved) -> Any:
    """The value that a dictionary encodes; its items must be decoded already."""
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        if value["$array"] not in ("d", "q"):
            raise ValueError(f"unknown column type {value['$array']!r}")
        values = value.get("values", [])
        if not isinstance(values, list):
            raise ValueError("a column is a list")
        column: array[Any] = array(value["$array"], values)
        if "values" not in value:
            column.frombytes(base64.b64decode(value["base64"], validate=True))
            if sys.byteorder == "big":
                column.byteswap()
        return column
    if "$part" in value:
        name = value.pop("$part")
        fields = {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
        return _PARTS[name](**fields)
    return value


def _short(error: BaseException, length: int = 120) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:length]


def restore_layer(make: Callable[[Saved], Layer], kind: str, settings: Saved, state: Saved) -> Layer:
    try:
        settings, state = upgrade_queue(kind, settings, state)
        layer = make(settings)
        restore(layer, state)
    except StateError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StateError(f"the state is damaged: {_short(error, 160)}") from None
    return layer


def upgrade_queue(kind: str, settings: Saved, state: Saved) -> tuple[Saved, Saved]:
    """Settings and state, translated if an earlier version saved them.

    Earlier versions always queued predictions without ids. If several of one key wait, the layer is restored with
    ``queue=True``; a single one becomes the open prediction.
    """
    layer_settings = settings["settings"] if kind == "keyed" else settings
    if kind == "elo" or "queue" in layer_settings or "singles" in state["tickets"]:
        return settings, state
    open_ = [(ticket[0], ticket[1][2]) for ticket, id, _ in state["tickets"]["open"] if id is None]
    if len({key for _, key in open_}) == len(open_):
        singles = {"singles": [number for number, _ in open_]} if open_ else {}
        return settings, {**state, "tickets": {**state["tickets"], **singles}}
    queued = {**layer_settings, "queue": True}
    return ({**settings, "settings": queued} if kind == "keyed" else queued), state


def saved_settings(settings: Saved) -> Saved:
    """Settings to save; ``queue`` is omitted while it is off, as in states of earlier versions."""
    return {
        name: saved_settings(value) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name != "queue" or value
    }


def restore(layer: Layer, state: Saved) -> None:
    """Restore a saved state into a new layer, and check that it is consistent."""
    parts = layer.internals
    names, columns, book = parts.names, parts.state, parts.tickets
    renamed = names.restore(state)
    columns.restore(state["columns"], names.count, names.keys)
    check_columns(columns, parts.rule)
    if weighed_otherwise(columns, parts.rule.stride):
        columns.add_column("mean_weight")
        columns.add_column("weighed")
    book.restore(state["tickets"])
    book.branches.restore(state["tickets"], columns.number)
    if any(renamed):
        book.rename(renamed.row)
    check_book(book, parts.rule, names, columns, layer.validate_label)
    if not isinstance(state["frozen"], bool):
        raise StateError(f"the state is damaged: frozen is {state['frozen']!r}")
    parts.frozen = state["frozen"]
    parts.revisions.restore(state, names.count, parts.rule.width)
    check_log(state["log"], columns.number)
    parts.log = [(what, at) for what, at in state["log"]]


def check_same_settings(layer: Layer, other: Layer) -> None:
    mine, theirs = plain(layer.settings), plain(other.settings)
    if layer.kind != other.kind:
        raise OtherSettings(f"the state is of a {other.kind} layer, this is {layer.kind}; use another file")
    # A default step follows from the other settings, so those are compared first.
    for name in sorted(mine, key=lambda name: name in ("eta", "schedule")):
        if mine[name] != theirs.get(name):
            was, now = (
                format_span(each.settings.get(name)) if name in ("ttl", "maturity") else repr(own.get(name))
                for each, own in ((other, theirs), (layer, mine))
            )
            raise OtherSettings(
                f"the state was made with {name}={was}, this run has {now}; "
                "use the same settings, or another state file",
                name=name,
            )


def constructor_call(layer: Layer) -> str:
    """The Python expression that makes the layer, without defaults: Keyed(Debiaser(eta=0.1))."""
    keyed = layer.pattern is not layer
    texts = [constructor_call(layer.pattern)] if keyed else []
    for name, value in layer.settings.items():
        if value in (None, [], (), False) or name in ("late_cap", "in_flight") or (keyed and name != "pool"):
            continue
        span = as_span(value) if name in ("ttl", "maturity") else None  # spans of dates are stored in nanoseconds
        texts.append(f"{name}={(value if span is None else span)!r}")
    return f"{type(layer).__name__}({', '.join(texts)})"


def layer_repr(layer: Layer) -> str:
    """The ``repr`` of a layer: its constructor call, row counts, and whether it is learning."""
    facts = layer.internals.state.facts
    learned = int(facts[fact.POSTED] - facts[fact.SKIPPED])
    state = "frozen" if layer.internals.frozen else "learning"
    return (
        f"<{constructor_call(layer)}: {int(facts[fact.SERVED]):,} served, "
        f"{some(learned, 'label')} learned from, {len(layer.internals.tickets):,} open, {state}>"
    )
