"""What a run of debias or quantile came to: numbers only, for the terminal, JSON and report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradeq.cli.measure import WEIGHT, Sums
from gradeq.cli.task import Task

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.report.story import Notice


@dataclass(frozen=True)
class GroupLine:
    """One group: its column, its value, its rows, and its means by measure.

    ``rows`` are all, ``labelled`` those with a label, ``counted`` those that the means are about:
    with --weight the labelled ones of a weight above 0, ``weight`` together.
    """

    by: str
    value: str
    rows: int
    labelled: int
    means: dict[str, float]
    label_mean: float
    bound: float | None
    vacuous: bool
    counted: int
    weight: float | None

    @property
    def name(self) -> str:
        """The parameter's name, column=value."""
        return f"{self.by}={self.value}"


@dataclass(frozen=True)
class Capped:
    """How the late-label cap held the step down in this run."""

    rows: int
    least: float
    in_flight: int


@dataclass(frozen=True)
class Certificate:
    """The averages by parameter from the rows and from the state, and the bound known beforehand."""

    average_gradient: dict[str, float]
    average_penalty: dict[str, float]
    from_state: dict[str, float]
    gap: float
    bound: float | None
    vacuous: bool
    exact: bool

    @property
    def largest(self) -> float:
        """The largest |average gradient|."""
        return max((abs(g) for g in self.average_gradient.values()), default=0.0)


@dataclass(frozen=True)
class Outcome:
    """Everything that is said about a run."""

    task: Task
    layer: Any
    equilibrium: Equilibrium
    rows: int
    labelled: int
    learned: int
    eta: float | str | None
    sums: Sums
    groups: tuple[GroupLine, ...]
    certificate: Certificate
    capped: Capped | None
    continued: bool
    outside: int
    extremes: tuple[float, float]
    notices: tuple[Notice, ...] = ()

    @property
    def counted(self) -> int:
        """The rows that the figures are about: with --weight the labelled ones of a weight above 0."""
        return self.sums.rows

    def pair(self, measure: str) -> tuple[float, float]:
        """A measure's mean before and after."""
        return self.sums.mean(f"{measure}_before"), self.sums.mean(f"{measure}_after")


def group_lines(
    task: Task,
    names: list[list[str]],
    sums: Any,
    equilibrium: Equilibrium,
) -> tuple[GroupLine, ...]:
    """The groups of all columns, each column's in order of first appearance; ``sums`` is the pass."""
    known: dict[str, list[Any]] = {}
    for c in equilibrium.coordinates:
        known.setdefault(c.name.rpartition(" @ ")[0] if task.several else c.name, []).append(c)
    lines = []
    columns = zip(task.by, names, sums.seen, sums.labels, sums.by_group, strict=True)
    for by, values, all_rows, labels, own in columns:
        for code, value in enumerate(values):
            cells = known.get(f"{by}={value}", [])
            lines.append(
                GroupLine(
                    by,
                    value,
                    int(all_rows.rows[code]),
                    int(labels.rows[code]) if code < len(labels.rows) else 0,
                    {name: own.mean(code, name) for name in task.judge.names},
                    own.mean(code, "label"),
                    bound_of(task, [c.bound for c in cells]),
                    any(c.vacuous for c in cells) or not cells,
                    int(own.rows[code]),
                    own.total(code, WEIGHT) if own.weighted else None,
                )
            )
    return tuple(lines)


def bound_of(task: Task, bounds: list[float | None]) -> float | None:
    """A group's bound: of an interval the sum of both ends (result 8.4), else the largest."""
    known = [bound for bound in bounds if bound is not None]
    if not known or len(known) < len(bounds):
        return None
    return sum(known) if task.interval is not None else max(known)
