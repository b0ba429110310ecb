"""Numbers and probabilities whose mean should be that of the labels.

After a warm-up of 500 rows (of a short stream its first quarter): bias overall, in the worst window and in the worst
group, in standard deviations of the raw errors, so that streams can be averaged; squared error (of probabilities:
Brier score); of probabilities the log loss, with probabilities kept at least 0.001 away from 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.online.isotonic import isotonic
from benchmarks.online.newton import least_squares, online_platt
from benchmarks.online.offset import offset, rolling_offset
from benchmarks.online.platt import line, platt
from benchmarks.online.refitted import Fit, in_groups, once, rolling
from benchmarks.quality_streams import Stream
from benchmarks.real.errors import worst_group, worst_window
from benchmarks.real.kind import Figures, Kind, Measure, Rule
from benchmarks.real.streams import WARM, of_kinds
from gradeq import Debiaser

LEAST = 1e-3


def by_gradeq(eta: Any, grouped: bool = False) -> Callable[[Stream], Any]:
    """A debiaser of gradeq."""

    def serve(stream: Stream) -> Any:
        layer = Debiaser(eta, outcome=stream.kind, groups=["g"] if grouped else ())
        where = {"groups": {"g": stream.group}} if grouped else {}
        return np.asarray(layer.run(stream.f, stream.y, **where).served)

    return serve


def in_bins(stream: Stream) -> Any:
    """A debiaser of gradeq that keeps tenths of the predictions unbiased; the warm-up says where tenths begin."""
    edges = np.unique(np.quantile(stream.f[: warm_up(stream)], np.arange(1, 10) / 10))
    layer = Debiaser("auto", outcome=stream.kind, bins=edges.tolist())
    return np.asarray(layer.run(stream.f, stream.y).served)


def warm_up(stream: Stream) -> int:
    """The rows that are not judged; what is fitted once is fitted to them."""
    return min(WARM, len(stream.y) // 4)


def binary(stream: Stream) -> bool:
    """Whether it is one of probabilities."""
    return stream.kind == "binary"


def scaled(stream: Stream) -> Fit:
    """Platt scaling, or its like for numbers."""
    return platt if binary(stream) else line


def by_online_regression(stream: Stream) -> Any:
    """Online Platt scaling, or recursive least squares."""
    return (online_platt if binary(stream) else least_squares)(stream.f, stream.y)


def by_rolling_offset_in_groups(stream: Stream) -> Any:
    """The last 500 residuals of the group."""
    return in_groups(rolling_offset(binary(stream)), stream.f, stream.y, stream.group)


def measured(stream: Stream, served: Any) -> Figures:
    """The measures of one rule on one stream."""
    warm = warm_up(stream)
    y, f, group = (column[warm:] for column in (stream.y, stream.f, stream.group))
    errors = served[warm:] - y
    unit, group_bias = float(np.std(f - y)), worst_group(group, errors)
    p = np.clip(served[warm:], LEAST, 1.0 - LEAST)
    log_loss = float(-np.mean(np.log(np.where(y > 0.5, p, 1.0 - p)))) if binary(stream) else None
    return {
        "bias": abs(float(errors.mean())) / unit,
        "window": worst_window(errors) / unit,
        "group": None if group_bias is None else group_bias / unit,
        "loss": float(np.mean(errors**2)),
        "log_loss": log_loss,
    }


def of_means() -> Iterator[tuple[str, Stream]]:
    """Every stream of numbers or probabilities."""
    return of_kinds(("real", "binary"), WARM)


KIND = Kind(
    name="means",
    title="Numbers and probabilities",
    explained=(
        "Predictions whose mean should be that of the labels; biases are in standard deviations of the raw errors. "
        "Platt scaling, isotonic and online regression also change how predictions are spread; gradeq does with bins."
    ),
    ours="gradeq auto",
    measures=(
        Measure("bias", "bias", ".4f", "mean"),
        Measure("window", "worst 500 rows", ".3f", "mean"),
        Measure("group", "worst group", ".3f", "mean"),
        Measure("loss", "squared error", ".3f", "ratio"),
        Measure("log_loss", "log loss", ".3f", "ratio"),
    ),
    rules={
        "raw": Rule("the predictions as they are", lambda stream: stream.f),
        "gradeq auto": Rule("Debiaser(), the default", by_gradeq("auto")),
        "gradeq auto, groups": Rule("the same with the groups of the stream", by_gradeq("auto", True)),
        "gradeq auto, bins": Rule("the same with tenths of the prediction as groups", in_bins),
        "gradeq plain": Rule(
            'Debiaser(eta="plain"): one step, 0.01 for numbers, 0.03 for probabilities', by_gradeq("plain")
        ),
        "batch offset": Rule(
            "the mean of the first 500 residuals, for ever",
            lambda stream: once(offset(binary(stream)), stream.f, stream.y, warm_up(stream)),
        ),
        "batch Platt": Rule(
            "Platt scaling (1999) of the first 500; numbers: least squares (Mincer and Zarnowitz 1969)",
            lambda stream: once(scaled(stream), stream.f, stream.y, warm_up(stream)),
        ),
        "batch isotonic": Rule(
            "isotonic regression (Zadrozny and Elkan 2002) of the first 500",
            lambda stream: once(isotonic, stream.f, stream.y, warm_up(stream)),
        ),
        "rolling offset": Rule(
            "the mean of the last 500 residuals, renewed at every row",
            lambda stream: rolling_offset(binary(stream))(stream.f, stream.y),
        ),
        "rolling offset 50": Rule(
            "the mean of the last 50, which follows sooner",
            lambda stream: rolling_offset(binary(stream), 50)(stream.f, stream.y),
        ),
        "rolling offset, groups": Rule("the last 500 of every group", by_rolling_offset_in_groups),
        "rolling Platt": Rule(
            "Platt scaling or least squares of the last 500, every 50 rows",
            lambda stream: rolling(scaled(stream), stream.f, stream.y),
        ),
        "rolling isotonic": Rule(
            "isotonic regression of the last 500, every 50 rows",
            lambda stream: rolling(isotonic, stream.f, stream.y),
        ),
        "online Platt": Rule(
            "Gupta and Ramdas 2023, online Newton step; numbers: recursive least squares", by_online_regression
        ),
    },
    streams=of_means,
    measured=measured,
)  # fmt: skip
