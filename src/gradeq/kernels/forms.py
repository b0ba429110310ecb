"""The forms that rows, weights, steps and accounts can have: parts of one pass, chosen when it is compiled.

``given`` is the record of what a pass reads, ``kept`` of what it writes (``kernels.descent``). A pass holds a number
``x``: the parameter, where there is only one, so that it stays in a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradeq.kernels.account import COLUMNS, LEAN, ROUND, Floats, Ints, enter, enter_lean
from gradeq.links import Link
from gradeq.losses import Loss


def margin(u: Floats, index: Ints, value: Floats, start: int, stop: int) -> float:
    """m = z'u over the entries of one row."""
    m = 0.0
    for a in range(start, stop):
        m = m + u[index[a]] * value[a]
    return m


def move(
    u: Floats, index: Ints, value: Floats, start: int, stop: int, eta: float, e: float
) -> None:
    """u <- u - eta e z over the entries of one row."""
    for a in range(start, stop):
        j = index[a]
        u[j] = u[j] - eta * (e * value[a])


@dataclass(frozen=True)
class Alone:
    """Every row has the one parameter there is, with value 1."""

    def held(self, u: Floats) -> Any:
        """The number to hold."""
        return u[0]

    def let_go(self, u: Floats, x: float) -> None:
        """Write it back."""
        u[0] = x

    def margin(self, given: Any, u: Floats, x: float, i: int) -> float:
        """m = z'u of row i."""
        return x

    def moved(self, given: Any, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        return x - eta * e

    def enter(
        self, given: Any, sums: Floats, i: int, e: Any, raw: Any, after: Any, before: Any, r: Any, blur: Any,
        reach: Any, w: Any, eta: Any,
    ) -> None:  # fmt: skip
        """Enter row i into its accounts."""
        enter(sums, 0, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)

    def enter_lean(self, given: Any, sums: Floats, i: int, e: float, eta: float) -> None:
        """Enter row i into its lean accounts."""
        enter_lean(sums, 0, e, 1.0, eta, 1.0)

    def glance(self, given: Any, sums: Floats, size: int, i: int) -> float:
        """Nothing that would not be at hand."""
        return 0.0


@dataclass(frozen=True)
class Single:
    """Every row has one parameter, with value 1: disjoint groups, series."""

    def held(self, u: Floats) -> Any:
        """Nothing to hold."""
        return 0.0

    def let_go(self, u: Floats, x: float) -> None:
        """Nothing to write back."""

    def margin(self, given: Any, u: Floats, x: float, i: int) -> Any:
        """m = z'u of row i."""
        return u[given.index[i]]

    def moved(self, given: Any, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        j = given.index[i]
        u[j] = u[j] - eta * e
        return x

    def enter(
        self, given: Any, sums: Floats, i: int, e: Any, raw: Any, after: Any, before: Any, r: Any, blur: Any,
        reach: Any, w: Any, eta: Any,
    ) -> None:  # fmt: skip
        """Enter row i into its accounts."""
        at = given.index[i] * COLUMNS
        enter(sums, at, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)

    def enter_lean(self, given: Any, sums: Floats, i: int, e: float, eta: float) -> None:
        """Enter row i into its lean accounts."""
        enter_lean(sums, given.index[i] * LEAN, e, 1.0, eta, 1.0)

    def glance(self, given: Any, sums: Floats, size: int, i: int) -> Any:
        """Read the account of row i, of this size: nothing comes of it, but it is at hand after that."""
        return sums[given.index[i] * size] + sums[given.index[i] * size + size - 1]


@dataclass(frozen=True)
class Several:
    """Every row has so many parameters, with value 1: groups that overlap."""

    width: int

    held, let_go, glance = Single.held, Single.let_go, Alone.glance

    def margin(self, given: Any, u: Floats, x: float, i: int) -> float:
        """m = z'u of row i."""
        m = 0.0
        for a in range(i * self.width, i * self.width + self.width):
            m = m + u[given.index[a]]
        return m

    def moved(self, given: Any, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        for a in range(i * self.width, i * self.width + self.width):
            u[given.index[a]] = u[given.index[a]] - eta * e
        return x

    def enter(
        self, given: Any, sums: Floats, i: int, e: Any, raw: Any, after: Any, before: Any, r: Any, blur: Any,
        reach: Any, w: Any, eta: Any,
    ) -> None:  # fmt: skip
        """Enter row i into its accounts."""
        for a in range(i * self.width, i * self.width + self.width):
            at = given.index[a] * COLUMNS
            enter(sums, at, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)

    def enter_lean(self, given: Any, sums: Floats, i: int, e: float, eta: float) -> None:
        """Enter row i into its lean accounts."""
        for a in range(i * self.width, i * self.width + self.width):
            enter_lean(sums, given.index[a] * LEAN, e, 1.0, eta, 1.0)


@dataclass(frozen=True)
class Listed:
    """Entries starts[i] to starts[i + 1] of ``index`` and ``value`` belong to row i."""

    held, let_go, glance = Single.held, Single.let_go, Alone.glance

    def margin(self, given: Any, u: Floats, x: float, i: int) -> float:
        """m = z'u of row i."""
        return margin(u, given.index, given.value, given.starts[i], given.starts[i + 1])

    def moved(self, given: Any, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        move(u, given.index, given.value, given.starts[i], given.starts[i + 1], eta, e)
        return x

    def enter(
        self, given: Any, sums: Floats, i: int, e: Any, raw: Any, after: Any, before: Any, r: Any, blur: Any,
        reach: Any, w: Any, eta: Any,
    ) -> None:  # fmt: skip
        """Enter row i into its accounts."""
        for a in range(given.starts[i], given.starts[i + 1]):
            at, z = given.index[a] * COLUMNS, given.value[a]
            enter(sums, at, e, raw, after, before, r, blur, reach, w, z, eta, 1.0)

    def enter_lean(self, given: Any, sums: Floats, i: int, e: float, eta: float) -> None:
        """Enter row i into its lean accounts."""
        for a in range(given.starts[i], given.starts[i + 1]):
            enter_lean(sums, given.index[a] * LEAN, e, given.value[a], eta, 1.0)


@dataclass(frozen=True)
class Dense:
    """Every row has every parameter, in order: the values are a table."""

    held, let_go, glance = Single.held, Single.let_go, Alone.glance

    def margin(self, given: Any, u: Floats, x: float, i: int) -> float:
        """m = z'u of row i."""
        m = 0.0
        for j in range(len(u)):
            m = m + u[j] * given.value[i][j]
        return m

    def moved(self, given: Any, u: Floats, x: float, i: int, eta: float, e: float) -> float:
        """u <- u - eta e z; the number to hold after it."""
        for j in range(len(u)):
            u[j] = u[j] - eta * (e * given.value[i][j])
        return x

    def enter_lean(self, given: Any, sums: Floats, i: int, e: float, eta: float) -> None:
        """Enter row i into its lean accounts."""
        for j in range(len(sums) // LEAN):
            enter_lean(sums, j * LEAN, e, given.value[i][j], eta, 1.0)


@dataclass(frozen=True)
class Same:
    """Every row has weight 1 and the same step."""

    def weight(self, given: Any, i: int) -> float:
        """w of row i."""
        return 1.0

    def step(self, given: Any, i: int) -> Any:
        """eta of row i."""
        return given.etas[0]


@dataclass(frozen=True)
class Own:
    """Every row has a weight and a step of its own."""

    def weight(self, given: Any, i: int) -> Any:
        """w of row i."""
        return given.weights[i]

    def step(self, given: Any, i: int) -> Any:
        """eta of row i."""
        return given.etas[i]


@dataclass(frozen=True)
class Full:
    """The whole account of each parameter, and of all rows where one is kept."""

    def size(self) -> int:
        """Numbers of an account."""
        return COLUMNS

    def enter(
        self, link: Link, loss: Loss, rows: Any, given: Any, kept: Any, i: int, w: float, eta: float
    ) -> None:
        """Enter row i, whose label is posted; ``centre`` is what z'u moves: the base prediction, or a mix."""
        f, m, s, y = given.base[i], given.centre[i], given.served[i], given.labels[i]
        e, raw, after, before = (
            loss.slope(s, y),
            loss.slope(f, y),
            loss.value(s, y),
            loss.value(f, y),
        )
        r, blur, reach = link.tracked(m, y), ROUND * (abs(m) + abs(y)), w * link.reach(m)
        rows.enter(given, kept.sums, i, e, raw, after, before, r, blur, reach, w, eta)
        if len(kept.total) > 0:
            enter(kept.total, 0, e, raw, after, before, r, blur, reach, w, 1.0, eta, 1.0)


@dataclass(frozen=True)
class Lean:
    """The lean account of each parameter, for a ``Learner``."""

    def size(self) -> int:
        """Numbers of an account."""
        return LEAN

    def enter(
        self, link: Link, loss: Loss, rows: Any, given: Any, kept: Any, i: int, w: float, eta: float
    ) -> None:
        """Enter row i, whose label is posted."""
        e = w * loss.slope(given.served[i], given.labels[i])
        rows.enter_lean(given, kept.sums, i, e, eta)


@dataclass(frozen=True)
class Later:
    """No account yet: a second pass enters it, once nothing can fail any more."""

    def enter(
        self, link: Link, loss: Loss, rows: Any, given: Any, kept: Any, i: int, w: float, eta: float
    ) -> None:
        """Nothing."""
