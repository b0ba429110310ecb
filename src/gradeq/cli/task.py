"""The task of one call of debias or quantile: columns, measures, layer."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, cast

import click
import numpy as np

from gradeq.cli.options import (
    CommonOptions,
    LateOptions,
    Step,
    Support,
    check_distinct,
    check_same_options,
    errors_in_option_words,
    require_label,
    step_arguments,
)
from gradeq.cli.row_reader import DelayedRows, Piece, RowClock, RowReader, run_times
from gradeq.cli.session import read_state
from gradeq.errors import BadInput, Diverging
from gradeq.files.cells import Floats, Mask
from gradeq.inputs.durations import duration
from gradeq.layers.options import limits_of
from gradeq.numerics import HUGE, LARGEST

if TYPE_CHECKING:
    from gradeq.cli.elo_job import EloTask
    from gradeq.inputs.column_types import ColumnLike
    from gradeq.layers.debiaser import LinkName as DebiasLink
    from gradeq.layers.debiaser import Outcome
    from gradeq.layers.layer import Layer
    from gradeq.layers.predicting import Grouped
    from gradeq.layers.quantile import LinkName as QuantileLink
    from gradeq.layers.run import Run


CLIP = 1e-6
ROUNDING = 2.0**-48  # of a label: some sixteen times what one operation may lose
BEYOND = "beyond_rounding"  # 1 where the raw or the served value differs from the label by more than rounding may


class Bias:
    def columns(self, base: Floats, served: Floats, y: Floats) -> dict[str, Floats]:
        raw, now = base[:, 0] - y, served[:, 0] - y
        least = ROUNDING * np.abs(y)
        return {
            BEYOND: ((np.abs(raw) > least) | (np.abs(now) > least)).astype(float),
            "bias_before": raw,
            "bias_after": now,
            "loss_before": raw * raw,
            "loss_after": now * now,
        }


class BinaryBias(Bias):
    """Error and squared error of probabilities, and their log loss."""

    def columns(self, base: Floats, served: Floats, y: Floats) -> dict[str, Floats]:
        logs = {"log_before": log_loss(base[:, 0], y), "log_after": log_loss(served[:, 0], y)}
        return super().columns(base, served, y) | logs


@dataclass(frozen=True)
class Cover:
    """Coverage at each level (y <= served; interval: lower < y <= upper) and pinball loss."""

    levels: tuple[float, ...]
    interval: bool = False
    support: Support | None = None

    def columns(self, base: Floats, served: Floats, y: Floats) -> dict[str, Floats]:
        measures: dict[str, Floats] = {}
        limits = limits_of(self.support)
        sides = [("before", base), ("after", served)]
        if self.support is not None:
            sides += [(f"clipped_{when}", np.clip(values, *limits)) for when, values in sides]
        for when, values in sides:
            mean = np.zeros(len(y))
            for k, level in enumerate(self.levels):
                covered = y <= values[:, k]
                measures[f"cover{k}_{when}"] = covered.astype(float)
                loss = (y - values[:, k]) * (level - covered)
                measures[f"loss{k}_{when}"] = loss
                mean += loss
            measures[f"loss_{when}"] = mean / len(self.levels)
            if self.interval:
                lower = values[:, 0]
                above = lower < y
                if when.startswith("clipped"):  # at a limit the lower end is inclusive
                    above |= (lower == y) & ((lower == limits[0]) | (lower == limits[1]))
                inside = above & (y <= values[:, -1])
                measures[f"inside_{when}"] = inside.astype(float)
        return measures


Judge = Bias | Cover


def log_loss(p: Floats, y: Floats, clip: float = CLIP) -> Floats:
    p = np.clip(p, clip, 1.0 - clip)
    return -(y * np.log(p) + (1.0 - y) * np.log1p(-p))


class LayerSettings(TypedDict):
    late_cap: Literal["auto"] | None
    in_flight: int
    support: Support | None
    ttl: float | None
    maturity: float | None
    missing_is: float | None


@dataclass(kw_only=True)
class RunTask:
    """The options of one call of debias or quantile, and what follows from them.

    ``columns``: those that are read. ``errors``: the error measures on display, bias or coverage as served, which are
    measured from ``target``. ``limited``: coverage is judged before --min and --max, so that measures of the values
    as served have separate names, which end with ``as_served``.
    """

    common: CommonOptions
    prediction: tuple[str, ...]
    label: str | None
    by: tuple[str, ...]
    features: tuple[str, ...]
    key: str | None
    table_file: str | None  # one row for each series
    low: float | None
    high: float | None
    command: ClassVar[str]
    new: tuple[str, ...] = field(init=False)
    judge: Judge = field(init=False)
    link: str = field(init=False)
    outcome: Outcome = "real"
    levels: tuple[str, ...] = ()
    interval: str | None = None
    pool: bool = False
    poolable: bool = field(init=False, default=False)  # --pool would go with these options
    errors: tuple[str, ...] = field(init=False, default=("bias",))
    target: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._check_options()
        self.choose()
        self._check_columns()

    def choose(self) -> None:
        """Check the options of the command, and choose columns, measures and link."""
        raise NotImplementedError

    def make(self, eta: Step, late: LateOptions) -> Layer:
        raise NotImplementedError

    @property
    def rows_file(self) -> str | None:
        return self.common.output

    @property
    def several(self) -> bool:
        """Whether the layer takes and serves one column for each level."""
        return len(self.levels) > 1

    @property
    def support(self) -> Support | None:
        return None if self.low is None and self.high is None else (self.low, self.high)

    @property
    def limited(self) -> bool:
        return self.support is not None and self.command == "quantile"

    @property
    def as_served(self) -> str:
        return "_clipped" if self.limited else ""

    @property
    def columns(self) -> list[str]:
        others = (self.label, self.key, self.common.weight, self.common.id)
        named = (*self.prediction, *self.by, *self.features, *others)
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def measures(self) -> list[str]:
        """Names of the error measures, each before and after."""
        empty = np.zeros((0, max(1, len(self.levels))))
        return list(self.judge.columns(empty, empty, empty[:, 0]))

    def _check_options(self) -> None:
        common = self.common
        require_label(self.label, common)
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise click.UsageError(f"--min {self.low:g} is not below --max {self.high:g}; give a smaller --min")
        if self.table_file is not None:
            if self.key is None:
                raise click.UsageError("--keys-out writes one row for each series of --key; give --key as well")
            check_distinct(common.output, common.report, common.state, self.table_file)

    def _check_columns(self) -> None:
        known = {"--prediction": self.prediction, "--by": self.by, "--feature": self.features, "--key": (self.key,)}
        for option, names in known.items():
            if self.label is not None and self.label in names:
                raise BadInput(
                    f"{self.label!r} is given as {option} and as --label; a label is not known when its row is "
                    "served: give each its own column"
                )
            twice = [name for k, name in enumerate(names) if name in names[:k]]
            if twice and option != "--prediction":
                raise BadInput(f"{option} {twice[0]} is given twice; give each column once")
        value, (low, high) = self.common.missing_is, limits_of(self.support)
        if self.outcome == "binary":
            low, high = max(low, 0.0), min(high, 1.0)
        if value is not None and not low <= value <= high:
            side = f"below {low:g}" if value < low else f"above {high:g}"
            raise BadInput(
                f"--missing-is {value:g} is {side}, where no label of this run may lie (--outcome, --min, --max); "
                "give a value that a label may have"
            )

    def settings(self, late: LateOptions) -> LayerSettings:
        late_cap: Literal["auto"] | None = None if self.common.no_cap else "auto"
        return LayerSettings(
            late_cap=late_cap, in_flight=self.common.in_flight, support=self.support,
            ttl=late.ttl, maturity=late.maturity, missing_is=late.missing_is,
        )  # fmt: skip

    def fresh(self, eta: Step, late: LateOptions) -> Layer:
        from gradeq.layers.internals import silenced

        with errors_in_option_words():
            layer = self.make(eta, late)
            if self.key is not None:
                from gradeq.layers.keyed import Keyed

                layer = Keyed(cast("Grouped[Any, Any]", layer), self.pool)
            return silenced(layer)


@dataclass(kw_only=True)
class DebiasTask(RunTask):
    chosen_link: DebiasLink | None
    clip: float
    column_name: str
    command = "debias"

    def choose(self) -> None:
        if self.support is not None and self.chosen_link == "exp":
            raise click.UsageError(
                "--min and --max do not go with --link exp, which stays above 0 by itself; "
                "leave them out, or use --link identity"
            )
        self.link = self.chosen_link or ("identity" if self.outcome == "real" else "logit")
        self.judge = BinaryBias() if self.outcome == "binary" else Bias()
        self.new = (self.column_name,)

    def make(self, eta: Step, late: LateOptions) -> Layer:
        from gradeq.layers.debiaser import DEFAULT_ETA, Debiaser

        default = None if self.features else DEFAULT_ETA[self.outcome] / max(1, len(self.by))
        step, settings = step_arguments(self.common, eta, default), self.settings(late)
        link, by, x = cast("DebiasLink", self.link), self.by, self.features
        return Debiaser(outcome=self.outcome, link=link, groups=by, features=x, clip=self.clip, **step, **settings)


@dataclass(kw_only=True)
class QuantileTask(RunTask):
    chosen_link: QuantileLink | None
    ensemble: tuple[float, ...] | None
    ensemble_eta: float | None
    column_name: str | None
    command = "quantile"

    def choose(self) -> None:
        against_pooling = self._check_levels_and_steps()
        self.poolable = not against_pooling or (against_pooling == ["--eta"] and self.common.eta == "plain")
        self.link = self._tracker_link(self.common.eta)
        if self.interval is not None:
            self.levels = tuple(f"{tau:.6g}" for tau in self.taus)
            stem = "" if self.column_name is None else f"{self.column_name}_"
            self.new, names = (f"{stem}lower", f"{stem}upper"), ["inside"]
        else:
            order = sorted(range(len(self.levels)), key=lambda k: float(self.levels[k]))
            self.levels = tuple(self.levels[k] for k in order)
            if len(self.prediction) > 1:
                self.prediction = tuple(self.prediction[k] for k in order)
            stem = self.column_name or "adjusted"
            self.new = tuple(f"{stem}_{level}" for level in self.levels) if self.several else (stem,)
            names = [f"cover{k}" for k in range(len(self.levels))]
        self.judge = Cover(self.taus, self.interval is not None, self.support)
        self.errors = tuple(f"{name}{self.as_served}" for name in names)
        self.target = float(self.interval or self.levels[0])

    @property
    def taus(self) -> tuple[float, ...]:
        if self.interval is not None:
            coverage = float(self.interval)
            return (1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0
        return tuple(map(float, self.levels))

    def _tracker_link(self, eta: Step) -> QuantileLink:
        """With a final tracker, the link of an ensemble is the tracker's."""
        return self.chosen_link or ("linear" if self.ensemble is not None and eta is None else "sinh")

    def _check_levels_and_steps(self) -> list[str]:
        """Raise for options that do not go together; returns those that do not go with --pool."""
        common, ensemble = self.common, self.ensemble is not None
        used = {
            "--eta": common.eta is not None,
            "--decay": common.decay is not None,
            "--penalty": common.penalty is not None,
            "--by": self.by,
            "--feature": self.features,
            "--link linear": self.chosen_link == "linear",
            "--ensemble": ensemble,
        }
        against_pooling = [option for option, is_used in used.items() if is_used]
        wanted = 2 if self.interval is not None else len(self.levels)
        what = "--interval" if self.interval is not None else f"{len(self.levels)} --level"
        other_step = isinstance(common.eta, str) or common.decay is not None or common.penalty is not None
        problems = {
            "give --level (once or more) or --interval, one of the two":
                (self.interval is None) == (not self.levels),
            f"{len(self.prediction)} --prediction for {what}; give one, or {wanted} in the same order":
                len(self.prediction) not in (1, wanted),
            "a --level is given twice; give each level once":
                len(set(map(float, self.levels))) < len(self.levels),
            "--ensemble and --ensemble-eta belong together; give both or none":
                ensemble != (self.ensemble_eta is not None),
            "--ensemble tracks one level; give one --level":
                ensemble and len(self.levels) != 1,
            "--ensemble goes with a number for --eta; leave out auto, plain, --decay, --penalty":
                ensemble and other_step,
            "--ensemble has no groups or features; leave out --by and --feature":
                ensemble and (self.by or self.features),
            "--pool is about the series of --key; give --key as well":
                self.pool and self.key is None,
            f"--pool chooses its own steps and shares among keys alone; leave out {', '.join(against_pooling)}":
                self.pool and against_pooling,
        }  # fmt: skip
        for problem, occurs in problems.items():
            if occurs:
                raise click.UsageError(problem)
        return against_pooling

    def make(self, eta: Step, late: LateOptions) -> Layer:
        from gradeq.layers import quantile

        taus = self.taus
        eta = None if self.pool else eta
        link = self._tracker_link(eta)
        if self.ensemble is not None and self.ensemble_eta is not None:
            if eta is None and link != "linear":
                raise click.UsageError(
                    f"--link {link} is that of the final tracker, which --ensemble has with --eta only; "
                    "give --eta, or leave out --link"
                )
            from gradeq.layers.ensemble import QuantileEnsemble

            assert not isinstance(eta, str)
            etas = list(self.ensemble)
            return QuantileEnsemble(taus[0], etas, self.ensemble_eta, eta, link=link, **self.settings(late))
        default = quantile.DEFAULT_ETA if link == "sinh" and not self.features else None
        step, settings = step_arguments(self.common, eta, default, link), self.settings(late)
        by, x = self.by, self.features
        if self.interval is not None:
            coverage = float(self.interval)
            return quantile.IntervalTracker(coverage, link=link, groups=by, features=x, **step, **settings)
        if len(taus) > 1:
            return quantile.MultiQuantileTracker(taus, link=link, groups=by, features=x, **step, **settings)
        return quantile.QuantileTracker(taus[0], link=link, groups=by, features=x, **step, **settings)


