"""What one call of debias or quantile is to do, and the layer that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.cli.content import Content
from gradeq.cli.delay import RowClock, Turns, times_of
from gradeq.cli.judge import Judge
from gradeq.cli.options import Common
from gradeq.cli.reading import Piece
from gradeq.cli.state_file import read_state
from gradeq.errors import BadInput, Diverging
from gradeq.files import Codebook
from gradeq.files.numbers import Floats
from gradeq.numerics import FAINT, HUGE, LARGEST, SMALLEST

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


NOT_BINARY = "lies outside [0, 1]; --outcome binary needs probabilities and labels in [0, 1]"


@dataclass(frozen=True)
class Task:
    """Columns, judge and layer of a call; ``make`` builds the layer for a step, ttl and maturity."""

    command: str
    common: Common
    prediction: tuple[str, ...]
    label: str | None
    new: tuple[str, ...]
    judge: Judge
    make: Callable[[float | str | None, Mapping[str, Any]], Layer]
    by: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    key: str | None = None
    outcome: str = "real"
    link: str = "identity"
    levels: tuple[str, ...] = ()
    interval: str | None = None
    several: bool = False  # the layer takes and serves one column for each level
    support: tuple[float | None, float | None] | None = None  # --min and --max
    keys_out: str | None = None
    poolable: bool = False  # --pool would go with these options

    def __post_init__(self) -> None:
        known = {"--prediction": self.prediction, "--by": self.by, "--feature": self.features}
        for option, names in {**known, "--key": (self.key,)}.items():
            if self.label is not None and self.label in names:
                raise BadInput(
                    f"{self.label!r} is given as {option} and as --label; a label is not known when its row is "
                    "served: give each its own column"
                )

    def fresh(self, eta: float | str | None, late: Mapping[str, Any]) -> Layer:
        """A new layer; what Python would warn of stands in the summary."""
        from gradeq.layers.doubts import silenced

        return silenced(self.make(eta, late))

    @property
    def limited(self) -> bool:
        """Whether labels are judged by values before --min and --max, so that the served ones have figures too."""
        return self.support is not None and self.command == "quantile"

    def used(self, measure: str) -> str:
        """The name of a measure of the values in use: inside --min and --max."""
        return f"{measure}_clipped" if self.limited else measure

    @property
    def errors(self) -> list[str]:
        """What is shown of errors: the bias, or the coverage in use of the interval or of each level."""
        if self.command == "debias":
            return ["bias"]
        each = [f"cover{k}" for k in range(len(self.levels))]
        return [self.used(own) for own in (["inside"] if self.interval is not None else each)]

    @property
    def columns(self) -> list[str]:
        """The columns that the job reads, clocks apart."""
        others = [self.label, self.key, self.common.weight, self.common.id]
        named = [*self.prediction, *self.by, *self.features, *others]
        return list(dict.fromkeys(name for name in named if name is not None))


class Parsed(NamedTuple):
    """The columns of a piece, checked: what the layer takes and what the sums need."""

    piece: Piece
    base: Floats  # one column for each prediction
    y: Floats
    weights: Floats | None
    features: Floats | None
    clock: RowClock | None = None
    turns: Turns | None = None
    ids: list[str] | None = None  # of rows whose tickets the state keeps
    crossed: int = 0  # rows whose forecasts were not in the order of their levels

    @property
    def counted(self) -> Any:
        """Which rows the figures are about: those with a label and, if there are weights, one above 0."""
        known = ~np.isnan(self.y)
        return known if self.weights is None else known & (self.weights > 0.0)


def parse(task: Task, piece: Piece) -> Parsed:
    """Read and check the columns of a piece; an error names the row in the file."""
    columns = [piece.numbers(name) for name in task.prediction]
    # Without a column of labels these come later, in files of their own.
    y = np.full(piece.length, np.nan) if task.label is None else labels(task, piece, task.label)
    if task.outcome == "binary":
        rule = NOT_BINARY
        for name, column in zip(task.prediction, columns, strict=True):
            piece.refuse((column < 0.0) | (column > 1.0), column, name, rule)
    if task.link == "exp":
        rule = "is not positive; --link exp needs positive predictions"
        piece.refuse(columns[0] <= 0.0, columns[0], task.prediction[0], rule)
    weights = None
    if task.common.weight is not None:
        weights = piece.numbers(task.common.weight)
        rule = "is negative; weights are 0 (not learned from) or more"
        piece.refuse(weights < 0.0, weights, task.common.weight, rule)
        piece.refuse((weights > 0.0) & (weights < SMALLEST), weights, task.common.weight, FAINT)
    features = None
    if task.features:
        features = np.stack([piece.numbers(name) for name in task.features], axis=1)
    base, crossed = forecasts(task, columns)
    return Parsed(piece, base, y, weights, features, crossed=crossed)


def labels(task: Task, piece: Piece, name: str) -> Floats:
    """The labels of a piece, inside [0, 1] for --outcome binary, and within --min and --max."""
    y = piece.numbers(name, missing=True)
    if task.outcome == "binary":
        piece.refuse((y < 0.0) | (y > 1.0), y, name, NOT_BINARY)
    low, high = task.support or (None, None)
    if low is not None:
        rule = f"lies below --min {low:g}; correct it, or give a smaller --min"
        piece.refuse(y < low, y, name, rule)
    if high is not None:
        rule = f"lies above --max {high:g}; correct it, or give a larger --max"
        piece.refuse(y > high, y, name, rule)
    return y


def forecasts(task: Task, columns: list[Floats]) -> tuple[Floats, int]:
    """The base predictions side by side: one for each level, sorted where they cross; in how many rows they do."""
    if not task.several:
        return columns[0][:, None], 0
    table = np.stack(columns * len(task.levels) if len(columns) == 1 else columns, axis=1)
    crossed = int(np.count_nonzero((table[:, 1:] < table[:, :-1]).any(axis=1)))
    return (np.sort(table, axis=1) if crossed else table), crossed


def learn(task: Task, layer: Any, rows: Parsed) -> Any:
    """Serve a piece and learn from its labels: the layer's run."""
    piece, y = rows.piece, rows.y
    given: dict[str, Any] = {"weights": rows.weights}
    if rows.ids is not None:
        given["ids"] = rows.ids
    given |= times_of(rows.clock, rows.turns, piece, layer)
    if piece.never is not None and piece.never.any():
        y = np.where(piece.never, np.nan, y)
    if task.key is not None:
        given["key"] = piece.cells(task.key)
    if task.by:
        given["groups"] = {name: piece.cells(name) for name in task.by}
    if rows.features is not None:
        given["features"] = dict(zip(task.features, rows.features.T, strict=True))
    base = rows.base if task.several else rows.base[:, 0]
    try:
        return layer.run(base, y, **given)
    except Diverging:  # of numbers so large no smaller step is the remedy
        for name, column in zip(task.prediction, rows.base.T, strict=False):
            piece.refuse(np.abs(column) > LARGEST, column, name, HUGE)
        if task.label is not None:
            piece.refuse(np.abs(rows.y) > LARGEST, rows.y, task.label, HUGE)
        raise


