"""What only the rows of a run can show: means over time, the path of theta, served values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.report import story as told
from gradeq.report.tally import Tally
from gradeq.report.thin import Blocks, numbers, window


def drawn(layer: Any, run: Any, targets: list[float]) -> dict[str, Any]:
    """The parts of a story that a run adds; none without one; ``targets`` are those of the coverages."""
    if run is None:
        return {}
    bounded = getattr(layer, "layer", layer).settings.get("outcome") == "binary"
    tally = Tally(0.0, 1.0) if bounded else Tally()
    tally.add(np.asarray(run.values).ravel())
    found: dict[str, Any] = {"histogram": tally.histogram()}
    rolled = rolling(getattr(layer, "layer", layer).kind, run, targets)
    if rolled is not None:
        found["rolling"] = rolled
    if layer.kind in ("debias", "quantile", "interval", "quantiles"):
        auto = getattr(layer, "eta", None) == "auto"
        found["theta"] = (_as_served(layer, run),) if auto else (_theta(run),)
    return found


SURE = 1e-12  # probabilities nearer to 0 or 1 are drawn as this


def rolling(kind: str, run: Any, targets: list[float]) -> told.Rolling | None:
    """Trailing means over the labelled rows, in the order in which they were served."""
    columns = run.columns
    order = np.arange(len(columns.base))
    if columns.times is not None:
        order = np.argsort(columns.times, kind="stable")
    base, served, y = (
        np.asarray(column)[order] for column in (columns.base, run.values, columns.labels)
    )
    known = ~np.isnan(y)
    base, served = (c.reshape(len(c), -1)[known] for c in (base, served))
    y = y[known]
    measures = {
        "before": base[:, 0], "after": served[:, 0], "label": y,
        "upper_before": base[:, -1], "upper_after": served[:, -1],
    }  # fmt: skip
    for k, _ in enumerate(targets):
        for when, values in (("before", base), ("after", served)):
            below = y <= values[:, min(k, values.shape[1] - 1)]
            if kind == "interval" and values.shape[1] > 1:
                below = (values[:, 0] < y) & (y <= values[:, -1])
            measures[f"cover{k}_{when}"] = below.astype(float)
    blocks = Blocks(tuple(measures))
    blocks.add(measures, (np.flatnonzero(known) + 1).astype(np.float64))
    series = blocks.trailing(window(len(y)))
    if len(series.x) < 2:
        return None
    mean = {name: values for name, values in series.means.items()}
    if targets:
        tracked = [
            (f"{t:g}", t, mean[f"cover{k}_before"], mean[f"cover{k}_after"])
            for k, t in enumerate(targets)
        ]
    else:
        tracked = [("", 0.0, mean["before"] - mean["label"], mean["after"] - mean["label"])]
    wide = served.shape[1] > 1
    upper = [numbers(mean[f"upper_{when}"]) if wide else () for when in ("before", "after")]
    width = [
        numbers(mean[f"upper_{when}"] - mean[when]) if kind == "interval" else ()
        for when in ("before", "after")
    ]
    return told.Rolling(
        "row", "row", series.window, tuple(series.x.tolist()), numbers(mean["before"]),
        numbers(mean["after"]), numbers(mean["label"]),
        tuple(told.Tracked(n, t, numbers(b), numbers(a)) for n, t, b, a in tracked),
        upper[0], upper[1], 1.0, None, width[0], width[1],
    )  # fmt: skip


def _as_served(layer: Any, run: Any) -> told.Panel:
    """What was added to the predictions, the mean of recent rows: with auto no parameter says that."""
    columns = run.columns
    order = np.arange(len(columns.base))
    if columns.times is not None:
        order = np.argsort(columns.times, kind="stable")
    base, served = (np.asarray(own)[order] for own in (columns.base, run.values))
    added = corrections(layer, *(own.reshape(len(own), -1) for own in (base, served)))
    levels = [f"{tau:g}" for tau in getattr(layer, "levels", ())]
    names = levels if len(levels) > 1 else ["(all)"]
    blocks = Blocks(names)
    blocks.add(dict(zip(names, added.T, strict=True)))
    series = blocks.trailing(window(len(added)))
    lines = tuple(told.Line(name, numbers(series.means[name])) for name in names[:8])
    return told.Panel("", "row", tuple(series.x.tolist()), lines)


def _theta(run: Any) -> told.Panel:
    """The first parameters along the run."""
    trace = run.trace
    rows = np.asarray(trace.rows, dtype=float).tolist()
    lines = tuple(
        told.Line(name, numbers(np.asarray(trace.theta)[:, i]))
        for i, name in enumerate(trace.names[:8])
    )
    return told.Panel("", "row", tuple(rows), lines)


def corrections(layer: Any, base: Any, served: Any) -> Any:
    """What was added to predictions as they were served: in log-odds for probabilities, else in the label's units."""
    if getattr(layer, "link_name", "") != "logit":
        return served - base
    raw = np.clip(base, layer.clip, 1.0 - layer.clip)
    now = np.clip(served, SURE, 1.0 - SURE)
    return np.log(now / (1.0 - now)) - np.log(raw / (1.0 - raw))
