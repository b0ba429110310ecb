"""Validation of tickets and postings that come from outside: from a file or a caller.

A checksum proves that a state is what was written, not that it makes sense. Loops over whole columns do not check
their input, so errors must be found here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gradeq.engine.tickets import TicketBook
from gradeq.errors import BadInput
from gradeq.inputs.durations import DATES, NAIVE, NUMBERS, ZONED
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
from gradeq.kernels.forecaster import MANY, NEWCOMER, SIDE_DRIFT
from gradeq.ledger import facts as fact
from gradeq.ledger.state import HUGE, State
from gradeq.ledger.values import Posting, Ticket
from gradeq.numerics import SMALLEST
from gradeq.rules.rule import LARGEST_FINITE, Rule

WHOLE = 2.0**53  # counts are whole numbers below
ROUNDING = 1e-6  # more than sums of the same numbers in another order differ by
COUNTED = ("rows", "late", "clock", "silence", "weighed", "own_heard", "own_last", "crowded", "moves")
OF_WEIGHTS = ("weighed", "largest_weight", "heaviest_step")  # kept from the first weight on, the last two since later
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
        if entry.sign not in (-1.0, 0.0, 1.0) or not entry.eta >= 1.0 / HUGE:
            raise BadInput(f"a posting with sign {entry.sign} and step {entry.eta}; {FOREIGN}")
    for x in numbers:
        if type(x) is not float or not -LARGEST_FINITE <= x <= LARGEST_FINITE:
            raise BadInput(f"a {what} holds {x!r} where a finite number is; {FOREIGN}")
    sized_weight = entry.weight == 0.0 or SMALLEST <= entry.weight <= 1.0 / SMALLEST
    if len(row.values) != len(row.names) or not sized_weight or not entry.step >= 1.0 / HUGE:
        raise BadInput(f"a {what} of weight {entry.weight} and step {entry.step}; {FOREIGN}")


def check_columns(state: State, rule: Rule) -> None:
    """Refuse columns whose numbers contradict each other, or that readers could not add up."""
    _check_counts(state)
    for name in ("sums", "total"):
        if hasattr(state, name):
            _check_accounts(state, name, rule)
    if hasattr(state, "sums") and hasattr(state, "total"):
        _check_total(state, rule)
    if hasattr(state, "met"):
        _check_games(state)
    for num, den in (("nums", "dens"), ("scale_num", "scale_den")):
        if hasattr(state, num) and (state.view(num)[state.view(den) == 0.0] != 0.0).any():
            raise BadInput(f"{num} without {den}")
    if hasattr(state, "own_last") and (state.view("own_last") > state.view("heard").max()).any():
        raise BadInput("own_last is later than the last label")
    if hasattr(state, "gaps") and (state.view("gaps") > HUGE).any():
        raise BadInput("gaps are larger than any forecast")
    _check_weights(state)
    for each, whole in (("path", "total_path"), ("steps", "total_steps")):
        if hasattr(state, whole) and state.has_column(each) != state.has_column(whole):
            raise BadInput(f"{each} is known and {whole} is not, or the other way round")
    if hasattr(state, "path"):
        _check_path(state, rule)


def _check_counts(state: State) -> None:
    """Counts are whole numbers, and no part has more than there are."""
    facts = np.asarray(state.facts)
    served, posted = facts[fact.SERVED], facts[fact.POSTED]
    counts = [state.view(name) for name in COUNTED if hasattr(state, name)]
    for own in (np.delete(facts, fact.MEASURED), *counts):
        if not ((own <= WHOLE) & (np.floor(own) == own)).all():
            raise BadInput("more was counted than can be, or not in whole numbers")
    if (state.view("rows") > served).any() or not facts[fact.SKIPPED] <= posted <= served:
        raise BadInput("more rows or labels were counted than were served")
    low, high = facts[fact.STEP_LOW], facts[fact.STEP_HIGH]
    if high > 0.0 and not 1.0 / HUGE <= low <= high <= HUGE:
        raise BadInput(f"steps from {low:g} to {high:g}")


def _check_accounts(state: State, name: str, rule: Rule) -> None:
    """Rows are whole, no more than were served, and weigh something; sums are no larger than they can be."""
    games, facts = hasattr(state, "met"), state.facts
    width = COLUMNS if not games else rule.stride if name == "sums" else len(state.total)
    accounts = state.view(name).reshape(-1, width)
    rows, weight, moved = (accounts[:, c] for c in (ROWS, WEIGHT, MOVED))
    if not ((rows <= facts[fact.SERVED]) & (np.floor(rows) == rows)).all():
        raise BadInput("an account of more labels than there can be, or of a part of one")
    # A heavy label that is taken back leaves rounding, in which the weight of faint ones is lost.
    least = -math.inf if facts[fact.CORRECTED] else SMALLEST
    if (rows < 0.0).any() or not ((weight >= least) | (rows == 0.0)).all():
        raise BadInput("an account of labels that weigh nothing")
    if not ((weight <= HUGE) & (np.abs(moved) <= HUGE)).all():
        raise BadInput("an account of more labels than there can be")
    if games:  # of which nothing is infinite
        if (np.abs(accounts) > HUGE).any():
            raise BadInput("an account of more games than there can be")
        return
    sums, losses = accounts[:, [GRADIENT, BEFORE]], accounts[:, [LOSS_BEFORE, LOSS_AFTER]]
    if (np.isfinite(sums) & (np.abs(sums) > HUGE)).any():
        raise BadInput("an account of larger errors than there can be")
    if (losses < (-HUGE if facts[fact.CORRECTED] else 0.0)).any():
        raise BadInput("a loss below zero")


def _check_total(state: State, rule: Rule) -> None:
    """All rows together are at least those of each parameter, and no more than those of all parameters added up."""
    games = hasattr(state, "met")
    width, levels = (rule.stride, 1) if games else (COLUMNS, rule.width)
    parts = state.view("sums").reshape(-1, levels, width)
    whole = state.view("total").reshape(levels, -1)
    rows, all_rows = parts[:, :, ROWS], whole[:, ROWS]
    added = rows[int(games) :].sum(axis=0)  # the first side's come on top of both players'
    if (rows > all_rows).any() or not (added == 2.0 * all_rows if games else added >= all_rows).all():
        raise BadInput("the labels of parameters are not those of all rows")
    if not state.facts[fact.CORRECTED] and (parts[:, :, WEIGHT] > whole[:, WEIGHT] * (1.0 + ROUNDING)).any():
        raise BadInput("a part weighs more than the whole")


def _check_weights(state: State) -> None:
    """The mean of weights is kept from the first that is not 1, with how many they were."""
    if not hasattr(state, "weighed"):
        return
    known = state.has_column("weighed")
    if state.has_column("mean_weight") != known or any(state.has_column(own) > known for own in OF_WEIGHTS):
        raise BadInput("weights are known in part")
    if not known:
        return
    mean, count = state.view("mean_weight"), state.view("weighed")
    if (count > state.facts[fact.SERVED]).any() or not ((mean >= SMALLEST) | (count == 0.0)).all():
        raise BadInput("a mean of weights that nothing has")


def _check_games(state: State) -> None:
    """What is kept for a leaderboard: scores of pairs are between 0 and their weight, in no more cells than games."""
    games = state.total[ROWS]
    tally, squares = (state.view(name).reshape(-1, 3) for name in ("tally", "squares"))
    exact = not state.facts[fact.CORRECTED]  # what is taken back leaves rounding
    for table in (tally, squares):
        weight, score, square = table.T
        if exact and not ((weight >= score) & (score >= square) & (square >= 0.0)).all():
            raise BadInput("a score outside 0 and 1")
    weight = tally[:, 0]
    if (weight > 0.0).sum() > games or (not len(squares) and weight.sum() > games):
        raise BadInput("more games of pairs than there were")
    if exact and len(squares):
        least, most = weight * weight / max(games, 1.0), weight * weight
        own = squares[:, 0]
        if ((own < least * (1.0 - ROUNDING)) | (own > most * (1.0 + ROUNDING))).any():
            raise BadInput("squared weights of pairs that are not those of their weights")
    if (state.view("spreads") > (NEWCOMER + SIDE_DRIFT * games) * (1.0 + ROUNDING)).any():
        raise BadInput("a strength less known than that of a newcomer")
    if not 0.0 < state.view("shares").max() <= MANY:
        raise BadInput("the shares of filters are nothing")


def _check_path(state: State, rule: Rule) -> None:
    """The steps of a parameter are known once it has learned, those of all with them, and none is another's."""
    if not state.has_column("path"):
        return
    facts = state.facts
    learned = state.view("sums")[:: rule.stride] > 0.0
    path, total = state.view("path").reshape(-1, PATH), state.view("total_path").reshape(1, PATH)
    # A tie that was ignored and then corrected to a win teaches without a step of its own.
    lacking = np.less if facts[fact.CORRECTED] else np.less_equal
    for inverse in (path[learned], total[: int(learned.any())]):
        if lacking(inverse[:, [FIRST, LAST]], 0.0).any():
            raise BadInput("a label without a step")
    for inverse in (path, total):
        ends = inverse[:, [FIRST, LAST]]
        ends = ends[ends != 0.0]
        given = (ends * facts[fact.STEP_HIGH] >= 1.0 - ROUNDING) & (ends * facts[fact.STEP_LOW] <= 1.0 + ROUNDING)
        if not given.all():
            raise BadInput("a step that no label was given")


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
    check_desk(book.desk)
    if not _is_count(book.forgotten) or any(not 0 < own <= state.number for own in book.replaced.values()):
        raise BadInput("more predictions were forgotten or replaced than were served")
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


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= WHOLE


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(own, str) for own in value)


