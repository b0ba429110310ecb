"""The quick lane: one parameter, one constant step, first come first served, all in local variables.

This is the desk and the margin head for the most common case, event by event. The text below runs as it stands;
``compile_events`` writes the formulas of its link and loss into it, since a Python call costs more than they do.
A test holds it to the same bits as the desk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any

from gradeq.links import Link
from gradeq.losses import Loss

MOST = (
    1.7976931348623157e308  # the largest finite float: -MOST <= x <= MOST is false for nan and inf
)


def lane(
    link: Link,
    loss: Loss,
    eta: float,
    limit: float,
    capped: bool,
    leash: float,
    f_low: float,
    f_high: float,
    y_low: float,
    y_high: float,
    check_f: Callable[[Any], float],
    check_y: Callable[[Any], float],
    other_predict: Callable[[Any], Any],
    other_update: Callable[[Any], Any],
    slow_predict: Callable[..., Any],
    slow_update: Callable[..., Any],
    sums: list[float],
    counts: list[int],
    tickets: list[tuple[float, float, float]],
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[[], Any]]:
    """predict, update, and a function that gives the state back.

    ``other_*`` take what is out of range: to refuse it, or to serve it when this lane is closed (a closed lane has an
    empty range). ``slow_*`` go by way of the desk.
    """
    u, rows, gradient, moved, before, loss_before, loss_after, low, high, reach = sums
    served, posted, delay_sum, delay_most, peak, held = counts
    queue = deque(tickets)
    push, pop = queue.append, queue.popleft
    waiting = first_waiting = len(queue)
    first_rows = rows
    step = min(eta, limit / peak) if capped and peak >= 2 else eta
    # When the cap began to hold steps down, as (rows, waiting): later counts follow from the two.
    held_from = (rows, waiting) if step < eta else None
    steps = [step]  # the steps given out, each once
    edge = leash * peak * max(high, -low) if rows else MOST

    def predict(
        f: Any,
        groups: Any = None,
        features: Any = None,
        weight: float = 1.0,
        id: Any = None,
        time: Any = None,
    ) -> Any:
        """The adjusted prediction; a ticket stays open until its label comes."""
        nonlocal peak, step, waiting, held_from, edge
        if (
            groups is not None
            or features is not None
            or weight != 1.0
            or id is not None
            or time is not None
        ):
            return slow_predict(f, groups, features, weight, id, time)
        if type(f) is not float:
            f = check_f(f)
        if not f_low <= f <= f_high:
            return other_predict(f)
        s = link.serve(f, u)
        waiting += 1
        if waiting > peak:
            peak = waiting
            if capped:
                step = min(eta, limit / peak)
                if rows == first_rows and waiting == first_waiting + 1:
                    steps.clear()  # nothing was served with the step of the start
                steps.append(step)
                if held_from is None and step < eta:
                    held_from = (rows, waiting - 1)
            if rows:
                edge = leash * peak * max(high, -low)
        push((f, s, step))
        return s

    def update(y: Any, id: Any = None) -> str:
        """Learn from the label of the oldest open ticket."""
        nonlocal u, rows, gradient, moved, before, loss_before, loss_after, low, high, reach
        nonlocal delay_sum, delay_most, waiting, edge
        if id is not None or not waiting:
            return slow_update(y, id)  # type: ignore[no-any-return]
        if type(y) is not float:
            y = check_y(y)
        if not y_low <= y <= y_high:
            return other_update(y)  # type: ignore[no-any-return]
        f, s, own = ticket = pop()
        g = loss.slope(s, y)
        new = u - own * g
        if not -edge <= new <= edge:
            queue.appendleft(ticket)
            return slow_update(y, id)  # type: ignore[no-any-return]
        u = new
        rows += 1.0
        gradient += g
        moved += own * g
        before += loss.slope(f, y)
        loss_before += loss.value(f, y)
        loss_after += loss.value(s, y)
        r = y - f
        if r < low:
            low = r
            edge = leash * peak * max(high, -low)
        if r > high:
            high = r
            edge = leash * peak * max(high, -low)
        reach += link.reach(f)
        waiting -= 1
        if waiting:
            delay_sum += waiting
            if waiting > delay_most:
                delay_most = waiting
        return "applied"

    def settle() -> tuple[list[float], list[int], list[tuple[float, float, float]], list[float]]:
        """Close the lane and give the state back: sums, counts and open tickets as they were given, and the steps.

        Whoever still holds these functions is sent on from now on, by a range that holds nothing.
        """
        nonlocal f_low, y_low
        f_low = y_low = inf
        learned = int(rows - first_rows)
        now_served = served + learned + waiting - first_waiting
        now_held = held
        if held_from is not None:
            now_held += int(rows - held_from[0]) + waiting - held_from[1]
        return (
            [u, rows, gradient, moved, before, loss_before, loss_after, low, high, reach],
            [now_served, posted + learned, delay_sum, delay_most, peak, now_held],
            list(queue),
            steps if now_served > served else [],
        )

    return predict, update, settle
