"""What every layer is: a rule, the state it adds postings to, how late labels come, open tickets, and names.

    predict = open + keep the ticket          open: check, serve, count; a ticket is left behind
    update  = find the ticket + post          post: judge, add, settle; a posting is what the label added

``open`` and ``post`` are public: with them a caller may keep the tickets.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from gradeq.certificates.certificate import Window, certify, more_labels, window
from gradeq.certificates.reading import Terms, reading_of
from gradeq.engine import scalars
from gradeq.engine.label_stats import entered
from gradeq.engine.lateness import BOUNDED, Lateness
from gradeq.engine.scalars import is_missing
from gradeq.engine.tickets import id_of, ticket_of, warn_replaced
from gradeq.engine.validation import check_entry, check_kind
from gradeq.errors import BadInput, LabelConflict, UnknownTicket, warn_deprecated
from gradeq.inputs.arguments import as_float, as_shown
from gradeq.inputs.column_types import Column, ColumnLike
from gradeq.kernels.flight import LATENESS
from gradeq.layers.columns import Moment, moment
from gradeq.layers.internals import InputWarnings, Internals, Serve
from gradeq.layers.locking import Guarded, locked, set_attribute, together
from gradeq.layers.merging import check_partition, merge
from gradeq.layers.options import LateCap, LateLabels
from gradeq.layers.replay import Revisions, adopt_known, check_history, older, preview, relabel, replay, repost
from gradeq.layers.run import answer_many
from gradeq.layers.serialization import Saved, check_same_settings, layer_json, layer_repr
from gradeq.layers.waiting import advance, arrive, screen
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State, column
from gradeq.ledger.values import Place, Posting, Row, Ticket
from gradeq.numerics import SMALLEST
from gradeq.records import copy_with
from gradeq.rules.rule import LARGEST_FINITE, Rule, check_served, judged, with_step
from gradeq.schedules import Constant

if TYPE_CHECKING:
    from os import PathLike

    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.conformal import PredictionSet
    from gradeq.layers.run import Run
    from gradeq.report.figure import Figure

Id = str | int
RowArguments = tuple[Row, Place | None, Any, float]  # a row, its place if known, the prediction, the weight
ANY, NONE = (
    (-LARGEST_FINITE, LARGEST_FINITE),
    (LARGEST_FINITE, -LARGEST_FINITE),
)  # ranges of floats that need no further look


# What gradeq's own modules call; not a public interface.
INTERNAL = frozenset(
    (
        "internals", "pattern", "terms", "displayed", "validate_label", "validate_prediction",
        "label_column", "prediction_column",
    )
)  # fmt: skip


class Layer(Guarded, ABC):
    """What every layer is. The public members are the contract: code outside gradeq may use these and no others.

    Serve: ``predict``, ``predict_many``, ``peek`` (nothing is kept), ``open`` (the caller keeps the ticket).
    Learn: ``update``, ``update_many``, ``post`` (a ticket that the caller kept), ``skip``, ``correct``, ``repost``,
    ``advance``, ``expire``, ``forget``. Both at once, over columns: ``run``.
    Certify: ``equilibrium``, ``labels_until``, ``since``. Look: ``theta``, ``settings``, ``step``, ``steps``,
    ``in_flight``, ``ids``, ``log``, ``frozen``, ``plot``, ``report``.
    Control: ``freeze``, ``resume``, ``reset_in_flight``, ``lock``.
    Keep and join: ``to_json``, ``save``, ``copy``, ``merge``; a journal: ``replay``, ``preview``, ``adopt``.

    ``INTERNAL`` names what else has no underscore: for gradeq's own modules, without any promise. A subclass says
    what goes in (``validate_label`` and so on), which rule serves it, and what comes out (``displayed``).
    ``_labels``: floats from the first to the second are good labels; ``validate_label`` judges all others.
    ``_sizing``: what makes a row too large for its step (``engine.lateness``): its ticket then gets a smaller one.
    """

    kind: str
    shadow: bool = False
    _takes_auto: bool = False  # whether eta="auto" goes with its other options
    _labels: tuple[float, float] = NONE
    _sizing: str = BOUNDED
    _as_served: bool = False  # whether what is served is shown as it is
    _learns: Callable[[object], bool] | None = None  # whether a label is learned from; None: all are
    _internals_type = Internals
    internals: Internals  # for gradeq's own modules; not a public interface
    late_cap: LateCap

    def _build(self, rule: Rule, names: Any, late: LateLabels, cap: float) -> None:
        """Make the parts that serve and learn; ``cap``: the strength of ``late_cap="auto"``."""
        limit: float | None = None
        if isinstance(late.late_cap, str) and late.late_cap == "auto":
            limit = cap
        elif late.late_cap is not None:
            limit = as_float(late.late_cap) if isinstance(late.late_cap, (int, float)) else None
            if limit is None or not SMALLEST <= limit <= 1.0:
                raise BadInput(f"late_cap={as_shown(late.late_cap)}: give 'auto', None, or a number in (0, 1]")
        self.late_cap = float(late.late_cap) if isinstance(late.late_cap, float) else late.late_cap
        per = "key" if names.together else "parameter"
        lateness = Lateness(limit, late.in_flight, per, bool(getattr(names, "features", ())), rule.stride)
        columns = [*lateness.columns(), *rule.columns()]
        if names.clocked == "clock":
            columns.append(column("clock", names.clock_per, (0.0,), low=0.0))
        state = State(columns)
        state.grow(names.count, names.keys)
        state.later = rule.later
        plain = self.pattern.kind == "debias" and getattr(self.pattern, "link_name", "") == "identity"
        warnings = InputWarnings(plain)
        state.entering = partial(entered, rule, lateness, warnings.look)
        book = late.ticket_book(self.kind, self.validate_label)
        self.internals = self._internals_type(
            self.kind, rule, names, state, lateness, book, warnings, Revisions(), self._sizing,
            self._learns, self._as_served, self._takes_auto,
        )  # fmt: skip
        for name in ("_bases", "_labels", "bins"):
            if hasattr(self, name):  # events read it: of the class it would be slower
                setattr(self, name, getattr(self, name))
        self._made = True

    def __dir__(self) -> list[str]:
        public = (name for name in super().__dir__() if name[:1] != "_" or name[:2] == "__")
        return [name for name in public if name not in INTERNAL]

    @locked
    def __repr__(self) -> str:
        return layer_repr(self)

    @property
    def pattern(self) -> Layer:
        """The layer that every series of a ``Keyed`` has; of any other the layer itself."""
        return self

    # The verbs whose arguments differ from layer to layer

    @abstractmethod
    def predict(self, *args: Any, **options: Any) -> float | tuple[float, ...] | PredictionSet:
        """Serve one row; a ticket stays open until its label comes."""

    @abstractmethod
    def peek(self, *args: Any, **options: Any) -> float | tuple[float, ...] | PredictionSet:
        """What ``predict`` would serve now; nothing is counted or kept."""

    @abstractmethod
    def open(self, *args: Any, **options: Any) -> Ticket:
        """Serve one row and leave its ticket with the caller."""

    @abstractmethod
    def predict_many(self, *args: Any, **options: Any) -> ColumnLike:
        """Serve whole columns; every ticket stays open until its label comes."""

    @abstractmethod
    def run(self, *args: Any, **options: Any) -> Run[ColumnLike]:
        """Serve and learn from whole columns."""

    @property
    @abstractmethod
    def theta(self) -> Mapping[str, float | tuple[float, ...]]:
        """The parameters by name."""

    # The two verbs that everything rests on

    def _open(
        self, row: Row, place: Place | None, f: object, weight: float, id: Id | None = None,
        time: float | None = None, serve: Serve | None = None,
    ) -> Any:  # fmt: skip
        """Serve one row and keep its ticket: what the user sees.

        Without an id it replaces the ticket without an id that waits (of the same key), unless tickets queue.
        """
        book = self.internals.tickets
        if book.maturity:
            advance(self, time, serving=True)
        alone = id is None and not book.queue
        if alone and book.singles and not book.replaced and book.single(row[2]) is not None:
            warn_replaced(row[2])
        ticket, place = self.internals.issue(row, place, f, weight, serve)
        if alone:
            book.replace(ticket, time, place)
        else:
            book.put(ticket, id, time, place)
        if time is not None:
            book.expire(time)
        served = ticket[3]
        return served if self.internals.as_served and not self.shadow else self.displayed(f, served)

    def _ticket(self, row: Row, place: Place | None, f: object, weight: float, serve: Serve | None = None) -> Ticket:
        """Serve one row and leave its ticket with the caller."""
        ticket = ticket_of(self.internals.issue(row, place, f, weight, serve)[0])
        mark = self.internals.tickets.branches.give(ticket.number)
        return copy_with(ticket, branch=mark) if mark else ticket

    def _peek(self, row: Row, place: Place | None, f: object, time: Moment | None = None) -> Any:
        """What the user would see of this row; nothing is counted or kept, and new names are forgotten."""
        if time is not None and self.internals.tickets.maturity:
            twin = self.copy()  # at that time some of its labels are mature
            advance(twin, moment(time, twin.internals.tickets), serving=True)
            return twin._peek(row, place, f)
        mark, known = self.internals.names.mark(), place
        try:
            place = place or self.internals.enter(row)
            served, _, _ = self.internals.rule.serve(self.internals.state, place, row[1], f)
            check_served(served, self.step)
        finally:
            if known is None and self.internals.names.mark() != mark:
                self.internals.forget(mark)
        return self.displayed(f, served)

    def post(self, ticket: Ticket, y: object) -> Posting:
        """Learn from the label of a ticket: what it added. Nothing has changed if this raises.

        A label that comes while the layer is frozen is heard and moves nothing; one of weight 0 is not even counted.
        """
        with self.lock:
            check_kind(ticket, Ticket)
            y = self.validate_label(y)
            check_entry(self.internals.rule, ticket)
            self.internals.names.knows(ticket.row)
            check_history(self.internals, ticket, y)
            posting = self.internals.post_ticket(ticket, y)
            self.internals.tickets.branches.note_label(ticket.number, ticket.branch)
            return posting

    @locked
    def repost(self, posting: Posting, y: object) -> tuple[Posting, Posting]:
        """Replace the label of a posting: the old one taken back (sign -1), and the one put in its place.

        The new label gets the step of the old one, and teaches what was served and nothing else.
        """
        check_kind(posting, Posting)
        return repost(self, posting, self.validate_label(y))

    @locked
    def replay(self, journal: Iterable[Ticket | Posting]) -> None:
        """Do again what a journal of tickets and postings says was done, bit for bit; no ticket is kept."""
        for entry in scalars.iterable(journal, "journal", "tickets and postings"):
            replay(self, entry)

    @locked
    def preview(self, *args: object, **given: object) -> Ticket:
        """What ``open`` gives, of a layer that stays as it was: the row counts once ``adopt`` brings its label."""
        return preview(self, args, given)

    @locked
    def adopt(self, ticket: Ticket, y: object) -> Posting:
        """Learn from the label of a previewed ticket; nothing has changed if this raises.

        A layer whose tickets are previewed must not open others: lateness is counted in labels then, not in rows.
        """
        return adopt_known(self, ticket, y)

    # Events

    def update(self, y: object, id: Id | None = None, *, time: Moment | None = None) -> str:
        """Learn from a label: of the prediction with this id, or of the one without an id that waits for it.

        Returns ``applied``, or ``duplicate`` when the same label of the same id was posted before; another value
        for the same id raises ``LabelConflict``. ``None`` or nan: no label will come (see ``skip``). With
        ``maturity`` the label of a row that is not mature is kept until it is: ``waiting``. ``time``: when the label
        came; left out, the latest time that the layer has seen.
        """
        with self.lock:
            return self._update(y, id, time=time)

    def _update(
        self, y: object, id: Id | None = None, key: str | None = None, batch: bool = False,
        time: Moment | None = None,
    ) -> str:  # fmt: skip
        """``key``: of the prediction without an id; ``batch``: those of ``predict_many`` come first."""
        low, high = self._labels
        if type(y) is not float or not low <= y <= high:
            if is_missing(y):
                return self._skip(id, key, batch)
            y = self.validate_label(y)
        if id is not None and type(id) is not str and type(id) is not int:
            id = id_of(id)
        book = self.internals.tickets
        if id is not None and id not in book.by_id and (id in book.closed or id in book.waiting_ids):
            known = book.known_label(id)
            if known == y:
                return "duplicate"
            raise LabelConflict(
                f"id {id!r} already has the label {known!r}, not {y!r}; use correct(id, label) to change it"
            )
        opened = book.find(id, key, batch)
        if book.maturity or opened[0][0] != self.internals.state.number:
            outcome = None
            if book.maturity:
                outcome = arrive(self, opened, y, time)
            elif book.early is not None:
                outcome = screen(self, opened, y)
            if outcome is not None:  # the label is not to be learned now
                return outcome
        ticket, place, own, _ = opened
        posting = self.internals.post(ticket, place or self.internals.enter(ticket[1]), y)
        del book.opened[ticket[0]]
        book.close(ticket, own, posting)
        return "applied"

    @overload
    def update_many(
        self, labels: NDArray[Any], ids: ColumnLike | None = None, *, times: ColumnLike | None = None
    ) -> NDArray[np.object_]: ...
    @overload
    def update_many(
        self, labels: Sequence[object], ids: ColumnLike | None = None, *, times: ColumnLike | None = None
    ) -> Sequence[str]: ...
    @overload
    def update_many(
        self, labels: Column, ids: ColumnLike | None = None, *, times: ColumnLike | None = None
    ) -> Column: ...
    @locked
    def update_many(
        self, labels: ColumnLike, ids: ColumnLike | None = None, *, times: ColumnLike | None = None
    ) -> ColumnLike:
        """Learn from many labels in row order, as ``update`` does: the outcome of each row, in the labels' form.

        "applied", "duplicate", "conflict", "unknown", "expired", "waiting" (with ``maturity``), "dropped" (a tie that
        Elo drops), or "rejected" for an invalid label. ``times``: when each came, for a layer with ``maturity``.
        Without ``ids`` labels go to the oldest open predictions of ``predict_many``, and a missing one closes its
        prediction ("skipped"). A frame with columns ``label`` and ``id`` comes back with ``outcome``.
        """
        return answer_many(self._answer, labels, {"id": ids, "time": times})

    def _answer(self, y: object, id: Id | None = None, key: str | None = None, *, time: Moment | None = None) -> str:
        """A label of ``update_many``: one that is missing leaves a prediction with an id open."""
        if id is not None and is_missing(y):
            raise BadInput(f"label {y!r} is missing; skip(id) closes a prediction that gets none")
        return self._update(y, id, key, batch=True, time=time)

    @locked
    def correct(self, id: Id, y: object) -> str:
        """Replace the posted label of this id: the old posting is taken back, the new one put in its place.

        Bias, loss, certificate and the final step are what they would be had it come right, rounding apart. The
        running means of ``eta="auto"`` and the scale of link sinh heard the old label and forget it only gradually.
        """
        id, label = id_of(id), self.validate_label(y)
        book = self.internals.tickets
        number = book.waiting_ids.get(id)  # its label is known but not due: the new one waits in its place
        if id not in book.closed and number is None:
            raise UnknownTicket(f"id {id!r} has no posted label to correct (the last {book.remember:,} are kept)")
        old = book.closed[id] if number is None else book.waiting[number]
        if old.y == label and (number is not None or book.closed[id].sign >= 0.0):
            return "duplicate"
        if number is None:
            book.closed[id] = relabel(self, judged(self.internals.rule, book.closed[id]), label)
        else:
            book.waiting[number] = copy_with(book.waiting[number], y=label)
        return "corrected"

    @locked
    def expire(self, now: Moment) -> int:
        """Drop tickets older than ``ttl``; later labels for them are refused. Returns how many were dropped."""
        return len(self.internals.tickets.expire(moment(now, self.internals.tickets)))

    @locked
    def forget(self, id: Id) -> None:
        """Forget an id: its label is no longer waited for and cannot be corrected, and the id may come again."""
        self.internals.tickets.drop(id_of(id))

    def advance(self, time: Moment) -> int:
        """Tell a layer with ``maturity`` what time it is: labels of rows that are mature by now are learned.

        Returns how many. ``predict`` and ``update`` with a time do the same first.
        """
        with self.lock:
            return advance(self, moment(time, self.internals.tickets))

    @locked
    def skip(self, id: Id | None = None) -> str:
        """No label will come: close the prediction with this id, or the one without an id, and learn nothing.

        Returns ``skipped``, or ``duplicate`` for an id that was skipped or has expired; a label that comes later
        for a skipped id raises ``ExpiredTicket``. The row counts as served and never labelled.
        """
        return self._skip(id)

    def _skip(self, id: Id | None = None, key: str | None = None, batch: bool = False) -> str:
        book, own = self.internals.tickets, None if id is None else id_of(id)
        if own is not None and own in book.lapsed:
            return "duplicate"
        if own is not None and (own in book.closed or own in book.waiting_ids):
            raise LabelConflict(
                f"id {own!r} already has a label, so it cannot be skipped; use correct(id, label) to change it"
            )
        ticket, _, own, _ = book.find(own, key, batch)
        book.withdraw(ticket[0])
        if own is not None:
            book.lapse(own)
        return "skipped"

    @locked
    def reset_in_flight(self) -> None:
        """Forget how late labels came, from now on (logged); the late-label cap relaxes. The facts do not forget."""
        self.internals.note("reset_in_flight")
        self.internals.lateness.reset(self.internals.state)

    @locked
    def freeze(self) -> None:
        """Stop learning: labels close their tickets but move nothing, until ``resume``."""
        self.internals.frozen = True
        self.internals.note("freeze")

    @locked
    def resume(self) -> None:
        """Learn again."""
        self.internals.frozen = False
        self.internals.note("resume")

    @property
    @locked
    def frozen(self) -> bool:
        """Whether learning is stopped."""
        return self.internals.frozen

    def _take_step(self, schedule: Constant) -> None:
        """Use another step from now on; the steps that labels are given are followed, so bounds allow for it."""
        self.internals.note(f"step {self.internals.rule.schedule} to {schedule}")
        self.internals.rule = with_step(self.internals.rule, schedule)
        self.internals.constant_step = schedule.eta
        if hasattr(self, "eta"):
            set_attribute(self, "eta", schedule.eta)
            set_attribute(self, "schedule", schedule)

    # What a layer shows of itself

    @property
    @locked
    def ids(self) -> dict[Id, str]:
        """Every id that is remembered, and what became of it: "open", "closed" or "expired"."""
        book = self.internals.tickets
        closed = dict.fromkeys(book.closed, "closed") | dict.fromkeys(book.lapsed, "expired")
        return closed | dict.fromkeys(book.by_id, "open") | dict.fromkeys(book.waiting_ids, "open")

    @property
    @locked
    def traffic(self) -> dict[str, float]:
        """How many rows were served, labelled and still wait, and how late labels came.

        ``open``: tickets that wait now. ``peak``: the most that are known to have waited at once, since the layer was
        made or loaded. ``peak_lateness``: the largest recent lateness of a posted label in rows of its group, which the
        late-label cap goes by; open tickets have none yet. ``served``, ``labelled``: rows and labels so far.
        ``mean_delay``, ``longest_delay``: predictions served between a row and its label.
        """
        facts, late = self.internals.state.facts, self.internals.state.late
        posted = facts[fact.POSTED]
        tickets, latest = self.internals.tickets, int(max(late[::LATENESS])) if len(late) else 1
        waiting = len(tickets)
        return {
            "open": waiting,
            "peak": max(latest, waiting, tickets.most_open),
            "peak_lateness": latest,
            "served": int(facts[fact.SERVED]),
            "labelled": int(posted),
            "mean_delay": facts[fact.DELAY_SUM] / posted if posted else 0.0,
            "longest_delay": int(facts[fact.DELAY_MOST]),
        }

    @property
    @locked
    def in_flight(self) -> dict[str, float]:
        """The old name of ``traffic``; it goes with the next version. (The argument ``in_flight`` stays.)"""
        warn_deprecated("layer.in_flight", "layer.traffic")
        return self.traffic

    @property
    @locked
    def queue(self) -> bool:
        """Whether predictions without ids queue for their labels; else each replaces the one before it."""
        return self.internals.tickets.queue

    @property
    @locked
    def step(self) -> float:
        """The step that the schedule begins with; with ``auto`` that of the final layer."""
        rule = getattr(self.internals.rule, "final", None) or self.internals.rule
        return float(rule.schedule.step(1))

    @property
    @locked
    def steps(self) -> dict[str, float]:
        """The smallest and largest step of a label, how many were capped, and rows too large for their step."""
        facts = self.internals.state.facts
        low = facts[fact.STEP_LOW]
        return {
            "smallest": low if math.isfinite(low) else 0.0,
            "largest": facts[fact.STEP_HIGH],
            "capped": int(facts[fact.HELD]),
            "resized": int(facts[fact.RESIZED]),
        }

    @property
    @locked
    def log(self) -> list[tuple[str, int]]:
        """What was done by hand (freeze, resume, steps, resets), each with the predictions served by then."""
        return list(self.internals.log)

    @locked
    def plot(self, run: Run[ColumnLike] | None = None) -> Figure:
        """A matplotlib figure: errors before and after with their bounds; with a ``run`` of it, over time too."""
        from gradeq.report.figure import figure_of

        return figure_of(self, run)

    @locked
    def report(self, path: str | PathLike[str], run: Run[ColumnLike] | None = None) -> None:
        """Write the command line's HTML page of this layer; what only rows can show needs a ``run`` of this layer."""
        from gradeq.files.paths import write_text
        from gradeq.report.layer_story import page_of

        write_text(path, [page_of(self, run)])

    @property
    @abstractmethod
    def settings(self) -> Saved:
        """The arguments that make this layer anew."""

    @property
    def terms(self) -> Terms:
        """What certificates need to know of this layer."""
        raise NotImplementedError

    @locked
    def equilibrium(self) -> Equilibrium:
        """Exact averages, the certificate from the state, the proven bound, and whether it is vacuous."""
        found = certify(self)
        self.internals.warnings.warn()
        return found

    @locked
    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this, if things go on as they were."""
        return more_labels(reading_of(self), scalars.bound(bound))

    def since(self, earlier: Self) -> Window:
        """The averages over the labels posted since an earlier state of this layer, exactly, from the two states.

        A label counts as it is now: corrected ones with their last value. What was corrected of labels from before
        the earlier state is left out. A ticket kept by its caller counts as posted by then if it was served by then.
        """
        if type(earlier) is not type(self):
            raise BadInput(
                f"since takes an earlier {type(self).__name__}, a copy or one read back, not {type(earlier).__name__}"
            )
        with together(self, earlier):
            check_same_settings(self, earlier)
            last = reading_of(self)
            skipped = self.internals.names.count - len(last.names)
            return window(reading_of(earlier), last, older(self, earlier), skipped)

    @abstractmethod
    def validate_label(self, y: object) -> Any:
        """The label, checked."""

    def displayed(self, f: Any, served: Any) -> Any:
        """What the user sees: the served value, or the raw one in shadow mode."""
        return f if self.shadow else served

    @locked
    def to_json(self) -> str:
        """The whole layer as one line of JSON: settings, state, open tickets, checksum."""
        return "".join(layer_json(self))

    @locked
    def save(self, path: str | PathLike[str]) -> None:
        """Write the layer to a file, whole or not at all."""
        from gradeq.files.paths import write_text

        write_text(path, chain(layer_json(self), "\n"))

    @locked
    def copy(self) -> Self:
        """An independent copy, state included."""
        return deepcopy(self)

    def merge(self, other: Self) -> None:
        """Join the state of another partition of the same stream: sums add up; open tickets come along.

        Both began fresh with the same settings. Where one has served from parameters that the other has learned
        about, no single run did that, so no bound is printed any more (the certificate stays exact). Merge each
        partition once: rows with ids are refused the second time, others cannot be told apart.
        """
        check_partition(self, other)
        with together(self, other):
            merge(self, other)
