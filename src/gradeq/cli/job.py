"""The pass of debias and quantile: read, serve, learn, add up, write; then say what came of it."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

import numpy as np

from gradeq.cli.dates import Dates
from gradeq.cli.delay import clock_of
from gradeq.cli.far import Watch
from gradeq.cli.keys import SeriesSums, columns_of, series_of
from gradeq.cli.light import arrow_without_pandas, keep_freed_memory, numba_without_scipy
from gradeq.cli.lock import holding
from gradeq.cli.measure import GroupSums, Sums
from gradeq.cli.outcome import Before, Outcome, capping, group_lines
from gradeq.cli.progress import progress
from gradeq.cli.reading import reading_of
from gradeq.cli.session import Session
from gradeq.cli.state_file import check_place
from gradeq.cli.task import Parsed, Task, books, enter, learn, parse, starting_layer, step_of
from gradeq.cli.ties import Ties
from gradeq.cli.trend import Trend, axis_of, positions
from gradeq.files import Together, Writer, kinds_of, open_table
from gradeq.files.failures import writing
from gradeq.files.numbers import Floats
from gradeq.layers.maturity import later, mature_columns
from gradeq.report.story import Axis
from gradeq.report.words import FEW


class Pass:
    """One run over the rows: the layer moves on, the sums grow."""

    def __init__(
        self, task: Task, layer: Any, axis: Axis, session: Session, follow: Any = None
    ) -> None:
        self.task, self.layer, self.session, self.follow = task, layer, session, follow
        self.rows = self.labelled = self.waiting = self.crossed = self.expired = self.immature = 0
        self.end: Any = (
            None  # with --maturity: the last time, by which a row must be mature to be in a figure
        )
        weighted = task.common.weight is not None
        self.sums = Sums([*task.judge.names], weighted)
        self.books = books(task)
        self.seen = [GroupSums([]) for _ in task.by]
        self.by_group = [GroupSums([*task.judge.names, "label"], weighted) for _ in task.by]
        # A label of weight 0 is one, but no figure is about it.
        self.labels = [GroupSums([]) for _ in task.by] if weighted else self.by_group
        self.trend = Trend(task)
        self.ties, self.dates = Ties(), Dates()
        drawn = () if follow is None else follow.drawn
        self.series = None if task.key is None else SeriesSums(task, drawn)
        self.axis = axis
        self.outside = 0
        # Plain numbers that could be probabilities with 0/1 labels, until a row says otherwise.
        self.probable = task.command == "debias" and task.link == "identity"
        self.kinds: set[int] = set()  # of evidence: a label 0, a label 1, a prediction between
        self.extremes = (math.inf, -math.inf)
        self.clock = clock_of(task.common, layer)
        self.now = layer._book.now
        self.watch = Watch(layer)

    def answer(self, rows: Parsed) -> dict[str, Floats]:
        """Serve a piece: the new columns."""
        if self.clock is not None:
            key = None if self.task.key is None else rows.piece.cells(self.task.key)
            turns = self.clock.turns(len(rows.y), key)
            rows = rows._replace(clock=self.clock, turns=turns)
        ids = self.session.admit(rows.piece)

        def where(i: int) -> str:
            return rows.piece.row(i) if ids is None else f"id {ids[i]!r}"

        sizes = self.watch.look(rows.base, rows.y, where, self.task.key is not None)
        if self.session.content is not None:
            enter(self.session.content, self.task, rows)
        run = learn(self.task, self.layer, rows._replace(ids=ids))
        if self.end is not None:
            rows = self._mature(rows)
        served, judged = (_table(column) for column in (run.served, run.values))
        self.watch.look_at_served(served, sizes, where)
        self._add(rows, served, judged, run)
        self.rows += len(served)
        self.crossed += rows.crossed
        self.waiting = run.waiting
        self.expired += run.expired
        return dict(zip(self.task.new, served.T, strict=True))

    def _mature(self, rows: Parsed) -> Parsed:
        """The rows with the labels that figures are about: of rows that are mature by the end of the run."""
        book, (y, due) = self.layer._book, (rows.y, rows.piece.due)
        if rows.piece.never is not None:
            y = np.where(rows.piece.never, np.nan, y)
        y, _ = mature_columns(book, y, rows.piece.times, due, False)
        young = later(rows.piece.times, book.maturity) > self.end
        self.immature += int(np.count_nonzero(young))
        return rows._replace(y=np.where(young, np.nan, y))

    def _add(self, rows: Parsed, served: Floats, values: Floats, run: Any) -> None:
        """Add up a piece; ``values`` are those that labels are judged by, before --min and --max.

        Averages are over the weights that were learned with, as the certificate is.
        """
        task = self.task
        base = rows.base
        codes = [
            book.codes(rows.piece.cells(by)) for by, book in zip(task.by, self.books, strict=True)
        ]
        for sums, code, book in zip(self.seen, codes, self.books, strict=True):
            sums.add(code, {}, len(book))
        if self.probable:
            zeros, ones, none = rows.y == 0.0, rows.y == 1.0, np.isnan(rows.y)
            self.probable = bool(
                ((base >= 0.0) & (base <= 1.0)).all() and (zeros | ones | none).all()
            )
            self.kinds |= {0} if zeros.any() else set()
            self.kinds |= {1} if ones.any() else set()
            self.kinds |= {2} if ((base > 0.0) & (base < 1.0)).any() else set()
        if task.link == "shift" or self.probable:
            self.outside += int(np.count_nonzero((served < 0.0) | (served > 1.0)))
            low, high = self.extremes
            self.extremes = (min(low, float(served.min())), max(high, float(served.max())))
        known, counted = ~np.isnan(rows.y), rows.counted
        whole = bool(counted.all())
        self.dates.add(rows.piece, known)

        def of(column: Any) -> Any:
            return column if whole else column[counted]

        y, raw, now = of(rows.y), of(base), of(served)
        learned = rows
        if rows.weights is not None and run.weighed is not None:
            learned = rows._replace(weights=run.weighed)
        weights = None if learned.weights is None else of(learned.weights)
        picked = [of(code) for code in codes]
        judged = task.judge.columns(*self._flat(raw, of(values)), y)
        self.labelled += int(np.count_nonzero(known))
        self.sums.add(judged, len(y), weights)
        self.ties.add(y)
        judged["label"] = y
        for sums, code, book in zip(self.by_group, picked, self.books, strict=True):
            sums.add(code, judged, len(book), weights)
        if weights is not None:
            for sums, code, book in zip(self.labels, codes, self.books, strict=True):
                sums.add(code[known], {}, len(book))
        x = of(positions(rows, self.axis))
        self.trend.add(x, raw, now, y, judged, weights)
        if self.series is not None:
            self.series.add(self.layer, learned, served, x, judged)
        if self.follow is not None:
            self.follow.add(rows, run, served, x, picked, judged, weights)

    def _flat(self, base: Floats, served: Floats) -> tuple[Floats, Floats]:
        """Columns as the judge takes them: one, or one for each level."""
        if self.task.command == "debias":
            return base[:, 0], served[:, 0]
        return base, served


def _table(served: Any) -> Floats:
    """What was served as a table, one column for each level."""
    found: Floats = np.asarray(served)
    return found if found.ndim == 2 else found[:, None]


@np.errstate(over="ignore", invalid="ignore")  # of losses: squares of anything
def carry_out(task: Task) -> Outcome:
    """Do what a call asks: outputs appear together at the end, or not at all; the state last."""
    arrow_without_pandas()
    numba_without_scipy()
    keep_freed_memory()
    import pyarrow as pa

    common = task.common
    table = open_table(common.files, spool=common.time is not None, form=common.form)
    table.need(*task.columns)
    reading = reading_of(table, task.columns, common)
    late = {
        "ttl": reading.ttl(common.ttl),
        "maturity": reading.maturity(common.maturity),
        "missing_is": common.missing_is,
    }
    if common.state is not None:
        check_place(common.state)
    with holding(common.state) as held, Together(table.paths) as files:
        layer, continued = starting_layer(task, late)
        layer._state.undoable = False  # an error ends this command, and the state in the file stays
        follow = None
        if common.report is not None:
            from gradeq.cli.follow import Follow

            follow = Follow(task, reading, layer, late)
        session = Session(task.command, common, reading, layer, held)
        session.check_columns({"--key": task.key, "--prediction": list(task.prediction)})
        pass_ = Pass(task, layer, axis_of(reading)[0], session, follow)
        if layer._book.maturity:
            pass_.end = reading.last_time()
        before = Before.of(layer) if continued else Before()
        with ExitStack() as stack:
            writer = None
            if common.output is not None:
                new = dict.fromkeys(task.new, float)
                writer = stack.enter_context(
                    Writer(
                        common.output,
                        table.schema,
                        new,
                        inputs=table.paths,
                        among=files,
                        form=table.form,
                    )
                )
            keys = None
            if task.keys_out is not None and pass_.series is not None:
                kinds = kinds_of(columns_of(task, layer.table(), pass_.series))  # type: ignore[attr-defined]
                keys = stack.enter_context(
                    Writer(
                        task.keys_out,
                        pa.schema([]),
                        kinds,
                        inputs=table.paths,
                        among=files,
                        form=table.form,
                    )
                )
            page = files.open(common.report) if common.report is not None else None
            place = files.open(common.state, last=True) if common.state is not None else None
            step = stack.enter_context(progress(task.command, common.quiet or common.json))

            def answer(rows: Parsed) -> dict[str, Floats]:
                results = pass_.answer(rows)
                step(pass_.rows, reading.progress())
                return results

            reading.serve(lambda piece: parse(task, piece), answer, writer, task.new)
            session.check()
            pa.default_memory_pool().release_unused()  # the table of many series needs as much again
            outcome = concluded(task, pass_, continued, before)
            if keys is not None and outcome.series is not None:
                keys.write(None, columns_of(task, outcome.series.table, outcome.series.sums))
        if page is not None and follow is not None:
            from gradeq.cli.story import page_of

            text = page_of(outcome, follow, pass_, table.paths).encode()
            with writing(str(common.report)):
                page.write(text)
        if pass_.clock is not None and place is not None:
            pass_.clock.lay_down(layer, pass_.now)
        session.publish(files, place, pass_.rows)
    return outcome


def concluded(task: Task, pass_: Pass, continued: bool, before: Before) -> Outcome:
    """All that is said about a run, once it is over."""
    from dataclasses import replace

    from gradeq.cli.notes import notices

    layer = pass_.layer
    equilibrium = layer.equilibrium()
    names = [list(book.names) for book in pass_.books]
    outcome = Outcome(
        task,
        layer,
        equilibrium,
        pass_.rows,
        pass_.labelled,
        equilibrium.rows - before.learned,
        step_of(layer),
        pass_.sums,
        group_lines(task, names, pass_, equilibrium),
        capping(layer, before),
        layer.steps["resized"] - before.resized,
        continued,
        pass_.outside if pass_.probable or task.link == "shift" else 0,
        pass_.extremes,
        pass_.probable and len(pass_.kinds) == 3 and pass_.labelled >= FEW,
        series=None if pass_.series is None else series_of(task, layer, pass_.series),
    )
    return replace(outcome, notices=(*pass_.session.said, *notices(outcome, pass_)))
