"""What only the report needs: groups over time, the path of theta, other steps, served values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradeq.cli.calibration import Bins
from gradeq.cli.measure import WEIGHT, GroupSums, Sums, scaled
from gradeq.cli.months import Months
from gradeq.cli.reading import Reading
from gradeq.cli.task import Parsed, Task, learn, step_of
from gradeq.errors import GradeqError
from gradeq.files.numbers import Floats
from gradeq.learning import learning_of
from gradeq.report.of_run import corrections
from gradeq.report.tally import Tally
from gradeq.report.thin import GroupBlocks, thin

STEPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_SWEPT = 2_000_000  # rows; a longer file is not run again with other steps
TRACED = 20  # pieces whose path is read finely; later ones are read at their ends
MOST_PARAMETERS = 200
STEP = "\0step"  # no parameter has this name


def reading_of(layer: Any) -> dict[str, float]:
    """Parameters and the step in force."""
    return {**layer.theta, STEP: learning_of(layer).step}


class Other:
    """The same rows with another step, in hindsight."""

    def __init__(self, task: Task, layer: Any, factor: float) -> None:
        self.task, self.layer, self.factor = task, layer, factor
        weighted = task.common.weight is not None
        self.sums = Sums(task.judge.names, weighted)
        self.groups = [GroupSums(task.judge.names, weighted) for _ in task.by]

    def add(self, rows: Parsed, counted: Any, codes: list[Any], weights: Floats | None) -> None:
        """Serve a piece."""
        served = np.asarray(learn(self.task, self.layer, rows).values)
        base = rows.base
        if self.task.command == "debias":
            base = base[:, 0]
        elif served.ndim == 1:
            served = served[:, None]
        judged = self.task.judge.columns(base[counted], served[counted], rows.y[counted])
        self.sums.add(judged, int(counted.sum()), weights)
        for sums, code in zip(self.groups, codes, strict=True):
            sums.add(code, judged, int(code.max(initial=-1)) + 1, weights)


class Path:
    """Parameters over the run at up to 420 moments; the first 200 parameters are followed."""

    def __init__(self) -> None:
        self.x: list[float] = []
        self.thetas: list[dict[str, float]] = []

    def add(self, x: float, theta: Mapping[str, float]) -> None:
        """Note the first parameters at x."""
        names = list(theta)[:MOST_PARAMETERS]
        self.add_all(x, {name: theta[name] for name in names})

    def add_all(self, x: float, theta: dict[str, float]) -> None:
        """Note all parameters at x."""
        self.x.append(x)
        self.thetas.append(theta)
        if len(self.x) > 4000:
            kept = thin(len(self.x), 2000).tolist()
            self.x = [self.x[i] for i in kept]
            self.thetas = [self.thetas[i] for i in kept]


class Follow:
    """Collects for the report while the run goes on."""

    def __init__(self, task: Task, reading: Reading, layer: Any, late: Mapping[str, Any]) -> None:
        self.task, self.reading, self.layer = task, reading, layer
        bounded = task.outcome == "binary"
        self.tally = Tally(0.0, 1.0) if bounded else Tally()
        self.drawn = self._drawn()
        self.parts = [GroupBlocks(self.drawn) for _ in task.by]
        self.path = Path()
        # What auto serves is not its parameters: they are those of the final step alone.
        self.auto = task.key is None and getattr(layer, "eta", None) == "auto"
        self.levels = tuple(f"correction{k}" for k in range(max(1, len(task.levels))))
        self.corrections = [GroupBlocks(self.levels) for _ in (None, *task.by)]
        self.rows = 0
        self.pieces = 0
        self.labels = [np.inf, -np.inf]
        self.bases = [np.inf, -np.inf]
        self.others = self._others(late)
        self.calibration = (Bins(), Bins()) if bounded else None  # raw, served
        dated = bool(task.by) and reading.time is not None and reading.time.kind == "time"
        weighted = task.common.weight is not None
        self.months = Months(self._drawn(), len(task.by), weighted) if dated else None
        self.steps: list[tuple[float, float]] = []

    def _drawn(self) -> tuple[str, ...]:
        measure = self.task.errors[0]
        pair = (f"{measure}_before", f"{measure}_after")
        return pair if self.task.common.weight is None else (*pair, WEIGHT)

    def _others(self, late: Mapping[str, Any]) -> list[Other]:
        """Layers with other steps, from the same beginning; none with auto or many keys."""
        eta = step_of(self.layer)
        served = self.layer.in_flight["served"]
        if not isinstance(eta, float) or self.task.key is not None or served:
            return []
        found = []
        for factor in STEPS:
            try:
                found.append(Other(self.task, self.task.fresh(eta * factor, late), factor))
            except GradeqError:  # beyond the steps that are stable
                continue
        return found

    def add(
        self,
        rows: Parsed,
        run: Any,
        served: Floats,
        x: Floats,
        codes: list[Any],
        judged: Mapping[str, Floats],
        weights: Floats | None,
    ) -> None:
        """Take a served piece: its counted rows' x, codes, measures and weights."""
        known, counted = ~np.isnan(rows.y), rows.counted
        self.tally.add(served.ravel())
        for part, code in zip(self.parts, codes, strict=True):
            part.add(code, {name: scaled(judged, name, weights) for name in part.names}, x)
        if self.months is not None and len(x):
            self.months.add(codes, judged, x, weights)
        if self.calibration is not None:
            for bins, p in zip(self.calibration, (rows.base, served), strict=True):
                bins.add(p[counted, 0], rows.y[counted], weights)
        if self.auto and len(x):
            added = corrections(self.layer, rows.base[counted], served[counted])
            columns = dict(zip(self.levels, added.T, strict=True))
            for part, code in zip(self.corrections, [np.zeros(len(x), int), *codes], strict=True):
                part.add(code, columns, x)
        self._widen(self.bases, rows.base)
        self._widen(self.labels, rows.y[known])
        self._trace(rows, run, x)
        self.rows += len(served)
        self.pieces += 1
        if self.rows > MOST_SWEPT:
            self.others = []
        for other in list(self.others):
            try:
                other.add(rows, counted, codes, weights)
            except GradeqError:  # this step diverges on these rows
                self.others.remove(other)

    def _widen(self, ends: list[float], values: Floats) -> None:
        if values.size:
            ends[0], ends[1] = min(ends[0], values.min()), max(ends[1], values.max())

    def _trace(self, rows: Parsed, run: Any, x: Floats) -> None:
        if self.task.key is not None:  # a million series would be spelled out for nothing
            return
        theta = getattr(self.layer, "theta", None)
        if not isinstance(theta, dict):
            return
        if self.pieces < TRACED and len(theta) <= MOST_PARAMETERS:
            trace = run.path(reading_of)
            for at, values in zip(trace.rows, trace.theta, strict=True):
                if at and len(x):
                    self._note(
                        float(self._place(rows, int(at))),
                        dict(zip(trace.names, values.tolist(), strict=True)),
                    )
        elif len(x):
            self._note(float(x[-1]), reading_of(self.layer))

    def _note(self, x: float, read: dict[str, float]) -> None:
        """Keep the parameters and the step in force at x."""
        self.steps.append((x, read.pop(STEP)))
        self.path.add(x, read)
        if len(self.steps) > 4000:
            self.steps = self.steps[::2]

    def _place(self, rows: Parsed, served: int) -> float:
        """x of the last of the first rows of a piece."""
        piece = rows.piece
        if self.reading.time is None:
            return float(piece.start + served)
        time = float(piece.times[served - 1])
        return time / 1e9 if self.reading.time.kind == "time" else time
