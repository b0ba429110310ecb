"""Many labels in short, of a batch or of single events, what facts are read from; and cells never late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.kernels.flight import COUNT, EPOCH, LATENESS, LATEST, LENGTH, NO_LABELS, PEAK, RECENT
from gradeq.ledger.batch import Batch, Order
from gradeq.ledger.state import State
from gradeq.rules.entries import read
from gradeq.rules.rule import Rule

if TYPE_CHECKING:
    from gradeq.engine.flight import Flight


class Told(NamedTuple):
    """What a pass tells of its labels, in short (``kernels.flight``)."""

    low: float
    high: float
    held: float
    heaviest: float
    late: float
    waited: float
    longest: float
    heaviest_step: float


def at_once(batch: Batch) -> Told:
    """In short what labels are like that come right after their rows."""
    etas, weights, posts = batch.steps, batch.weights, batch.posts
    if not len(posts):
        return Told(*NO_LABELS)
    if batch.plain:
        etas, weights = etas[:1], weights[:1]
    elif len(posts) < len(batch.base):
        etas, weights = etas[posts], weights[posts]
    ends, heaviest = (float(etas.min()), float(etas.max())), float(weights.max())
    return Told(*ends, 0.0, heaviest, 1.0, 0.0, 0.0, float((etas * weights).max()))


def unlearned(batch: Batch, order: Order, before: float) -> dict[str, float]:
    """How long labels were waited for that are heard and not learned from."""
    if batch.at_once or not len(order.posts):
        return {}
    own, rows = order.posts, np.arange(len(order.cuts) + 1)
    turns = np.repeat(rows, np.diff(order.cuts, prepend=0, append=len(own)))
    numbers = before + (own - batch.first) + 1.0
    for k, ticket in enumerate(batch.carried):
        numbers[own == k] = ticket.number
    ago = np.maximum(0.0, before + (turns - batch.first) - numbers)
    return {"waited": float(ago.sum()), "longest": float(ago.max())}


def calm(labels: Any) -> Any:
    """The numbers of cells all of whose labels came at once: epochs of 50, 100, 150, ... labels, peak 1."""
    past = np.floor((np.sqrt(1.0 + labels / 6.25) - 1.0) / 2.0)
    past = np.where(25.0 * (past + 1.0) * (past + 2.0) <= labels, past + 1.0, past)
    past = np.where(25.0 * past * (past + 1.0) > labels, past - 1.0, past)
    made = np.empty((len(labels), LATENESS))
    made[:, PEAK] = made[:, LATEST] = 1.0
    made[:, COUNT] = labels - 25.0 * past * (past + 1.0)
    made[:, LENGTH] = EPOCH * (past + 1.0)
    made[:, RECENT] = np.where(made[:, COUNT] > 0.0, 1.0, 0.0)
    return made


def entered(
    rule: Rule, flight: Flight, look: Callable[[Any, Any], None], state: State, log: list[Any]
) -> None:
    """Enter labels that events left in a state: into its facts, then into its accounts; ``look`` is shown them."""
    own = read(log)
    look(own.base, own.y)
    flight.tell(state, own)
    if state.later:
        with np.errstate(over="ignore", invalid="ignore"):  # of losses: squares of anything
            rule.account(state, own)
