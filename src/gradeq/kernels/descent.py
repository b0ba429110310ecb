"""Loops of gradient descent on one margin a row, with or without a penalty.

Rows, weights, steps and accounts have forms, parts of one pass that are chosen when it is compiled. ``given`` is the
record of what a pass reads, ``kept`` of what it writes. A pass holds a number ``x``: the parameter, where there is
only one, so that it stays in a register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gradeq.geometries import Geometry
from gradeq.kernels.account import COLUMNS, LEAN, ROUND, Floats, Ints, enter, enter_lean
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule


def margin(u: Floats, index: Ints, value: Floats, start: int, stop: int) -> float:
    """m = z'u over the entries of one row."""
    m = 0.0
    for a in range(start, stop):
        m = m + u[index[a]] * value[a]
    return m


def move(u: Floats, index: Ints, value: Floats, start: int, stop: int, eta: float, e: float) -> None:
    for a in range(start, stop):
        j = index[a]
        u[j] = u[j] - eta * (e * value[a])


@dataclass(frozen=True)
class Alone:
    """Every row has the one parameter there is, with value 1."""

    def first_value(self, u: Floats) -> float:
        return u[0]

    def write_back(self, u: Floats, x: float) -> None:
        u[0] = x

    def margin(self, given: DescentInputs, u: Floats, x: float, i: int) -> float:
        return x

    def moved(self, given: DescentInputs, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        return x - eta * e

    def enter(
        self, given: DescentInputs, sums: Floats, i: int, e: float, raw: float, after: float, before: float, r: float,
        blur: float, reach: float, w: float, eta: float,
    ) -> None:  # fmt: skip
        enter(sums, 0, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)

    def enter_lean(self, given: DescentInputs, sums: Floats, i: int, e: float, eta: float) -> None:
        enter_lean(sums, 0, e, 1.0, eta, 1.0)

    def glance(self, given: DescentInputs, sums: Floats, size: int, i: int) -> float:
        return 0.0


@dataclass(frozen=True)
class OneParameter:
    """Every row has one parameter, with value 1: disjoint groups, series."""

    def first_value(self, u: Floats) -> float:
        return 0.0

    def write_back(self, u: Floats, x: float) -> None:
        """Nothing to write back."""

    def margin(self, given: DescentInputs, u: Floats, x: float, i: int) -> float:
        return u[given.index[i]]

    def moved(self, given: DescentInputs, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        j = given.index[i]
        u[j] = u[j] - eta * e
        return x

    def enter(
        self, given: DescentInputs, sums: Floats, i: int, e: float, raw: float, after: float, before: float, r: float,
        blur: float, reach: float, w: float, eta: float,
    ) -> None:  # fmt: skip
        """Enter row i into its accounts."""
        at = given.index[i] * COLUMNS
        enter(sums, at, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)

    def enter_lean(self, given: DescentInputs, sums: Floats, i: int, e: float, eta: float) -> None:
        enter_lean(sums, given.index[i] * LEAN, e, 1.0, eta, 1.0)

    def glance(self, given: DescentInputs, sums: Floats, size: int, i: int) -> float:
        """Read the account of row i, of this size: nothing comes of it, but it is at hand after that."""
        return sums[given.index[i] * size] + sums[given.index[i] * size + size - 1]


@dataclass(frozen=True)
class SeveralParameters:
    """Every row has this many parameters, with value 1: groups that overlap."""

    width: int

    first_value, write_back, glance = OneParameter.first_value, OneParameter.write_back, Alone.glance

    def margin(self, given: DescentInputs, u: Floats, x: float, i: int) -> float:
        """m = z'u of row i."""
        m = 0.0
        for a in range(i * self.width, i * self.width + self.width):
            m = m + u[given.index[a]]
        return m

    def moved(self, given: DescentInputs, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        for a in range(i * self.width, i * self.width + self.width):
            u[given.index[a]] = u[given.index[a]] - eta * e
        return x

    def enter(
        self, given: DescentInputs, sums: Floats, i: int, e: float, raw: float, after: float, before: float, r: float,
        blur: float, reach: float, w: float, eta: float,
    ) -> None:  # fmt: skip
        for a in range(i * self.width, i * self.width + self.width):
            at = given.index[a] * COLUMNS
            enter(sums, at, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)

    def enter_lean(self, given: DescentInputs, sums: Floats, i: int, e: float, eta: float) -> None:
        for a in range(i * self.width, i * self.width + self.width):
            enter_lean(sums, given.index[a] * LEAN, e, 1.0, eta, 1.0)


@dataclass(frozen=True)
class ListedEntries:
    """Entries starts[i] to starts[i + 1] of ``index`` and ``value`` belong to row i."""

    first_value, write_back, glance = OneParameter.first_value, OneParameter.write_back, Alone.glance

    def margin(self, given: DescentInputs, u: Floats, x: float, i: int) -> float:
        return margin(u, given.index, given.value, given.starts[i], given.starts[i + 1])

    def moved(self, given: DescentInputs, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        move(u, given.index, given.value, given.starts[i], given.starts[i + 1], eta, e)
        return x

    def enter(
        self, given: DescentInputs, sums: Floats, i: int, e: float, raw: float, after: float, before: float, r: float,
        blur: float, reach: float, w: float, eta: float,
    ) -> None:  # fmt: skip
        for a in range(given.starts[i], given.starts[i + 1]):
            at, z = given.index[a] * COLUMNS, given.value[a]
            enter(sums, at, e, raw, after, before, r, blur, reach, w, z, eta, 1.0)

    def enter_lean(self, given: DescentInputs, sums: Floats, i: int, e: float, eta: float) -> None:
        for a in range(given.starts[i], given.starts[i + 1]):
            enter_lean(sums, given.index[a] * LEAN, e, given.value[a], eta, 1.0)


@dataclass(frozen=True)
class DenseRows:
    """Every row has every parameter, in order: the values are a table."""

    first_value, write_back, glance = OneParameter.first_value, OneParameter.write_back, Alone.glance

    def margin(self, given: DescentInputs, u: Floats, x: float, i: int) -> float:
        """m = z'u of row i."""
        m = 0.0
        for j in range(len(u)):
            m = m + u[j] * given.value[i][j]
        return m

    def moved(self, given: DescentInputs, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        for j in range(len(u)):
            u[j] = u[j] - eta * (e * given.value[i][j])
        return x

    def enter_lean(self, given: DescentInputs, sums: Floats, i: int, e: float, eta: float) -> None:
        for j in range(len(sums) // LEAN):
            enter_lean(sums, j * LEAN, e, given.value[i][j], eta, 1.0)


RowForm = Alone | OneParameter | SeveralParameters | ListedEntries


@dataclass(frozen=True)
class Same:
    """Every row has weight 1 and the same step."""

    def weight(self, given: DescentInputs, i: int) -> float:
        return 1.0

    def step(self, given: DescentInputs, i: int) -> float:
        return given.etas[0]


@dataclass(frozen=True)
class Own:
    """Every row has a weight and a step of its own."""

    def weight(self, given: DescentInputs, i: int) -> float:
        return given.weights[i]

    def step(self, given: DescentInputs, i: int) -> float:
        return given.etas[i]


@dataclass(frozen=True)
class Full:
    """The whole account of each parameter, and of all rows where one is kept."""

    def size(self) -> int:
        return COLUMNS

    def enter(
        self,
        link: Link,
        loss: Loss,
        rows: RowForm,
        given: DescentInputs,
        kept: DescentBuffers,
        i: int,
        w: float,
        eta: float,
    ) -> None:
        """Enter row i, whose label is posted; ``centre`` is what z'u moves: the base prediction, or a mix."""
        f, m, s, y = given.base[i], given.centre[i], given.served[i], given.labels[i]
        e, raw, after, before = (loss.slope(s, y), loss.slope(f, y), loss.value(s, y), loss.value(f, y))
        r, blur, reach = link.tracked(m, y), ROUND * (abs(m) + abs(y)), w * link.reach(m)
        rows.enter(given, kept.sums, i, e, raw, after, before, r, blur, reach, w, eta)
        if len(kept.total) > 0:
            enter(kept.total, 0, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)


@dataclass(frozen=True)
class Lean:
    """The lean account of each parameter, for a ``Learner``."""

    def size(self) -> int:
        return LEAN

    def enter(
        self,
        link: Link,
        loss: Loss,
        rows: RowForm,
        given: DescentInputs,
        kept: DescentBuffers,
        i: int,
        w: float,
        eta: float,
    ) -> None:
        """Enter row i, whose label is posted."""
        e = w * loss.slope(given.served[i], given.labels[i])
        rows.enter_lean(given, kept.sums, i, e, eta)


@dataclass(frozen=True)
class Later:
    """No account yet: a second pass enters it, once nothing can fail any more."""

    def enter(
        self,
        link: Link,
        loss: Loss,
        rows: RowForm,
        given: DescentInputs,
        kept: DescentBuffers,
        i: int,
        w: float,
        eta: float,
    ) -> None:
        """Nothing."""


AHEAD = 128  # rows


class DescentInputs(NamedTuple):
    """What a pass reads, and ``served``, which it writes; ``centre`` is what z'u moves, usually ``base``."""

    base: Floats
    centre: Floats
    labels: Floats
    weights: Floats
    etas: Floats
    starts: Ints
    index: Ints
    value: Floats
    served: Floats


class DescentBuffers(NamedTuple):
    """What a pass writes: parameters, their accounts, that of all rows, what a penalty did; ``slopes`` is scratch."""

    u: Floats
    sums: Floats
    total: Floats
    pulls: Floats
    drags: Floats
    slopes: Floats


def at_once(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    rows: Any,
    terms: Any,
    pull: Any,
    account: Any,
    given: DescentInputs,
    kept: DescentBuffers,
) -> None:
    """Labels at once, or missing (nan)."""
    x = rows.first_value(kept.u)
    for i in range(len(given.base)):
        given.served[i] = link.serve(given.centre[i], rows.margin(given, kept.u, x, i))
        y = given.labels[i]
        if y == y and terms.weight(given, i) > 0.0:
            x = post(link, loss, penalty, rows, terms, pull, account, given, kept, x, i)
    rows.write_back(kept.u, x)


def late(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    rows: Any,
    terms: Any,
    pull: Any,
    account: Any,
    given: DescentInputs,
    kept: DescentBuffers,
    first: int,
    cuts: Ints,
    posts: Ints,
) -> None:
    """Labels in any order: before row i is served, posts[: cuts[i]] have been posted, each as it was served.

    Rows before ``first`` were served in an earlier run: their ``served`` is given.
    """
    n, p, x = len(given.base), 0, rows.first_value(kept.u)
    for i in range(first, n + 1):
        due = cuts[i] if i < n else len(posts)
        while p < due:
            x = post(link, loss, penalty, rows, terms, pull, account, given, kept, x, posts[p])
            p += 1
        if i < n:
            given.served[i] = link.serve(given.centre[i], rows.margin(given, kept.u, x, i))
    rows.write_back(kept.u, x)


def post(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    rows: Any,
    terms: Any,
    pull: Any,
    account: Any,
    given: DescentInputs,
    kept: DescentBuffers,
    x: float,
    i: int,
) -> float:
    """The label of row i, and its account; the number to hold after it."""
    w, eta = terms.weight(given, i), terms.step(given, i)
    e = w * loss.slope(given.served[i], given.labels[i])
    x = pull.moved(penalty, rows, given, kept, x, i, eta, e)
    account.enter(link, loss, rows, given, kept, i, w, eta)
    return x


def tally(
    link: Link,
    loss: Loss,
    rows: Any,
    terms: Any,
    account: Any,
    given: DescentInputs,
    kept: DescentBuffers,
    posts: Ints,
) -> float:
    """Enter the posted rows, in the order of posting, into the accounts.

    These are many: those of some rows are read before any is entered, so that the waits for them overlap.
    """
    seen = 0.0
    for first in range(0, len(posts), AHEAD):
        last = min(first + AHEAD, len(posts))
        for p in range(first, last):
            seen = seen + rows.glance(given, kept.sums, account.size(), posts[p])
        for p in range(first, last):
            i = posts[p]
            account.enter(link, loss, rows, given, kept, i, terms.weight(given, i), terms.step(given, i))
    return seen


@dataclass(frozen=True)
class Free:
    """No penalty."""

    def moved(
        self,
        penalty: Penalty,
        rows: Any,
        given: DescentInputs,
        kept: DescentBuffers,
        x: float,
        i: int,
        eta: float,
        e: float,
    ) -> float:  # fmt: skip
        """u <- u - eta e z."""
        return rows.moved(given, kept.u, x, i, eta, e)


@dataclass(frozen=True)
class Pulled:
    """A penalty moves every parameter at each label, which comes at once; rows are listed."""

    def moved(
        self,
        penalty: Penalty,
        rows: object,
        given: DescentInputs,
        kept: DescentBuffers,
        x: float,
        i: int,
        eta: float,
        e: float,
    ) -> float:  # fmt: skip
        """u <- u - eta (e z + slopes), the slopes being those that served the row."""
        for j in range(len(kept.u)):
            kept.slopes[j] = penalty.slope(kept.u[j])
        start, stop = given.starts[i], given.starts[i + 1]
        drag(kept.u, given.index, given.value, start, stop, eta, e, kept.slopes, kept.pulls, kept.drags)
        return x


def drag(
    u: Floats,
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    eta: float,
    e: float,
    slopes: Floats,
    pulls: Floats,
    drags: Floats,
) -> None:
    """As ``move``, with the penalty's slopes at serving added; ``slopes`` is used up."""
    gather(index, value, start, stop, eta, e, slopes, pulls, drags)
    for j in range(len(u)):
        u[j] = u[j] - eta * slopes[j]


def gather(
    index: Ints,
    value: Floats,
    start: int,
    stop: int,
    eta: float,
    e: float,
    slopes: Floats,
    pulls: Floats,
    drags: Floats,
) -> None:
    """Add e z to the penalty's slopes; ``pulls`` sums up the slopes alone, ``drags`` eta times them."""
    for j in range(len(slopes)):
        pulls[j] = pulls[j] + slopes[j]
        drags[j] = drags[j] + eta * slopes[j]
    for a in range(start, stop):
        slopes[index[a]] = slopes[index[a]] + e * value[a]


def ticked(clock: Ints, counts: Floats, ticks: Ints) -> None:
    """t of each row by its own clock: how many rows this clock has served, this one included."""
    for i in range(len(clock)):
        k = clock[i]
        counts[k] = counts[k] + 1.0
        ticks[i] = int(counts[k])


def stepped(schedule: Schedule, ticks: Ints, etas: Floats) -> None:
    for i in range(len(ticks)):
        etas[i] = schedule.step(ticks[i])


def swept(
    link: Link,
    loss: Loss,
    etas: Floats,
    base: Floats,
    labels: Floats,
    weights: Floats,
    starts: Ints,
    params: Ints,
    value: Floats,
    u: Floats,
    errors: Floats,
    losses: Floats,
) -> None:
    """As ``sparse`` with a constant step, for every step at once; u[k] are the parameters under step k."""
    for i in range(len(base)):
        y = labels[i]
        if y == y and weights[i] > 0.0:
            start, stop = starts[i], starts[i + 1]
            for k in range(len(etas)):
                s = link.serve(base[i], margin(u[k], params, value, start, stop))
                e = weights[i] * loss.slope(s, y)
                move(u[k], params, value, start, stop, etas[k], e)
                errors[k] = errors[k] + e
                losses[k] = losses[k] + weights[i] * loss.value(s, y)


@dataclass(frozen=True)
class Unpenalised:
    """No penalty: the part that stands in a loop where a penalty would."""

    def value(self, theta: float) -> float:
        return 0.0

    def slope(self, theta: float) -> float:
        return 0.0


def proximal(
    link: Link, loss: Loss, penalty: Penalty, geometry: Geometry, base: Floats, labels: Floats, weights: Floats,
    etas: Floats, lazy: bool, starts: Ints, index: Ints, value: Floats, last: Floats, u: Floats, theta: Floats,
    pulls: Floats, drags: Floats, normals: Floats, returned: Floats, served: Floats, gradient: Floats, anchor: Floats,
) -> None:  # fmt: skip
    """Sparse rows, labels at once or missing (nan), own step and weight for each row.

    ``last`` holds the step before. ``gradient`` and ``anchor`` are scratch space.
    """
    for i in range(len(base)):
        start, stop = starts[i], starts[i + 1]
        s = link.serve(base[i], margin(theta, index, value, start, stop))
        served[i] = s
        y = labels[i]
        if y == y and weights[i] > 0.0:
            e = weights[i] * loss.slope(s, y)
            for j in range(len(u)):
                gradient[j] = penalty.slope(theta[j])
            gather(index, value, start, stop, etas[i], e, gradient, pulls, drags)
            step(geometry, gradient, etas[i], lazy, last, u, theta, normals, returned, anchor)


def step(
    geometry: Geometry, gradient: Floats, eta: float, lazy: bool, last: Floats, u: Floats, theta: Floats,
    normals: Floats, returned: Floats, anchor: Floats,
) -> None:  # fmt: skip
    """One step of size eta along ``gradient``, the penalty's slope included.

    ``normals`` sums up the normal parts, ``returned`` what was brought back as it was: eta times them.
    """
    if lazy:
        for j in range(len(u)):
            u[j] = u[j] - eta * gradient[j]
    else:
        geometry.dual(theta, anchor)
        for j in range(len(u)):
            back = u[j] - anchor[j]
            if last[0] > 0.0:
                normals[j] = normals[j] + back / last[0]
            returned[j] = returned[j] + back
            u[j] = anchor[j] - eta * gradient[j]
    geometry.primal(u, eta, theta)
    last[0] = eta
