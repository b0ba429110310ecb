"""The step and the penalty that the shared options ask for."""

from __future__ import annotations

from typing import Any

from gradeq.cli.options import Common
from gradeq.errors import BadInput
from gradeq.penalties import Lasso, Penalty, Ridge
from gradeq.schedules import Power, check_decay


def stepped(options: Common, eta: float | str | None, default: float | None) -> dict[str, Any]:
    """The layer's arguments for the step: eta, or a schedule that falls from it."""
    if options.decay is None:
        return {"eta": eta}
    check_decay("--decay", options.decay)
    start = default if eta in (None, "plain") else eta
    if start is None:
        raise BadInput("--feature needs --eta: the size of features is not known in advance")
    if isinstance(start, str):
        raise BadInput("--eta auto chooses its own steps; leave out --decay")
    return {"schedule": Power(start, options.decay)}


def penalty_of(options: Common) -> Penalty | None:
    """The penalty, or None."""
    if options.penalty is None or options.strength is None:
        return None
    return Lasso(options.strength) if options.penalty == "lasso" else Ridge(options.strength)
