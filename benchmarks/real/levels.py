"""Several quantile levels at once, which must not cross.

Covid deaths come with forecasts at 23 levels, in order of date: all of them as one stream, and each state and horizon
as a series of its own (some 50 rows, as the authors of MultiQT run it). The other streams have one point forecast
and seven levels around it. After a warm-up of 500 rows (10 of a short series): coverage error, mean over the levels
and of the worst one; of the worst level in its worst window and group; rows where levels cross before they are
sorted; pinball loss (the weighted interval score but for a factor); width of the widest central interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.online.aci import aci
from benchmarks.online.by_level import by_level
from benchmarks.online.dtaci import dtaci
from benchmarks.online.multiqt import multiqt
from benchmarks.online.pid import pid
from benchmarks.online.plain import once, rolling
from benchmarks.online.sf_ogd import sf_ogd
from benchmarks.real.errors import worst_group, worst_window
from benchmarks.real.kind import Figures, Kind, Measure, Rule
from benchmarks.real.streams import WARM, of_kinds
from gradeq import MultiQuantileTracker
from gradeq.datasets import covid

AROUND = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
POINTS = ("flights delay, origin", "elec2 demand", "elec2 price", "french prices, hour")
SHORT = 10


class Forecasts(NamedTuple):
    """``f`` has a column for each level; ``given``: these are quantiles, not one point forecast again and again.

    ``series``: the rows of each series, which is tracked by itself; ``warm`` rows of each are not judged.
    """

    levels: tuple[float, ...]
    f: Any
    y: Any
    group: Any
    series: list[Any]
    warm: int
    given: bool


Served = Callable[[Forecasts], Any]


def in_series(rule: Callable[[Any, Any, Forecasts, Any], Any]) -> Served:
    """A rule on every series by itself."""

    def serve(stream: Forecasts) -> Any:
        served = np.empty(stream.f.shape)
        for rows in stream.series:
            served[rows] = rule(stream.f[rows], stream.y[rows], stream, rows)
        return served

    return serve


def by_gradeq(eta: Any, grouped: bool = False) -> Served:
    """A tracker of gradeq."""

    def serve(f: Any, y: Any, stream: Forecasts, rows: Any) -> Any:
        layer = MultiQuantileTracker(stream.levels, eta, groups=["g"] if grouped else ())
        where = {"groups": {"g": stream.group[rows]}} if grouped else {}
        return np.asarray(layer.run(f, y, **where).served)

    return in_series(serve)


def by_linear(f: Any, y: Any, stream: Forecasts, rows: Any) -> Any:
    """gradeq with link linear; the step needs the unit of the labels, which the warm-up gives."""
    unit = float(np.abs(y[: stream.warm, None] - f[: stream.warm]).mean()) or 1.0
    layer = MultiQuantileTracker(stream.levels, 0.1 * unit, link="linear")
    return np.asarray(layer.run(f, y).served)


def alone(rule: Callable[..., Any]) -> Served:
    """A rule for thresholds, at every level by itself."""
    return in_series(lambda f, y, stream, _: by_level(rule, f, y, stream.levels, stream.warm))


def measured(stream: Forecasts, served: Any) -> Figures:
    """The measures of one rule on one stream."""
    judged = np.sort(np.concatenate([rows[stream.warm :] for rows in stream.series]))
    served, y, group = served[judged], stream.y[judged, None], stream.group[judged]
    crossed = (served[:, 1:] < served[:, :-1]).any(axis=1)
    served, levels = np.sort(served, axis=1), np.array(stream.levels)
    off = (y <= served) - levels
    errors = np.abs(off.mean(axis=0))
    groups = [worst_group(group, own) for own in off.T]
    return {
        "error": float(errors.mean()),
        "level": float(errors.max()),
        "window": max(worst_window(own) for own in off.T),
        "group": None if None in groups else max(groups),
        "crossing": float(crossed.mean()),
        "pinball": float(np.maximum(levels * (y - served), (levels - 1.0) * (y - served)).mean()),
        "width": float((served[:, -1] - served[:, 0]).mean()),
    }


def of_levels() -> Iterator[tuple[str, Forecasts]]:
    """Covid deaths in two ways, then point forecasts."""
    yield from of_covid()
    for name, stream in of_kinds(("real",), 4 * WARM):
        if name.removesuffix(" *") in POINTS:
            f = np.repeat(stream.f[:, None], len(AROUND), axis=1)
            whole = [np.arange(len(f))]
            yield name, Forecasts(AROUND, f, stream.y, stream.group, whole, WARM, False)


def of_covid() -> Iterator[tuple[str, Forecasts]]:
    """All forecasts as one stream, judged by state; and each state and horizon by itself, judged by horizon."""
    data = covid.load()
    order = np.flatnonzero(np.isfinite(data.deaths))
    order = order[np.argsort(data.forecast_date[order], kind="stable")]
    f, y, place = data.quantiles[order], data.deaths[order], data.place[order]
    horizon = data.horizon[order].astype(str)
    key = np.char.add(np.char.add(place.astype(str), " "), horizon)
    each = [np.flatnonzero(key == name) for name in np.unique(key)]
    whole = [np.arange(len(y))]
    yield "covid, one stream", Forecasts(covid.LEVELS, f, y, place, whole, WARM, True)
    yield "covid, each series", Forecasts(covid.LEVELS, f, y, horizon, each, SHORT, True)


KIND = Kind(
    name="levels",
    title="Several quantile levels",
    explained=(
        "Quantiles at seven levels around a point forecast, or at the 23 levels of given forecasts. Rules that track "
        "each level by itself are sorted before they are judged."
    ),
    ours="gradeq auto",
    measures=(
        Measure("error", "coverage error", ".4f", "mean"),
        Measure("level", "worst level", ".4f", "mean"),
        Measure("window", "worst 500 rows", ".3f", "mean"),
        Measure("group", "worst group", ".3f", "mean"),
        Measure("crossing", "crossing", ".1%", "mean"),
        Measure("pinball", "pinball loss", ".3f", "ratio"),
        Measure("width", "width", ".3f", "ratio"),
    ),
    rules={
        "given": Rule(
            "the quantile forecasts as they are; covid only, others have none",
            lambda stream: stream.f if stream.given else None,
        ),
        "gradeq auto": Rule("MultiQuantileTracker(levels), the default", by_gradeq("auto")),
        "gradeq auto, groups": Rule("the same with the groups of the stream", by_gradeq("auto", True)),
        "gradeq plain": Rule('MultiQuantileTracker(levels, "plain"): link sinh, step 0.1', by_gradeq("plain")),
        "gradeq linear": Rule(
            "link linear, step 0.1 x mean |label - forecast| of the warm-up", in_series(by_linear)
        ),
        "MultiQT": Rule(
            "Ding, Gibbs and Tibshirani 2025, step 0.1 x the 0.9 quantile of 50 |label - forecast|",
            in_series(lambda f, y, stream, _: multiqt(f, y, stream.levels)),
        ),
        "batch, once": Rule("quantiles of the residuals of the warm-up, for ever", alone(once)),
        "rolling 500": Rule("quantiles of the last 500 residuals", alone(rolling)),
        "ACI, sorted": Rule("Gibbs and Candès 2021, step 0.005, each level by itself", alone(aci)),
        "DtACI, sorted": Rule("Gibbs and Candès 2022, each level by itself", alone(dtaci)),
        "PI control, sorted": Rule(
            "Angelopoulos, Candès and Tibshirani 2023, each level by itself", alone(pid)
        ),
        "SF-OGD, sorted": Rule("Bhatnagar et al. 2023, each level by itself", alone(sf_ogd)),
    },
    streams=of_levels,
    measured=measured,
)  # fmt: skip
