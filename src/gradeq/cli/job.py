"""The job of debias, quantile and elo: read, serve, learn, sum up, write. `Pass` is that of debias and quantile."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click
import numpy as np

from gradeq.cli import progress
from gradeq.cli.options import LateOptions
from gradeq.cli.outcome import (
    Baseline,
    ColumnSums,
    CommonLabel,
    GroupSums,
    RunOutcome,
    Trend,
    cap_summary,
    group_lines,
    weigh,
)
from gradeq.cli.row_reader import LabelsBeforeRows, Piece, RowReader, row_clock
from gradeq.cli.run_notices import OutlierWatch, all_notices
from gradeq.cli.series import SeriesSums, key_columns
from gradeq.cli.session import Session, locked_state
from gradeq.cli.task import ParsedRows, RunTask, late_options, learn, parse_rows, starting_layer, step_of
from gradeq.engine.columns import CappedSteps
from gradeq.files import Codebook, OutputFiles, Writer, kinds_of, open_table
from gradeq.files.cells import Floats, format_of
from gradeq.files.writer import Values
from gradeq.layers.waiting import later, mature_columns
from gradeq.report.sentences import FEW
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.cli.elo_job import EloTask
    from gradeq.inputs.column_types import ColumnLike
    from gradeq.layers.run import Run


Parsed = TypeVar("Parsed")
Outcome = TypeVar("Outcome")


class JobPass(ABC, Generic[Parsed, Outcome]):
    """One pass over the rows of a job: the layer learns, the sums grow."""

    def __init__(self, session: Session) -> None:
        self.session, self.layer = session, session.layer
        self.rows = self.waiting = self.expired = 0
        self.clock = row_clock(session.options, self.layer)
        self.now = self.layer.internals.tickets.now
        self.dates = LabelsBeforeRows()
        self.capped: CappedSteps | None = None

    def count_late(self, run: Run[Any]) -> None:
        self.waiting = run.waiting
        self.expired += run.expired
        self.capped = run.capped if self.capped is None else self.capped.with_more(run.capped)

    @abstractmethod
    def parse(self, piece: Piece) -> Parsed: ...

    @abstractmethod
    def answer(self, rows: Parsed) -> dict[str, Floats]:
        """Serve a piece and return its new columns."""

    @abstractmethod
    def outcome(self, before: Baseline, continued: bool) -> Outcome: ...

    @abstractmethod
    def table_kinds(self) -> Mapping[str, type]: ...

    @abstractmethod
    def table_columns(self, outcome: Outcome) -> Mapping[str, Values]: ...

    @abstractmethod
    def page(self, outcome: Outcome) -> str: ...


class Pass(JobPass[ParsedRows, RunOutcome]):
    """One pass over the rows of debias or quantile."""

    def __init__(self, task: RunTask, session: Session, late: LateOptions) -> None:
        super().__init__(session)
        self.task, self.collector, reading, common = task, None, session.reading, task.common
        if common.report is not None:
            from gradeq.cli.run_story import ReportCollector

            self.collector = ReportCollector(task, reading, self.layer, late)
        if session.history is not None:
            columns = {"--key": task.key, "--prediction": list(task.prediction)}
            session.history.check_columns(columns, common.time is not None)
        self.labelled = self.crossed = self.immature = self.outside = 0
        # The last time: with --maturity, a row counts if it is mature by then.
        self.end = reading.last_time() if self.layer.internals.tickets.maturity else None
        weighted = common.weight is not None
        self.sums = ColumnSums(task.measures, weighted)
        self.books = [Codebook() for _ in task.by]
        self.seen = [GroupSums([]) for _ in task.by]
        self.by_group = [GroupSums([*task.measures, "label"], weighted) for _ in task.by]
        # Labels of weight 0 are counted, but left out of all figures.
        self.labels = [GroupSums([]) for _ in task.by] if weighted else self.by_group
        self.trend, self.common_label = Trend(task), CommonLabel()
        drawn = () if self.collector is None else self.collector.drawn
        self.series = None if task.key is None else SeriesSums(task, drawn)
        # Whether all rows so far could be probabilities with 0/1 labels, though they were not declared so.
        self.probable = task.command == "debias" and task.link == "identity"
        self.kinds: set[int] = set()  # seen so far: a label 0, a label 1, a prediction between
        self.extremes = (math.inf, -math.inf)
        self.watch = OutlierWatch(self.layer)

    def parse(self, piece: Piece) -> ParsedRows:
        return parse_rows(self.task, piece)

    def answer(self, rows: ParsedRows) -> dict[str, Floats]:
        task, piece, content = self.task, rows.piece, self.session.content
        key = None if task.key is None else piece.cells(task.key)
        if self.clock is not None:
            rows = replace(rows, clock=self.clock, turns=self.clock.next_rows(piece.batch.num_rows, key))
        ids = self.session.admit(piece)
        if content is not None:
            content.numbers(prediction=rows.base, label=rows.y, weight=rows.weights, features=rows.features)
            for name in (*task.by, *filter(None, [task.key])):
                content.cells(f"group {name}", piece.cells(name))
        run = learn(task, self.layer, replace(rows, ids=ids))
        columns = map(np.asarray, (run.served, run.values))
        served, judged = (column if column.ndim == 2 else column[:, None] for column in columns)

        def where(i: int) -> str:
            return piece.row(i) if ids is None else f"id {ids[i]!r}"

        self.watch.look(rows.base, rows.y, served, where, task.key is not None)
        if self.end is not None:
            rows = self._mature(rows, self.end, ids is not None)
        self._add(rows, served, judged, run)
        self.rows += piece.batch.num_rows
        self.crossed += rows.crossed
        self.count_late(run)
        return dict(zip(task.new, served.T, strict=True))

    def _mature(self, rows: ParsedRows, end: float, with_ids: bool) -> ParsedRows:
        """Keep only labels of rows that are mature by the end of the run.

        With ids, an unlabelled row that matures exactly at the end may still get its label.
        """
        book, piece, y = self.layer.internals.tickets, rows.piece, rows.y
        if piece.never is not None:
            y = np.where(piece.never, np.nan, y)
        assert piece.times is not None
        mature = later(piece.times, book.maturity or 0.0)
        young = mature > end
        if with_ids:
            young |= np.isnan(y) & (mature == end)
        y, _ = mature_columns(book, y, piece.times, piece.due, False)
        self.immature += int(np.count_nonzero(young))
        return replace(rows, y=np.where(young, np.nan, y))

    def _add(self, rows: ParsedRows, served: Floats, values: Floats, run: Run[ColumnLike]) -> None:
        """Add a piece to all sums; ``values`` are judged, before --min and --max.

        Averages use weights as given; those of series use relative weights, as the certificate does.
        """
        task, base = self.task, rows.base
        codes = [book.codes(rows.piece.cells(by)) for by, book in zip(task.by, self.books, strict=True)]
        for sums, code, book in zip(self.seen, codes, self.books, strict=True):
            sums.add(code, {}, len(book))
        if self.probable:
            zeros, ones, none = rows.y == 0.0, rows.y == 1.0, np.isnan(rows.y)
            self.probable = bool(((base >= 0.0) & (base <= 1.0)).all() and (zeros | ones | none).all())
            evidence = (zeros, ones, (base > 0.0) & (base < 1.0))
            self.kinds |= {kind for kind, mask in enumerate(evidence) if mask.any()}
        if task.link == "shift" or self.probable:
            self.outside += int(np.count_nonzero((served < 0.0) | (served > 1.0)))
            low, high = self.extremes
            self.extremes = (min(low, float(served.min())), max(high, float(served.max())))
        known, counted = ~np.isnan(rows.y), rows.counted
        if rows.piece.never is not None:  # a column says when labels came
            self.dates.add(rows.piece, known)
        pick = slice(None) if counted.all() else counted
        y, raw, judged_values = rows.y[pick], base[pick], values[pick]
        weights = None if rows.weights is None else rows.weights[pick]
        picked = [code[pick] for code in codes]
        judged = task.judge.columns(raw, judged_values, y)
        if task.command == "quantile":
            self.common_label.add(y)
        self.labelled += int(np.count_nonzero(known))
        judged["label"] = y
        weighed = judged if weights is None else weigh(judged, weights)
        self.sums.add(weighed, len(y))
        for sums, code, book in zip(self.by_group, picked, self.books, strict=True):
            sums.add(code, weighed, len(book))
        if weights is not None:
            for sums, code, book in zip(self.labels, codes, self.books, strict=True):
                sums.add(code[known], {}, len(book))
        x = rows.piece.x[pick]
        self.trend.add(x, raw, served[pick], y, judged, weights)
        if self.series is not None:
            relative = rows.weights if run.weighed is None or rows.weights is None else run.weighed
            self.series.add(self.layer, replace(rows, weights=relative), served, x, judged)
        if self.collector is not None:
            self.collector.add(rows, run, served, x, picked, weighed, weights)

    @property
    def counted(self) -> int:
        """How many rows figures are about: labelled, with a weight above 0."""
        return self.sums.rows

    def outcome(self, before: Baseline, continued: bool) -> RunOutcome:
        outcome = run_outcome(self, continued, before)
        return replace(outcome, notices=(*self.session.notices, *all_notices(outcome)))

    def table_kinds(self) -> Mapping[str, type]:
        assert self.series is not None
        return kinds_of(key_columns(self.layer.table(), self.series))  # type: ignore[attr-defined]

    def table_columns(self, outcome: RunOutcome) -> Mapping[str, Values]:
        assert self.series is not None and outcome.series is not None
        return key_columns(outcome.series.table, self.series)

    def page(self, outcome: RunOutcome) -> str:
        from gradeq.cli.run_story import run_story
        from gradeq.report.page import html

        assert self.collector is not None
        return html(run_story(outcome, self.collector))


def run_outcome(totals: Pass, continued: bool, before: Baseline) -> RunOutcome:
    task, layer, series = totals.task, totals.layer, totals.series
    equilibrium = layer.equilibrium()
    since, scope = " since the state began" if continued else "", ""
    if since or equilibrium.weights or equilibrium.rows != totals.counted:
        scope = f"over the {some(equilibrium.rows, 'label')} learned from{since}{equilibrium.by_weight}"
    return RunOutcome(
        task=task,
        layer=layer,
        equilibrium=equilibrium,
        totals=totals,
        learned=equilibrium.rows - before.learned,
        eta=step_of(layer),
        groups=group_lines(totals, equilibrium),
        capped=cap_summary(layer, before, totals.capped),
        resized=int(layer.steps["resized"]) - before.resized,
        continued=continued,
        outside=totals.outside if totals.probable or task.link == "shift" else 0,
        scope=scope,
        probable=totals.probable and len(totals.kinds) == 3 and totals.labelled >= FEW,
        series=None if series is None else series.ranked(layer),
    )


@np.errstate(over="ignore", invalid="ignore")  # of losses: squares of anything
def run_job(task: RunTask | EloTask, new_pass: Callable[[Session, LateOptions], JobPass[Parsed, Outcome]]) -> Outcome:
    """Read, serve, learn and write: outputs appear together at the end or not at all, the state last."""
    np.empty(2 << 20)  # 16 MB: glibc then keeps as much freed memory, and chunks reuse their pages
    import pyarrow as pa

    common = task.common
    form = format_of(common.separator, common.decimal, common.missing)
    table = open_table(common.files, spool=common.time is not None, form=form)
    reading = RowReader(table, task.columns, common)
    late = late_options(common, reading)
    with locked_state(common.state) as lock, OutputFiles(table.paths) as files:
        layer, continued = starting_layer(task, late)
        layer.internals.state.undoable = False  # an error ends this command, and the state in the file stays
        session = Session(task.command, common, reading, layer, lock)
        pass_ = new_pass(session, late)
        before = Baseline.of(layer) if continued else Baseline()
        with ExitStack() as stack:
            rows_writer = table_writer = None
            if task.rows_file is not None:
                new = dict.fromkeys(task.new, float)
                rows_writer = Writer(task.rows_file, table.schema, new, among=files, form=table.form)
                stack.enter_context(rows_writer)
            if task.table_file is not None:
                kinds = pass_.table_kinds()
                table_writer = Writer(task.table_file, pa.schema([]), kinds, among=files, form=table.form)
                stack.enter_context(table_writer)
            session.open_files(files)
            step = stack.enter_context(progress(task.command, common.quiet or common.json))
            reading.serve(pass_, rows_writer, task.new, step)
            session.check()
            pa.default_memory_pool().release_unused()  # the table of many series needs as much again
            outcome = pass_.outcome(before, continued)
            if table_writer is not None:
                table_writer.write(None, pass_.table_columns(outcome))
        page = pass_.page(outcome) if common.report is not None else None
        if pass_.clock is not None and common.state is not None:
            pass_.clock.suspend(layer, pass_.now)
        session.publish(pass_.rows, page)
    return outcome


def run_rows(task: RunTask) -> None:
    from gradeq.cli.summary import run_json, run_text

    outcome = run_job(task, partial(Pass, task))
    if task.common.json:
        click.echo(run_json(outcome))
    elif not task.common.quiet:
        click.echo(run_text(outcome))
