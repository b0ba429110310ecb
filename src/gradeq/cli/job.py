"""The pass of debias and quantile: read, serve, learn, add up, write; then say what came of it."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

import numpy as np

from gradeq.cli.light import arrow_without_pandas
from gradeq.cli.measure import Gradients, GroupSums, Late, Sums
from gradeq.cli.outcome import Capped, Certificate, Outcome, group_lines
from gradeq.cli.progress import progress
from gradeq.cli.reading import Reading
from gradeq.cli.state_file import check_place
from gradeq.cli.task import Parsed, Task, books, learn, parse, starting_layer, step_of
from gradeq.cli.trend import Trend, axis_of, positions
from gradeq.files import Clock, Writer, atomic, open_table
from gradeq.files.numbers import Floats
from gradeq.report.story import Axis


class Pass:
    """One run over the rows: the layer moves on, the sums grow."""

    def __init__(
        self, task: Task, layer: Any, ttl: float | None, axis: Axis, follow: Any = None
    ) -> None:
        self.task, self.layer, self.follow = task, layer, follow
        self.rows = 0
        weighted = task.common.weight is not None
        self.labelled = 0
        self.sums = Sums([*task.judge.names], weighted)
        self.books = books(task)
        self.seen = [GroupSums([]) for _ in task.by]
        self.by_group = [GroupSums([*task.judge.names, "label"], weighted) for _ in task.by]
        # A label of weight 0 is one, but no figure is about it.
        self.labels = [GroupSums([]) for _ in task.by] if weighted else self.by_group
        levels = max(1, len(task.levels)) if task.several else 1
        self.gradients = Gradients(levels, len(task.by), len(task.features))
        self.late = Late(ttl) if task.common.label_time is not None else None
        self.trend = Trend(task)
        self.axis = axis
        self.outside = 0
        self.extremes = (math.inf, -math.inf)

    def answer(self, rows: Parsed) -> dict[str, Floats]:
        """Serve a piece: the new columns."""
        run = learn(self.task, self.layer, rows)
        served = np.asarray(run.served)
        served = served if served.ndim == 2 else served[:, None]
        self._add(rows, served, run)
        self.rows += len(served)
        return dict(zip(self.task.new, served.T, strict=True))

    def _add(self, rows: Parsed, served: Floats, run: Any) -> None:
        task = self.task
        base = rows.base
        codes = [
            book.codes(rows.piece.cells(by)) for by, book in zip(task.by, self.books, strict=True)
        ]
        for sums, code, book in zip(self.seen, codes, self.books, strict=True):
            sums.add(code, {}, len(book))
        if task.link == "shift":
            self.outside += int(np.count_nonzero((served < 0.0) | (served > 1.0)))
            low, high = self.extremes
            self.extremes = (min(low, float(served.min())), max(high, float(served.max())))
        known, counted = ~np.isnan(rows.y), rows.counted
        whole = bool(counted.all())
        y = rows.y if whole else rows.y[counted]
        weights = None if rows.weights is None else rows.weights[counted]
        picked = [c if whole else c[counted] for c in codes]
        raw, now = (base, served) if whole else (base[counted], served[counted])
        judged = task.judge.columns(*self._flat(raw, now), y)
        self.labelled += int(np.count_nonzero(known))
        self.sums.add(judged, len(y), weights)
        judged["label"] = y
        for sums, code, book in zip(self.by_group, picked, self.books, strict=True):
            sums.add(code, judged, len(book), weights)
        if weights is not None:
            for sums, code, book in zip(self.labels, codes, self.books, strict=True):
                sums.add(code[known], {}, len(book))
        x = positions(rows, self.axis)[counted]
        self.trend.add(x, raw, now, y, judged, weights)
        if self.follow is not None:
            self.follow.add(rows, run, served, x, picked, judged, weights)
        self._learned(rows, served, codes, known)

    def _flat(self, base: Floats, served: Floats) -> tuple[Floats, Floats]:
        """Columns as the judge takes them: one, or one for each level."""
        if self.task.command == "debias":
            return base[:, 0], served[:, 0]
        return base, served

    def _learned(self, rows: Parsed, served: Floats, codes: list[Any], known: Any) -> None:
        """Add the gradients of the rows that the layer learns from."""
        piece = rows.piece
        weights = np.ones(len(served)) if rows.weights is None else rows.weights
        opens = known & (weights > 0.0)
        features = rows.features if rows.features is not None else np.empty((len(served), 0))
        columns = [served, rows.y, weights, features, *codes]
        if self.late is not None:
            opens &= ~piece.never
            columns = self.late.settle(piece.times, piece.due, opens, columns)
        elif not opens.all():
            columns = [column[opens] for column in columns]
        out, y, w, x, *groups = columns
        if len(y):
            flat = out[:, 0] if self.task.command == "debias" else out
            errors = self.task.judge.errors(flat, y)
            sizes = [len(book) for book in self.books]
            self.gradients.add(errors, w, groups, sizes, x if self.task.features else None)


def carry_out(task: Task) -> Outcome:
    """Do what a call asks: outputs appear together at the end, or not at all; the state last."""
    arrow_without_pandas()
    common = task.common
    table = open_table(common.files, spool=common.time is not None)
    table.need(*task.columns)
    reading = Reading(
        table,
        task.columns,
        None if common.time is None else Clock(common.time),
        None if common.label_time is None else Clock(common.label_time),
    )
    ttl = reading.ttl(common.ttl)
    if common.state is not None:
        check_place(common.state)
    layer, continued = starting_layer(task, ttl)
    follow = None
    if common.report is not None:
        from gradeq.cli.follow import Follow

        follow = Follow(task, reading, layer)
    pass_ = Pass(task, layer, ttl, axis_of(reading)[0], follow)
    before = moment(layer)
    with ExitStack() as stack:
        # The last to be entered takes its place first: output, report, then the state.
        place = common.state and stack.enter_context(atomic(common.state, table.paths))
        page = common.report and stack.enter_context(atomic(common.report, table.paths))
        writer = None
        if common.output is not None:
            new = dict.fromkeys(task.new, float)
            writer = stack.enter_context(
                Writer(common.output, table.schema, new, inputs=table.paths)
            )
        step = stack.enter_context(progress(task.command, common.quiet or common.json))

        def answer(rows: Parsed) -> dict[str, Floats]:
            results = pass_.answer(rows)
            step(pass_.rows, reading.progress())
            return results

        reading.serve(lambda piece: parse(task, piece), answer, writer, task.new)
        outcome = concluded(task, pass_, continued, before)
        if page and follow is not None:
            from gradeq.cli.story import page_of

            page.write(page_of(outcome, follow, pass_, table.paths).encode())
        if place:
            place.write(layer.to_json().encode())
    return outcome


def moment(layer: Any) -> tuple[int, int]:
    """Labels posted and steps capped so far."""
    pace = pace_of(layer)
    return layer.desk.posted, 0 if pace is None else pace.held


def pace_of(layer: Any) -> Any:
    """The record of a layer's steps: of the head that carries the certificate."""
    head = layer.desk.head
    head = getattr(head, "final", None) or head
    return getattr(head, "pace", None)


