"""What a run of debias or quantile came to: numbers only, for the terminal, JSON and report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradeq.cli.measure import GroupSums, Sums
from gradeq.cli.task import Task

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.report.story import Notice


@dataclass(frozen=True)
class GroupLine:
    """One group: its column, its value, all its rows, its labelled ones, and its means by measure."""

    by: str
    value: str
    rows: int
    labelled: int
    means: dict[str, float]
    label_mean: float
    bound: float | None
    vacuous: bool

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

    def pair(self, measure: str) -> tuple[float, float]:
        """A measure's mean before and after."""
        return self.sums.mean(f"{measure}_before"), self.sums.mean(f"{measure}_after")


def group_lines(
    task: Task,
    names: list[list[str]],
    seen: list[GroupSums],
    labelled: list[GroupSums],
    equilibrium: Equilibrium,
) -> tuple[GroupLine, ...]:
    """The groups of all columns, each column's in order of first appearance."""
    known: dict[str, list[Any]] = {}
    for c in equilibrium.coordinates:
        known.setdefault(c.name.rpartition(" @ ")[0] if task.several else c.name, []).append(c)
    lines = []
    for by, values, all_rows, own in zip(task.by, names, seen, labelled, strict=True):
        for code, value in enumerate(values):
            cells = known.get(f"{by}={value}", [])
            lines.append(
                GroupLine(
                    by,
                    value,
                    int(all_rows.rows[code]),
                    int(own.rows[code]) if code < len(own.rows) else 0,
                    {name: own.mean(code, name) for name in task.judge.names},
                    own.mean(code, "label"),
                    bound_of(task, [c.bound for c in cells]),
                    any(c.vacuous for c in cells) or not cells,
                )
            )
    return tuple(lines)


def bound_of(task: Task, bounds: list[float | None]) -> float | None:
    """A group's bound: of an interval the sum of both ends (result 8.4), else the largest."""
    known = [bound for bound in bounds if bound is not None]
    if not known or len(known) < len(bounds):
        return None
    return sum(known) if task.interval is not None else max(known)