@dataclass(frozen=True)
class ParsedRows:
    piece: Piece
    base: Floats  # one column for each prediction
    y: Floats
    weights: Floats | None
    features: Floats | None
    clock: RowClock | None = None
    turns: DelayedRows | None = None
    ids: list[str] | None = None  # of rows whose tickets the state keeps
    crossed: int = 0  # rows whose forecasts were not in the order of their levels

    @property
    def counted(self) -> Mask:
        """Mask of the rows that figures are about: labelled, with a weight above 0."""
        known = ~np.isnan(self.y)
        return known if self.weights is None else known & (self.weights > 0.0)


def parse_rows(task: RunTask, piece: Piece) -> ParsedRows:
    forecasts = [piece.numbers(name) for name in task.prediction]
    columns = dict(zip(task.prediction, forecasts, strict=True))
    y = np.full(piece.batch.num_rows, np.nan)  # without a column of labels these come later, in files of their own
    if task.label is not None:
        columns[task.label] = y = piece.numbers(task.label, missing=True)
        low, high = task.support or (None, None)
        if low is not None:
            rule = f"lies below --min {low:g}; correct it, or give a smaller --min"
            piece.refuse_values(y < low, y, task.label, rule)
        if high is not None:
            rule = f"lies above --max {high:g}; correct it, or give a larger --max"
            piece.refuse_values(y > high, y, task.label, rule)
    if task.outcome == "binary":
        rule = "lies outside [0, 1]; --outcome binary needs probabilities and labels in [0, 1]"
        for name, column in columns.items():
            piece.refuse_values((column < 0.0) | (column > 1.0), column, name, rule)
    if task.link == "exp":
        rule = "is not positive; --link exp needs positive predictions"
        piece.refuse_values(forecasts[0] <= 0.0, forecasts[0], task.prediction[0], rule)
    weights = None if task.common.weight is None else piece.weights(task.common.weight)
    features = np.stack([piece.numbers(name) for name in task.features], axis=1) if task.features else None
    if not task.several:
        return ParsedRows(piece, forecasts[0][:, None], y, weights, features)
    base = np.stack(forecasts * len(task.levels) if len(forecasts) == 1 else forecasts, axis=1)
    crossed = int(np.count_nonzero((base[:, 1:] < base[:, :-1]).any(axis=1)))
    return ParsedRows(piece, np.sort(base, axis=1) if crossed else base, y, weights, features, crossed=crossed)


