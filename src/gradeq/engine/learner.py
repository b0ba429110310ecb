"""`Learner`: any loss, link, step, penalty and geometry, event by event or over whole columns."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field

import numpy as np

from gradeq.engine import scalars
from gradeq.engine.columns import steps_at
from gradeq.engine.lateness import PROMPT
from gradeq.engine.learner_state import (
    OWN_COLUMNS,
    STALE,
    LearnedLabels,
    LearnerRun,
    LearnerState,
    Observer,
    labels_of,
    observe,
    observe_gradient,
    observer_of,
)
from gradeq.engine.rows import RowTable, one_row, table
from gradeq.engine.scalars import Floats, check_finite, check_labels, check_weights, floats, same_length
from gradeq.errors import BadInput, Diverging, StateError, StepTooLarge, TicketError
from gradeq.geometries import Euclidean, Geometry
from gradeq.inputs.arguments import as_shown
from gradeq.kernels import choice
from gradeq.kernels.account import LEAN, is_finite
from gradeq.ledger.batch import Batch, Rows, constant, multiples
from gradeq.ledger.state import State as Columns
from gradeq.ledger.values import Place, Posting, Row, Ticket
from gradeq.links import Exp, Identity, Link, Logit, Multiplicative, Shift, Sigmoid
from gradeq.losses import Linear, Logistic, Loss, Poisson, Squared
from gradeq.penalties import Penalty
from gradeq.records import copy_with
from gradeq.rules.descent import Descent, Proximal
from gradeq.rules.rule import Rule, diverging, posting_of
from gradeq.schedules import Constant, Schedule, as_schedule

USES = {
    "slope": "slope(u, y), the derivative of the loss in u",
    "primal": "primal(z, eta, out), which fills out with the parameters of the dual point z",
    "dual": "dual(theta, out), which fills out with the dual point of theta",
    "serve": "serve(f, m), what is served for the prediction f and the margin m",
}


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
    observer: Observer = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        loss: Loss,
        schedule: Schedule | float,
        geometry: Geometry = Euclidean(),  # noqa: B008 - a frozen value
        penalty: Penalty | None = None,
        link: Link = Identity(),  # noqa: B008 - a frozen value
        lazy: bool = False,
    ) -> None:
        needed = (
            ("loss", loss, "slope"),
            ("geometry", geometry, "primal"),
            ("geometry", geometry, "dual"),
            ("link", link, "serve"),
        )
        for name, part, method in needed:
            if isinstance(part, type):
                raise BadInput(f"Learner: {name}: {part.__name__} is a class; give {part.__name__}(...)")
            if not callable(getattr(part, method, None)):
                raise BadInput(
                    f"Learner: {name}: {as_shown(part)} has no method {method}; {type(part).__name__} needs "
                    f"{USES[method]}"
                )
        lazy = scalars.flag(lazy, "lazy")
        scalars.loss(loss)
        scalars.penalty(penalty)
        if lazy and not getattr(geometry, "lazy_is_sound", False):
            why = getattr(geometry, "lazy_because", "it does not say lazy_is_sound = True")
            raise BadInput(f"Learner: {geometry!r} has no lazy form: {why}")
        refuse_linked_twice(loss, link)
        steps = as_schedule(schedule)
        rule: Rule
        if isinstance(geometry, Euclidean):
            rule = Descent(link, loss, steps, penalty, lean=True)
        else:
            rule = Proximal(link, loss, steps, geometry, penalty, lazy)
        for name, value in (
            ("loss", loss),
            ("schedule", steps),
            ("geometry", geometry),
            ("penalty", penalty),
            ("link", link),
            ("lazy", lazy),
            ("_rule", rule),
            ("observer", observer_of(loss, link, penalty, geometry, lazy)),
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

    def start(self, theta: object = 1) -> LearnerState:
        """The state before any row: from given parameters, or from a number of them at the set's own centre."""
        if isinstance(theta, (int, np.integer)):
            if theta < 1 or isinstance(theta, bool):
                raise BadInput(f"start({theta}): give the number of parameters, at least 1, or their values")
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
        return LearnerState(columns)

    def predict(self, state: LearnerState, row: object = None, offset: float = 0.0) -> float:
        """What would be served for this row now; opens no ticket."""
        params, values = one_row(row, state.dimension)
        f = scalars.as_number(offset, "offset")
        return float(self._rule.serve(self._own(state), place_of(params), values, f)[0])

    def ticket(self, state: LearnerState, row: object = None, offset: float = 0.0) -> tuple[LearnerState, Ticket]:
        """Serve a row: the state with its clock moved on, and the ticket that its label needs."""
        params, values = one_row(row, state.dimension)
        return self._ticket(state, params, values, scalars.as_number(offset, "offset"))

    def update(self, state: LearnerState, ticket: Ticket, y: object, weight: float = 1.0) -> LearnerState:
        """The state after the label of a ticket, in any order where the state is a plain sum.

        A missing label (nan, None) or a weight of 0 changes nothing. Other weights multiply the step as they are;
        layers take them relative to their mean. The greedy form of a geometry depends on the order, and takes a label
        only before the next update.
        """
        y, w = scalars.as_number(y, "label", missing=True), scalars.weight(weight)
        low, high = self.label_range
        if y < low or y > high:
            raise BadInput(f"label {y} lies outside [{low}, {high}] the domain of the loss; rescale it")
        if math.isnan(y) or w == 0.0:
            return state
        posting = posting_of(self._rule, copy_with(ticket, weight=w), y, ticket.step, PROMPT)
        columns = self._added(state, posting)
        self._observe(state.internals, columns, posting)
        return LearnerState(columns)

    def descend(self, state: LearnerState, gradient: object, direction: object = None) -> LearnerState:
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
        posting = Posting(*ticket[:6], eta, PROMPT, 0.0, (1.0,), (), memo, slopes)
        columns = self._added(served, posting)
        if direction is not None:
            columns.view("sums")[0::LEAN] = state.gradients + g
        heard = state.internals.heard
        observe_gradient(self.observer, columns, heard, eta, direction is not None)
        return LearnerState(columns)

    def _along(self, state: LearnerState, values: object, name: str) -> scalars.Floats:
        found = scalars.floats(values, name)
        if len(found) != state.dimension:
            raise BadInput(f"{name}: {len(found)} values for {state.dimension} parameters; give one each")
        scalars.check_finite(found, name)
        return found

    def _observe(self, before: Columns, after: Columns, posting: Posting) -> None:
        """Note a label; one that comes when other parameters serve than did then has no bound."""
        params, values = tuple(map(int, posting.row.names)), posting.row.values
        now = self._rule.serve(before, place_of(params), values, posting.base)
        if now[0] != posting.served or now[2] != posting.slopes:
            after.observed[STALE] += 1.0
        rows = Rows(np.array([0, len(params)]), np.array(params, dtype=np.int64), np.array(values))
        each = (posting.base, posting.y, posting.weight, posting.eta)
        observe(self.observer, after, before.heard, LearnedLabels(rows, *(np.array([x]) for x in each)))

    def run(
        self,
        state: LearnerState,
        rows: object,
        labels: object,
        offsets: object = None,
        weights: object = None,
        trace: int | None = None,
    ) -> LearnerRun:
        """Serve and learn from columns, each label before the next row: bit for bit what ticket and update give.

        ``rows``: None (one parameter, z = 1), integers (one active parameter a row: groups, keys), a table (rows,
        parameters), ``Sparse`` or ``Pairs``. ``labels``: nan or None where not known. ``offsets``: the black-box
        predictions f (0 if left out). ``trace=k`` keeps theta before every k-th row.
        """
        self._own(state)
        if rows is None:
            self._refuse_large_step(state)
        return run_rows(self._rule, self.observer, self.label_range, state, rows, labels, offsets, weights, trace)

    def _refuse_large_step(self, state: LearnerState) -> None:
        """With one parameter and z = 1 the squared error is stable for steps below 2 only (result 3.2)."""
        if (
            isinstance(self.geometry, Euclidean)
            and self.penalty is None
            and isinstance(self.loss, (Squared, Linear))
            and isinstance(self.link, Identity)
        ):
            step = self.schedule.step(state.t + 1)
            if step >= 2.0:
                raise StepTooLarge(f"a step of {step:g}: the squared error is stable below 2 only; use less than 2")

    def _check_dimension(self, dimension: int) -> None:
        """A geometry without ``check`` takes any number of parameters."""
        check = getattr(self.geometry, "check", None)
        if check is not None:
            check(dimension)

    def _inside(self, theta: object) -> list[float]:
        values_in = scalars.floats(np.atleast_1d(np.asarray(theta)), "theta")
        scalars.check_finite(values_in, "theta", 0, "parameter")
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
            raise BadInput(f"start: theta is not in {self.geometry!r}; the nearest point begins {nearest}")
        return values

    def _own(self, state: LearnerState) -> Columns:
        columns = state.internals
        if columns.columns != (*OWN_COLUMNS, *self._rule.columns()):
            raise StateError(
                "this state is of a learner with another geometry or penalty; begin with learner.start(...)"
            )
        return columns

    def _ticket(
        self, state: LearnerState, params: tuple[int, ...], values: tuple[float, ...], f: float
    ) -> tuple[LearnerState, Ticket]:
        served, memo, slopes = self._rule.serve(self._own(state), place_of(params), values, f)
        after = state.after_serving()
        row = Row(tuple(map(str, params)), values)
        step = self.schedule.step(after.t)
        return after, Ticket(after.t, row, f, float(served), 1.0, step, (), memo, slopes)

    def _added(self, state: LearnerState, posting: Posting) -> Columns:
        try:
            params = tuple(map(int, posting.row.names))
        except ValueError:
            params = (-1,)
        if not all(0 <= j < state.dimension for j in params):
            raise TicketError("this ticket names parameters that the state does not have; is it a layer's?")
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


