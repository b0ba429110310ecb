"""When labels are posted: the turn of each, and all of them in the order of posting, without a sort of all rows."""

from __future__ import annotations

from gradeq.kernels.account import Floats, Ints

SMALL = 32  # labels of one turn that are sorted by hand


def found_from(clock: Floats, start: int, wanted: float, beyond: bool, rate: float) -> int:
    """The first row from ``start`` on whose time has reached ``wanted`` (``beyond``: has passed it).

    ``rate`` rows come in a unit of time: looked for where that would put it, then in growing steps from there.
    """
    last = len(clock) - 1
    if start > last or clock[last] < wanted or (beyond and clock[last] == wanted):
        return len(clock)
    guess = start + int(min(max(0.0, (wanted - clock[start]) * rate), float(last - start)))
    low, high, reach = start, guess, 1
    if clock[guess] < wanted or (beyond and clock[guess] == wanted):
        while clock[high] < wanted or (beyond and clock[high] == wanted):
            low, high, reach = high + 1, min(high + reach, last), 2 * reach
    else:
        low = guess
        while low > start and not (clock[low] < wanted or (beyond and clock[low] == wanted)):
            high, low, reach = low, max(low - reach, start), 2 * reach
    while low < high:
        middle = (low + high) // 2
        if clock[middle] < wanted or (beyond and clock[middle] == wanted):
            low = middle + 1
        else:
            high = middle
    return low


def turned(
    clock: Floats,
    tickets: Ints,
    wanted: Floats,
    beyond: bool,
    first: int,
    rate: float,
    turns: Ints,
) -> None:
    """Before which row each ticket's time comes, at the earliest the one after its own; rows begin at ``first``."""
    for k in range(len(tickets)):
        start = max(tickets[k] + 1 - first, 0)
        turns[k] = first + found_from(clock, start, wanted[k], beyond, rate)


def arranged(
    turns: Ints,
    tickets: Ints,
    label_times: Floats,
    cuts: Ints,
    slots: Ints,
    posts: Ints,
    when: Floats,
) -> bool:
    """Tickets by turn, then label time, then number: posts[: cuts[i]] have their turn by row i; others are left out.

    False if too many labels of one turn are out of order: then somebody else has to sort. ``slots`` (rows + 1) and
    ``when`` are scratch.
    """
    n = len(cuts)
    for k in range(len(turns)):
        if turns[k] < n:
            slots[turns[k] + 1] = slots[turns[k] + 1] + 1
    for i in range(n):
        slots[i + 1] = slots[i + 1] + slots[i]
        cuts[i] = slots[i + 1]
    for k in range(len(turns)):
        turn = turns[k]
        if turn < n:
            p = slots[turn]
            begin = 0 if turn == 0 else cuts[turn - 1]
            t = label_times[k]
            slots[turn] = p + 1
            if p > begin and when[p - 1] > t and p - begin >= SMALL:
                return False
            while p > begin and when[p - 1] > t:
                posts[p] = posts[p - 1]
                when[p] = when[p - 1]
                p = p - 1
            posts[p] = tickets[k]
            when[p] = t
    return True
