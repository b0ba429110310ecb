"""The summary as one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from gradeq.cli.delay import labels_words
from gradeq.cli.keys_words import as_dict
from gradeq.cli.learned import figures_of
from gradeq.cli.outcome import GroupLine, Outcome
from gradeq.cli.task import Task
from gradeq.learning import learning_of
from gradeq.report.story import Notice


def as_json(outcome: Outcome) -> str:
    """The object that --json prints: finite numbers, null for what is not known."""
    task, told = outcome.task, learning_of(outcome.layer)
    found: dict[str, Any] = {
        "command": task.command,
        "rows": outcome.rows,
        "labelled": outcome.labelled,
        "learned": outcome.learned,
        "not_due": told.not_due,
        "held_back": len(outcome.layer._book.held_back),
        "labels": labels_words(task.common, task.label),
        "eta": outcome.layer.step if outcome.eta == "auto" else outcome.eta,
        "method": "auto" if outcome.eta == "auto" else "plain",
        "decay": task.common.decay,
        "capped": None if outcome.capped is None else outcome.capped._asdict(),
        "resized": outcome.resized,
    }
    found["learning"] = told._asdict()
    if task.common.weight is not None:
        found["weight"] = task.common.weight
    found |= measured(task, outcome.sums.mean, outcome.counted)
    theta = None if task.key is not None else getattr(outcome.layer, "theta", None)
    if task.key is not None:
        found["keys"] = outcome.layer._names.keys
        if outcome.series is not None:
            found["series"] = as_dict(task, outcome.series)
    elif isinstance(theta, dict):
        found["theta"] = theta
    weights = getattr(outcome.layer, "weights", None)
    if isinstance(weights, dict):
        found["weights"] = weights
    if task.link == "exp":  # the certificate is of this one
        reached = outcome.equilibrium
        found["relative_bias"] = {"before": reached.bias_before, "after": reached.bias_after}
    found["learned_from"] = figures_of(outcome)  # the rows of the certificate
    found["groups"] = [group(task, line) for line in outcome.groups]
    return dumped(found | concluding(outcome))


def measured(task: Task, mean: Any, rows: int) -> dict[str, Any]:
    """Bias or coverage, then the loss; null over no labels."""

    def pair(measure: str, **first: Any) -> dict[str, Any]:
        def sides(name: str) -> dict[str, Any]:
            return {side: mean(f"{name}_{side}") if rows else None for side in ("before", "after")}

        found = first | sides(measure)
        if task.limited:  # held inside --min and --max, as served
            found["clipped"] = sides(f"{measure}_clipped")
        return found

    if task.command == "debias":
        found = {"bias": pair("bias"), "loss": pair("loss", name="squared error")}
        if task.outcome == "binary":
            found["log_loss"] = pair("log")
        return found
    loss = pair("loss", name="pinball")
    if task.interval is not None:
        return {"coverage": pair("inside", target=float(task.interval)), "loss": loss}
    levels = [
        pair(f"cover{k}", level=float(text), target=float(text))
        for k, text in enumerate(task.levels)
    ]
    return {"coverage": levels[0] if len(levels) == 1 else levels, "loss": loss}


def group(task: Task, line: GroupLine) -> dict[str, Any]:
    """One group's entry."""
    return {
        "name": line.name,
        "rows": line.rows,
        "labelled": line.labelled,
        **measured(task, line.means.__getitem__, line.counted),
        "learned": line.learned,
        "bound": line.bound,
        "vacuous": None if line.bound is None else line.vacuous,
    }


def concluding(outcome: Any) -> dict[str, Any]:
    """The layer's certificate, since its state began, and the warnings of this run."""
    found = {
        "certificate": outcome.equilibrium.certificate,
        "warnings": warned(outcome.notices),
    }
    runs = outcome.layer._book.desk.get("runs")
    return found | ({"run": runs[-1][0], "open": outcome.layer.in_flight["open"]} if runs else {})


def warned(notices: Iterable[Notice]) -> list[dict[str, str]]:
    """Warnings as JSON takes them."""
    return [
        {"level": n.level, "claim": n.claim, "evidence": n.evidence, "remedy": n.remedy}
        for n in notices
    ]


def dumped(value: Any) -> str:
    """JSON text; a number that is not finite becomes null."""
    return json.dumps(_finite(value), allow_nan=False, ensure_ascii=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
