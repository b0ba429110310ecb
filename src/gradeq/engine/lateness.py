"""How late labels come, the step that each may take, and the facts that bounds rest on.

With ``Rule.add`` this is the only writer: it counts rows as they are served, notes the lateness of labels as they are
posted (see ``kernels.flight``), and follows the steps that were given. Nothing here depends on what was served.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradeq.engine.label_stats import LabelStats, at_once, prompt_cells, unlearned
from gradeq.engine.scalars import as_number, is_flag
from gradeq.errors import BadInput
from gradeq.kernels import flight
from gradeq.kernels.account import FIRST, MASS, PATH, ROWS, SQUARES, STEPS, WEIGHT, StepTotals, follow, followed
from gradeq.kernels.choice import run_loop, unsigned
from gradeq.kernels.flight import (
    EPOCH,
    HEARD_AT,
    LARGEST,
    LARGEST_ROW,
    LATENESS,
    NO_LABELS,
    PEAK,
    RECENT,
    SILENCE,
    capped,
    flown,
    note,
    peak_after,
    weigh,
    weigh_all,
)
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import Alike, Batch, Floats, Ints, Order, Rows, alike, constant
from gradeq.ledger.facts import FACTS, POSTED, SERVED
from gradeq.ledger.pair_table import GamePairs
from gradeq.ledger.state import FACTS_KNOWN, MEAN, MOST, SUM, Column, State, column
from gradeq.ledger.values import Place, Posting
from gradeq.records import copy_with
from gradeq.rules.rule import Entries, picked

# What the coming of a label means: how late it is, and the step it gets.
Arrival = tuple[tuple[int, ...], float]
AT_ONCE = 1  # the lateness of a label that is known before the next row of its cell is served
PROMPT = (AT_ONCE,)  # in the one cell of a row
# What makes a row too large for its step. A squared error is stable for step w ||z||^2 < 2 (results 3.2, 5.2, D3).
# Errors that are bounded never diverge, but one heavy row must not take a parameter far: with links of their own
# unit the same rule holds, though no row moves less than one of weight 1; where parameters have the unit of the
# labels, a row of weight 20 or more moves as far as 10 of weight 1.
SQUARED, BOUNDED, LABELS = "squared", "bounded", "labels"
HEAVY, ORDINARY = 20.0, 10.0
MOST_IN_FLIGHT = 10**15  # floats count no further than 2^53 without a gap
FOREIGN = "this ticket counts other rows than this layer; post it where it was served"


class Lateness:
    """``limit`` is c of the late-label cap (None: no cap), ``in_flight`` where every peak lateness begins.

    ``per``: whether rows are counted by "parameter" (groups) or by "key" (the whole layer); ``featured``: whether the
    cap also counts the largest squared norm of a row.
    """

    __slots__ = ("before", "featured", "in_flight", "limit", "per", "stride")

    def __init__(self, limit: float | None, in_flight: int, per: str, featured: bool, stride: int) -> None:
        count = as_number(in_flight, "in_flight")
        if is_flag(in_flight) or int(count) != count or not 1 <= count <= MOST_IN_FLIGHT:
            raise BadInput(f"in_flight={in_flight}: give a number of labels, from 1 to 10**15")
        self.limit, self.in_flight, self.per, self.featured = limit, int(count), per, featured
        self.stride = stride
        self.before: tuple[int, tuple[float, float, array[float]] | None] | None = None

    def columns(self) -> list[Column]:
        """Facts, rows served by cell, lateness by cell, the largest squared norm by key.

        From the first weight that is not 1 also the mean of the positive weights served, how many they were, the
        largest of them, and the largest step times weight that a label was given.
        """
        start = (float(self.in_flight), 0.0, 0.0, EPOCH, 1.0)
        merge = (MOST, MOST, SUM, MOST, MOST)
        lazy = self.per == "parameter" and self.in_flight == 1  # until a label is late, it follows from the counts
        found = [
            FACTS,
            Column("silence", "layer", (0.0, 0.0), (SUM, MOST), low=0.0, later=True),
            column("rows", self.per, (0.0,), low=0.0),
            Column("late", self.per, start, merge, lazy=lazy, low=0.0),
            Column("mean_weight", "key", (0.0,), (MEAN,), True, by="weighed", low=0.0, later=True),
            Column("weighed", "key", (0.0,), (SUM,), True, low=0.0, later=True),
            Column("largest_weight", "key", (0.0,) * LARGEST, (MOST,) * LARGEST, True, low=0.0, later=True),
            Column("heaviest_step", "layer", (0.0,), (MOST,), True, low=0.0, later=True),
        ]
        return [*found, column("norms", "key", (0.0,), MOST, low=0.0)] if self.featured else found

    # One event

    def serve(self, state: State, cells: tuple[int, ...]) -> tuple[int, tuple[float, ...]]:
        """Count a row that is served: its number and the counts of its cells go on its ticket."""
        rows = state.rows
        state.number = number = state.number + 1
        if len(cells) == 1:
            cell = cells[0]
            rows[cell] = count = rows[cell] + 1.0
            return number, (count,)
        counts = []
        for cell in cells:
            rows[cell] = count = rows[cell] + 1.0
            counts.append(count)
        return number, tuple(counts)

    def limited(self, state: State, kind: str, step: float, weight: float, size: float) -> float:
        """The step of a row of this squared norm, smaller where it is too large for it."""
        if too_large(kind, step, weight, size):
            state.raw_facts[fact.RESIZED] += 1.0
            return float(smaller(kind, step, weight, size))
        return step

    def weigh(self, state: State, names: object, key: int, given: float) -> float:
        """The weight that a row served now is learned with: relative to the mean of the positive ones so far."""
        if not state.weighed:
            if given == 1.0:
                return 1.0
            self.before = (key, None)
            begin_weighing(state, names)
        else:
            largest = largest_weights(state)[key * LARGEST : (key + 1) * LARGEST]
            self.before = (key, (state.mean_weight[key], state.weighed[key], largest))
        if given <= 0.0:
            return 0.0
        known = (state.weighed, state.mean_weight, state.largest_weight)
        return weigh(given, key, 0.0 if hasattr(names, "pairs") else state.number + 1.0, *known)

    def unweigh(self, state: State) -> None:
        """Take back the weight of the row that was served last, where one was heard since ``before`` was None."""
        if self.before is not None:
            key, known = self.before
            if known is None:
                state.mean_weight, state.weighed = array("d"), array("d")
                state.largest_weight = array("d")
            else:
                state.mean_weight[key], state.weighed[key], largest = known
                state.largest_weight[key * LARGEST : (key + 1) * LARGEST] = largest
        self.before = None

    def weigh_many(self, state: State, names: object, keys: Ints, given: Floats | None) -> Floats | None:
        """The same of many rows in the order of serving; None where all weights, these and earlier ones, are 1."""
        if not len(state.weighed):
            if given is None or (given == 1.0).all():
                return None
            begin_weighing(state, names)
        own = constant(len(keys), 1.0) if given is None else given
        weights = np.zeros(len(keys))
        largest_weights(state)
        known = [state.view(name) for name in ("weighed", "mean_weight", "largest_weight")]
        # Rows of many keys have no numbers that partitions by key would agree on.
        before = np.zeros(2) if hasattr(names, "pairs") else np.array([float(state.number), 1.0])
        run_loop(weigh_all, (), (keys, own, before, *known, weights), len(keys))
        return weights

    def unserve(self, state: State, cells: tuple[int, ...]) -> None:
        """Take back the count of a row that was served for a label which is then refused."""
        for cell in cells:
            state.rows[cell] -= 1.0
        state.number -= 1

    def arrive(self, state: State, place: Place, ticket: tuple[Any, ...], late: tuple[int, ...] = ()) -> Arrival:
        """What a label would be given now; nothing is changed. ``late`` left out: as late as its ticket's counts say.

        The lateness in a cell is how many of its rows were served from the ticket until now, its own included.
        """
        _, row, _, _, weight, eta, counts, *_ = ticket
        cells, known = place.cells, state.late
        late = late or lateness(state.rows, cells, counts)
        if not known and (late is PROMPT or max(late) == AT_ONCE):  # as all labels so far
            return late, eta
        if self.limit is not None and weight > 0.0:
            total = most = float(late[0])
            if len(cells) > 1:
                own = zip(cells, late, strict=True)
                peaks = [peak_after(known, j * LATENESS, float(d)) if known else d for j, d in own]
                total, most = float(sum(peaks)), float(max(peaks))
            elif known:
                total = most = peak_after(known, cells[0] * LATENESS, most)
            norm = 1.0
            if self.featured:
                norm = max(state.norms[place.key], norm_of(row.values))
            eta = capped(eta, self.limit, weight, total, most, norm)
        return late, eta

    def settle(self, state: State, place: Place, late: tuple[int, ...], values: tuple[float, ...]) -> None:
        """Write down what a label that is posted means for the steps of later ones."""
        if self.featured:
            state.norms[place.key] = max(state.norms[place.key], norm_of(values))
        if state.late or max(late) > AT_ONCE:  # else all were at once so far
            if not state.late:
                self.start_lateness(state, place.cells)
            for cell, d in zip(place.cells, late, strict=True):
                note(state.late, cell * LATENESS, float(d))

    def skip(self, state: State, number: int) -> None:
        """Write down that a label was heard while learning was frozen."""
        facts = state.facts
        hear(state.silence, facts[SERVED])
        delay = max(0.0, facts[SERVED] - number)
        for name, amount in ((POSTED, 1.0), (fact.SKIPPED, 1.0), (fact.DELAY_SUM, delay)):
            facts[name] += amount
        facts[fact.DELAY_MOST] = max(facts[fact.DELAY_MOST], delay)

    def tell(self, state: State, own: Entries) -> None:
        """Write down the facts of labels of single events, before they are entered into the accounts."""
        told_of = own.now != FACTS_KNOWN
        if not told_of.all():
            own = picked(own, told_of)
        if not len(own):
            return
        facts, silence = state.facts, state.silence
        facts[POSTED] += float(len(own))
        hear(silence, float(own.now[0]))
        silence[SILENCE] = max(silence[SILENCE], float(np.diff(own.now).max(initial=0.0)))
        silence[HEARD_AT] = float(own.now[-1])
        delays = np.maximum(0.0, own.now - own.number)
        ends = (float(own.eta.min()), float(own.eta.max()), float((own.eta < own.step).sum()))
        waited = (float(delays.sum()), float(delays.max()))
        stride = float((own.eta * own.w).max())
        stats = LabelStats(*ends, float(own.w.max()), float(own.late.max()), *waited, stride)
        params, starts = own.params
        posts = np.arange(len(own))
        self._follow_many(state, (own.eta, own.w), posts, (starts, params), stats, params)
        largest, norm = 1.0, float(np.diff(starts).max())
        if self.featured:
            sizes: Any = norm_of(own.z)  # a column of them
            largest, norm = float(np.abs(own.z).max()), float(sizes.max())
        self.record_stats(state, stats, largest, norm)

    def correct(self, state: State, place: Place, posting: Posting) -> None:
        """A label that comes in the place of one that taught nothing (a dropped tie) may bring a step of its own."""
        facts, eta = state.facts, posting.eta
        low, high = facts[fact.STEP_LOW], facts[fact.STEP_HIGH]
        if posting.sign > 0.0 and posting.weight > 0.0 and not low <= eta <= high:
            self.follow(state, place.params, eta, posting.weight)
            facts[fact.STEP_LOW], facts[fact.STEP_HIGH] = min(low, eta), max(high, eta)
        if len(state.heaviest_step) and posting.sign > 0.0:
            self.note_heavy(state, eta * posting.weight)

    def follow(self, state: State, params: Sequence[int], eta: float, weight: float, labels: float = 1.0) -> None:
        """Follow the steps of these parameters, from the moment that steps begin to vary."""
        facts = state.facts
        low, high = facts[fact.STEP_LOW], facts[fact.STEP_HIGH]
        if not len(state.path):
            if high == 0.0 or low == high == eta:
                return
            self.start_path(state, high, params)
        self.start_steps(state)
        for j in params:
            follow(state.path, state.steps, j, eta, weight, labels)
        follow(state.total_path, state.total_steps, 0, eta, weight, labels)

    def join(self, mine: State, theirs: State, names: tuple[object, object]) -> None:
        """Before two partitions are merged: both follow weights and steps, unless these are one and the same."""
        facts = (mine.facts, theirs.facts)
        if len(mine.weighed) or len(theirs.weighed):
            for state, own in zip((mine, theirs), names, strict=True):
                if not len(state.weighed):
                    begin_weighing(state, own)
                largest_weights(state)[LARGEST_ROW::LARGEST] = array("d", bytes(8 * state.counts["key"]))
                self.note_heavy(state, 0.0)
        low = min(own[fact.STEP_LOW] for own in facts)
        high = max(own[fact.STEP_HIGH] for own in facts)
        if low < high or len(mine.path) or len(theirs.path):
            for state in (mine, theirs):
                if not len(state.path):
                    self.start_path(state, state.facts[fact.STEP_HIGH])
                self.start_steps(state)

    def reset(self, state: State) -> None:
        """Forget the peaks: lateness is noted anew from now. The facts do not forget."""
        state.facts[fact.RESETS] += 1.0
        if len(state.late):
            cells = state.view("late").reshape(-1, LATENESS)
            cells[:, PEAK], cells[:, RECENT] = 1.0, 0.0

    # Whole columns

    def many(
        self, state: State, batch: Batch, cells: Rows | GamePairs, norms: object
    ) -> tuple[Floats, Ints, Floats, LabelStats]:
        """Count the rows of a batch and give each label its step: steps, counts at serving, lateness, summaries."""
        n, first = len(batch.base), batch.first
        rows = state.view("rows")
        if batch.at_once and not len(state.late):
            if len(rows) == 1:
                rows[0] += n
            elif n < 4 * len(rows):
                np.add.at(rows, cells.params, 1.0)
            elif isinstance(cells, GamePairs):
                rows += cells.counts
            else:
                rows += np.bincount(cells.params, minlength=len(rows))
            return batch.steps, np.empty(0, dtype=np.int64), np.empty(0), at_once(batch)
        calm_so_far, own = not len(state.late), cells.params
        used: Any = slice(None)
        if calm_so_far and 4 * len(own) < len(rows):  # a few cells of many: only these are looked at
            used, own = np.unique(own, return_inverse=True)
            counted, late = rows[used], self.prompt_lateness(state, used).reshape(-1)
        else:
            if calm_so_far:
                self.start_lateness(state)
            counted, late = rows, state.view("late")
        opened = np.zeros(len(own))
        for k, ticket in enumerate(batch.carried):
            opened[cells.starts[k] : cells.starts[k + 1]] = ticket.counts
        etas, delays, stats = batch.steps.copy(), np.ones(n), np.array(NO_LABELS)
        nothing = np.empty(0)
        numbers = np.array([float(ticket.number) for ticket in batch.carried])
        cuts, posts, starts, places = unsigned(batch.cuts, batch.posts, cells.starts, own)
        order = flight.PostingOrder(
            self.limit or 0.0, first, state.facts[SERVED], numbers, cuts, posts, starts, places, batch.weights,
            norms if self.featured else nothing, batch.keys,
        )  # fmt: skip
        widest = state.view("norms") if self.featured else nothing
        kept = flight.LatenessBuffers(opened, widest, counted, late, etas, delays, stats)
        run_loop(flown, (order, kept), (), n)
        del kept
        short = LabelStats(*stats.tolist())
        if calm_so_far and short.late == AT_ONCE:
            del late
            state.late = array("d")  # all at once after all: it still follows from the counts
        elif counted is not rows:
            self.start_lateness(state)
            state.view("late").reshape(-1, LATENESS)[used] = late.reshape(-1, LATENESS)
        if counted is not rows:
            rows[used] = counted
        return etas, opened.astype(np.int64), delays, short

    def settle_many(
        self, state: State, batch: Batch, norms: Any, stats: LabelStats, order: Order, frozen: bool
    ) -> None:
        """Write down the facts of a whole batch; ``order`` has the labels that came, learned from or not."""
        heard = order.posts
        facts, first, n = state.facts, batch.first, len(batch.base)
        before = facts[fact.SERVED]
        state.number += n - first
        facts[fact.POSTED] += float(len(heard))
        if len(heard):  # labels came before each row, and after the last
            rows = n - first
            if batch.at_once and len(heard) == rows:
                came, widest = (1, rows), min(rows - 1, 1)
            else:
                cuts, new = order.cuts[first:], np.empty(rows + 1, dtype=bool)
                new[0], new[rows] = rows > 0 and cuts[0] > 0, len(heard) > (cuts[-1] if rows else 0)
                np.not_equal(cuts[1:], cuts[:-1], out=new[1:rows])
                found = np.flatnonzero(new)
                came, widest = (found[0], found[-1]), int(np.diff(found).max(initial=0))
            hear(state.silence, before + float(came[0]))
            state.silence[SILENCE] = max(state.silence[SILENCE], float(widest))
            state.silence[HEARD_AT] = before + float(came[1])
        if frozen:
            facts[fact.SKIPPED] += float(len(heard))
            stats = copy_with(stats, **unlearned(batch, order, before))
        posts = batch.posts
        if not len(posts):
            facts[fact.DELAY_SUM] += stats.waited
            facts[fact.DELAY_MOST] = max(facts[fact.DELAY_MOST], stats.longest)
            return
        given = (batch.etas, batch.weights)
        self._follow_many(state, given, posts, (batch.rows.starts, batch.rows.params), stats)
        largest = 1.0
        if self.featured:  # rows with features all have the same number of entries
            values = batch.rows.values.reshape(n, -1)[posts if len(posts) < n else slice(None)]
            largest = max(float(values.max()), -float(values.min()))
        entries = float(batch.rows.starts[1]) if n else 1.0
        norm = entries if norms is None else float(norms[posts].max())
        self.record_stats(state, stats, largest, norm)

    def record_stats(self, state: State, stats: LabelStats, largest: float, norm: float) -> None:
        """Write down what bounds may assume of labels that were learned from."""
        facts = state.facts
        if len(state.weighed):
            self.note_heavy(state, stats.heaviest_step)
        facts[fact.DELAY_SUM] += stats.waited
        facts[fact.DELAY_MOST] = max(facts[fact.DELAY_MOST], stats.longest)
        facts[fact.STEP_LOW] = min(facts[fact.STEP_LOW], stats.low)
        facts[fact.STEP_HIGH] = max(facts[fact.STEP_HIGH], stats.high)
        facts[fact.HELD] += stats.capped
        facts[fact.LATEST] = max(facts[fact.LATEST], stats.late)
        facts[fact.HEAVIEST] = max(facts[fact.HEAVIEST], stats.heaviest)
        facts[fact.LARGEST] = max(facts[fact.LARGEST], largest)
        facts[fact.NORM] = max(facts[fact.NORM], norm)

    def note_heavy(self, state: State, most: float) -> None:
        """A label was given a step that is so large, times its weight; weights so far may have been 1."""
        if not len(state.heaviest_step):
            facts = state.facts
            state.add_column("heaviest_step")[0] = facts[fact.STEP_HIGH] * facts[fact.HEAVIEST]
        state.heaviest_step[0] = max(state.heaviest_step[0], most)

    def _follow_many(
        self, state: State, given: tuple[Floats, Floats], posts: Ints, rows: tuple[Ints, Ints], stats: LabelStats,
        new: object = (),
    ) -> None:  # fmt: skip
        facts, low, high = state.facts, stats.low, stats.high
        if not len(state.path):
            known = facts[fact.STEP_HIGH]
            if low == high and known in (0.0, low) and facts[fact.STEP_LOW] >= low:
                return
            # Labels before the first change are as those before them, wherever a run or a batch of events begins.
            etas = given[0][posts]
            known = known or float(etas[0])
            same = int(np.argmax(etas != known)) if (etas != known).any() else len(etas)
            self.start_path(state, known, new, alike(posts[:same], rows, given[1]))
            posts = posts[same:]
        self.start_steps(state)
        kept = StepTotals(*map(state.view, StepTotals._fields))
        run_loop(followed, (kept,), (*given, *unsigned(posts, *rows)), len(given[0]))

    # Columns that are kept only once they are needed

    def start_lateness(self, state: State, cells: Sequence[int] = ()) -> None:
        """Begin to keep lateness: so far every label was at once, so all follows from how many there were.

        The first late one is in ``cells``.
        """
        made = self.prompt_lateness(state, slice(None), cells)
        state.add_column("late")
        state.view("late").reshape(-1, LATENESS)[:] = made

    def prompt_lateness(self, state: State, cells: object, late: Sequence[int] = ()) -> Any:
        """The lateness of cells all of whose labels came at once, but that of the cells ``late``."""
        labels, counted = self._labels(state, late, cells), state.view("rows")[cells] > 0.0
        counted[list(late)] = True
        return prompt_cells(labels * counted)

    def _labels(self, state: State, new: Any, cells: Any = slice(None)) -> Any:
        """How many labels each parameter had before those at ``new``, which may be in the accounts already."""
        labels = state.view("sums")[:: self.stride][cells]
        if len(new) and not state.later:
            labels = labels.copy()
            np.subtract.at(labels, np.asarray(new), 1.0)
        return labels

    def start_path(self, state: State, eta: float, new: object = (), same: Alike | None = None) -> None:
        """Begin to follow steps: before the labels at ``new``, and for ``same`` of these, each was ``eta``."""
        labels, heaviest = self._labels(state, new), state.facts[fact.HEAVIEST]
        if same is not None:
            labels = labels.copy()
            np.add.at(labels, same.params, 1.0)
            heaviest = max(heaviest, float(same.weights.max(initial=0.0)))
        learned = labels > 0.0
        if state.later:
            weights = state.view("sums")[WEIGHT :: self.stride].copy()
            whole = np.array([state.total[WEIGHT] if hasattr(state, "total") else 0.0])
            if same is not None:  # added one by one, as to the accounts
                np.add.at(weights, same.params, same.weights)
                np.add.at(whole, np.zeros(len(same.rows), dtype=np.int64), same.rows)
            mass = float(whole[0]) if hasattr(state, "total") else float(weights.sum())
        else:  # games, whose weights are in the accounts already: none is above the largest
            weights, mass = labels * heaviest, 0.5 * float(labels[1:].sum()) * heaviest
        for name in StepTotals._fields:
            state.add_column(name)
        if not (eta > 0.0 and learned.any()):
            return
        state.view("path").reshape(-1, PATH)[learned] = (1.0 / eta, 0.0, 1.0 / eta)
        state.view("total_path")[:] = (1.0 / eta, 0.0, 1.0 / eta)
        steps = state.view("steps").reshape(-1, STEPS)
        steps[:, MASS], steps[:, SQUARES] = eta * weights, (eta * eta * heaviest) * weights
        state.view("total_steps")[: SQUARES + 1] = eta * mass, (eta * eta * heaviest) * mass

    def start_steps(self, state: State) -> None:
        """Begin to add up the steps in a state that was kept before they were: what they were is not known."""
        if len(state.steps):
            return
        for path, steps in (("path", "steps"), ("total_path", "total_steps")):
            state.add_column(steps)
            learned = state.view(path).reshape(-1, PATH)[:, FIRST] > 0.0
            state.view(steps).reshape(-1, STEPS)[learned] = np.inf


def hear(silence: array[float], served: float) -> None:
    """A label came after this many rows; the wait for the very first label does not count as silence."""
    if silence[HEARD_AT] > 0.0:
        silence[SILENCE] = max(silence[SILENCE], served - silence[HEARD_AT])
    silence[HEARD_AT] = served


def too_large(kind: str, step: Any, w: Any, size: Any) -> Any:
    """Whether a row of weight w and squared norm ``size`` is too large for its step, or which of many rows are."""
    if kind == LABELS:
        return w >= HEAVY
    return (step * (w * size) >= 2.0) & ((kind == SQUARED) | (w > 1.0))


def smaller(kind: str, step: Any, w: Any, size: Any) -> Any:
    """The step of such a row, or of many."""
    if kind == LABELS:
        return ORDINARY * step / w
    return 1.0 / (w * size) if kind == SQUARED else np.maximum(1.0 / size, step) / w


def begin_weighing(state: State, names: Any) -> None:
    """Begin to keep the mean of weights: every row so far had weight 1."""
    state.add_column("mean_weight")
    state.add_column("weighed")
    rows = names.rows_by_key(state.view("rows"), state.number)
    state.view("weighed")[:] = rows
    state.view("mean_weight")[:] = rows > 0.0
    state.add_column("largest_weight")
    state.view("largest_weight")[::LARGEST] = rows > 0.0


def largest_weights(state: State) -> array[float]:
    """The largest weights by key, kept from now on in a state that was saved before they were."""
    if not state.largest_weight:
        state.add_column("largest_weight")
    found: array[float] = state.largest_weight
    return found


def weighed_otherwise(state: State, stride: int) -> bool:
    """Whether a state has learned from weights and keeps no mean of them: it was saved when weights were absolute.

    What it has learned stays as it is; the mean begins with the next row.
    """
    if len(state.weighed):
        return False
    own = getattr(state, "heard", ())
    if len(own) < 2:
        own = state.view("sums")
        rows, weights = own[ROWS::stride], own[WEIGHT::stride]
    else:
        rows, weights = np.array(own[ROWS]), np.array(own[WEIGHT])
    return bool(state.facts[fact.HEAVIEST] > 1.0 or (rows != weights).any())


def lateness(rows: Floats, cells: Sequence[int], counts: Sequence[float]) -> tuple[int, ...]:
    """How many rows of each cell were served since it had this count, the ticket's own included."""
    if len(counts) != len(cells):
        raise BadInput(FOREIGN)
    if len(cells) == 1 and rows[cells[0]] == counts[0]:
        return PROMPT
    own = zip(cells, counts)  # noqa: B905 - as many; a ticket of another replica may be ahead of this one
    return tuple([int(rows[j] - count) + AT_ONCE if rows[j] > count else AT_ONCE for j, count in own])


def norm_of(values: Sequence[float]) -> float:
    """The squared norm of a row, added up from left to right."""
    total = 0.0
    for z in values:
        total = total + z * z
    return total