BLOCK = 1 << 18  # rows; enough to be compiled at once


def run_rows(
    rule: Rule,
    observer: Observer,
    label_range: tuple[float, float],
    state: LearnerState,
    rows: object,
    labels: object,
    offsets: object,
    weights: object,
    trace: int | None,
) -> LearnerRun:
    """``Learner.run``."""
    if trace is not None and not (isinstance(trace, int) and trace >= 1):
        raise BadInput(f"trace={trace!r}: give a whole number, to keep theta before every so-many-th row")
    y = floats(labels, "labels", missing=True)
    made = table(rows, state.dimension, len(y))
    same_length(y, "labels", len(made))
    f = None if offsets is None else floats(offsets, "offsets")
    w = None if weights is None else floats(weights, "weights")
    for name, column in (("offsets", f), ("weights", w)):
        if column is not None:
            same_length(column, name, len(y))
    columns = state.internals.copy()
    later, served, traced = LearnerState(columns), np.empty(len(y)), []
    kind = choice.kind_of(rule, state.dimension, made.rows.dense, w is None)
    for first in range(0, len(y), trace or BLOCK):
        cut = slice(first, min(first + (trace or BLOCK), len(y)))
        if trace is not None:
            traced.append(later.theta.copy())
        own = (None if column is None else column[cut] for column in (f, w))
        with choice.one_run(kind, cut.stop - first, len(y) - cut.stop):
            served[cut] = block(rule, observer, label_range, columns, made, cut, y[cut], *own)
    thetas = np.array(traced).reshape(-1, state.dimension) if trace is not None else None
    return LearnerRun(served, later, thetas)


