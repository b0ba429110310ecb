"""Seeded streams of predictions and labels, late, doubled and wrong ones among them, and the library on them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gradeq as gq
from gradeq.engine.tickets import id_of
from gradeq.errors import BadInput
from gradeq.layers.run import outcome_of

SCHEMA = "shop string, row long, at double, forecast double, sold double"
COLUMNS = {"prediction": "forecast", "label": "sold", "key": "shop", "id": "row", "order": "at"}


def events_table(seed: int, n: int = 300, keys: int = 9) -> pa.Table:
    """Events in order of ``at``: predictions, labels later, some twice, some changed, some of no id known."""
    rng = np.random.default_rng(seed)
    own, base = rng.integers(0, keys, n), rng.normal(size=n)
    label = base + 0.2 * own + rng.normal(size=n)
    found: list[tuple[Any, ...]] = []
    for k in range(n):
        shop, at = f"shop {own[k]}", float(k)
        due = at + float(rng.integers(1, n // 5)) + 0.5
        found.append((shop, k, at, float(base[k]), None))
        chance = rng.random()
        if chance < 0.85:
            found.append((shop, k, due, None, float(label[k])))
        if chance < 0.1:
            found.append((shop, k, due + 0.1, None, float(label[k])))  # again
        elif chance < 0.15:
            found.append((shop, k, due + 0.1, None, float(label[k]) + 1.0))  # another
        elif chance < 0.2:
            found.append((shop, n + k, at, None, 1.0))  # of nobody
        elif chance < 0.25:
            found.append((shop, k, at + 0.2, float(base[k]), None))  # a prediction again
        elif chance < 0.28:
            found.append((shop, 2 * n + k, at, math.inf, None))  # none at all
    found.sort(key=lambda event: (event[2], event[4] is not None, event[1]))
    names = [field.split()[0] for field in SCHEMA.split(", ")]
    kinds = [pa.string(), pa.int64(), pa.float64(), pa.float64(), pa.float64()]
    columns = zip(*found, strict=True)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names)


def write_batches(table: pa.Table, folder: Path, count: int) -> None:
    """One file for each micro-batch, rows shuffled inside; sources take files by their time."""
    import os

    folder.mkdir()
    rng = np.random.default_rng(2)
    size = -(-len(table) // count)
    for k in range(count):
        part = table.slice(k * size, size)
        path = folder / f"{k}.parquet"
        pq.write_table(part.take(rng.permutation(len(part))), path)
        os.utime(path, (1_700_000_000 + k, 1_700_000_000 + k))


def library_outcomes(layer: gq.Keyed, table: pa.Table) -> list[tuple[Any, ...]]:
    """Key, id, what it was, outcome and served value of every event, from the library's own verbs."""
    found: list[tuple[Any, ...]] = []
    served: dict[int, float] = {}
    for event in table.to_pylist():
        id, key = id_of(event["row"]), event["shop"]
        if event["sold"] is not None:
            outcome = outcome_of(lambda y=event["sold"], id=id: layer.update(y, id))
            found.append((key, id, "label", outcome, None))
        elif id in served:
            found.append((key, id, "prediction", "duplicate", served[id]))
        else:
            try:
                served[id] = layer.predict(event["forecast"], key=key, id=id)
                found.append((key, id, "prediction", "served", served[id]))
            except BadInput:
                found.append((key, id, "prediction", "rejected", None))
    return sorted(found, key=repr)
