"""The identity behind a run's certificate, worked through for the parameter with most rows."""

from __future__ import annotations

from gradeq.cli.outcome import Outcome
from gradeq.equilibrium import Coordinate
from gradeq.naming import column_name
from gradeq.report import story as told
from gradeq.report.identity import line
from gradeq.report.numerals import percent, some, target


def method(outcome: Outcome) -> told.Method:
    """How values were served, and the averages of one group (or of all rows) from their sums.

    Of an interval both ends are worked through, since its coverage is their difference.
    """
    task, reached = outcome.task, outcome.equilibrium
    auto = outcome.eta == "auto"
    if not reached.coordinates or not outcome.counted:
        return told.Method(task.link, exact=reached.exact, auto=auto)
    first = max(reached.coordinates, key=lambda c: c.rows)
    cells = [first]
    if task.interval is not None:
        stem = first.name.rpartition(" @ ")[0]
        cells = [c for c in reached.coordinates if c.name.rpartition(" @ ")[0] == stem]
    eta = outcome.layer.steps["largest"]
    every = "all keys" if task.key is not None else "all rows"
    return told.Method(
        task.link,
        tuple(line(reached, c, eta, meaning(outcome, c), every) for c in cells),
        reached.exact,
        auto,
        None if task.interval is None else (float(task.levels[0]), float(task.levels[-1])),
        extra(outcome),
    )


def meaning(outcome: Outcome, cell: Coordinate) -> str:
    """What the average is, and whether a table of the page shows the same."""
    task = outcome.task
    if cell.name in map(column_name, task.features):
        return f"the mean of error × {cell.name}, which is driven to zero"
    stem, _, level = cell.name.partition(" @ ") if task.several else (cell.name, "", "")
    group = next((g for g in outcome.groups if g.name == stem), None)
    counted = outcome.counted if group is None else group.counted
    same = not outcome.continued and cell.rows == counted
    if task.link == "exp":
        return "the relative bias, mean of (served − label) / forecast; tables show the plain bias"
    if task.command == "debias":
        if same:
            return "the bias in the table" if group is not None else "the bias above"
        return f"the bias over the {some(cell.rows, 'row')} learned from{since(outcome)}"
    wanted = float(level or task.levels[0])
    share = percent(wanted + (cell.bias_after or 0.0), 2)
    rows = "" if same else f" of the {some(cell.rows, 'row')} learned from{since(outcome)}"
    return f"coverage minus level: {share} covered{rows}, level {target(wanted)}"


def since(outcome: Outcome) -> str:
    """Since when, where a state was continued."""
    return " since the state began" if outcome.continued else ""


def extra(outcome: Outcome) -> str:
    """What else must be said about the rows that the identity is about."""
    said = []
    if outcome.task.common.weight is not None:
        said.append(
            "Rows have weights: the error of a row is multiplied by its weight, and n is the sum "
            "of the weights learned from."
        )
    learned = outcome.equilibrium.rows
    if outcome.continued:
        said.append("Figures and tables are of this run; the certificate is since the state began.")
    elif learned < outcome.counted:
        waiting = some(outcome.counted - learned, "label")
        said.append(
            f"Figures and tables count {some(outcome.counted, 'label')}; {waiting} of them had not "
            "been learned from by the end of the run."
        )
    return " ".join(said)