def learn(task: RunTask, layer: Layer, rows: ParsedRows) -> Run[ColumnLike]:
    piece, y = rows.piece, rows.y
    columns: dict[str, object] = {"weights": rows.weights, **run_times(rows.clock, rows.turns, piece, layer)}
    if rows.ids is not None:
        columns["ids"] = rows.ids
    if piece.never is not None and piece.never.any():
        y = np.where(piece.never, np.nan, y)
    if task.key is not None:
        columns["key"] = piece.cells(task.key)
    if task.by:
        columns["groups"] = {name: piece.cells(name) for name in task.by}
    if rows.features is not None:
        columns["features"] = dict(zip(task.features, rows.features.T, strict=True))
    base = rows.base if task.several else rows.base[:, 0]
    try:
        with errors_in_option_words():
            return layer.run(base, y, **columns)
    except Diverging as error:  # of numbers so large no smaller step is the remedy
        for name, column in zip(task.prediction, rows.base.T, strict=False):
            piece.refuse_values(np.abs(column) > LARGEST, column, name, HUGE)
        if task.label is not None:
            piece.refuse_values(np.abs(rows.y) > LARGEST, rows.y, task.label, HUGE)
        if task.common.strength is not None:
            smaller = f"Use a --strength below {task.common.strength:g} or a smaller --eta"
            raise Diverging(str(error).replace("Use a smaller --eta", smaller)) from None
        raise


