"""The identity behind a certificate for one parameter, as the page works it through."""

from gradeq.equilibrium import Coordinate, Equilibrium
from gradeq.naming import split_name
from gradeq.report.story import Worked

EVERY = "(all)"


def line(
    reached: Equilibrium, cell: Coordinate, eta: float, tail: str, every: str = "all rows"
) -> Worked:
    """One parameter's arithmetic. A penalty moves every parameter at every row, so its mean is over all."""
    column, value = split_name(cell.name)
    average = cell.bias_after or 0.0
    n, own, penalty = cell.weight, None, 0.0
    if cell.average_penalty and reached.exact:
        level = cell.name.rpartition(" @ ")[2] if " @ " in cell.name else ""
        same = [c for c in reached.coordinates if value and split_name(c.name)[0] == column]
        same = [c for c in same if not level or c.name.endswith(f" @ {level}")] or [cell]
        n, own = sum(c.weight for c in same), cell.weight
        penalty, average = cell.average_penalty, cell.average_gradient
    name = (value or cell.name).replace(" @ ", " at level ").replace(EVERY, every)
    step = eta if reached.exact and eta else None
    return Worked(name, n, -cell.moved, average, step, average * n, penalty, own, f", {tail}")
