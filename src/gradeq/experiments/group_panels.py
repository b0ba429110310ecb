"""The paper's panels of bias by group: one row per kind of group, one column per step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradeq.experiments.averages import Floats, running_mean
from gradeq.experiments.descent import Descent
from gradeq.experiments.sheet import SERIES, Look, Panel, course


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
    """``kinds`` has, for each kind of group, who the members of each group are; ``looks`` how groups are drawn."""
    drawn = looks or {
        name: look for groups in kinds.values() for name, look in zip(groups, SERIES, strict=False)
    }
    panels = []
    for kind, groups in kinds.items():
        for title, run in zip(titles, runs, strict=True):
            lines = [
                course(group_bias(run, members), f"{name} ({int(members.sum()):,})", drawn[name])
                for name, members in groups.items()
            ]
            last = run is runs[-1]
            panels.append(
                Panel(
                    f"{title}: {kind}",
                    "members of the group so far",
                    f"absolute bias, {unit}" if run is runs[0] else "",
                    lines,
                    y_limits=(0.0, top),
                    legend="outside" if last else "",
                )
            )
    return panels
