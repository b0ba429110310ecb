"""The state of a layer: named columns of sums. Growing, saving, undoing and merging follow from them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.errors import StateError

VANISHING = 1e-250  # a product is scaled before one of its factors is rounded to nothing
FAINTEST = 1e-150  # of the largest, what every share keeps, so that none is lost for good


def product(one: Any, other: Any, start: Any) -> Any:
    """The shares of both, once those that both began with are counted; who has only begun changes no bit."""
    if (one == start).all() or (other == start).all():
        return other if (one == start).all() else one
    factors = other / start
    found = one * factors
    if found.min() < VANISHING:
        one, factors = one / one.max(), factors / factors.max()
        found = np.maximum(one, FAINTEST) * np.maximum(factors, FAINTEST)
        found = np.maximum(found / found.max(), FAINTEST)
    return found


Floats = Any
Enter = Callable[["State", list[Any]], None]

# How two partitions are joined: sums add up, ranges widen, a displacement is added to the common start, of means the
# mean is taken, weighted by another column, factors of the common start are multiplied; what names an entry is kept.
SUM, LEAST, MOST, MOVE, MEAN, TIMES, KEEP = "sum", "least", "most", "move", "mean", "times", "keep"


SHORT = 100_000  # numbers
ACCOUNTS = ("sums", "total", "gaps")  # columns that nobody needs to serve or to learn
ENDLESS = (
    *ACCOUNTS,
    "facts",
    "limited",
    "total_limited",
    "steps",
    "total_steps",
    "mix_squares",
    "total_mix_squares",
)  # columns that may hold infinite numbers
# entered when somebody looks
LOOKED_AT = (*ACCOUNTS, "facts", "silence", "path", "total_path", "steps", "total_steps")
AT_ONCE = 1 << 10  # new entries; more of them are not made first and then copied
CACHED = 1 << 13  # entries; all columns of so many are joined while they are in the cache
HUGE = 1e306  # numbers of a state are smaller, those apart that may be infinite
MOVES = (2, 3)  # of an account: the sums of gradients and of moves
SERVED = 0  # the first fact: predictions served
UNREAD = 65_536  # games that wait until a leaderboard is read; columns of them take less room
LEFT = 17  # what is left of each label: the fields of its posting, its place, and the rows served by then
FULL = LEFT << 11  # what is left of so many that they are entered
FACTS_KNOWN = -1  # stands for the rows served by then where a label is for the accounts alone


class Column(NamedTuple):
    """A declared column: ``start`` are the numbers of a new entry, ``merge`` says how each is joined.

    ``per``: "parameter", "key", "pair" (of parameters that met: ``meetings``) or "layer". ``lazy``: kept only
    once it is needed; until then it is empty. ``last``: where it is long, a run writes it when nothing can fail any
    more, so it need not be undone. ``by``: the column of weights of a mean, declared after it; it has as many,
    or one. ``low``: no number is smaller (one for all, or one each). ``later``: states were kept before it came; in
    those it begins when they are read, with ``unknown`` where what it was before counts.
    """

    name: str
    per: str
    start: tuple[float, ...]
    merge: tuple[str, ...]
    lazy: bool = False
    last: bool = False
    by: str = ""
    low: float | tuple[float, ...] = -math.inf
    later: bool = False
    unknown: float = 0.0


def column(
    name: str, per: str, start: Iterable[float], merge: str = SUM, lazy: bool = False, by: str = "",
    low: float = -math.inf,
) -> Column:  # fmt: skip
    """A column all of whose numbers are joined the same way."""
    values = tuple(start)
    return Column(name, per, values, (merge,) * len(values), lazy, by=by, low=low)


class Memory(NamedTuple):
    """What a state was before a run: its counts, and of each column all or the entries in question."""

    counts: dict[str, int]
    kept: dict[str, tuple[Any, Any, Any]]
    unread: list[Any]


def looked_at(name: str) -> Any:
    """A column that is up to date when it is looked at."""
    stored = f"_{name}"
    look, account = attrgetter(stored), name in ACCOUNTS

    def get(state: State) -> Any:
        if state.log and (state.later or not account):
            state.catch_up()
        return look(state)

    return property(get, lambda state, values: setattr(state, stored, values))


def counted(state: State) -> Any:
    """The facts, up to date."""
    state.catch_up()
    state.raw_facts[SERVED] = state.number
    return state.raw_facts


def recount(state: State, facts: Floats) -> None:
    state.raw_facts, state.number = facts, int(facts[SERVED])


class State:
    """Columns of float64 by name, as attributes; ``counts`` says how many parameters, keys and pairs there are.

    ``index``: where pairs are, found again from their columns whenever it has not all of them (``meetings``).
    ``log``: the labels that were learned from and are not yet in facts and accounts, which serving and
    learning do not need: ``entering`` puts them there, many at a time, when one of them is read. ``later``: accounts
    wait for that too.
    ``number``: that of the last prediction, which is the first of the facts and alone needed at every event.
    ``unread``: games that wait until a leaderboard is read; ``enter`` puts them into its columns.
    """

    def __init__(self, columns: Sequence[Column], enter: Enter | None = None) -> None:
        self.columns, self.enter = tuple(columns), enter
        self.unread: list[Any] = []
        self.counts = {"parameter": 0, "key": 0, "pair": 0, "layer": 1}
        self.index: dict[tuple[float, float, float], int] = {}
        self.log: list[Any] = []
        self.entering: Enter | None = None
        self.later, self.number = False, 0
        self.undoable = True  # False: whoever holds it drops it when a run fails
        self.farthest = 0.0  # a residual that was seen: none of the largest is known to be smaller
        for each in self.columns:
            initial = each.start if each.per == "layer" and not each.lazy else ()
            setattr(self, each.name, array("d", initial))

    if TYPE_CHECKING:  # columns are attributes; at run time this would make each of them slow to read

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: object) -> None: ...

    else:
        sums, total, gaps = looked_at("sums"), looked_at("total"), looked_at("gaps")
        facts, silence = property(counted, recount), looked_at("silence")
        path, total_path = looked_at("path"), looked_at("total_path")
        steps, total_steps = looked_at("steps"), looked_at("total_steps")

    def catch_up(self) -> None:
        if self.log:
            left, self.log = self.log, []
            assert self.entering is not None
            self.entering(self, left)

    def wait(self, game: tuple[float, ...]) -> None:
        """Leave a game until a leaderboard is read."""
        self.unread.append(game)
        if len(self.unread) > UNREAD:
            self.read()

    def clear_empty_accounts(self, parameters: Sequence[int], size: int) -> None:
        """Drop what rounding left in accounts of this ``size`` whose labels were all taken back.

        The sums of gradients and moves stay: they account for every move of u. A sum that is not finite stays for
        ``lost`` to see.
        """
        self.catch_up()
        for each in self.columns:
            if each.name not in ("sums", "total"):
                continue
            width, entries = len(each.start), parameters if each.name == "sums" else (0,)
            of_account = size if width % size == 0 else width  # that of all games is longer than the others
            places = [
                c for c, how in enumerate(each.merge) if how not in (LEAST, MOST) and c % of_account not in MOVES
            ]
            sums, start = self.view(each.name).reshape(-1, width), np.array(each.start)[places]
            for j in entries:
                if sums[j, 0] == 0.0:
                    sums[j, places] = np.where(np.isfinite(sums[j, places]), start, sums[j, places])
        for name, entries in (("mix_squares", parameters), ("total_mix_squares", (0,))):
            if hasattr(self, name):
                squares = getattr(self, name)
                for j in entries:
                    squares[j] = max(squares[j], 0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self.counts == other.counts and self.saved() == other.saved()

    __hash__ = None  # type: ignore[assignment]

    def read(self) -> State:
        """The state with nothing left to enter."""
        self.catch_up()
        if self.unread:
            left, self.unread = self.unread, []
            assert self.enter is not None
            self.enter(self, left)
        return self

    def grow(self, parameters: int, keys: int = 1, pairs: int = 0) -> None:
        """Room for this many parameters, keys and pairs in all; new ones have their initial values."""
        for per, count in (("parameter", parameters), ("key", keys), ("pair", pairs)):
            more = count - self.counts[per]
            if more <= 0:
                continue
            self.counts[per] = count
            for each in self.columns:
                if each.per != per:
                    continue
                stored = f"_{each.name}" if each.name in LOOKED_AT else each.name
                values = getattr(self, stored)
                if not each.lazy or len(values):
                    piece = array("d", each.start) * min(more, AT_ONCE)
                    try:
                        for _ in range(more // AT_ONCE):
                            values.extend(piece)
                        values.extend(piece[: more % AT_ONCE * len(each.start)])
                    except BufferError:  # a view of it exists: a traceback has one
                        setattr(self, stored, values + array("d", each.start) * more)

    def shrink(self, parameters: int, keys: int) -> None:
        """Forget what was grown beyond these counts."""
        counts = {**self.counts, "parameter": parameters, "key": keys}
        for each in self.columns:
            if counts[each.per] < self.counts[each.per]:
                kept = getattr(self, each.name)[: counts[each.per] * len(each.start)]
                setattr(self, each.name, kept)
        self.counts = counts

    def remember(self, parameters: Any, keys: Any) -> Memory:
        """What a run over these parameters and keys may change, so that it can be undone.

        None means all of them. Of a long column only the entries in question are copied.
        """
        wanted = {"parameter": parameters, "key": keys, "layer": None}
        few: dict[str, Any] = {}
        for per, places in wanted.items():
            if places is not None and 4 * len(places) < self.counts[per]:
                # New ones have nothing to remember; the last entry stands in for them.
                own = np.asarray(places, dtype=np.int64)
                few[per] = np.minimum(own, self.counts[per] - 1)
        kept: dict[str, tuple[Any, Any, Any]] = {}
        for each in self.columns:
            values = getattr(self, each.name)
            # Pairs are entered when they are read, never by a run.
            if each.per == "pair" or (each.last and not self.remembers(each.name)):
                kept[each.name] = (values, np.empty(0, dtype=np.int64), np.empty(0))
            elif each.per in few and len(values):
                own = self._table(each).take(few[each.per], axis=0, mode="clip")  # quickest
                kept[each.name] = (values, few[each.per], own)
            else:
                kept[each.name] = (values, None, values[:])
        return Memory(dict(self.counts), kept, self.unread[:])

    def _table(self, each: Column) -> Any:
        """A column by entry: a number, or a row of them (numbers alone are picked much quicker)."""
        flat = self.view(each.name)
        return flat if len(each.start) == 1 else flat.reshape(-1, len(each.start))

    def remembers(self, name: str) -> bool:
        """Whether a run may write a ``last`` column as it goes: a short one is remembered like the others."""
        return len(getattr(self, name)) <= SHORT

    def lost(self, memory: Memory) -> bool:
        """Whether a number of what was remembered is none any more: infinity was taken from infinity."""
        for each in self.columns:
            _, places, kept = memory.kept[each.name]
            now = self.view(each.name) if places is None else self._table(each)[places]
            if np.isnan(now).any() and not np.isnan(kept).any():
                return True
        return False

    def undo(self, memory: Memory) -> None:
        """Be again what was remembered."""
        self.log = []  # labels that came later: to remember was to look
        for each in self.columns:
            values, places, kept = memory.kept[each.name]
            if places is None:
                setattr(self, each.name, kept)
                continue
            length = memory.counts[each.per] * len(each.start)
            setattr(self, each.name, values if len(values) == length else values[:length])
            if len(places):
                self._table(each)[places] = kept
        self.counts, self.unread = dict(memory.counts), memory.unread

    def has_column(self, name: str) -> bool:
        return len(getattr(self, name)) > 0

    def add_column(self, name: str) -> Any:
        """Add a lazy column, every entry at its initial value."""
        each = next(each for each in self.columns if each.name == name)
        values = array("d", each.start) * self.counts[each.per]
        setattr(self, name, values)
        return values

    def view(self, name: str) -> Any:
        return np.frombuffer(getattr(self, name))

    def saved(self) -> dict[str, Any]:
        """All columns, ready for the codec."""
        self.read()
        columns = ((each, getattr(self, each.name)) for each in self.columns)
        return {e.name: values for e, values in columns if len(values) or not (e.lazy and e.later)}

    def restore(self, saved: dict[str, Any], parameters: int, keys: int) -> None:
        """Take up saved columns; their lengths must be what the counts say."""
        counts = {"parameter": parameters, "key": keys, "pair": 0, "layer": 1}
        begun = {
            e.name: array("d", (e.unknown,) * len(e.start) if e.unknown else e.start)
            * (0 if e.lazy else counts[e.per])
            for e in self.columns
            if e.later
        }
        saved = begun | saved
        if set(saved) != {each.name for each in self.columns}:
            raise StateError("the state is damaged: its columns are not those of this layer")
        for each in self.columns:
            if each.name == "met":  # nobody else knows how many pairs there are
                counts["pair"] = len(saved[each.name]) // len(each.start)
            values, wanted = saved[each.name], counts[each.per] * len(each.start)
            if not isinstance(values, array) or values.typecode != "d":
                raise StateError(f"the state is damaged: {each.name} is not a column of numbers")
            if len(values) != wanted and not (each.lazy and not len(values)):
                raise StateError(f"the state is damaged: {each.name} has {len(values)} numbers, not {wanted}")
            numbers = np.frombuffer(values)
            endless = each.name in ENDLESS  # ranges before the first label, and losses
            low = np.resize(each.low, len(numbers))
            if not ((numbers >= low) & (endless | (np.abs(numbers) <= HUGE))).all():
                raise StateError(f"the state is damaged: {each.name} holds a number it cannot")
        for each in self.columns:
            setattr(self, each.name, saved[each.name])
        self.counts, self.unread, self.log = counts, [], []

    def copy(self, memo: object = None) -> State:
        """An independent copy."""
        twin = State(self.columns, self.enter)
        for each in self.columns:
            setattr(twin, each.name, getattr(self, each.name)[:])
        twin.counts, twin.unread = dict(self.counts), self.unread[:]
        twin.entering, twin.later = self.entering, self.later
        return twin

    __deepcopy__ = copy

    def gathered(self, own: object, places: object, count: int) -> State:
        """The parameters ``own`` (None: all) joined into ``count`` at ``places``, as if they had been one layer's."""
        twin = State(self.columns)
        twin.grow(count, 1)
        for each in self.columns:
            values = getattr(self, each.name)
            if not len(values) or each.per in ("key", "pair"):
                continue
            if each.per == "layer":
                setattr(twin, each.name, values[:])
                continue
            if not twin.has_column(each.name):
                twin.add_column(each.name)
            table = self.view(each.name).reshape(-1, len(each.start))
            mine = twin.view(each.name).reshape(-1, len(each.start))
            _join(mine, table if own is None else table[own], places, each)
        return twin

    def merge(self, other: State, parameters: Sequence[int], keys: Sequence[int], pairs: Sequence[int] = ()) -> None:
        """Add the state of another partition; ``parameters``, ``keys`` and ``pairs`` are where its entries are here.

        Room must have been made (``grow``). Sums commute, so the order of merging does not show but in rounding.
        """
        if [each.name for each in other.columns] != [each.name for each in self.columns]:
            raise StateError("these states keep other columns; merge layers of the same settings")
        places = {
            "parameter": np.asarray(parameters, dtype=np.int64),
            "key": np.asarray(keys, dtype=np.int64),
            "pair": np.asarray(pairs, dtype=np.int64),
            "layer": np.zeros(1, dtype=np.int64),
        }
        for each in self.columns:
            theirs = getattr(other, each.name)
            if not len(theirs):
                continue
            if not self.has_column(each.name):
                self.add_column(each.name)
            width = len(each.start)
            mine = self.view(each.name).reshape(-1, width)
            added = np.array(theirs).reshape(-1, width)
            at = places[each.per]
            if each.by:
                weights = np.array(getattr(other, each.by)).reshape(len(at), -1)
                total = self.view(each.by).reshape(len(mine), -1)[at] + weights
                share = np.divide(weights, total, out=np.zeros_like(total), where=total > 0.0)
                mine[at] = mine[at] + (added - mine[at]) * share
            elif each.merge[0] == TIMES:
                mine[at] = product(mine[at], added, np.array(each.start))
            else:
                _join(mine, added, at, each)
            if each.name == "facts":
                self.facts = self.raw_facts


def _join(mine: Any, added: Any, at: Any, each: Column) -> None:
    """Join entries into those at ``at``, which may stand there more than once."""
    for first in range(0, len(at), CACHED):
        part = slice(first, first + CACHED)
        new, places = added[part], at[part]
        for c, how in enumerate(each.merge):
            if how == LEAST:
                np.minimum.at(mine[:, c], places, new[:, c])
            elif how == MOST:
                np.maximum.at(mine[:, c], places, new[:, c])
            elif how != KEEP:
                own = new[:, c] - each.start[c] if how == MOVE else new[:, c]
                with np.errstate(over="ignore"):  # of losses, which may be squares of anything
                    np.add.at(mine[:, c], places, own)
