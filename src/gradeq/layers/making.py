"""Layers made anew: from a saved state, with the same settings, with a late-label cap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradeq import codec
from gradeq.engine.checks import number
from gradeq.engine.flight import weighed_otherwise
from gradeq.engine.sound import check_book, check_columns
from gradeq.errors import BadInput, OtherSettings, StateError
from gradeq.ledger import facts as fact
from gradeq.numerics import SMALLEST
from gradeq.spans import as_span, duration, spelled

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


def revive(
    make: Callable[[dict[str, Any]], Layer],
    kind: str,
    settings: dict[str, Any],
    state: dict[str, Any],
) -> Layer:
    """A layer made afresh from saved settings, with a saved state."""
    try:
        settings, state = with_queue(kind, settings, state)
        layer = make(settings)
        restore(layer, state)
    except StateError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StateError(f"the state is damaged: {reason[:160]}") from None
    return layer


def with_queue(
    kind: str, settings: dict[str, Any], state: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and state as saved, or, of an earlier version, what they mean now.

    Predictions without ids were always a queue then. Where several (of one key) wait, the layer goes on as one with
    ``queue=True``; one that waits alone is the open prediction.
    """
    own = settings["settings"] if kind == "keyed" else settings
    if kind == "elo" or "queue" in own or "singles" in state["tickets"]:
        return settings, state
    open_ = [(ticket[0], ticket[1][2]) for ticket, id, _ in state["tickets"]["open"] if id is None]
    if len({key for _, key in open_}) == len(open_):
        singles = {"singles": [number for number, _ in open_]} if open_ else {}
        return settings, {**state, "tickets": {**state["tickets"], **singles}}
    queued = {**own, "queue": True}
    return ({**settings, "settings": queued} if kind == "keyed" else queued), state


def saved_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they are saved: without ``queue`` where it is off, as in states of earlier versions."""
    return {
        name: saved_settings(value) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name != "queue" or value
    }


def restore(layer: Layer, state: dict[str, Any]) -> None:
    """Give a fresh layer a saved state, once all of it is known to make sense."""
    names, own, book = layer._names, layer._state, layer._book
    renamed = names.restore(state)
    own.restore(state["columns"], names.count, names.keys)
    check_columns(own, layer._rule)
    if weighed_otherwise(own, layer._rule.stride):
        own.bear("mean_weight")
        own.bear("weighed")
    book.restore(state["tickets"])
    book.branches.restore(state["tickets"], own.number)
    if any(renamed):
        book.rename(renamed.row)
    check_book(book, layer._rule, names, own, layer._label)
    if not isinstance(state["frozen"], bool):
        raise StateError(f"the state is damaged: frozen is {state['frozen']!r}")
    layer._frozen = state["frozen"]
    layer._revisions.restore(state, names.count, layer._rule.width)
    layer._log = [(str(what), int(at)) for what, at in state["log"]]


def check_same_settings(layer: Layer, other: Layer) -> None:
    """Refuse to go on from a state that was made with other settings."""
    mine, theirs = codec.plain(layer.settings), codec.plain(other.settings)
    if layer.kind != other.kind:
        raise OtherSettings(
            f"the state is of a {other.kind} layer, this is {layer.kind}; use another file"
        )
    for name in mine:
        if mine[name] != theirs.get(name):
            was, now = (
                spelled(own) if name in ("ttl", "maturity") else repr(own)
                for own in (theirs.get(name), mine[name])
            )
            raise OtherSettings(
                f"the state was made with {name}={was}, this run has {now}; "
                "use the same settings, or another state file"
            )


def late_limit(late_cap: Any, default: float) -> float | None:
    """c of the late-label cap: "auto" is the task's default, None no cap, a number itself."""
    if late_cap == "auto":
        return default
    if late_cap is None:
        return None
    if (
        isinstance(late_cap, (int, float))
        and not isinstance(late_cap, bool)
        and SMALLEST <= late_cap <= 1.0
    ):
        return float(late_cap)
    raise BadInput(f"late_cap={late_cap!r}: give 'auto', None, or a number in (0, 1]")


def time_to_live(ttl: float | str | None) -> float | None:
    """A ticket's time to live in the unit of times; a span such as 14d is for dates, which are nanoseconds."""
    if ttl is None:
        return None
    if not isinstance(ttl, str):
        if isinstance(ttl, bool) or (ttl != math.inf and number(ttl, "ttl") <= 0.0):
            raise BadInput(f"ttl={ttl!r}: a ticket's time to live must be positive")
        return ttl
    return span_of_dates("ttl", ttl)


def span_of_dates(name: str, text: str) -> float:
    """A duration such as 14d, in nanoseconds."""
    seconds = duration(text.strip())
    if seconds is None or not 0.0 < seconds < math.inf:
        raise BadInput(
            f"{name}={text!r} is not a duration; give 90s, 15m, 36h or 14d (times are then dates), or a number"
        )
    return seconds * 1e9


def called(layer: Any) -> str:
    """A layer as it is made in Python, settings left alone apart: Debiaser(eta=0.1), Keyed(Debiaser(eta=0.1))."""
    inner = getattr(layer, "layer", None)
    own = layer.settings if inner is None else {"pool": layer.pool}
    shown = [] if inner is None else [called(inner)]
    shown += [
        f"{name}={as_typed(name, value)}"
        for name, value in own.items()
        if value not in (None, [], (), False) and name not in ("late_cap", "in_flight")
    ]
    return f"{type(layer).__name__}({', '.join(shown)})"


def as_typed(name: str, value: Any) -> str:
    """A setting as one types it: a time to live in nanoseconds is a span of dates."""
    typed = as_span(value) if name == "ttl" else None
    return repr(value) if typed is None else repr(typed)


def described(layer: Layer) -> str:
    """What a layer is and where it stands: kind, settings, rows, whether it learns."""
    facts = layer._state.facts
    learned = int(facts[fact.POSTED] - facts[fact.SKIPPED])
    state = "frozen" if layer._frozen else "learning"
    return (
        f"<{called(layer)}: {int(facts[fact.SERVED]):,} served, "
        f"{learned:,} labels learned from, {len(layer._book):,} open, {state}>"
    )
