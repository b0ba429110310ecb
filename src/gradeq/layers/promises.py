"""What layers promise in advance, and how a step is changed without losing count: shared by all of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gradeq.engine.desk import Desk
from gradeq.engine.mix import Mix
from gradeq.errors import BadInput
from gradeq.schedules import Constant, Schedule
from gradeq.theory import HarmCap, Setting, harm_cap, labels_until


def more_labels(setting: Setting, bound: float) -> int | None:
    """How many more labels until the proven bound falls below this, if things go on as they were."""
    needed = labels_until(setting, bound)
    return None if needed is None else max(0, needed - int(setting.n))


def harm_of(
    desk: Desk, schedule: Schedule | None, setting: Setting, auto: str, *, sinh: bool = False
) -> HarmCap:
    """Most that the step can cost in loss; ``auto`` is the sentence for a layer that chooses its own."""
    if isinstance(desk.head, Mix):
        return HarmCap(None, None, "B5", auto)
    if not isinstance(schedule, Constant):
        setting = replace(setting, inverse_variation=math.inf)
    return harm_cap(setting, sinh=sinh)


def fixed_head(desk: Desk) -> Any:
    """The head whose step can be set by hand."""
    if isinstance(desk.head, Mix):
        raise BadInput(
            "eta='auto' chooses its own steps; make a new layer with a fixed eta instead"
        )
    return desk.head


def take_step(desk: Desk, head: Any, schedule: Schedule) -> None:
    """Use another step from now on: noted in the log, and in what the bound must allow for (result 1.2)."""
    desk.log.append((f"step {head.schedule} to {schedule}", desk.served))
    old = head.pace.low if head.pace.high else head.schedule.step(1)
    head.pace.jumps += abs(1.0 / schedule.step(1) - 1.0 / old)
    head.schedule = schedule
