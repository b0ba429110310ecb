"""What every rule can do, and postings entered in batches: the same sums as one by one, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from gradeq.errors import Diverging
from gradeq.kernels.account import LEAN, ROWS, WEIGHT, enter_lean, enter_many
from gradeq.kernels.choice import PassRows, run_loop, unsigned
from gradeq.kernels.descent import (
    Alone,
    DenseRows,
    DescentBuffers,
    DescentInputs,
    ListedEntries,
    OneParameter,
    Own,
    Same,
    SeveralParameters,
    tally,
)
from gradeq.ledger.batch import Batch
from gradeq.ledger.facts import SERVED
from gradeq.ledger.state import FACTS_KNOWN, LEFT, MOST, MOVE, SUM, Column, Floats, State, column
from gradeq.ledger.values import Place, Posting, Ticket, new
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.numerics import LARGEST
from gradeq.penalties import Penalty, Ridge
from gradeq.schedules import Schedule

PARAMS, VALUES = itemgetter(0), itemgetter(1)  # of a place, of a row


@dataclass(frozen=True)
class Entries:
    """Labels in the order of posting, each a column, or a list where rules have more than numbers.

    ``centre``: what z'u moves; ``now``: the rows served by then, ``FACTS_KNOWN`` where a label is for the accounts
    alone.
    """

    places: Any
    rows: Any
    base: Any
    served: Any
    centre: Any
    y: Any
    memo: Any
    w: Floats
    eta: Floats
    sign: Floats
    step: Floats
    number: Floats
    now: Floats
    lates: Any

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def params(self) -> tuple[Any, Any]:
        """The parameters of all labels one after the other, and where those of each begin."""
        if alike(self.places):
            own, n = np.array(self.places[0][0], dtype=np.int64), len(self)
            return np.tile(own, n), np.arange(n + 1) * len(own)
        each = list(map(PARAMS, self.places))
        flat = list(chain.from_iterable(each))
        wide = len(each[0])
        same = len(flat) == wide * len(each)  # players with a home side and those without may make up for it
        starts = np.arange(0, len(flat) + 1, wide) if same else np.cumsum([0, *map(len, each)])
        return steady(flat).astype(np.int64), starts

    @property
    def index(self) -> Any:
        return self.params[0].reshape(len(self), -1).T

    @cached_property
    def z(self) -> Floats:
        """Their values, a column each."""
        first, n, same = self.rows[0][1], len(self), alike(self.rows)
        each = [] if same else list(map(VALUES, self.rows))
        if same or each.count(first) == n:
            return np.repeat(first, n).reshape(-1, n)
        return as_column(list(chain.from_iterable(each))).reshape(n, -1).T

    @cached_property
    def late(self) -> Floats:
        """The largest lateness of each label."""
        first, n = self.lates[0], len(self)
        if self.lates.count(first) == n:
            return np.full(n, float(max(first)))
        return as_column([max(late, default=0) for late in self.lates])


def read(log: list[object]) -> Entries:
    """The labels that were left."""
    number, rows, base, served, w, step, eta, late, y, _, _, memo, _, sign, _, places, now = (
        log[k::LEFT] for k in range(LEFT)
    )
    return Entries(
        places, rows, base, served, base, y, memo, steady(w), steady(eta), steady(sign), steady(step),
        as_column(number), as_column(now), late,
    )  # fmt: skip


def alike(values: list[object]) -> bool:
    """Whether all are one and the same, as the places of a layer without groups are."""
    return values[0] is values[-1] and values.count(values[0]) == len(values)


def as_column(values: Any) -> Floats:
    """Numbers as a column."""
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, np.float64, len(values))


def steady(values: Any) -> Floats:
    """The same for numbers that are often all one."""
    first, count = values[0], len(values)
    return np.full(count, first) if values.count(first) == count else as_column(values)


def columns(values: Any, levels: int) -> tuple[Floats, ...]:
    return (as_column(values),) if levels == 1 else tuple(map(as_column, zip(*values, strict=True)))


def picked(own: Entries, chosen: Any) -> Entries:
    """Some of the labels, as far as their facts go."""
    few = {name: getattr(own, name)[chosen] for name in ("w", "eta", "step", "number", "now")}
    lists = {name: list(compress(getattr(own, name), chosen)) for name in ("places", "rows", "lates")}
    return replace(own, **few, **lists)


def enter(state: State, own: Entries, judged: tuple[Any, Any], residuals: Any, blurs: Any, reach: Any) -> None:
    """Enter labels into the accounts of their parameters, and into that of all rows where there is one.

    ``judged``: errors and losses, of what was served before the base; all have a column for each level.
    """
    (errors, losses), levels, terms = judged, len(residuals), (own.w, own.eta, own.sign)
    whole = hasattr(state, "total")
    for k in range(levels):
        seen = (*errors[k::levels], *losses[k::levels])
        label = (*seen, residuals[k], blurs[k], reach)
        for index, z in zip(own.index, own.z, strict=True):  # none is in two places of a row
            enter_many(state.view("sums"), index * levels + k, z, terms, label)
        if whole:
            at = np.full(len(own), k)
            enter_many(state.view("total"), at, np.ones(1), terms, label)


STEP = 2  # beside ROWS and WEIGHT in the column ``heard``: the last step taken

LEAN_COLUMNS = (
    column("u", "parameter", (0.0,), MOVE),
    column("sums", "parameter", (0.0,) * LEAN),
    Column("heard", "layer", (0.0, 0.0, 0.0), (SUM, SUM, MOST)),
)
PENALTY_COLUMNS = (column("pulls", "parameter", (0.0,)), column("drags", "parameter", (0.0,)))


def entered(state: State, params: tuple[int, ...], posting: Posting, error: float) -> None:
    """Enter one label, whose move was made."""
    w, eta, sign = posting.weight, posting.eta, posting.sign
    e = w * error
    for j, z in zip(params, posting.row.values, strict=True):
        enter_lean(state.sums, j * LEAN, e, z, eta, sign)
    heard = state.heard
    heard[ROWS] += sign
    heard[WEIGHT] += sign * w
    heard[STEP] = eta


def counted(state: State, batch: Batch) -> None:
    """Count the posted rows of a run; weights one after the other, as events add them."""
    posts, heard = batch.posts, state.heard
    if not len(posts):
        return
    heard[ROWS] += float(len(posts))
    if batch.plain and heard[WEIGHT].is_integer():
        heard[WEIGHT] += float(len(posts))
    else:
        heard[WEIGHT] = np.add.accumulate(np.append(heard[WEIGHT], batch.weights[posts]))[-1]
    heard[STEP] = float(batch.etas[posts[-1]])


IDLE = Ridge(1.0)  # stands where a compiled loop expects a penalty that it does not use
NOTHING = np.empty(0)


def forms_of(batch: Batch, parameters: int) -> tuple[Any, Any]:
    """The form of the rows of a batch, and whether they share one weight and step."""
    rows = batch.rows
    terms = Same() if batch.plain else Own()
    if rows.dense:
        return DenseRows(), terms
    if rows.single:
        return Alone() if parameters == 1 else OneParameter(), terms
    return SeveralParameters(rows.width) if rows.width else ListedEntries(), terms


def pass_inputs(batch: Batch, served: Any, centre: Any = None) -> DescentInputs:
    """What a pass reads of a batch; ``centre`` is what z'u moves, if not the base prediction."""
    rows, same = batch.rows, slice(1 if batch.plain else None)
    starts, params = unsigned(rows.starts, rows.params)
    values = NOTHING if rows.width else rows.values  # the former are known
    if rows.dense:
        values = values.reshape(len(served), -1)
    return DescentInputs(
        batch.base, batch.base if centre is None else centre, batch.labels, batch.weights[same],
        batch.etas[same], starts, params, values, served,
    )  # fmt: skip


