"""The summary of a run, on the terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from gradeq.certificates.certificate import joint_bound
from gradeq.certificates.figures import NO_GUARANTEE, agreement_in_words, learning_of
from gradeq.cli.outcome import PLAIN_MEANS, GroupLine, RunOutcome, relative_weights
from gradeq.cli.row_reader import label_timing
from gradeq.cli.series import series_json, series_text
from gradeq.cli.task import RunTask
from gradeq.equilibrium import BoundFormat
from gradeq.report.components import clean
from gradeq.report.numerals import short
from gradeq.report.sentences import FEW, subject, text, verdict_sentence
from gradeq.report.state_facts import coverage_as_json, coverages_of, state_sentence, with_coverage_bound
from gradeq.report.story import Notice, jsonable
from gradeq.tables import aligned_table, some

if TYPE_CHECKING:
    from gradeq.cli.elo_job import EloOutcome

SHOWN = 20
BEFORE_LIMITS = "(coverage and loss as served; bounds are on coverage before --min and --max: see --json)"
SHORT_BOUND = BoundFormat(short, partial(short, up=True), reasons=False)
_PLAIN = str.maketrans({"\u2212": "-", "\u2192": "->", "\u2013": "-", "`": None})


def run_text(outcome: RunOutcome) -> str:
    task, reached = outcome.task, outcome.equilibrium
    parts = [figures_text(outcome)]
    if outcome.totals.counted >= FEW:
        weighted, stop = task.common.weight is not None, any(notice.level == "red" for notice in outcome.notices)
        who = subject(task.prediction)
        parts.append(plain(text(verdict_sentence(outcome.verdict, outcome.totals.counted, who, "", weighted, stop))))
    if outcome.totals.labelled and outcome.eta is not None:
        since = " (since the state began)" if outcome.continued else ""
        parts.append(f"Learning: {reached.learning}{since}.")
    if reached.weights and outcome.totals.counted:
        means = "" if task.common.weight is None else f"{PLAIN_MEANS} "
        parts.append(f"Weights: {means}{relative_weights(task)}")
    parts.append("\n".join(group_table(outcome)))
    if outcome.series is not None and outcome.totals.series is not None:
        parts.append(series_text(outcome, outcome.series, outcome.totals.series))
    parts += [notice_text(notice) for notice in outcome.notices]
    paths = {"output": task.common.output, "report": task.common.report, "state": task.common.state}
    parts.append(paths_text({**paths, "series": task.table_file}))
    return "\n\n".join(part for part in parts if part)


def paths_text(paths: dict[str, str | None]) -> str:
    return "\n".join(f"{name}  {clean(path, 200)}" for name, path in paths.items() if path is not None)


def notice_text(notice: Notice) -> str:
    mark = {"red": "STOP", "amber": "Warning", "note": "Note"}[notice.level]
    remedy = f" {notice.remedy}" if notice.remedy else ""
    return plain(f"{mark}: {notice.claim} {notice.evidence}{remedy}")


def figures_text(outcome: RunOutcome) -> str:
    """bias -0.113 -> -0.0075 over 6,787 rows; squared error 0.251 -> 0.208; certificate exact."""
    task, verdict, column = outcome.task, outcome.verdict, outcome.task.common.weight
    totals = outcome.totals
    rows = some(totals.rows, "row")
    if not totals.labelled and task.common.labels_later:
        return waiting_text(outcome)
    if not totals.counted:
        nothing = "every label of weight 0" if totals.labelled else "none labelled"
        return f"{rows} served, {nothing}: nothing to judge"
    if totals.labelled < totals.rows:
        rows = f"{totals.labelled:,} labelled of {rows}"
    if column is not None:
        light = totals.labelled - totals.counted
        rows += f", weighted by {clean(column, 40)}{f' ({light:,} of weight 0)' if light else ''}"
    figures = []
    if verdict.bias is not None:
        figures.append(f"bias {arrow(verdict.bias.before, verdict.bias.after)} over {rows}")
    else:
        for c in verdict.coverage[:5]:
            level = "" if task.interval else f" at {c.name}"
            figures.append(f"coverage{level} {arrow(c.before, c.after)}, target {short(c.target)}")
            if c.held is not None and (c.held.before, c.held.after) != (c.before, c.after):
                figures[-1] += f" (as served {arrow(c.held.before, c.held.after)})"
        figures.append(f"over {rows}")
    figures.append(f"{verdict.loss.name} {arrow(verdict.loss.before, verdict.loss.after)}")
    if task.outcome == "binary":
        figures.append(f"log loss {arrow(*outcome.pair('log'))}")
    figures.append(certificate_text(outcome))
    if outcome.eta is None:
        return "; ".join([*figures, "steps of the ensemble"])
    decay, capped = task.common.decay, outcome.capped
    figures.append(step_text(outcome.eta) + (f" * t^-{decay:g}" if decay is not None else ""))
    if capped is not None:
        labels = some(capped.rows, "heavy row" if capped.only_heavy else "label")
        figures[-1] += f", capped down to {capped.least:.2g} for {labels}"
    return "; ".join(figures)


def waiting_text(outcome: RunOutcome) -> str:
    """A file whose labels come later: rows served, labels known, and what the state learned before."""
    book = outcome.layer.internals.tickets
    known = len(book.waiting) if book.maturity or book.early is not None else 0
    waiting = outcome.layer.traffic["open"] - known
    served = f"{some(outcome.totals.rows, 'row')} served; {waiting:,} waiting for a label in the state."
    if known:
        when = "when their rows are mature" if book.maturity else "later"
        served += f" {some(known, 'label')} known, to be learned {when}."
    if not outcome.continued:
        return f"{served} Post the labels later: gradeq label with the same --state and --id."
    return f"{served} Since the state began: {state_sentence(outcome.layer, outcome.equilibrium)}."


def certificate_text(outcome: RunOutcome) -> str:
    """certificate exact (gap 1e-17); bound 0.0123; with its own figures if about other rows."""
    reached, layer = outcome.equilibrium, outcome.layer
    shown = with_coverage_bound(reached, coverages_of(layer, reached))
    agreement = agreement_in_words(reached.balance, reached.exact, f"{reached.gap:.0e}")
    certificate = f"{agreement}; {shown.bound_in_words(SHORT_BOUND)}"
    if shown.bounded:
        certificate += f"; {reached.largest_in_words(SHORT_BOUND)}"
    if not outcome.scope:
        relative = f" of the relative bias, {short(reached.bias_after or 0.0)}," if outcome.task.link == "exp" else ""
        return f"certificate{relative} {certificate}"
    if not reached.rows:
        return "no label learned from: nothing to certify"
    bias, loss = learned_pairs(outcome)
    levels = coverages_of(layer, reached)
    figures = [f"coverage{f' at {c.target:g}' if levels[1:] else ''} {arrow(c.before, c.after)}" for c in levels[:5]]
    if outcome.task.command == "debias":
        figures = [f"{'relative ' if outcome.task.link == 'exp' else ''}bias {arrow(*bias)}"]
    figures.append(f"{reached.loss_name} {arrow(*loss)}")
    return f"certificate {outcome.scope}: {', '.join(figures)}, {certificate}"


def step_text(eta: float | str) -> str:
    return "automatic step" if isinstance(eta, str) else f"step {eta:g}"


def group_table(outcome: RunOutcome) -> list[str]:
    """One line per group, largest remaining error first; empty without groups."""
    task, lines = outcome.task, [line for line in outcome.groups if line.counted]
    if not lines:
        return []
    measure = task.errors[0]
    lines.sort(key=lambda line: -abs(line.means[f"{measure}_after"] - task.target))
    names = [f"{name}_{when}" for name in (measure, f"loss{task.as_served}") for when in ("before", "after")]
    rows: list[GroupRow] = []
    for line in lines:
        rows.append((line.name, line.counted, [line.means[name] for name in names], line.served_bound, line.vacuous))
    table = table_lines(rows, "bias" if measure == "bias" else "coverage")
    if outcome.scope and any(line.bound is not None and not line.vacuous for line in lines):
        table.append(f"(bounds are on averages {outcome.scope}, not on those of this table)")
    if task.limited and any(line.served_bound is None and line.bound is not None for line in lines):
        table.append(BEFORE_LIMITS)
    return table


GroupRow = tuple[str, int, list[float], float | None, bool | None]  # name, labels, figures, bound, vacuous


def table_lines(groups: Sequence[GroupRow], what: str) -> list[str]:
    rows = [["group", "rows", f"{what} before", "after", "loss before", "after", "bound"]]
    for name, labels, figures, bound, vacuous in groups[:SHOWN]:
        limit = "-" if bound is None else NO_GUARANTEE if vacuous else short(bound, up=True)
        rows.append([clean(name, 40), f"{labels:,}", *map(short, figures), limit])
    table = aligned_table(rows)
    if len(groups) > SHOWN:
        table.append(f"... and {some(len(groups) - SHOWN, 'group')} with less; --json lists all")
    return table


def arrow(before: float | None, after: float | None) -> str:
    return " -> ".join("-" if value is None else short(value) for value in (before, after))


def plain(sentence: str) -> str:
    return clean(sentence.translate(_PLAIN), 2000)


def run_json(outcome: RunOutcome) -> str:
    task, learning, layer = outcome.task, learning_of(outcome.layer), outcome.layer
    reached = outcome.equilibrium
    result: dict[str, object] = {
        "command": task.command,
        "rows": outcome.totals.rows,
        "labelled": outcome.totals.labelled,
        "learned": outcome.learned,
        "not_due": learning.not_due,
        "held_back": len(layer.internals.tickets.held_back),
        "labels": label_timing(task.common, task.label),
        **steps_json(outcome),
        "learning": asdict(learning),
    }
    if task.common.weight is not None:
        result["weight"] = task.common.weight
    result |= measures_json(task, outcome.totals.sums.mean, outcome.totals.counted)
    theta = getattr(layer, "theta", None)
    if task.key is not None:
        result["keys"] = layer.internals.names.keys
        if outcome.series is not None:
            result["series"] = series_json(outcome, outcome.series)
    elif isinstance(theta, dict):
        result["theta"] = theta
    weights = getattr(layer, "tracker_weights", None)
    if isinstance(weights, dict):
        result["weights"] = weights
    if task.link == "exp":  # the certificate is of this one
        result["relative_bias"] = {"before": reached.bias_before, "after": reached.bias_after}
    bias, loss = (dict(zip(("before", "after"), pair, strict=True)) for pair in learned_pairs(outcome))
    result["learned_from"] = {  # the rows of the certificate
        "rows": reached.rows,
        **({"weights": reached.weights} if reached.weights else {}),
        **({"relative_bias" if task.link == "exp" else "bias": bias} if task.command == "debias" else {}),
        **coverage_as_json(layer, reached),
        "loss": {"name": reached.loss_name} | loss,
    }
    result["groups"] = [group_json(task, line) for line in outcome.groups]
    return to_json(result | closing_json(outcome))


def steps_json(outcome: RunOutcome | EloOutcome) -> dict[str, object]:
    auto = outcome.eta == "auto"
    return {
        "eta": outcome.layer.step if auto else outcome.eta,
        "method": "auto" if auto else "plain",
        "decay": outcome.task.common.decay,
        "capped": None if outcome.capped is None else asdict(outcome.capped),
        "resized": outcome.resized,
    }


def learned_pairs(outcome: RunOutcome) -> list[tuple[float | None, float | None]]:
    """Bias and loss over the labels learned from, each before and after."""
    reached, task = outcome.equilibrium, outcome.task
    if not reached.rows:
        return [(None, None), (None, None)]
    bias = (reached.bias_before, reached.bias_after)
    if outcome.scope or task.limited or task.outcome == "binary" or task.link == "exp":
        return [bias, (reached.loss_before, reached.loss_after)]
    # The very same figures, so that they have the same digits.
    return [outcome.pair("bias") if task.command == "debias" else bias, outcome.pair("loss")]


def measures_json(task: RunTask, mean: Callable[[str], float], rows: int) -> dict[str, object]:
    """Bias or coverage and loss; null without labels."""

    def pair(measure: str, **first: object) -> dict[str, object]:
        def sides(name: str) -> dict[str, object]:
            return {side: mean(f"{name}_{side}") if rows else None for side in ("before", "after")}

        # With --min and --max also as served, inside them.
        return first | sides(measure) | ({"clipped": sides(f"{measure}_clipped")} if task.limited else {})

    if task.command == "debias":
        log = {"log_loss": pair("log")} if task.outcome == "binary" else {}
        return {"bias": pair("bias"), "loss": pair("loss", name="squared error"), **log}
    levels = [pair(f"cover{k}", level=float(text), target=float(text)) for k, text in enumerate(task.levels)]
    if task.interval is not None:
        levels = [pair("inside", target=float(task.interval))]
    return {"coverage": levels[0] if len(levels) == 1 else levels, "loss": pair("loss", name="pinball")}


def group_json(task: RunTask, line: GroupLine) -> dict[str, object]:
    return {
        "name": line.name,
        "rows": line.rows,
        "labelled": line.labelled,
        **measures_json(task, line.means.__getitem__, line.counted),
        "learned": line.learned,
        "bound": line.bound,
        "vacuous": None if line.bound is None else line.vacuous,
    }


def closing_json(outcome: RunOutcome | EloOutcome) -> dict[str, object]:
    reached, layer = outcome.equilibrium, outcome.layer
    certificate: dict[str, object] = {**reached.certificate}
    covered = coverages_of(layer, reached)
    if covered:  # of an interval that is the bounds of both ends together
        bound, vacuous = joint_bound(covered)
        certificate |= {"coverage_bound": bound, "coverage_vacuous": vacuous}
    runs = layer.internals.tickets.desk.get("runs")
    result: dict[str, object] = {"certificate": certificate, "warnings": notices_json(outcome.notices)}
    return result | ({"run": runs[-1][0], "open": layer.traffic["open"]} if runs else {})


def notices_json(notices: Iterable[Notice]) -> list[dict[str, str]]:
    return [asdict(notice) for notice in notices]


def to_json(value: object) -> str:
    return json.dumps(jsonable(value), allow_nan=False, ensure_ascii=True)
