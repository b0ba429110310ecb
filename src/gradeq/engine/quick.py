"""Move a desk's state into the quick lane and back, so that both always tell the same story."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from gradeq.engine.desk import Desk, Row, Ticket
from gradeq.engine.margin import Margin
from gradeq.kernels.compile_events import inlined_lane
from gradeq.kernels.loops import ROWS, WEIGHT
from gradeq.schedules import Constant

ONE = Row(0, (0,), (1.0,), (0,), 0, 1.0)


class Lane(NamedTuple):
    """A running quick lane: its verbs, and how to bring its state home."""

    predict: Callable[..., Any]
    update: Callable[..., Any]
    settle: Callable[[], None]


def fits(desk: Desk) -> bool:
    """Whether the quick lane can take over: one parameter, constant step, no ids, no expiry, nothing special."""
    head = desk.head
    return (
        isinstance(head, Margin)
        and len(head.u) == 1
        and isinstance(head.schedule, Constant)
        and head.penalty is None
        and not head.total
        and desk.ttl is None
        and not desk.frozen
        and not desk.waiting
        and not desk.by_id
        and not desk.gone
        and head.sums[ROWS] == head.sums[WEIGHT]
        and head.pace.high in (0.0, head.schedule.eta)
        and all(ticket.weight == 1.0 and ticket.time is None for ticket in desk.queue)
    )


def enter(
    desk: Desk,
    f_range: tuple[float, float],
    y_range: tuple[float, float],
    checks: tuple[Callable[[Any], float], Callable[[Any], float]],
    others: tuple[Callable[..., Any], Callable[..., Any]],
    slow: tuple[Callable[..., Any], Callable[..., Any]],
) -> Lane:
    """Take the desk's state into a quick lane."""
    head: Any = desk.head
    sums = [head.u[0], head.sums[0], *head.sums[2:]]
    counts = [
        desk.served,
        desk.posted,
        desk.delay_sum,
        desk.delay_most,
        desk.peaks[0],
        head.pace.held,
    ]
    tickets = [(t.base, t.memo[0], t.memo[1]) for t in desk.queue]
    eta, limit = head.schedule.eta, head.limit
    leash = 10.0 if desk.leashed else inf
    predict, update, state = inlined_lane(head.link, head.loss)(
        head.link, head.loss, eta, limit, desk.capped, leash, *f_range, *y_range, *checks, *others, *slow,
        sums, counts, tickets,
    )  # fmt: skip

    def step_at(peak: int) -> float:
        return float(min(eta, limit / peak)) if desk.capped and peak >= 2 else float(eta)

    def settle() -> None:
        u, rows, *rest = (after := state())[0]
        served, posted, delay_sum, delay_most, peak, held = after[1]
        head.u[0] = u
        for c, value in enumerate((rows, rows, *rest)):
            head.sums[c] = value
        if served > desk.served:
            # The step only falls as the peak rises, and the lane began with a prediction.
            first = max(desk.peaks[0], len(tickets) + 1)
            head.pace.note(step_at(peak), step_at(first), held - head.pace.held)
            head.pace.vary(step for step in after[3] if step != head.pace.last)
        desk.tops[0], desk.largest = max(desk.tops[0], 1.0), max(desk.largest, 1.0)
        desk.clocks[0] += served - desk.served
        desk.served, desk.posted = served, posted
        desk.delay_sum, desk.delay_most = delay_sum, delay_most
        desk.peaks[0], desk.open_now[0] = peak, len(after[2])
        first_number = served - len(after[2]) + 1
        desk.queue = deque(
            Ticket(first_number + i, None, ONE, f, (s, own, None), 1.0, None)
            for i, (f, s, own) in enumerate(after[2])
        )

    return Lane(predict, update, settle)