def concluded(task: Task, pass_: Pass, continued: bool, before: tuple[int, int]) -> Outcome:
    """All that is said about a run, once it is over."""
    from dataclasses import replace

    from gradeq.cli.notes import notices

    layer = pass_.layer
    equilibrium = layer.equilibrium()
    names = [list(book.names) for book in pass_.books]
    posted, held = before
    outcome = Outcome(
        task,
        layer,
        equilibrium,
        pass_.rows,
        pass_.labelled,
        layer.desk.posted - posted,
        step_of(layer),
        pass_.sums,
        group_lines(task, names, pass_, equilibrium),
        certificate(task, pass_, names, equilibrium, continued),
        capping(layer, held),
        continued,
        pass_.outside,
        pass_.extremes,
    )
    return replace(outcome, notices=notices(outcome, pass_))


def capping(layer: Any, held_before: int) -> Capped | None:
    """How the cap held the step down since then, or None."""
    pace = pace_of(layer)
    if pace is None or pace.held <= held_before:
        return None
    return Capped(pace.held - held_before, pace.low, max(layer.desk.peaks, default=1))


def level_marks(task: Task) -> list[str]:
    """What follows a parameter's name where there are several levels."""
    levels = getattr(task.judge, "levels", ())
    return [f" @ {level:g}" for level in levels] if task.several else [""]


def certificate(
    task: Task, pass_: Pass, names: list[list[str]], equilibrium: Any, continued: bool
) -> Certificate:
    """The state's averages beside those of the rows; after an earlier state, its stored sums."""
    cells = equilibrium.coordinates
    average = {c.name: c.average_gradient for c in cells}
    penalty = {c.name: c.average_penalty for c in cells}
    from_state = {c.name: c.from_state for c in cells}
    gap = equilibrium.gap
    if not continued:
        spelled = [
            [f"{by}={value}" for value in values] for by, values in zip(task.by, names, strict=True)
        ]
        rows: dict[str, float] = {}
        for k, mark in enumerate(level_marks(task)):
            found = pass_.gradients.averages(spelled, task.features, k)
            rows |= {name + mark: value for name, value in found.items()}
        average = {name: rows.get(name, stored) for name, stored in average.items()}
        for name in average:
            gap = max(gap, abs(average[name] + penalty[name] - from_state[name]))
    return Certificate(
        average, penalty, from_state, gap, equilibrium.bound, equilibrium.vacuous, equilibrium.exact
    )
