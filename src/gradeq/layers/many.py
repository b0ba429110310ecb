"""Many events in one call: columns or a frame in, the same kind out, with the bits of one event at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from gradeq.engine.columns import Columns
from gradeq.engine.keeping import Kept
from gradeq.engine.tickets import warn_replaced
from gradeq.errors import BadInput
from gradeq.frames import same_index
from gradeq.layers import columns as check
from gradeq.layers.answering import outcome_of
from gradeq.layers.run import checked_ids, grouped
from gradeq.layers.several import answer
from gradeq.naming import name_of

NAMES = {"weights": "weight", "ids": "id", "times": "time", "key": "key"}


def serve_many(layer: Any, predictions: Any, **given: Any) -> Any:
    """Check everything, then serve all rows in one pass; every ticket is kept. Refused means unchanged.

    ``given``: groups, features, weights, ids, times and, for many series, key. A frame with a column ``prediction``
    may hold all of them under their own names (weight, id, time, key) and comes back with what was served.
    """
    frame = frame_with(predictions, "prediction")
    if frame is not None:
        predictions, given = unpacked(layer, frame, given)
    same_index(predictions=predictions, **given)
    base = layer._base_column(predictions)
    n = len(base)
    groups, features = grouped(layer, base, given["groups"], given["features"])
    weights = None if given["weights"] is None else check.weights(given["weights"], n)
    if weights is not None:
        check.same_length(n, len(weights), "weights")
    series: tuple[Any, ...] = ()
    if "key" in given:
        series = (given["key"],)
        if given["key"] is None:
            raise BadInput(
                "predict_many needs key: the column that says to which series a row belongs"
            )
    kept = tickets_of(layer, n, given["ids"], given["times"])
    replaced = singles_of(layer, kept, *series)

    when = clock_of_rows(layer, n, given["times"])

    def made() -> Columns:
        placed = layer._names.columns(*series, n, groups, features)
        return Columns(base, kept.heard, weights, placed, when, kept=kept)

    missing = [] if when is None or not n else layer._book.count_missing(float(when.max()))
    try:
        ran, _ = layer._run(made)
    except Exception:
        layer._book.reopen(missing)
        raise
    for own in replaced:
        layer._book.replace_single(own)
    shown = layer._shown(base, ran.served)
    return answer(predictions, shown) if frame is None else with_served(layer, frame, shown)


def clock_of_rows(layer: Any, n: int, times: Any) -> Any:
    """The times that labels may become due at, between the rows; None where no label waits for its row to mature."""
    if not layer._book.maturity:
        return None
    if times is None:
        raise BadInput("a layer with maturity needs times: when each row was served")
    return check.times(times, n, "times", layer._book).values


def tickets_of(layer: Any, n: int, ids: Any, times: Any) -> Kept:
    """The tickets of rows whose labels are all still to come: ids and times, checked."""
    own = checked_ids(layer, ids, n)
    moments = None
    if times is not None:
        when = check.times(times, n, "times", layer._book).values
        moments = [float(time) for time in when.tolist()]
    return Kept(own, np.full(n, math.nan), moments)


def singles_of(layer: Any, kept: Kept, key: Any = None) -> list[str | None]:
    """The keys whose open prediction without an id this batch replaces; None stands for a layer without keys."""
    book = layer._book
    waiting = [own for own in book.singles if book.single(own) is not None]
    if not waiting:
        return []
    keys = [None] * len(kept.ids) if key is None else map(name_of, check.cells(key, "key"))
    coming = {own for own, id in zip(keys, kept.ids, strict=False) if id is None}
    found = [own for own in waiting if own in coming]
    if found and not book.replaced:
        warn_replaced(found[0])
    return found


def answer_many(verb: Callable[..., str], labels: Any, given: Mapping[str, Any]) -> Any:
    """The outcome of every label, in the form of the labels; ``given``: columns of further arguments of the verb."""
    from gradeq import frames

    frame = frame_with(labels, "label")
    if frame is not None:
        labels = frame["label"].to_native()
        given = {name: column_of(frame, name, own) for name, own in given.items()}
    same_index(labels=labels, **given)
    rows = check.cells(labels, "labels")
    found = {name: check.cells(own, name) for name, own in given.items() if own is not None}
    for name, own in found.items():
        if len(own) != len(rows):
            raise BadInput(
                f"{name} has {len(own)} rows, labels have {len(rows)}; give columns of one length"
            )
    outcomes = []
    for k, y in enumerate(rows):
        arguments = {name: cells[k] for name, cells in found.items()}
        outcomes.append(outcome_of(partial(verb, y, **arguments)))
    if frame is not None:
        return frames.with_columns(frame, {"outcome": outcomes})
    return frames.like(labels, np.array(outcomes, dtype=object))


def frame_with(value: Any, column: str) -> Any:
    """The value as narwhals sees it, if it is a data frame with this column; else None."""
    if not hasattr(value, "columns") and not hasattr(value, "column_names"):
        return None
    import narwhals as nw

    frame = nw.from_native(value, eager_only=True)
    return frame if column in frame.columns else None


def column_of(frame: Any, name: str, given: Any) -> Any:
    """What was given beside the frame, or else the frame's own column of this name, if it has one."""
    if given is not None or name not in frame.columns:
        return given
    return frame[name].to_native()


def unpacked(layer: Any, frame: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Predictions and what goes with them, out of one frame."""
    found = {
        name: column_of(frame, own, given[name]) for name, own in NAMES.items() if name in given
    }
    for kind, names in (("groups", layer._names.groups), ("features", layer._names.features)):
        own = {name: frame[name].to_native() for name in names if name in frame.columns}
        found[kind] = given[kind] if given[kind] is not None else own or None
    return frame["prediction"].to_native(), found


def with_served(layer: Any, frame: Any, shown: Any) -> Any:
    """The frame with what was served: ``adjusted``; of several levels ``adjusted_0.9``, of an interval both ends."""
    from gradeq import frames

    table = shown[:, None] if shown.ndim == 1 else shown
    names = served_names(layer, table.shape[1])
    return frames.with_columns(frame, dict(zip(names, table.T, strict=True)))


def served_names(layer: Any, width: int) -> list[str]:
    """The names of the columns of what was served: one, one for each level, or the ends of an interval."""
    if width == 1:
        return ["adjusted"]
    own = getattr(layer, "layer", layer)
    names = [f"adjusted_{level:g}" for level in own.levels]
    return names if width == len(names) and own.kind != "interval" else ["lower", "upper"]
