"""The paper's panels of bias by group: one row per kind of group, one column per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.descent import Descent
from gradeq.experiments.sheet import SERIES, Line, Look, Panel, course

EARLY = 20  # one part in so many of a group comes before its first average that is drawn


def group_bias(run: Descent, members: Any) -> Floats:
    """The absolute average error within a group after each of its members."""
    return np.abs(running_mean(run.errors[members]))


def group_panels(
    titles: Sequence[str],
    runs: Sequence[Descent],
    kinds: Mapping[str, Mapping[str, Any]],
    unit: str,
    top: float,
    looks: Mapping[str, Look] | None = None,
) -> list[Panel]:
    """``kinds`` has, for each kind of group, who the members of each group are; ``looks`` how groups are drawn.

    All panels have one axis, up to ``top`` at least.
    """
    drawn = looks or {
        name: look for groups in kinds.values() for name, look in zip(groups, SERIES, strict=False)
    }
    panels: list[Panel] = []
    for kind, groups in kinds.items():
        for title, run in zip(titles, runs, strict=True):
            lines = [_later(run, name, members, drawn[name]) for name, members in groups.items()]
            top = max(top, *(1.03 * float(line.y.max()) for line in lines))
            last = run is runs[-1]
            panels.append(
                Panel(
                    f"{title}: {kind}",
                    f"members so far, the first {100 // EARLY} % left out",
                    f"absolute bias, {unit}" if run is runs[0] else "",
                    lines,
                    legend="outside" if last else "",
                )
            )
    return [panel._replace(y_limits=(0.0, top)) for panel in panels]


def _later(run: Descent, name: str, members: Any, look: Look) -> Line:
    """The bias of a group once its first averages, which are wild and would hide the rest, are over."""
    count = int(members.sum())
    start = count // EARLY
    bias = group_bias(run, members)[start:]
    return course(bias, f"{name} ({count:,})", look, np.arange(start + 1, count + 1))
