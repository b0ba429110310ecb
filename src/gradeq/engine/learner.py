"""The general engine: any loss, link, step, penalty and geometry, event by event or over whole columns.

served  s = link(f, z'theta)      error  e = loss.slope(s, y)      gradient  g = e z
greedy  u <- dual(theta) - eta (g + penalty)        lazy  u <- u - eta (g + penalty)        theta = primal(u)
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradeq.engine import checks
from gradeq.engine.learned import OWN_COLUMNS, Run, State
from gradeq.engine.learner_run import run_rows
from gradeq.engine.observed import (
    STALE,
    Labels,
    Observer,
    observe,
    observe_gradient,
    observer_of,
)
from gradeq.engine.rows import one_row
from gradeq.errors import BadInput, StateError, StepTooLarge, TicketError
from gradeq.geometries import Euclidean, Geometry
from gradeq.kernels.account import LEAN
from gradeq.ledger.batch import Rows
from gradeq.ledger.state import State as Columns
from gradeq.ledger.values import Place, Posting, Row, Ticket
from gradeq.links import Exp, Identity, Link, Logit, Multiplicative, Shift, Sigmoid
from gradeq.losses import Linear, Logistic, Loss, Poisson, Squared
from gradeq.penalties import Penalty
from gradeq.rules.descent import Descent
from gradeq.rules.proximal import Proximal
from gradeq.rules.rule import Rule, posting_of
from gradeq.schedules import Constant, Schedule, as_schedule

USES = {
    "slope": "slope(u, y), the derivative of the loss in u",
    "primal": "primal(z, eta, out), which fills out with the parameters of the dual point z",
    "dual": "dual(theta, out), which fills out with the dual point of theta",
    "serve": "serve(f, m), what is served for the prediction f and the margin m",
}
AT_ONCE = (1,)  # the lateness that a learner's postings carry: it has no cap, so nobody counts


@dataclass(frozen=True, init=False)
class Learner:
    """Online descent on any loss, whose average gradient is a displacement of its state (prop:gd_simple).

    The learner is only the recipe; every verb takes a state and gives a new one. A number as ``schedule`` is a
    constant step. ``lazy`` keeps the plain sum of steps and serves its projection, where the geometry allows it.

    >>> from gradeq.losses import Squared
    >>> learner = Learner(Squared(), 0.1)
    >>> run = learner.run(learner.start(), None, [1.0, 1.0, 1.0])
    >>> run.served.round(3).tolist()
    [0.0, 0.1, 0.19]
    >>> average = float(run.state.gradients[0]) / run.state.n
    >>> displacement = float(run.state.first[0] - run.state.u[0]) / (0.1 * run.state.n)
    >>> round(average, 6), round(displacement, 6)
    (-0.903333, -0.903333)

    Guaranteed: with a constant step the identity holds for any data; the bounds of ``gradeq.theory`` for the losses
    and step sizes they name. Nothing is promised about a loss that is not restorative.
    """

    loss: Loss
    schedule: Schedule
    geometry: Geometry
    penalty: Penalty | None
    link: Link
    lazy: bool
    _rule: Rule = field(init=False, repr=False, compare=False)
    _observer: Observer = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        loss: Loss,
        schedule: Schedule | float,
        geometry: Geometry = Euclidean(),  # noqa: B008 - a frozen value
        penalty: Penalty | None = None,
        link: Link = Identity(),  # noqa: B008 - a frozen value
        lazy: bool = False,
    ) -> None:
        needed = ((loss, "slope"), (geometry, "primal"), (geometry, "dual"), (link, "serve"))
        for part, method in needed:
            if isinstance(part, type):
                raise BadInput(f"Learner: {part.__name__} is a class; give {part.__name__}(...)")
            if not callable(getattr(part, method, None)):
                raise BadInput(
                    f"Learner: {part!r} has no method {method}; {type(part).__name__} needs {USES[method]}"
                )
        if lazy and not getattr(geometry, "lazy_is_sound", False):
            why = getattr(geometry, "lazy_because", "it does not say lazy_is_sound = True")
            raise BadInput(f"Learner: {geometry!r} has no lazy form: {why}")
        refuse_linked_twice(loss, link)
        steps = as_schedule(schedule)
        rule: Rule
        if isinstance(geometry, Euclidean):
            rule = Descent(link, loss, steps, penalty, lean=True)
        else:
            rule = Proximal(link, loss, steps, geometry, penalty, bool(lazy))
        for name, value in (
            ("loss", loss),
            ("schedule", steps),
            ("geometry", geometry),
            ("penalty", penalty),
            ("link", link),
            ("lazy", bool(lazy)),
            ("_rule", rule),
            ("_observer", observer_of(loss, link, penalty, geometry, bool(lazy))),
        ):
            object.__setattr__(self, name, value)

    @property
    def exact(self) -> bool:
        """Whether two states alone give the average gradient: the step is constant."""
        return isinstance(self.schedule, Constant)

    @property
    def label_range(self) -> tuple[float, float]:
        """Where the loss takes its labels."""
        if isinstance(self.loss, Poisson):
            return 0.0, math.inf
        return getattr(self.loss, "low", -math.inf), getattr(self.loss, "high", math.inf)

    def start(self, theta: Any = 1) -> State:
        """The state before any row: from given parameters, or from a number of them at the set's own centre."""
        if isinstance(theta, (int, np.integer)):
            if theta < 1 or isinstance(theta, bool):
                raise BadInput(
                    f"start({theta}): give the number of parameters, at least 1, or their values"
                )
            self._check_dimension(int(theta))
            values = [0.0] * int(theta)
            self.geometry.primal([0.0] * len(values), 0.0, values)
        else:
            values = self._inside(theta)
        u = [0.0] * len(values)
        self.geometry.dual(values, u)
        columns = Columns((*OWN_COLUMNS, *self._rule.columns()))
        columns.grow(len(u))
        columns.u, columns.first = array("d", u), array("d", u)
        if hasattr(columns, "theta"):
            columns.theta = array("d", values)
        return State(columns)

    def predict(self, state: State, row: Any = None, offset: float = 0.0) -> float:
        """What would be served for this row now; opens no ticket."""
        params, values = one_row(row, state.dimension)
        f = checks.number(offset, "offset")
        return float(self._rule.serve(self._own(state), place_of(params), values, f)[0])

    def ticket(self, state: State, row: Any = None, offset: float = 0.0) -> tuple[State, Ticket]:
        """Serve a row: the state with its clock moved on, and the ticket that its label needs."""
        params, values = one_row(row, state.dimension)
        return self._ticket(state, params, values, checks.number(offset, "offset"))

    def update(self, state: State, ticket: Ticket, y: Any, weight: float = 1.0) -> State:
        """The state after the label of a ticket, in any order where the state is a plain sum.

        A missing label (nan, None) or a weight of 0 changes nothing. The greedy form of a geometry depends on the
        order, and takes a label only before the next update.
        """
        y, w = checks.number(y, "label", missing=True), checks.weight(weight)
        low, high = self.label_range
        if y < low or y > high:
            raise BadInput(
                f"label {y} lies outside [{low}, {high}] the domain of the loss; rescale it"
            )
        if math.isnan(y) or w == 0.0:
            return state
        posting = posting_of(self._rule, ticket._replace(weight=w), y, ticket.step, AT_ONCE)
        columns = self._added(state, posting)
        self._observe(state._columns, columns, posting)
        return State(columns)

    def descend(self, state: State, gradient: Any, direction: Any = None) -> State:
        """The state after one step along a gradient of your own, taken at ``state.theta``.

        What you give as ``gradient`` is what the certificate is about. Where the step goes elsewhere (a gradient
        divided by coordinate as in AdaGrad, a momentum), give the true gradient, and what is stepped along as
        ``direction``: the state moves by -step x direction, and the average of the true gradients is certified.

        >>> from gradeq.losses import Squared
        >>> learner = Learner(Squared(), 0.1)
        >>> state = learner.descend(learner.start(2), [4.0, 1.0], direction=[2.0, 1.0])
        >>> state.theta.tolist(), state.gradients.tolist()
        ([-0.2, -0.1], [4.0, 1.0])
        """
        g = self._along(state, gradient, "gradient")
        d = g if direction is None else self._along(state, direction, "direction")
        served, ticket = self._ticket(state, tuple(range(len(d))), tuple(d.tolist()), 0.0)
        eta, memo, slopes = ticket.step, ticket.memo, ticket.slopes
        posting = Posting(*ticket[:6], eta, AT_ONCE, 0.0, (1.0,), (), memo, slopes)
        columns = self._added(served, posting)
        if direction is not None:
            columns.view("sums")[0::LEAN] = state.gradients + g
        heard = state._columns.heard
        observe_gradient(self._observer, columns, heard, eta, direction is not None)
        return State(columns)

    def _along(self, state: State, values: Any, name: str) -> checks.Floats:
        found = checks.floats(values, name)
        if len(found) != state.dimension:
            raise BadInput(
                f"{name}: {len(found)} values for {state.dimension} parameters; give one each"
            )
        checks.check_finite(found, name)
        return found

    def _observe(self, before: Columns, after: Columns, posting: Posting) -> None:
        """Note a label; one that comes when other parameters serve than did then has no bound."""
        params, values = tuple(map(int, posting.row.names)), posting.row.values
        now = self._rule.serve(before, place_of(params), values, posting.base)
        if now[0] != posting.served or now[2] != posting.slopes:
            after.observed[STALE] += 1.0
        rows = Rows(np.array([0, len(params)]), np.array(params, dtype=np.int64), np.array(values))
        each = (posting.base, posting.y, posting.weight, posting.eta)
        observe(self._observer, after, before.heard, Labels(rows, *(np.array([x]) for x in each)))

    def run(
        self,
        state: State,
        rows: Any,
        labels: Any,
        offsets: Any = None,
        weights: Any = None,
        trace: int | None = None,
    ) -> Run:
        """Serve and learn from columns, each label before the next row: bit for bit what ticket and update give.

        ``rows``: None (one parameter, z = 1), integers (one active parameter a row: groups, keys), a table (rows,
        parameters), ``Sparse`` or ``Pairs``. ``labels``: nan or None where not known. ``offsets``: the black-box
        predictions f (0 if left out). ``trace=k`` keeps theta before every k-th row.
        """
        self._own(state)
        if rows is None:
            self._refuse_large_step(state)
        return run_rows(
            self._rule,
            self._observer,
            self.label_range,
            state,
            rows,
            labels,
            offsets,
            weights,
            trace,
        )

    def _refuse_large_step(self, state: State) -> None:
        """With one parameter and z = 1 the squared error is stable for steps below 2 only (result 3.2)."""
        if (
            isinstance(self.geometry, Euclidean)
            and self.penalty is None
            and isinstance(self.loss, (Squared, Linear))
            and isinstance(self.link, Identity)
        ):
            step = self.schedule.step(state.t + 1)
            if step >= 2.0:
                raise StepTooLarge(
                    f"a step of {step:g}: the squared error is stable below 2 only; use less than 2"
                )

    def _check_dimension(self, dimension: int) -> None:
        """A geometry without ``check`` takes any number of parameters."""
        check = getattr(self.geometry, "check", None)
        if check is not None:
            check(dimension)

    def _inside(self, theta: Any) -> list[float]:
        values_in = checks.floats(np.atleast_1d(np.asarray(theta)), "theta")
        checks.check_finite(values_in, "theta", 0, "parameter")
        if not len(values_in):
            raise BadInput("start: no parameters; give at least one")
        self._check_dimension(len(values_in))
        values: list[float] = values_in.tolist()
        u = [0.0] * len(values)
        back = [0.0] * len(values)
        self.geometry.dual(values, u)
        self.geometry.primal(u, 0.0, back)
        if any(abs(a - b) > 1e-9 * (1.0 + abs(a)) for a, b in zip(values, back, strict=True)):
            nearest = ", ".join(f"{x:.6g}" for x in back[:4])
            raise BadInput(
                f"start: theta is not in {self.geometry!r}; the nearest point begins {nearest}"
            )
        return values

    def _own(self, state: State) -> Columns:
        columns = state._columns
        if columns.columns != (*OWN_COLUMNS, *self._rule.columns()):
            raise StateError(
                "this state is of a learner with another geometry or penalty; begin with learner.start(...)"
            )
        return columns

    def _ticket(
        self, state: State, params: tuple[int, ...], values: tuple[float, ...], f: float
    ) -> tuple[State, Ticket]:
        served, memo, slopes = self._rule.serve(self._own(state), place_of(params), values, f)
        after = state.after_serving()
        row = Row(tuple(map(str, params)), values)
        step = self.schedule.step(after.t)
        return after, Ticket(after.t, row, f, float(served), 1.0, step, (), memo, slopes)

    def _added(self, state: State, posting: Posting) -> Columns:
        try:
            params = tuple(map(int, posting.row.names))
        except ValueError:
            params = (-1,)
        if not all(0 <= j < state.dimension for j in params):
            raise TicketError(
                "this ticket names parameters that the state does not have; is it a layer's?"
            )
        columns = self._own(state).copy()
        self._rule.add(columns, place_of(params), posting, posting.errors[0])
        return columns


def place_of(params: tuple[int, ...]) -> Place:
    """Parameters as a place in a state that counts no cells."""
    return Place(params, (), 0, 0)


def refuse_linked_twice(loss: Loss, link: Link) -> None:
    """A loss of the margin has its link inside: before a link of the same kind it would be applied twice."""
    for own, twice in ((Logistic, (Sigmoid, Logit, Shift)), (Poisson, (Exp, Multiplicative))):
        if isinstance(loss, own) and isinstance(link, twice):
            raise BadInput(
                f"Learner: {own.__name__} is a loss of the margin, with its link inside; {type(link).__name__} "
                f"would apply it twice: use Squared() with this link (the error is s - y), or link=Identity()"
            )
