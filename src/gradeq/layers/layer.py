"""What every layer is: a rule, the state it adds postings to, how late labels come, open tickets, and names.

    predict = open + keep the ticket          open: check, serve, count; a ticket is left behind
    update  = find the ticket + post          post: judge, add, settle; a posting is what the label added

``open`` and ``post`` are public: with them a caller may keep the tickets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from gradeq import codec
from gradeq.certificate import certify, more_labels
from gradeq.certificate_reading import reading_of
from gradeq.engine import checks
from gradeq.engine.checks import is_missing
from gradeq.engine.columns import Columns, Engine, Ran, carried_over, run_columns
from gradeq.engine.flight import BOUNDED, ONE, SQUARED, Flight, lateness, norm_of
from gradeq.engine.sound import check_entry, check_kind
from gradeq.engine.tickets import Book, Fields, Opened, id_of, ticket_of, warn_replaced
from gradeq.engine.told import entered
from gradeq.errors import BadInput, LabelConflict
from gradeq.layers.answering import Answering
from gradeq.layers.columns import Moment, moment
from gradeq.layers.doubts import Doubts
from gradeq.layers.early import screen
from gradeq.layers.guard import holds_lock, together
from gradeq.layers.joining import check_partition, merge
from gradeq.layers.journal import adopt_known, check_history, preview, replay, repost
from gradeq.layers.making import (
    check_same_settings,
    described,
    saved_settings,
    time_to_live,
)
from gradeq.layers.maturity import advance, arrive
from gradeq.layers.revisions import Revisions, older
from gradeq.layers.showing import Showing
from gradeq.ledger import facts as fact
from gradeq.ledger.state import FULL, State, column
from gradeq.ledger.values import Place, Posting, Row, Ticket, new
from gradeq.rules.rule import MOST, Rule, check_served, judged, with_step
from gradeq.schedules import Constant
from gradeq.windows import Window, window

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium

Id = str | int
Asked = tuple[
    Row, Place | None, Any, float
]  # a row, its place if known, the prediction, the weight
set_attribute = object.__setattr__  # quicker at events than an assignment, which is checked
ANY, NONE = (-MOST, MOST), (MOST, -MOST)  # ranges of floats that need no further look


class Layer(Showing, Answering, ABC):
    """A layer: subclasses say what goes in, which rule serves it, and what comes out.

    ``_labels``: floats from the first to the second are good labels; all others are for ``_label`` to judge.
    ``_sizing``: what makes a row too large for its step (``engine.flight``): its ticket then gets a smaller one.
    """

    kind: str
    shadow: bool = False
    _takes_auto: bool = False  # whether eta="auto" goes with its other options
    _labels: tuple[float, float] = NONE
    _sizing: str = BOUNDED
    _as_served: bool = False  # whether what is served is shown as it is
    _learns: Any = None  # whether a label is one to learn from at all; None: every one is
    _made: bool = False  # from then on settings are fixed
    _keyed: bool = False  # whether it is the pattern of the keys of a ``Keyed``

    def _build(
        self,
        rule: Any,
        names: Any,
        limit: float | None,
        in_flight: int,
        ttl: float | str | None,
        queue: bool,
    ) -> None:
        """Make the parts that serve and learn."""
        ttl = time_to_live(ttl)
        self._rule: Rule = rule
        self._names = names
        self._constant = rule.schedule.eta if type(rule.schedule) is Constant else None
        # Steps of rows of weight 1 and known size were checked when the layer was made.
        known = self._constant is not None and not getattr(names, "features", ())
        self._sized = known or self._sizing != SQUARED
        per = "key" if names.together else "parameter"
        featured = bool(getattr(names, "features", ()))
        self._flight = Flight(limit, in_flight, per, featured, rule.stride)
        columns = [*self._flight.columns(), *rule.columns()]
        self._ticking = names.clocked == "clock"
        if self._ticking:
            columns.append(column("clock", names.clock_per, (0.0,), low=0.0))
        self._state = State(columns)
        self._state.grow(names.count, names.keys)
        self._state.later = rule.later
        own: Any = getattr(self, "layer", self)  # of many series: the one that they share
        self._doubts = Doubts(own.kind == "debias" and own.link_name == "identity")
        self._state.entering = partial(entered, rule, self._flight, self._doubts.look)
        self._book = Book(ttl, queue=checks.flag(queue, "queue"))
        self._frozen = False
        for name in ("_as_served", "_bases", "_labels", "_learns", "bins"):
            if hasattr(self, name):  # events read it: of the class it would be slower
                setattr(self, name, getattr(self, name))
        self._log: list[tuple[str, int]] = []
        self._revisions = Revisions()
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and self._made:
            value = self._change(name, value)
        set_attribute(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_"):
            self._refuse_change(name)
        super().__delattr__(name)

    def _change(self, name: str, value: Any) -> Any:
        """The new value of a public attribute, checked, where it may change: ``shadow`` alone may."""
        if name == "shadow" and "shadow" in signature(type(self)).parameters and not self._keyed:
            return checks.flag(value, "shadow")
        own = type(self).__module__.partition(".")[0] != "gradeq"  # a class of the user's
        if hasattr(self, name) or not own:
            self._refuse_change(name)
        return value

    def _refuse_change(self, name: str) -> None:
        kind = type(self).__name__
        remedy = f"make a new {kind}"
        if self._keyed:
            remedy = "change the Keyed that it belongs to"
        elif name in ("eta", "schedule", "step") and hasattr(self, "set_step"):
            auto = getattr(self, "eta", None) == "auto"
            remedy = remedy if auto else f"call set_step(eta), or {remedy}"
        elif name == "frozen":
            remedy = "call freeze() or resume()"
        known = hasattr(self, name)
        raise AttributeError(
            f"{name} of a {kind} is fixed once it is made; {remedy}"
            if known
            else f"a {kind} has no attribute {name} to set; {remedy}"
        )

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_") or name[:2] == "__"]

    def __repr__(self) -> str:
        return described(self)

    # The two verbs that everything rests on

    def _issue(
        self, row: Row, place: Place | None, f: Any, weight: float, serve: Any = None,
        relative: float | None = None,
    ) -> tuple[Fields, Place]:  # fmt: skip
        """Serve one row, checked before, and count it: its ticket and its place. Refused means unchanged.

        ``place`` is where it belongs, if that is known; ``serve`` stands for ``Rule.serve``, ``relative`` for the
        weight to learn with.
        """
        state, mark, step = self._state, None, self._constant
        if place is None:
            mark = self._names.mark()
            place = self._entered(row)
        try:
            if serve is None:
                served, memo, slopes = self._rule.serve(state, place, row[1], f)
            else:
                served, memo, slopes = serve(state, place, row[1], f)
            if step is None:
                t = int(getattr(state, self._names.clocked)[place.clock]) + 1
                step = self._rule.schedule.step(t)
            if type(served) is not float or served - served != 0.0:
                check_served(served, step)
        except Exception:
            self._forget(mark)
            raise
        given = weight
        if weight != 1.0 or state.weighed:
            weight = self._flight.weigh(state, self._names, place.key, given)
            if relative is not None:
                weight = relative
        if weight != 1.0 or not self._sized:
            size = norm_of(row.values) if self._flight.featured else self._names.size
            step = self._flight.limited(state, self._sizing, step, weight, size)
        if self._ticking:
            state.clock[place.clock] += 1.0
        number, counts = self._flight.serve(state, place[1])
        return (number, row, f, served, weight, step, counts, memo, slopes, given), place

    def _open(
        self, row: Row, place: Place | None, f: Any, weight: float, id: Id | None = None,
        time: float | None = None, serve: Any = None,
    ) -> Any:  # fmt: skip
        """Serve one row and keep its ticket: what the user sees.

        Without an id it replaces the ticket without an id that waits (of the same key), unless tickets queue.
        """
        book = self._book
        if time is not None and book.maturity:
            advance(self, time, serving=True)
        alone = id is None and not book.queue
        if alone and book.singles and not book.replaced and book.single(row[2]) is not None:
            warn_replaced(row[2])
        ticket, place = self._issue(row, place, f, weight, serve)
        if alone:
            book.replace(ticket, time, place)
        else:
            book.put(ticket, id, time, place)
        if time is not None:
            book.expire(time)
        served = ticket[3]
        return served if self._as_served and not self.shadow else self._shown(f, served)

    def _ticket(
        self, row: Row, place: Place | None, f: Any, weight: float, serve: Any = None
    ) -> Ticket:
        """Serve one row and leave its ticket with the caller."""
        ticket = ticket_of(self._issue(row, place, f, weight, serve)[0])
        mark = self._book.branches.give(ticket.number)
        return ticket._replace(branch=mark) if mark else ticket

    def _peek(self, row: Row, place: Place | None, f: Any, serve: Any = None) -> Any:
        """What the user would see of this row; nothing is counted or kept, and new names are forgotten."""
        mark, known = self._names.mark(), place
        try:
            place = place or self._entered(row)
            served, _, _ = (serve or self._rule.serve)(self._state, place, row[1], f)
            check_served(served, self.step)
        finally:
            if known is None and self._names.mark() != mark:
                self._forget(mark)
        return self._shown(f, served)

    def _entered(self, row: Row) -> Place:
        """Where a row belongs, its new names entered."""
        names = self._names
        place: Place = names.place(row)
        self._state.grow(names.count, names.keys)
        return place

    def _forget(self, mark: Any) -> None:
        """Forget the names entered since ``mark``, and their room in the state."""
        if mark is not None:
            self._names.forget(mark)
            self._state.shrink(self._names.count, self._names.keys)

    @holds_lock
    def post(self, ticket: Ticket, y: Any) -> Posting:
        """Learn from the label of a ticket: what it added. Nothing has changed if this raises.

        A label that comes while the layer is frozen is heard and moves nothing; one of weight 0 is not even counted.
        """
        with self._lock:
            check_kind(ticket, Ticket)
            y = self._label(y)
            check_entry(self._rule, ticket)
            self._names.knows(ticket.row)
            check_history(self, ticket, y)
            return self._posted(ticket, y)

    def _posted(self, ticket: Ticket, y: Any) -> Posting:
        row = ticket.row
        place, mark = self._names.known(row), None
        if place is None:  # a ticket of another replica may bring a new group
            mark = self._names.mark()
            place = self._entered(row)
        try:
            late = lateness(self._state.rows, place.cells, ticket.counts)
            return judged(self._rule, new(Posting, self._post(ticket[:10], place, y, late)))
        except Exception:
            self._forget(mark)
            raise

    def _post(
        self, ticket: Fields, place: Place, y: Any, late: tuple[int, ...] = (), told: Any = None
    ) -> Any:
        """Learn from a label: the fields of its posting, which is not judged yet.

        ``late`` left out: as late as the ticket says, which must be one of this layer's own. ``told``: the terms and
        the error of a label that was posted before.
        """
        state, flight = self._state, self._flight
        number, row, f, served, weight, step, _, memo, slopes, given = ticket[:10]
        now = state.number
        prompt = now == number and not late and not state.late  # at once, as all labels so far
        if told is not None:
            late, eta, sign, memo, error = told
        else:
            if prompt:
                late, eta = ONE * len(place[1]), step
            else:
                late, eta = flight.arrive(state, place, ticket, late)
            error, memo = self._rule.measure(served, f, y, memo)
            sign = 0.0 if self._frozen else 1.0
        posting: Any = (
            number, row, f, served, weight, step, eta, late, y, (), (), memo, slopes, sign, given,
        )  # fmt: skip
        if weight == 0.0:
            return posting
        if sign:
            self._rule.add(state, place, posting, error)
        if self._learns is not None and not self._learns(y):
            return posting
        if not sign:
            flight.skip(state, number)
            return posting
        if not prompt or flight.featured:
            flight.settle(state, place, late, row.values)
        log = state.log
        log += posting  # to be entered with others: see ``rules.entries``
        log += (place, now)
        if len(log) >= FULL:
            state.catch_up()
        return posting

    def repost(self, posting: Posting, y: Any) -> tuple[Posting, Posting]:
        """Replace the label of a posting: the old one taken back (sign -1), and the one put in its place.

        The new label gets the step of the old one, and teaches what was served and nothing else.
        """
        check_kind(posting, Posting)
        return repost(self, posting, self._label(y))

    def replay(self, journal: Iterable[Ticket | Posting]) -> None:
        """Do again what a journal of tickets and postings says was done, bit for bit; no ticket is kept."""
        for entry in checks.iterable(journal, "journal", "tickets and postings"):
            replay(self, entry)

    def preview(self, *args: Any, **given: Any) -> Ticket:
        """What ``open`` gives, of a layer that stays as it was: the row counts once ``adopt`` brings its label."""
        return preview(self, args, given)

    def adopt(self, ticket: Ticket, y: Any) -> Posting:
        """Learn from the label of a previewed ticket; nothing has changed if this raises.

        A layer whose tickets are previewed must not open others: lateness is counted in labels then, not in rows.
        """
        return adopt_known(self, ticket, y)

    # Events

    @holds_lock
    def update(self, y: Any, id: Id | None = None, *, time: Moment | None = None) -> str:
        """Learn from a label: of the prediction with this id, or of the one without an id that waits for it.

        Returns ``applied``, or ``duplicate`` when the same label of the same id was posted before; another value
        for the same id raises ``LabelConflict``. ``None`` or nan: no label will come (see ``skip``). With
        ``maturity`` the label of a row that is not mature is kept until it is: ``waiting``. ``time``: when the label
        came; left out, the latest time that the layer has seen.
        """
        with self._lock:
            return self._update(y, id, time=time)

    def _update(
        self, y: Any, id: Id | None = None, key: str | None = None, batch: bool = False,
        time: Moment | None = None,
    ) -> str:  # fmt: skip
        """``key``: of the prediction without an id; ``batch``: those of ``predict_many`` come first."""
        low, high = self._labels
        if type(y) is not float or not low <= y <= high:
            if is_missing(y):
                return self._skip(id, key, batch)
            y = self._label(y)
        if id is not None and type(id) is not str and type(id) is not int:
            id = id_of(id)
        book = self._book
        if id is not None and id not in book.by_id and (id in book.closed or id in book.held):
            return self._duplicate(y, id)
        opened = book.find(id, key, batch)
        if book.maturity or opened[0][0] != self._state.number:
            outcome = self._kept(opened, y, time)
            if outcome is not None:
                return outcome
        ticket, place, own, _ = opened
        posting = self._post(ticket, place or self._entered(ticket[1]), y)
        del book.opened[ticket[0]]
        book.close(ticket, own, posting)
        return "applied"

    def _kept(self, opened: Opened, y: Any, time: Moment | None) -> str | None:
        """What became of a label that is not to be learned yet; None if it is."""
        if self._book.maturity:
            return arrive(self, opened, y, time)
        return None if self._book.early is None else screen(self, opened, y)

    @holds_lock
    def advance(self, time: Moment) -> int:
        """Tell a layer with ``maturity`` what time it is: labels of rows that are mature by now are learned.

        Returns how many. ``predict`` and ``update`` with a time do the same first.
        """
        with self._lock:
            return advance(self, moment(time, self._book))

    def skip(self, id: Id | None = None) -> str:
        """No label will come: close the prediction with this id, or the one without an id, and learn nothing.

        Returns ``skipped``, or ``duplicate`` for an id that was skipped or has expired; a label that comes later
        for a skipped id raises ``ExpiredTicket``. The row counts as served and never labelled.
        """
        return self._skip(id)

    def _skip(self, id: Id | None = None, key: str | None = None, batch: bool = False) -> str:
        book, own = self._book, None if id is None else id_of(id)
        if own is not None and own in book.lapsed:
            return "duplicate"
        if own is not None and (own in book.closed or own in book.held):
            raise LabelConflict(
                f"id {own!r} already has a label, so it cannot be skipped; use correct(id, label) to change it"
            )
        ticket, _, own, _ = book.find(own, key, batch)
        book.withdraw(ticket[0])
        if own is not None:
            book.lapse(own)
        return "skipped"

    def reset_in_flight(self) -> None:
        """Forget how late labels came, from now on (logged); the late-label cap relaxes. The facts do not forget."""
        self._note("reset_in_flight")
        self._flight.reset(self._state)

    def freeze(self) -> None:
        """Stop learning: labels close their tickets but move nothing, until ``resume``."""
        self._frozen = True
        self._note("freeze")

    def resume(self) -> None:
        """Learn again."""
        self._frozen = False
        self._note("resume")

    @property
    def frozen(self) -> bool:
        """Whether learning is stopped."""
        return self._frozen

    def _note(self, what: str) -> None:
        self._log.append((what, int(self._state.facts[fact.SERVED])))

    def _take_step(self, schedule: Constant) -> None:
        """Use another step from now on; the steps that labels are given are followed, so bounds allow for it."""
        self._note(f"step {self._rule.schedule} to {schedule}")
        self._rule = with_step(self._rule, schedule)
        self._constant = schedule.eta
        if hasattr(self, "eta"):
            set_attribute(self, "eta", schedule.eta)
            set_attribute(self, "schedule", schedule)

    # Whole columns

    def _run(self, columns: Callable[[], Columns]) -> tuple[Ran, Columns]:
        """One pass over columns, made (and new names entered) by the function given; undone if anything raises."""
        state, names, book = self._state, self._names, self._book
        mark, now, memory = names.mark(), book.now, None
        try:
            made = columns()
            few = self._rule.penalty is None and 4 * len(made.base) < names.count
            params: Any = made.placed.rows.params if few else None
            keys: Any = made.placed.keys
            carried = [names.place(w.ticket.row) for w in carried_over(book, made.times)]
            if carried:
                keys = [*keys.tolist(), *(place.key for place in carried)]
            if carried and few:
                params = [*params.tolist(), *(j for place in carried for j in place.params)]
            memory = state.remember(params, keys) if state.undoable else None
            state.grow(names.count, names.keys)
            return run_columns(self._engine, made), made
        except Exception:
            names.forget(mark)
            if memory is not None:
                state.undo(memory)
            book.now = now
            raise

    @property
    def _engine(self) -> Engine:
        parts = (self._rule, self._state, self._flight, self._book, self._names)
        return Engine(*parts, self._frozen, self._sizing, self._names.size)

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""

    _terms: Any

    def equilibrium(self) -> Equilibrium:
        """Exact averages, the certificate from the state, the proven bound, and whether it is vacuous."""
        found = certify(self)
        self._doubts.warn()
        return found

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this, if things go on as they were."""
        return more_labels(reading_of(self), checks.bound(bound))

    @holds_lock
    def since(self, earlier: Self) -> Window:
        """The averages over the labels posted since an earlier state of this layer, exactly, from the two states.

        A label counts as it is now: corrected ones with their last value. What was corrected of labels from before
        the earlier state is left out. A ticket kept by its caller counts as posted by then if it was served by then.
        """
        if type(earlier) is not type(self):
            raise BadInput(
                f"since takes an earlier {type(self).__name__}, a copy or one read back, not "
                f"{type(earlier).__name__}"
            )
        with together(self, earlier):
            check_same_settings(self, earlier)
            last = reading_of(self)
            skipped = self._names.count - len(last.names)
            return window(reading_of(earlier), last, older(self, earlier), skipped)

    @abstractmethod
    def _label(self, y: Any) -> Any:
        """The label, checked."""

    def _shown(self, f: Any, served: Any) -> Any:
        """What the user sees: the served value, or the raw one in shadow mode."""
        return f if self.shadow else served

    def to_json(self) -> str:
        """The whole layer as one line of JSON: settings, state, open tickets, checksum."""
        return "".join(self._written())

    def _written(self) -> Iterator[str]:
        closed = self._book.closed
        for id, posting in closed.items():
            closed[id] = judged(self._rule, posting)
        learned = {"columns": self._state.saved(), "tickets": self._book.state()}
        done = {"frozen": self._frozen, "log": self._log}
        done |= self._revisions.state()
        settings = saved_settings(self.settings)
        return codec.written(self.kind, settings, self._names.state() | learned | done)

    def save(self, path: Any) -> None:
        """Write the layer to a file, whole or not at all."""
        from gradeq.files.atomic import write_text

        write_text(path, chain(self._written(), "\n"))

    def copy(self) -> Self:
        """An independent copy, state included."""
        return deepcopy(self)

    @holds_lock
    def merge(self, other: Self) -> None:
        """Join the state of another partition of the same stream: sums add up; open tickets come along.

        Both began fresh with the same settings. Where one has served from parameters that the other has learned
        about, no single run did that, so no bound is printed any more (the certificate stays exact). Merge each
        partition once: rows with ids are refused the second time, others cannot be told apart.
        """
        check_partition(self, other)
        with together(self, other):
            merge(self, other)
