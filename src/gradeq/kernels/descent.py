"""Plain descent over rows, written once: interpreted on lists, compiled on arrays (``compile``).

Notation as in the paper: u is the state, m = z'u the margin, s the served value, e the error, g = e z. A pass serves
and posts row by row; what form the rows, weights, steps and accounts have is a matter of its parts (``forms``).
Every part moves u as u - eta ((w e) z), so that batch, stream and resumed runs agree to the last bit. Loops do not
check their arguments: callers do, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gradeq.kernels.account import Floats, Ints
from gradeq.kernels.forms import margin, move
from gradeq.links import Link
from gradeq.losses import Loss
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

AHEAD = 128  # rows


class Given(NamedTuple):
    """What a pass reads, and ``served``, which it writes; ``centre`` is what z'u moves: as a rule ``base``."""

    base: Floats
    centre: Floats
    labels: Floats
    weights: Floats
    etas: Floats
    starts: Ints
    index: Ints
    value: Floats
    served: Floats


class Kept(NamedTuple):
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
    given: Given,
    kept: Kept,
) -> None:
    """Labels at once, or missing (nan)."""
    x = rows.held(kept.u)
    for i in range(len(given.base)):
        given.served[i] = link.serve(given.centre[i], rows.margin(given, kept.u, x, i))
        y = given.labels[i]
        if y == y and terms.weight(given, i) > 0.0:
            x = post(link, loss, penalty, rows, terms, pull, account, given, kept, x, i)
    rows.let_go(kept.u, x)


def late(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    rows: Any,
    terms: Any,
    pull: Any,
    account: Any,
    given: Given,
    kept: Kept,
    first: int,
    cuts: Ints,
    posts: Ints,
) -> None:
    """Labels in any order: before row i is served, posts[: cuts[i]] have been posted, each as it was served.

    Rows before ``first`` were served in an earlier run: their ``served`` is given.
    """
    n, p, x = len(given.base), 0, rows.held(kept.u)
    for i in range(first, n + 1):
        due = cuts[i] if i < n else len(posts)
        while p < due:
            x = post(link, loss, penalty, rows, terms, pull, account, given, kept, x, posts[p])
            p += 1
        if i < n:
            given.served[i] = link.serve(given.centre[i], rows.margin(given, kept.u, x, i))
    rows.let_go(kept.u, x)


def post(
    link: Link,
    loss: Loss,
    penalty: Penalty,
    rows: Any,
    terms: Any,
    pull: Any,
    account: Any,
    given: Given,
    kept: Kept,
    x: float,
    i: int,
) -> float:
    """The label of row i, and its account; the number to hold after it (``forms``)."""
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
    given: Given,
    kept: Kept,
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
            account.enter(
                link, loss, rows, given, kept, i, terms.weight(given, i), terms.step(given, i)
            )
    return seen


@dataclass(frozen=True)
class Free:
    """No penalty."""

    def moved(
        self, penalty: Penalty, rows: Any, given: Given, kept: Kept, x: float, i: int, eta: float, e: float
    ) -> float:  # fmt: skip
        """u <- u - eta e z."""
        return rows.moved(given, kept.u, x, i, eta, e)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Pulled:
    """A penalty moves every parameter at each label, which comes at once; rows are listed."""

    def moved(
        self, penalty: Penalty, rows: Any, given: Given, kept: Kept, x: float, i: int, eta: float, e: float
    ) -> float:  # fmt: skip
        """u <- u - eta (e z + slopes), the slopes being those that served the row."""
        for j in range(len(kept.u)):
            kept.slopes[j] = penalty.slope(kept.u[j])
        start, stop = given.starts[i], given.starts[i + 1]
        drag(
            kept.u,
            given.index,
            given.value,
            start,
            stop,
            eta,
            e,
            kept.slopes,
            kept.pulls,
            kept.drags,
        )
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
    """The step of each row: the schedule's at its time t."""
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