def block(
    rule: Rule,
    observer: Observer,
    label_range: tuple[float, float],
    columns: Columns,
    made: RowTable,
    cut: slice,
    y: Floats,
    f: Floats | None,
    w: Floats | None,
) -> Floats:
    """Check the rows of one block and learn from them; what each was served."""
    n, first, rows = len(y), cut.start, made.cut(cut.start, cut.stop)
    whole = check_labels(y, first, *label_range) and w is None
    if f is not None:
        check_finite(f, "offsets", first)
    if w is not None:
        check_weights(w, first)
    # A long table is read only once: if a number in it is not finite, the sums will show it.
    if not (whole and rows.dense):
        made.check(first, cut.stop)
    weights = constant(n, 1.0) if w is None else w
    posts = multiples(n) if whole else np.flatnonzero((y == y) & (weights > 0.0))
    schedule, t = rule.schedule, int(columns.served[0])
    steady = isinstance(schedule, Constant)
    etas = constant(n, schedule.step(1)) if steady else steps_at(schedule, multiples(n) + (t + 1))
    base = constant(n, 0.0) if f is None else f
    batch = Batch(
        base, y, weights, etas, etas, rows, constant(n, 0), 0, multiples(n), posts, [], True, whole and steady,
    )  # fmt: skip
    observe(observer, columns, columns.heard, labels_of(batch, made.width))
    try:
        served: Floats = rule.run(columns, batch)[0]
    except (OverflowError, Diverging):  # Python raises where compiled code gives inf
        made.check(first, cut.stop)
        raise diverging(float(etas.max())) from None
    columns.served[0] += n
    if not is_finite(served):
        made.check(first, cut.stop)
        i = int(np.argmax(~np.isfinite(served)))
        raise Diverging(f"row {first + i} would be served {served[i]}; use a smaller step, or check the link")
    if rows.dense and not is_finite(columns.view("sums")):
        made.check(first, cut.stop)
        raise diverging(float(etas.max()))
    return served