def pass_buffers(state: State) -> DescentBuffers:
    """What a pass writes of a state; what is not kept is empty."""
    names = ("u", "sums", "total", "pulls", "drags")
    found = [state.view(name) if hasattr(state, name) else NOTHING for name in names]
    return DescentBuffers._make([*found, np.empty(len(found[-1]))])


def tallied(
    link: Link, loss: Loss, account: object, batch: Batch, columns: DescentInputs, sums: DescentBuffers
) -> None:
    """Enter the posted rows of a batch into accounts: a pass of its own."""
    parts = (link, loss, *forms_of(batch, len(sums.u)), account, columns, sums)
    run_loop(tally, parts, unsigned(batch.posts), len(batch.base))


LARGEST_FINITE = 1.7976931348623157e308  # a comparison with it is false for nan and inf


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

        The posting may lack errors and losses: learning does not need them.
        """
        ...

    def account(self, state: State, own: Entries) -> None:
        """Enter labels into the accounts, in order."""
        ...

    def run(self, state: State, batch: Batch) -> tuple[Any, Any]:
        """Serve and learn from a whole batch: the served values, and a table of memos (or None)."""
        ...


def diverging(eta: float) -> Diverging:
    return Diverging(
        f"Step {eta:g} is too large: the corrections are diverging. Use a smaller eta, or keep the cap on steps "
        f"if labels come late. Numbers beyond {LARGEST:g} are too large for any step"
    )


def slopes_at(penalty: Penalty | None, u: Any) -> tuple[float, ...]:
    """The penalty's slopes at these parameters, up to the last that pulls: later ones may not be born yet."""
    if penalty is None:
        return ()
    slopes = [penalty.slope(x) for x in u]
    while slopes and slopes[-1] == 0.0:
        slopes.pop()
    return tuple(slopes)