def check_desk(desk: Mapping[str, Any]) -> None:
    """Refuse what is noted from run to run, unless it has the form in which the command line writes it."""
    times, columns, runs = desk.get("times", {}), desk.get("columns", {}), desk.get("runs", [])
    if not all(isinstance(own, kind) for own, kind in ((times, dict), (columns, dict), (runs, list))):
        raise BadInput("what it says of its runs makes no sense")
    if not set(times) <= {"kind", "row", "label"} or times.get("kind") not in (None, NUMBERS, NAIVE, ZONED, DATES):
        raise BadInput(f"times of the kind {times.get('kind')!r}")
    check_times(times.get(name) for name in ("row", "label"))
    if not all(own is None or isinstance(own, str) or _is_texts(own) for own in columns.values()):
        raise BadInput("a column without a name")
    for number, content, rows, outputs in runs:
        named = all(_is_texts(list(own)) and len(own) == 2 for own in outputs)
        if not (type(number) is int and isinstance(content, str) and _is_count(rows) and named):
            raise BadInput("a run that is none")


def check_log(log: Any, served: int) -> None:
    """Refuse a record of what was done by hand that says when in other words than a number of rows."""
    for what, at in log:
        if not isinstance(what, str) or not _is_count(at) or at > served:
            raise BadInput(f"{what!r} was done by hand after {at!r} rows")