def enter(content: Content, task: Task, rows: Parsed) -> None:
    """Enter the columns of a piece into the content of a run."""
    numbers = {"prediction": rows.base, "label": rows.y, "weight": rows.weights}
    for name, column in (numbers | {"features": rows.features}).items():
        content.numbers(name, column)
    for name in (*task.by, *filter(None, [task.key])):
        content.cells(f"group {name}", rows.piece.cells(name))


def starting_layer(task: Task, late: Mapping[str, Any]) -> tuple[Layer, bool]:
    """The layer to begin with, and whether it comes from a state."""
    from gradeq.layers.making import check_same_settings

    saved = read_state(task.common.state) if task.common.state is not None else None
    if saved is None:
        return task.fresh(task.common.eta, late), False
    eta = task.common.eta if task.common.eta is not None else step_of(saved)
    # Left out it is auto again where that applies; where it does not, the settings differ.
    fresh = task.fresh(None if task.common.eta is None and eta == "auto" else eta, late)
    inner, outer = getattr(fresh, "layer", fresh), getattr(saved, "layer", saved)
    if fresh.kind == saved.kind:
        check_same_settings(inner, outer)
    check_same_settings(fresh, saved)
    return saved, True


def step_of(layer: Any) -> float | str | None:
    """The step that a layer was made with: a number, or auto; of a falling step its first."""
    settings = getattr(layer, "layer", layer).settings
    eta: float | str | None = settings.get("eta", settings.get("final_eta"))
    return eta if eta is not None else getattr(settings.get("schedule"), "eta", None)


def final_step(layer: Any) -> float | None:
    """With auto the constant step of the layer that carries the certificate; else None."""
    return layer.step if step_of(layer) == "auto" else None


def books(task: Task) -> list[Codebook]:
    """One codebook for each group column."""
    return [Codebook() for _ in task.by]
