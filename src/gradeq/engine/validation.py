"""Validation of tickets and postings that come from outside: from a file or a caller.

A checksum proves that a state is what was written, not that it makes sense. Loops over whole columns do not check
their input, so errors must be found here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradeq.engine.tickets import TicketBook
from gradeq.errors import BadInput
from gradeq.kernels.account import (
    BEFORE,
    COLUMNS,
    FIRST,
    GRADIENT,
    LAST,
    LOSS_AFTER,
    LOSS_BEFORE,
    MOVED,
    PATH,
    ROWS,
    WEIGHT,
)
from gradeq.ledger import facts as fact
from gradeq.ledger.state import HUGE, State
from gradeq.ledger.values import Posting, Ticket
from gradeq.rules.rule import LARGEST_FINITE, Rule

WHOLE = 2.0**53  # counts are whole numbers below
FOREIGN = "post it where it was served"


def check_kind(entry: object, kind: type[Ticket] | type[Posting] | None = None) -> None:
    if not isinstance(entry, kind or (Ticket, Posting)):
        wanted = "Posting, as post gives it" if kind is Posting else "Ticket, as open gives it"
        raise BadInput(f"{type(entry).__name__} is not a {wanted}; Ticket.from_json reads a saved one")


def check_entry(rule: Rule, entry: Ticket | Posting) -> None:
    """Refuse a ticket or posting that no layer with this rule can have made."""
    check_kind(entry)
    row, levels, told = entry.row, rule.width, isinstance(entry, Posting)
    what = "posting" if told else "ticket"
    numbers = [*row.values, entry.weight, entry.step, *entry.memo, *entry.slopes]
    sized = [entry.served] if hasattr(rule, "score") else [entry.served, entry.base]
    for value in sized:
        own = value if isinstance(value, tuple) else (value,)
        numbers += own
        if len(own) != levels:
            raise BadInput(f"this {what} has other levels than this layer, {len(own)}; {FOREIGN}")
    if isinstance(entry, Posting):
        numbers += [entry.eta, entry.sign, *entry.errors]
        if len(entry.errors) != len(entry.losses) or len(entry.errors) != 2 * levels:
            raise BadInput(f"a posting with {len(entry.errors)} errors, not {2 * levels}; {FOREIGN}")
        if entry.sign not in (-1.0, 0.0, 1.0) or not entry.eta > 0.0:
            raise BadInput(f"a posting with sign {entry.sign} and step {entry.eta}; {FOREIGN}")
    for x in numbers:
        if type(x) is not float or not -LARGEST_FINITE <= x <= LARGEST_FINITE:
            raise BadInput(f"a {what} holds {x!r} where a finite number is; {FOREIGN}")
    if len(row.values) != len(row.names) or entry.weight < 0.0 or not entry.step > 0.0:
        raise BadInput(f"a {what} of weight {entry.weight} and step {entry.step}; {FOREIGN}")


def check_columns(state: State, rule: Rule) -> None:
    """Refuse columns whose numbers contradict each other, or that readers could not add up."""
    facts = np.asarray(state.facts)
    counted = np.delete(facts, fact.MEASURED)
    counts = [state.view(name) for name in ("rows", "late", "clock") if hasattr(state, name)]
    if not all((own <= WHOLE).all() for own in (counted, *counts)):
        raise BadInput("more was counted than can be")
    for name in ("sums", "total"):
        if not hasattr(state, name):
            continue
        if hasattr(state, "met"):  # of games nothing is infinite
            games = state.view(name).reshape(-1, rule.stride if name == "sums" else len(state.total))
            if (np.abs(games) > HUGE).any() or (games[:, 0] > WHOLE).any() or (games[:, :2] < 0.0).any():
                raise BadInput("an account of more games than there can be")
        else:
            _check_accounts(state.view(name).reshape(-1, COLUMNS), bool(facts[fact.CORRECTED]))
    for num, den in (("nums", "dens"), ("scale_num", "scale_den")):
        if hasattr(state, num) and (state.view(num)[state.view(den) == 0.0] != 0.0).any():
            raise BadInput(f"{num} without {den}")
    if hasattr(state, "own_last") and (np.abs(state.view("own_last")) > WHOLE).any():
        raise BadInput("own_last is no count of labels")
    if hasattr(state, "own_last") and (state.view("own_last") > state.view("heard").max()).any():
        raise BadInput("own_last is later than the last label")
    if hasattr(state, "gaps") and (state.view("gaps") > HUGE).any():
        raise BadInput("gaps are larger than any forecast")
    for each, whole in (("path", "total_path"), ("steps", "total_steps")):
        if hasattr(state, whole) and state.has_column(each) != state.has_column(whole):
            raise BadInput(f"{each} is known and {whole} is not, or the other way round")
    if hasattr(state, "path"):
        _check_path(state, rule)


def _check_accounts(accounts: Any, corrected: bool) -> None:
    rows, weight, moved = (accounts[:, c] for c in (ROWS, WEIGHT, MOVED))
    if not ((rows <= WHOLE) & (weight <= HUGE) & (np.abs(moved) <= HUGE)).all():
        raise BadInput("an account of more labels than there can be")
    sums = accounts[:, [GRADIENT, BEFORE]]
    losses = accounts[:, [LOSS_BEFORE, LOSS_AFTER]]
    if (np.isfinite(sums) & (np.abs(sums) > HUGE)).any():
        raise BadInput("an account of larger errors than there can be")
    if (losses < (-HUGE if corrected else 0.0)).any():
        raise BadInput("a loss below zero")


def _check_path(state: State, rule: Rule) -> None:
    """The steps of a parameter are known once it has learned, and those of all with them."""
    if not state.has_column("path"):
        return
    learned = state.view("sums")[:: rule.stride] > 0.0
    path, total = state.view("path").reshape(-1, PATH), state.view("total_path")
    steps = path[learned][:, [FIRST, LAST]]
    # A tie that was ignored and then corrected to a win teaches without a step of its own.
    lacking = np.less if state.facts[fact.CORRECTED] else np.less_equal
    if lacking(steps, 0.0).any() or (learned.any() and lacking(total[[FIRST, LAST]], 0.0).any()):
        raise BadInput("a label without a step")


def check_book(book: TicketBook, rule: Rule, names: Any, state: State, label: Any) -> None:
    """Refuse a book whose tickets and postings are not those of this layer; ``label`` checks a label."""
    opened = [ticket for ticket, _, _ in book.tickets()]
    waiting = [own.ticket for own in book.waiting.values()]
    for ticket in (*opened, *waiting):
        _check_place(ticket, ticket.counts, rule, names, state)
        if any(k > state.rows[c] for k, c in zip(ticket.counts, names.place(ticket.row).cells)):  # noqa: B905
            raise BadInput("a ticket counts more rows than were served")
        if not hasattr(rule, "error") and not hasattr(rule, "score"):
            rule.measure(ticket.served, ticket.base, 0.0, ticket.memo)
    for own in book.waiting.values():
        label(own.y)
    for posting in book.closed.values():
        _check_place(posting, posting.late, rule, names, state)
        if not hasattr(rule, "error") and not hasattr(rule, "score"):
            told = (posting.served, posting.base, label(posting.y), posting.memo)
            if rule.measure(*told)[1] != posting.memo or rule.judge(*told) != posting[9:11]:
                raise BadInput("a posting is not what its label says")
    check_times(own for _, _, own in book.tickets())
    check_times(time for own in book.waiting.values() for time in (own.due, own.time))
    check_times([book.now])
    for id in (*book.closed, *book.lapsed, *book.waiting_ids):
        if type(id) not in (str, int):
            raise BadInput(f"id {id!r} is neither text nor a whole number")


def _check_place(entry: Ticket | Posting, cells: tuple[int, ...], rule: Rule, names: Any, state: State) -> None:
    check_entry(rule, entry)
    names.knows(entry.row)
    mark = names.mark()
    place = names.place(entry.row)
    if names.mark() != mark:
        names.forget(mark)
        raise BadInput(f"{entry.row.names} is nothing that this layer has seen")
    late = isinstance(entry, Posting) and not cells  # a label that came in the place of another
    if not late and len(cells) != len(place.cells):
        raise BadInput(f"{len(cells)} counts for {len(place.cells)} groups")
    if not 0 < entry.number <= state.facts[fact.SERVED]:
        raise BadInput(f"a ticket with number {entry.number}, of {state.facts[fact.SERVED]:g}")
    if len(entry.slopes) > len(state.u):
        raise BadInput(f"{len(entry.slopes)} slopes for {len(state.u)} parameters")


def check_times(times: Iterable[Any]) -> None:
    for time in times:
        if time is not None and (type(time) not in (int, float) or not -LARGEST_FINITE <= time <= LARGEST_FINITE):
            raise BadInput(f"{time!r} is no time")
