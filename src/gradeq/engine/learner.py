"""The general engine: any loss, link, step, penalty and geometry, event by event or over whole columns.

served  s = link(f, z'theta)      error  e = loss.slope(s, y)      gradient  g = e z
greedy  u <- dual(theta) - eta (g + penalty)        lazy  u <- u - eta (g + penalty)        theta = primal(u)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradeq.engine.batches import check_moved, run_rows
from gradeq.engine.door import check_finite, floats, number
from gradeq.engine.state import MOVING, Run, State, Ticket, initial, moved_on
from gradeq.engine.table import single
from gradeq.errors import BadInput, StepTooLarge, TicketError
from gradeq.geometries import Euclidean, Geometry
from gradeq.kernels.learning import post
from gradeq.kernels.loops import margin
from gradeq.kernels.proximal import gather, step
from gradeq.links import Identity, Link
from gradeq.losses import Linear, Loss, Poisson, Squared
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule, as_schedule


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

    def __init__(
        self,
        loss: Loss,
        schedule: Schedule | float,
        geometry: Geometry = Euclidean(),  # noqa: B008 - a frozen value
        penalty: Penalty | None = None,
        link: Link = Identity(),  # noqa: B008 - a frozen value
        lazy: bool = False,
    ) -> None:
        for part, method in ((loss, "slope"), (geometry, "primal"), (link, "serve")):
            if isinstance(part, type) or not callable(getattr(part, method, None)):
                raise BadInput(f"Learner: {part!r} has no method {method}; give a part, made")
        if lazy and not geometry.lazy_is_sound:
            raise BadInput(f"Learner: {geometry!r} has no lazy form: {geometry.lazy_because}")
        for name, value in (
            ("loss", loss),
            ("schedule", as_schedule(schedule)),
            ("geometry", geometry),
            ("penalty", penalty),
            ("link", link),
            ("lazy", bool(lazy)),
        ):
            object.__setattr__(self, name, value)

    @property
    def sums(self) -> bool:
        """Whether the state is a plain sum of posted tickets, so that labels may come in any order."""
        return self.lazy or isinstance(self.geometry, Euclidean)

    @property
    def plain(self) -> bool:
        """Whether this is gradient descent and nothing more."""
        return self.penalty is None and isinstance(self.geometry, Euclidean)

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
            self.geometry.check(int(theta))
            values = [0.0] * int(theta)
            self.geometry.primal([0.0] * len(values), 0.0, values)
        else:
            values = self._inside(theta)
        u = [0.0] * len(values)
        self.geometry.dual(values, u)
        return initial(np.array(u), np.array(values))

    def predict(self, state: State, row: Any = None, offset: float = 0.0) -> float:
        """What would be served for this row now; opens no ticket."""
        entries = self._row(state, row)
        return self._serve(state, *entries, number("offset", offset))

    def ticket(self, state: State, row: Any = None, offset: float = 0.0) -> tuple[State, Ticket]:
        """Serve a row: the state with its clock moved on, and the ticket that its label needs."""
        index, value = self._row(state, row)
        served = self._serve(state, index, value, number("offset", offset))
        eta = self.schedule.step(state.t + 1)
        ticket = Ticket(index, value, served, eta, self._slopes(state), state.n)
        return replace(state, t=state.t + 1), ticket

    def update(self, state: State, ticket: Ticket, y: Any, weight: float = 1.0) -> State:
        """The state after the label of a ticket, in any order where the state is a plain sum.

        A missing label (nan, None) or a weight of 0 changes nothing. The greedy form of a geometry depends on the
        order, and takes a label only before the next update.
        """
        y, w = number("label", y, missing=True), number("weight", weight)
        low, high = self.label_range
        if y < low or y > high:
            raise BadInput(
                f"label {y} lies outside [{low}, {high}] where the loss lives; rescale it"
            )
        if w < 0.0:
            raise BadInput(f"weight {w} is negative; a weight is >= 0, and 0 learns nothing")
        if not self.sums and ticket.after != state.n:
            raise TicketError(
                f"{self.geometry!r} in greedy form takes labels in the order of serving, but "
                f"{state.n - ticket.after} came in between; post each before the next update, or be lazy"
            )
        if math.isnan(y) or w == 0.0:
            return state
        return self._post(state, ticket, w * float(self.loss.slope(ticket.served, y)), w)

    def descend(self, state: State, gradient: Any) -> State:
        """The state after one step along a gradient of your own, taken at ``state.theta``."""
        g = floats("gradient", gradient)
        if len(g) != state.dimension:
            raise BadInput(
                f"gradient: {len(g)} values for {state.dimension} parameters; give one each"
            )
        check_finite("gradient", g)
        eta = self.schedule.step(state.t + 1)
        everywhere = tuple(range(state.dimension))
        ticket = Ticket(everywhere, tuple(g.tolist()), 0.0, eta, self._slopes(state), state.n)
        return self._post(replace(state, t=state.t + 1), ticket, 1.0, 1.0)

    def run(
        self,
        state: State,
        rows: Any,
        labels: Any,
        offsets: Any = None,
        weights: Any = None,
        trace: int | None = None,
    ) -> Run:
        """Serve and learn from whole columns, each label at once: bit for bit what ticket and update give.

        ``rows``: None (one parameter, z = 1), integers (one active parameter a row: groups, keys), a table (rows,
        parameters), ``Sparse`` or ``Pairs``. ``labels``: nan or None where not known. ``offsets``: the black-box
        predictions f (0 if left out). ``trace=k`` keeps theta before every k-th row.
        """
        if rows is None:
            self._refuse_large_step(state)
        return run_rows(self, state, rows, labels, offsets, weights, trace)

    def _refuse_large_step(self, state: State) -> None:
        """With one parameter and z = 1 the squared error is stable for steps below 2 only (result 3.2)."""
        if (
            self.plain
            and isinstance(self.loss, (Squared, Linear))
            and isinstance(self.link, Identity)
        ):
            step = self.schedule.step(state.t + 1)
            if step >= 2.0:
                raise StepTooLarge(
                    f"a step of {step:g}: the squared error is stable below 2 only; use less than 2"
                )

    def _inside(self, theta: Any) -> list[float]:
        array = floats("theta", np.atleast_1d(np.asarray(theta)))
        check_finite("theta", array, 0, "parameter")
        if not len(array):
            raise BadInput("start: no parameters; give at least one")
        self.geometry.check(len(array))
        values: list[float] = array.tolist()
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

    def _row(self, state: State, row: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
        table = single(row, state.dimension)
        if len(table) != 1:
            raise BadInput(f"row: {len(table)} rows where one is served; use run for more")
        table.check(0, 1, state.dimension)
        entries = table.entries(0, 1)
        return tuple(entries.params.tolist()), tuple(entries.value.tolist())

    def _serve(
        self, state: State, index: tuple[int, ...], value: tuple[float, ...], offset: float
    ) -> float:
        m = margin(state.theta.data, index, value, 0, len(index))
        return float(self.link.serve(offset, m))

    def _slopes(self, state: State) -> tuple[float, ...] | None:
        if self.penalty is None:
            return None
        return tuple(float(self.penalty.slope(x)) for x in state.theta.tolist())

    def _post(self, state: State, ticket: Ticket, e: float, w: float) -> State:
        """The state after error e, already weighted, of a ticket: the same text as in the loops over rows."""
        u, theta, sums, pulls, normals, moves = (getattr(state, name).tolist() for name in MOVING)
        moved = [0.0] * len(u) if self.exact else moves
        last = [state.step]
        index, value, eta = ticket.params, ticket.value, ticket.eta
        if self.plain:
            post(index, value, 0, len(index), eta, e, u, sums, moved)
            theta, last = u, [eta]
        else:
            gradient = list(ticket.slopes or [0.0] * len(u))
            gather(index, value, 0, len(index), e, gradient, sums, pulls)
            step(
                self.geometry,
                gradient,
                eta,
                self.sums,
                last,
                u,
                theta,
                normals,
                moved,
                [0.0] * len(u),
            )
        vectors = [np.array(v) for v in (u, theta, sums, pulls, normals, moves)]
        check_moved(vectors[0], eta)
        return moved_on(state, vectors, state.n + 1, state.t, state.weight + w, last[0])
