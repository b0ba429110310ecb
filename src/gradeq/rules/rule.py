"""What a layer asks of its rule: ``serve`` reads, ``judge`` is pure, ``add`` alone writes what is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gradeq.errors import Diverging
from gradeq.kernels.call import unsigned
from gradeq.kernels.driver import Rows
from gradeq.ledger.batch import Batch
from gradeq.ledger.facts import SERVED
from gradeq.ledger.state import FACTS_KNOWN, Column, State
from gradeq.ledger.values import Place, Posting, Ticket, new
from gradeq.numerics import LARGEST
from gradeq.penalties import Penalty
from gradeq.rules.entries import Entries
from gradeq.schedules import Schedule

MOST = (
    1.7976931348623157e308  # the largest finite float: -MOST <= x <= MOST is false for nan and inf
)


# Of one label: the error that moves the state (of several levels one each), and the memo of its posting.
Measured = tuple[Any, tuple[float, ...]]
# Of a label or of columns of them: errors and losses.
Judged = tuple[tuple[Any, ...], tuple[Any, ...]]


class Rule(Protocol):
    """A frozen value made of a link, a loss, a schedule, a penalty: the whole of what is learned and how.

    ``width``: how many numbers u has for each parameter (levels); ``stride``: numbers in the account of one of them.
    """

    @property
    def schedule(self) -> Schedule:
        """The step at each time."""
        ...

    @property
    def penalty(self) -> Penalty | None:
        """What pulls every parameter to zero, if anything does."""
        ...

    @property
    def width(self) -> int:
        """Numbers of u for each parameter."""
        ...

    @property
    def stride(self) -> int:
        """Numbers in the account of one parameter, all its levels together."""
        ...

    def columns(self) -> Sequence[Column]:
        """What the state keeps for this rule."""
        ...

    def serve(
        self, state: State, place: Place, values: tuple[float, ...], f: Any
    ) -> tuple[Any, tuple[float, ...], tuple[float, ...]]:
        """The served value, the memo for its label, and the penalty's slopes; nothing is changed."""
        ...

    @property
    def later(self) -> bool:
        """Whether ``account`` enters the labels of events, many at a time; else ``add`` does."""
        ...

    def measure(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Measured:
        """What a label says of what was served: all that learning needs; a posting may be measured again."""
        ...

    def judge(self, served: Any, base: Any, y: Any, memo: tuple[float, ...]) -> Judged:
        """Errors and losses of what was served, then of the base, given its posting's memo; or columns of them."""
        ...

    def add(self, state: State, place: Place, posting: Posting, error: Any) -> None:
        """Learn: move the state by the error; raises ``Diverging`` with nothing changed.

        The posting may be its fields alone, without errors and losses: nobody learns from those.
        """
        ...

    def account(self, state: State, own: Entries) -> None:
        """Enter labels into the accounts, in order."""
        ...

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """Serve and learn from a whole batch: the served values, and a table of memos (or None)."""
        ...


def diverging(eta: float) -> Diverging:
    """The refusal of a step that would leave the proven range."""
    return Diverging(
        f"a parameter leaves its proven range with a step of {eta:g}: the layer is diverging; "
        "use a smaller eta, or the late-label cap where labels come late; "
        f"numbers beyond {LARGEST:g} are too large for any step"
    )


def slopes_at(penalty: Penalty | None, u: Any) -> tuple[float, ...]:
    """The penalty's slopes at these parameters, up to the last that pulls: later ones may not be born yet."""
    if penalty is None:
        return ()
    slopes = [penalty.slope(x) for x in u]
    while slopes and slopes[-1] == 0.0:
        slopes.pop()
    return tuple(slopes)


def posting_of(
    rule: Rule, ticket: Ticket | Posting, y: Any, eta: float, late: tuple[int, ...]
) -> Posting:
    """What a label adds: of a ticket, or of an earlier posting that is judged again."""
    return judged(rule, measured(rule, ticket, y, eta, late))


def measured(
    rule: Rule, ticket: Ticket | Posting, y: Any, eta: float, late: tuple[int, ...]
) -> Posting:
    """The same before it is judged."""
    _, memo = rule.measure(ticket.served, ticket.base, y, ticket.memo)
    learned = (eta, late, y, (), (), memo, ticket.slopes, 1.0, ticket.given)
    return new(Posting, ticket[:6] + learned)  # number to step come first in both


def judged(rule: Rule, posting: Posting) -> Posting:
    """A posting with its errors and losses, which nobody needs to learn from it."""
    if posting.errors:
        return posting
    errors, losses = rule.judge(posting.served, posting.base, posting.y, posting.memo)
    whole: Posting = new(Posting, (*posting[:9], errors, losses, *posting[11:]))
    return whole


def learn(rule: Rule, state: State, place: Place, posting: Posting) -> None:
    """Add a posting whose facts are known otherwise: to what is learned, and to the accounts."""
    errors, levels = posting.errors, rule.width
    rule.add(state, place, posting, errors[0] if levels == 1 else errors[:levels])
    if rule.later:
        state.log += (*posting, place, FACTS_KNOWN)


def check_served(served: Any, step: float) -> None:
    """Refuse to serve what is not finite."""
    if type(served) is float:
        if not -MOST <= served <= MOST:
            raise diverging(step)
        return
    for s in served:
        if not -MOST <= s <= MOST:
            raise diverging(step)


def with_step(rule: Any, schedule: Schedule) -> Any:
    """The same rule with other steps; of a rule around another, the inner one's."""
    if hasattr(rule, "inner"):
        return replace(rule, inner=with_step(rule.inner, schedule))
    return replace(rule, schedule=schedule)


def rows_of(state: State, batch: Batch) -> Rows:
    """The rows of a batch as ``driven`` takes them; forecasts of several levels flat, row after row."""
    rows = batch.rows
    flat, values = np.ascontiguousarray(batch.base).reshape(-1), np.ascontiguousarray(rows.values)
    numbers = np.array([float(ticket.number) for ticket in batch.carried])
    before = state.facts[SERVED] - (len(batch.base) - batch.first)
    cuts = np.append(batch.cuts, len(batch.posts))
    starts, index, keys, cuts, posts = unsigned(
        rows.starts, rows.params, batch.keys, cuts, batch.posts
    )
    return Rows(
        flat, batch.labels, batch.weights, batch.etas, starts, index, values, keys,
        batch.first, len(batch.base) + 1, cuts, posts, numbers, before,
    )  # fmt: skip


def views(kind: Any, state: State) -> Any:
    """The columns of a state as a record of arrays on the same memory; those that it does not keep are empty."""
    return kind(*(state.view(n) if hasattr(state, n) else np.empty(0) for n in kind._fields))