def posting_of(rule: Rule, ticket: Ticket | Posting, y: Any, eta: float, late: tuple[int, ...]) -> Posting:
    """What a label adds: of a ticket, or of an earlier posting that is judged again."""
    return judged(rule, measured(rule, ticket, y, eta, late))


def measured(rule: Rule, ticket: Ticket | Posting, y: Any, eta: float, late: tuple[int, ...]) -> Posting:
    """The same before it is judged."""
    _, memo = rule.measure(ticket.served, ticket.base, y, ticket.memo)
    learned = (eta, late, y, (), (), memo, ticket.slopes, 1.0, ticket.given)
    return new(Posting, ticket[:6] + learned)  # number to step come first in both


def judged(rule: Rule, posting: Posting) -> Posting:
    """A posting with its errors and losses, which learning does not need."""
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
        if not -LARGEST_FINITE <= served <= LARGEST_FINITE:
            raise diverging(step)
        return
    for s in served:
        if not -LARGEST_FINITE <= s <= LARGEST_FINITE:
            raise diverging(step)


def with_step(rule: Any, schedule: Schedule) -> Any:
    """The same rule with other steps; of a rule around another, the inner one's."""
    if hasattr(rule, "inner"):
        return replace(rule, inner=with_step(rule.inner, schedule))
    return replace(rule, schedule=schedule)


def rows_of(state: State, batch: Batch) -> PassRows:
    """The rows of a batch as ``driven`` takes them; forecasts of several levels flat, row after row."""
    rows = batch.rows
    flat, values = np.ascontiguousarray(batch.base).reshape(-1), np.ascontiguousarray(rows.values)
    numbers = np.array([float(ticket.number) for ticket in batch.carried])
    before = state.facts[SERVED] - (len(batch.base) - batch.first)
    cuts = np.append(batch.cuts, len(batch.posts))
    starts, index, keys, cuts, posts = unsigned(rows.starts, rows.params, batch.keys, cuts, batch.posts)
    return PassRows(
        flat, batch.labels, batch.weights, batch.etas, starts, index, values, keys,
        batch.first, len(batch.base) + 1, cuts, posts, numbers, before,
    )  # fmt: skip


def views(kind: Any, state: State) -> Any:
    """The columns of a state as a record of arrays on the same memory; those that it does not keep are empty."""
    return kind(*(state.view(n) if hasattr(state, n) else np.empty(0) for n in kind._fields))
