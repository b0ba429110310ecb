"""Which labels the certificate is about, and the figures over exactly those.

Figures of a run are over its labelled rows. The certificate is over the labels that were learned from since the layer
began: fewer where some were not due by the last row, and others where a state was continued.
"""

from __future__ import annotations

from typing import Any

from gradeq.cli.outcome import Outcome
from gradeq.report.numerals import some
from gradeq.report.of_state import covered_since


def over(outcome: Outcome) -> str:
    """over the 5,111 labels learned from; empty where these are the rows of all other figures."""
    if outcome.same_rows:
        return ""
    since = " since the state began" if outcome.continued else ""
    return f"over the {some(outcome.equilibrium.rows, 'label')} learned from{since}"


def figures_of(outcome: Outcome) -> dict[str, Any]:
    """The labels learned from, bias or coverage over them, and the loss; null where there are none."""
    reached, task = outcome.equilibrium, outcome.task
    none = not reached.rows

    def pair(before: float | None, after: float | None) -> dict[str, float | None]:
        return {"before": None if none else before, "after": None if none else after}

    found: dict[str, Any] = {"rows": reached.rows}
    if task.command == "debias":
        name = "relative_bias" if task.link == "exp" else "bias"
        found[name] = pair(reached.bias_before, reached.bias_after)
    found |= covered_since(outcome.layer, reached)
    found["loss"] = {"name": reached.loss_name} | pair(reached.loss_before, reached.loss_after)
    return found


def words_of(outcome: Outcome, arrow: Any) -> str:
    """bias 0.0204 -> 0.0274, squared error 0.215 -> 0.219: the figures over the labels learned from."""
    found = figures_of(outcome)
    said = []
    for name in ("bias", "relative_bias", "coverage"):
        given = found.get(name, [])
        for one in given if isinstance(given, list) else [given]:
            level = f" at {one['target']:g}" if isinstance(given, list) else ""
            said.append(f"{name.replace('_', ' ')}{level} {arrow(one['before'], one['after'])}")
    loss = found["loss"]
    said = [*said[:5], f"{loss['name']} {arrow(loss['before'], loss['after'])}"]
    return ", ".join(said)
