"""Seeded rows of many keys, and the library's own run over them."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import gradeq as gq

LAYERS = {
    "debias": lambda: gq.Debiaser(eta=0.1),
    "groups": lambda: gq.Debiaser(eta=0.05, groups=["region"]),
    "features": lambda: gq.Debiaser(eta=0.02, features=["size"]),
    "bins": lambda: gq.Debiaser(eta=0.05, bins=[-0.5, 0.5]),
    "falling": lambda: gq.Debiaser(schedule=gq.Power(0.5, 0.5)),
    "quantile": lambda: gq.QuantileTracker(0.8),
    "quantiles": lambda: gq.MultiQuantileTracker([0.1, 0.5, 0.9]),
    "interval": lambda: gq.IntervalTracker(0.8),
}
WIDTH = {"quantiles": 3, "interval": 2}


class Rows(NamedTuple):
    """Rows in their order, and how the library is called with them."""

    table: pa.Table
    layer: gq.Keyed
    run: Any


def table_of(seed: int, n: int = 600, keys: int = 25) -> pa.Table:
    """Rows in order of (time, number): keys of many spellings, labels that are missing, late, of other weights."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, keys, n)
    spelled = [(f"shop {k}", str(k), f"{k}.0")[k % 3 if k % 3 < 2 else 1 + j % 2] for j, k in enumerate(own)]
    base = rng.normal(size=n)
    label = base + 0.1 * own + rng.normal(size=n)
    label[rng.random(n) < 0.1] = np.nan
    times = np.sort(rng.integers(0, n, n))
    return pa.table(
        {
            "shop": pa.array(spelled),
            "forecast": base,
            "low": base - 1.0,
            "high": base + 1.0,
            "sold": pa.array(label, from_pandas=True),
            "time": times,
            "number": np.arange(n),
            "known": times + rng.integers(0, n // 6 + 1, n),
            "weight": rng.choice([0.0, 0.5, 1.0, 2.0], n),
            "region": rng.choice(["north", "south"], n),
            "size": rng.normal(size=n),
            "row": [f"r{seed}-{k}" for k in range(n)],
        }
    )


def library_run(layer: gq.Keyed, table: pa.Table, late: bool, weights: bool = False, ids: bool = False) -> Any:
    """What the library serves for these rows, which are in order."""
    return layer.run(
        np.asarray(table["forecast"]),
        table["sold"],
        key=table["shop"],
        groups={"region": table["region"]} if "region" in layer.internals.names.groups else None,
        features={"size": table["size"]} if layer.internals.names.features else None,
        times=table["time"] if late else None,
        label_times=table["known"] if late else None,
        weights=table["weight"] if weights else None,
        ids=table["row"] if ids else None,
    )


def columns_of(late: bool, weights: bool = False, ids: bool = False) -> dict[str, Any]:
    """The same rows by the names of their columns."""
    return {
        "prediction": "forecast",
        "label": "sold",
        "key": "shop",
        "order": ["time", "number"],
        "label_time": "known" if late else None,
        "weight": "weight" if weights else None,
        "id": "row" if ids else None,
    }


def served_of(table: pa.Table) -> np.ndarray:
    """The columns that were added, rows in the order of their numbers."""
    table = table.sort_by("number")
    added = [name for name in table.column_names if name.startswith("adjusted") or name in ("lower", "upper")]
    return np.stack([np.asarray(table[name]) for name in added], axis=1)


def as_table(served: Any) -> np.ndarray:
    return served[:, None] if served.ndim == 1 else served


def by_key(layer: gq.Keyed) -> dict[str, Any]:
    """Everything learned and owed, by the name of its key: what does not depend on how keys share a layer."""
    state, names = layer.internals.state, layer.internals.names
    pairs = names.names
    found: dict[str, Any] = {}
    for column in state.columns:
        if column.per in ("parameter", "key") and len(getattr(state, column.name)):
            rows = state.view(column.name).reshape(-1, len(column.start)).tolist()
            if column.name == "steps":  # sums of squares are at most so large, by the heaviest weight of any key
                rows = [row[::2] for row in rows]
            own = pairs if column.per == "parameter" else layer.keys
            found |= {f"{column.name} of {name}": row for name, row in zip(own, rows, strict=True)}
    for own in layer.internals.tickets.waiting.values():
        place = (own.ticket.row.key, own.time, own.due, own.y, own.ticket.served, own.ticket.counts)
        found[f"waiting {place}"] = own.id
    found["closed"] = {id: (post.eta, post.y) for id, post in layer.internals.tickets.closed.items()}
    found["open"] = sorted(layer.internals.tickets.by_id)
    return found