def late_options(options: CommonOptions, reading: RowReader) -> LateOptions:
    """--ttl and --maturity in the unit of --time, and --missing-is."""
    ttl = None if options.ttl is None else parse_span("--ttl", options.ttl, reading)
    maturity = None
    if options.maturity is not None:
        at_once = options.maturity.strip() == "0"
        maturity = 0.0 if at_once else parse_span("--maturity", options.maturity, reading)
    if ttl and maturity and ttl <= maturity:
        raise BadInput(
            f"--ttl {options.ttl} is not above --maturity {options.maturity}: every row would be given up before its "
            "label may be learned; give a longer --ttl, or none"
        )
    return LateOptions(ttl, maturity, options.missing_is, reading.dated)


def parse_span(option: str, text: str, reading: RowReader) -> float:
    assert reading.time is not None
    plain = option == "--ttl" or not reading.dated  # a number without a unit is a span too
    span = duration(text.strip()) if reading.dated else None
    if span is None and plain:
        with suppress(ValueError):
            span = float(text)
    if span is not None and 0.0 < span < math.inf:
        return span * 1e9 if reading.dated else span
    what, how = "a number", "numbers: give one in their unit"
    if reading.dated:
        what = "a duration"
        how = f"dates: give 90s, 15m, 36h or 30d{', or a number of seconds' if plain else ''}"
    raise BadInput(f"{option} {text} is not {what} above 0; column {reading.time.name!r} holds {how}")


def starting_layer(task: RunTask | EloTask, late: LateOptions) -> tuple[Layer, bool]:
    """A new layer, or that of the state if there is one, and whether it is the latter."""
    step = task.common.eta
    saved = read_state(task.common.state) if task.common.state is not None else None
    if saved is None:
        return task.fresh(step, late), False
    # Without --eta the step is auto again where that applies; where it does not, the settings differ.
    before = step_of(saved)
    check_same_options(task.fresh(before if step is None and before != "auto" else step, late), saved)
    return saved, True


def step_of(layer: Layer) -> Step:
    """The step a layer was created with: a number or auto; of a schedule its first step."""
    settings = getattr(layer, "layer", layer).settings
    eta: Step = settings.get("eta", settings.get("final_eta"))
    return eta if eta is not None else getattr(settings.get("schedule"), "eta", None)
