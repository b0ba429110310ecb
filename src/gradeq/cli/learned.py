"""Which labels the certificate is about, and the figures over exactly those.

Figures of a run are over its labelled rows. The certificate is over the labels that were learned from since the layer
began: fewer where some were not due by the last row, and others where a state was continued.
"""

from __future__ import annotations

from typing import Any

from gradeq.cli.outcome import Outcome
from gradeq.equilibrium import Equilibrium
from gradeq.naming import column_name
from gradeq.report.numerals import some
from gradeq.report.of_state import coverages_of, groups_of


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


def covered_since(layer: Any, reached: Equilibrium) -> dict[str, Any]:
    """The coverage over all labels of a layer, of several levels a list; nothing where no coverage is asked for."""
    shares = [
        {"target": c.target, "before": c.before, "after": c.after}
        if reached.rows
        else {"target": c.target, "before": None, "after": None}
        for c in coverages_of(layer, reached)
    ]
    return {"coverage": shares if len(shares) > 1 else shares[0]} if shares else {}


def groups_since(layer: Any, reached: Equilibrium) -> list[dict[str, Any]]:
    """The groups of a layer over all its labels, largest remaining error first; none of games."""
    found = [] if layer.kind == "elo" else list(groups_of(layer, reached))
    found.sort(key=lambda g: -abs(g.after - (g.target or 0.0)))
    return [
        {
            "name": f"{column_name(g.by)}={g.name}",
            "rows": g.rows,
            "bias" if g.target is None else "coverage": {"before": g.before, "after": g.after},
            "loss": {"before": g.loss.before, "after": g.loss.after},
            "bound": g.bound,
            "vacuous": g.vacuous,
        }
        for g in found
    ]


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
