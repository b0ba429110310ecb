"""What a run of debias or quantile came to: numbers only, for the terminal, JSON and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gradeq.cli.measure import WEIGHT, Sums
from gradeq.cli.task import Task
from gradeq.coverage import joint
from gradeq.naming import column_name

if TYPE_CHECKING:
    from gradeq.cli.keys import Series
    from gradeq.equilibrium import Equilibrium
    from gradeq.report.story import Notice


@dataclass(frozen=True)
class GroupLine:
    """One group: its column, its value, its rows, and its means by measure.

    ``rows`` are all, ``labelled`` those with a label, ``counted`` those that the means are about:
    with --weight the labelled ones of a weight above 0, ``weight`` together. ``learned``: the labels learned from
    since the layer began, which the bound is about.
    """

    by: str
    value: str
    rows: int
    labelled: int
    means: dict[str, float]
    label_mean: float
    bound: float | None
    vacuous: bool | None
    counted: int
    weight: float | None
    learned: int

    @property
    def name(self) -> str:
        """The parameter's name, column=value."""
        return f"{column_name(self.by)}={self.value}"


class Before(NamedTuple):
    """What the layer had done before this run: labels learned from, steps held down, rows too large."""

    learned: int = 0
    capped: int = 0
    resized: int = 0

    @classmethod
    def of(cls, layer: Any) -> Before:
        """That of a layer as it is now."""
        return cls(layer.equilibrium().rows, layer.steps["capped"], layer.steps["resized"])


class Capped(NamedTuple):
    """How the late-label cap held steps down in this run: labels, the smallest step, the longest delay in rows."""

    rows: int
    least: float
    longest_delay: int


def capping(layer: Any, before: Before) -> Capped | None:
    """How the cap held the step down since then, or None."""
    held = layer.steps["capped"] - before.capped
    if not held:
        return None
    return Capped(held, layer.steps["smallest"], layer.in_flight["longest_delay"])


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
    capped: Capped | None
    resized: int
    continued: bool
    outside: int
    extremes: tuple[float, float]
    probable: bool = False  # probabilities and 0/1 labels that were not said to be such
    notices: tuple[Notice, ...] = ()
    series: Series | None = None  # with --key

    @property
    def counted(self) -> int:
        """The rows that the figures are about: with --weight the labelled ones of a weight above 0."""
        return self.sums.rows

    @property
    def same_rows(self) -> bool:
        """Whether the certificate is about the very rows of the figures: all were learned from, and no others."""
        return not self.continued and self.equilibrium.rows == self.counted

    def pair(self, measure: str) -> tuple[float, float]:
        """A measure's mean before and after."""
        return self.sums.mean(f"{measure}_before"), self.sums.mean(f"{measure}_after")

    def used(self, measure: str) -> tuple[float, float]:
        """The same of the values in use: inside --min and --max."""
        return self.pair(self.task.used(measure))


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
            cells = known.get(f"{column_name(by)}={value}", [])
            lines.append(
                GroupLine(
                    by,
                    value,
                    int(all_rows.rows[code]),
                    int(labels.rows[code]) if code < len(labels.rows) else 0,
                    {name: own.mean(code, name) for name in task.judge.names},
                    own.mean(code, "label"),
                    *bound_of(task, cells),
                    int(own.rows[code]),
                    own.total(code, WEIGHT) if own.weighted else None,
                    max((c.rows for c in cells), default=0),
                )
            )
    return tuple(lines)


def bound_beside(task: Task, line: GroupLine) -> float | None:
    """A group's bound beside its coverage in use: none where --min and --max changed that coverage, for the bound is
    on the one before them."""
    judged = task.errors[0].removesuffix("_clipped")
    same = line.means[f"{task.errors[0]}_after"] == line.means[f"{judged}_after"]
    return line.bound if same else None


def bound_of(task: Task, cells: Sequence[Any]) -> tuple[float | None, bool | None]:
    """A group's bound, of an interval that of both ends together (result 8.4), and whether it is vacuous.

    With link exp only the relative bias is bounded, which is told with the certificate, not beside the plain one.
    """
    bound, vacuous = joint(cells, None if task.interval is None else float(task.interval))
    return (None, None) if task.link == "exp" else (bound, vacuous)
