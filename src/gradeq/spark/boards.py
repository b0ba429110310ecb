"""Leaderboards over games on many machines: pair tables add up exactly, so the board is that of one machine.

Each partition is played by a layer of its own, and the layers are merged in a tree. What is learned game by game
depends on the order of games and means little after a merge; the table of who met whom, and how it went, does not,
and ``leaderboard("all-time")`` is made from that alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gradeq.errors import BadInput
from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json
from gradeq.ledger import facts as fact
from gradeq.spark.refusals import refusals
from gradeq.spark.roles import OURS, check_frame, one
from gradeq.spark.session import check_spark

STATE = f"{OURS}state"
BRANCHES = 8  # layers that one worker merges


def elo(
    frame: Any, layer: Elo, *, a: str, b: str, score: str, weight: str | None = None, home: str | None = None
) -> Elo:  # fmt: skip
    """The layer after all games of a table; its ``leaderboard("all-time")`` is that of one machine, bit for bit.

    Scores that are null are refused, as the library refuses them.
    """
    names = checked(frame, layer, a, b, score, weight, home)
    pattern = layer.to_json()

    def played(batches: Iterator[Any]) -> Iterator[Any]:
        own: Any = from_json(pattern)
        for batch in batches:
            if len(batch):
                own.run(*sides(batch, names), **further(batch, names))
        yield states([own.to_json()])

    def joined(batches: Iterator[Any]) -> Iterator[Any]:
        own: Any = from_json(pattern)
        for batch in batches:
            for text in batch[STATE].to_pylist():
                own.merge(from_json(text))
        yield states([own.to_json()])

    parts = frame.rdd.getNumPartitions()
    found = frame.select(*names.values()).mapInArrow(played, f"{STATE} string")
    while parts > BRANCHES:
        parts = -(-parts // BRANCHES)
        found = found.repartition(parts).mapInArrow(joined, f"{STATE} string")
    with refusals():
        texts = [row[0] for row in found.collect()]
    whole = layer.copy()
    for text in texts:
        other = from_json(text)
        assert isinstance(other, Elo)
        whole.merge(other)
    return whole


def states(texts: list[str]) -> Any:
    """States as a batch of arrow's."""
    return pa.record_batch([pa.array(texts)], [STATE])


def sides(batch: Any, names: dict[str, str]) -> list[Any]:
    """Both players and the score."""
    a, b = (batch[names[side]].to_pylist() for side in ("a", "b"))
    return [a, b, numbers(batch, names["score"])]


def further(batch: Any, names: dict[str, str]) -> dict[str, Any]:
    """Weights and the sides at home, where there are columns of them."""
    known = {"weights": names.get("weight"), "home": names.get("home")}
    return {what: numbers(batch, name) for what, name in known.items() if name is not None}


def numbers(batch: Any, name: str) -> Any:
    """A column of numbers; one that is null is refused."""
    if batch[name].null_count:
        raise BadInput(f"column {name!r} has nulls; leave out games without it")
    return np.asarray(batch[name].cast(pa.float64()).to_numpy(zero_copy_only=False))


def checked(
    frame: Any, layer: Any, a: Any, b: Any, score: Any, weight: Any, home: Any
) -> dict[str, str]:
    """The columns by what they are; what does not fit is refused before any job starts."""
    from pyspark.sql import types as T

    check_spark()
    check_frame(frame)
    if not isinstance(layer, Elo):
        raise BadInput(f"layer is {layer!r}; give an Elo layer such as gradeq.Elo(eta=0.1)")
    if layer._state.facts[fact.SERVED]:
        raise BadInput(
            "the layer has served games already; give a fresh one, and merge it afterwards"
        )
    if layer.dates:
        raise BadInput("partitions know no order of dates; give an Elo layer without dates")
    given = {"a": a, "b": b, "score": score, "weight": weight, "home": home}
    names = {
        what: own for what, own in given.items() if one(own, what, what in ("a", "b", "score"))
    }
    for what, name in names.items():
        if frame.columns.count(name) != 1:
            reason = "is there more than once" if name in frame.columns else "is missing"
            raise BadInput(f"column {name!r} {reason}; the frame has {', '.join(frame.columns)}")
        side = what in ("a", "b")
        wanted = (T.StringType, T.IntegralType) if side else (T.NumericType, T.BooleanType)
        if not isinstance(frame.schema[name].dataType, wanted):
            found = frame.schema[name].dataType.simpleString()
            words = "text or a whole number" if side else "a number"
            raise BadInput(f"column {name!r} holds {found}, not {words}; cast it first")
    return names
