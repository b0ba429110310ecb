"""The base of all layers: a rule, its state, lateness of labels, open tickets, and names of parameters.

    predict = open + store the ticket         open: check, serve, count; returns a ticket
    update  = find the ticket + post          post: judge, add, settle; returns a posting, what the label added

``open`` and ``post`` are public for callers that store the tickets themselves.
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
from gradeq.inputs.column_types import Column, ColumnLike
from gradeq.kernels.flight import LATENESS
from gradeq.layers.columns import Moment, moment
from gradeq.layers.internals import InputWarnings, Internals, Serve
from gradeq.layers.locking import Guarded, locked, set_attribute, together
from gradeq.layers.merging import check_partition, merge
from gradeq.layers.options import LateCap, LateLabels
from gradeq.layers.replay import Revisions, adopt_known, check_history, preview, relabel, replay, repost, revised_past
from gradeq.layers.run import answer_many
from gradeq.layers.serialization import Saved, arguments, check_same_settings, layer_json, layer_repr
from gradeq.layers.waiting import advance, arrive, screen
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State, column
from gradeq.ledger.values import Place, Posting, Row, Ticket
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
# Ranges of floats that need no further check: all finite ones, or none.
ANY = (-LARGEST_FINITE, LARGEST_FINITE)
NONE = (LARGEST_FINITE, -LARGEST_FINITE)

OPTIONAL = ("maturity", "missing_is", "k", "error")  # settings that are left out where they are None
# What gradeq's own modules call; not a public interface.
INTERNAL = frozenset(
    (
        "internals", "pattern", "terms", "displayed", "validate_label", "validate_prediction",
        "label_column", "prediction_column", "default_step",
    )
)  # fmt: skip


class Layer(Guarded, ABC):
    """The base of all layers. Code outside gradeq may use its public members and no others.

    Serve: ``predict``, ``predict_many``, ``peek`` (the layer does not change), ``open`` (returns the ticket).
    Learn: ``update``, ``update_many``, ``post`` (with a ticket of ``open``), ``skip``, ``correct``, ``repost``,
    ``advance``, ``expire``, ``forget``. Serve and learn, over columns: ``run``.
    Certify: ``equilibrium``, ``labels_until``, ``since``. Inspect: ``theta``, ``settings``, ``step``, ``steps``,
    ``traffic``, ``ids``, ``log``, ``frozen``, ``plot``, ``report``.
    Control: ``freeze``, ``resume``, ``reset_in_flight``, ``lock``.
    Save and combine: ``to_json``, ``save``, ``copy``, ``merge``; a journal: ``replay``, ``preview``, ``adopt``.

    The names in ``INTERNAL`` are for gradeq's own modules and may change. A subclass validates the input
    (``validate_label`` and so on), chooses the rule, and decides what the user sees (``displayed``).
    ``_labels``: floats in this range are valid labels; ``validate_label`` checks all others.
    ``_sizing``: which rows are too large for the step (``engine.lateness``) and get a smaller one.
    """

    kind: str
    shadow: bool = False
    _takes_auto: bool = False  # whether eta="auto" goes with the other options
    _labels: tuple[float, float] = NONE
    _sizing: str = BOUNDED
    _as_served: bool = False  # whether served values are displayed unchanged
    _learns: Callable[[object], bool] | None = None  # whether a label is learned from; None: all are
    _internals_type = Internals
    internals: Internals  # for gradeq's own modules; not a public interface
    late_cap: LateCap

    def _build(self, rule: Rule, names: Any, late: LateLabels, cap: float) -> None:
        """Build the parts that serve and learn; ``cap``: the strength of ``late_cap="auto"``."""
        limit = late.strength(cap)
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
            if hasattr(self, name):  # events read these: an attribute of the object is quicker than of the class
                setattr(self, name, getattr(self, name))
        self._built = True

    def __dir__(self) -> list[str]:
        public = (name for name in super().__dir__() if name[:1] != "_" or name[:2] == "__")
        return [name for name in public if name not in INTERNAL]

    @locked
    def __repr__(self) -> str:
        return layer_repr(self)

    @property
    def pattern(self) -> Layer:
        """The pattern of a ``Keyed``, else the layer itself."""
        return self

    # The verbs whose arguments differ from layer to layer

    @abstractmethod
    def predict(self, *args: Any, **options: Any) -> float | tuple[float, ...] | PredictionSet:
        """Serve one row; its ticket stays open until the label comes."""

    @abstractmethod
    def peek(self, *args: Any, **options: Any) -> float | tuple[float, ...] | PredictionSet:
        """What ``predict`` would serve now; the layer does not change."""

    @abstractmethod
    def open(self, *args: Any, **options: Any) -> Ticket:
        """Serve one row and return its ticket to the caller."""

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
        self, row: Row, place: Place | None, f: object, weight: float, id: Id | None, served_at: Moment | None,
        serve: Serve | None = None,
    ) -> Any:  # fmt: skip
        """Serve one row and store its ticket; without an id it replaces the last one, unless tickets queue."""
        book = self.internals.tickets
        if id is not None:
            id = book.check_new(id)
        time = None if served_at is None else moment(served_at, book)
        if book.maturity:
            advance(self, time, serving=True)
        replaces = id is None and not book.queue
        if replaces and book.singles and not book.replaced and book.single(row[2]) is not None:
            warn_replaced(row[2])
        ticket, place = self.internals.issue(row, place, f, weight, serve)
        if replaces:
            book.replace(ticket, time, place)
        else:
            book.put(ticket, id, time, place)
        if time is not None:
            book.expire(time)
        served = ticket[3]
        return served if self.internals.as_served and not self.shadow else self.displayed(f, served)

    def _ticket(self, row: Row, place: Place | None, f: object, weight: float, serve: Serve | None = None) -> Ticket:
        ticket = ticket_of(self.internals.issue(row, place, f, weight, serve)[0])
        mark = self.internals.tickets.branches.give(ticket.number)
        return copy_with(ticket, branch=mark) if mark else ticket

    def _peek(self, row: Row, place: Place | None, f: object, time: Moment | None = None) -> Any:
        """What the user would see of this row; new names are forgotten."""
        if time is not None and self.internals.tickets.maturity:
            twin = self.copy()  # which learns the labels that are mature at that time
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
        """Learn from the label of a ticket; returns what it added. If this raises, nothing has changed.

        While the layer is frozen, labels are counted but not learned from; labels of weight 0 are not even counted.
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
        """Replace the label of a posting; returns the reversal of the old one (sign -1) and the new posting.

        The new label gets the step of the old one.
        """
        check_kind(posting, Posting)
        return repost(self, posting, self.validate_label(y))

    @locked
    def replay(self, journal: Iterable[Ticket | Posting]) -> None:
        """Repeat a journal of tickets and postings, bit for bit; its tickets are not stored."""
        for entry in scalars.iterable(journal, "journal", "tickets and postings"):
            replay(self, entry)

    @locked
    def preview(self, *args: object, **options: object) -> Ticket:
        """The ticket that ``open`` would return; the row is counted once ``adopt`` brings its label."""
        return preview(self, args, options)

    @locked
    def adopt(self, ticket: Ticket, y: object) -> Posting:
        """Learn from the label of a previewed ticket; if this raises, nothing has changed.

        A layer whose tickets are previewed must not open others: its lateness is counted in labels, not in rows.
        """
        return adopt_known(self, ticket, y)

    # Events

    def update(self, y: object, id: Id | None = None, *, time: Moment | None = None) -> str:
        """Learn from the label of the prediction with this id, or of the open prediction without an id.

        Returns ``applied``, or ``duplicate`` if this id already has this label; another value raises
        ``LabelConflict``. ``None`` or nan: no label will come (see ``skip``). With ``maturity`` a label waits until
        its row is mature: ``waiting``. ``time``: when the label came, by default the latest time seen so far.
        """
        with self.lock:
            return self._update(y, id, time=time)

    def _update(
        self, y: object, id: Id | None = None, key: str | None = None, batch: bool = False,
        time: Moment | None = None,
    ) -> str:  # fmt: skip
        """``key``: of a prediction without an id; ``batch``: predictions of ``predict_many`` come first."""
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
        ticket, place, id, _ = opened
        posting = self.internals.post(ticket, place or self.internals.enter(ticket[1]), y)
        del book.opened[ticket[0]]
        book.close(ticket, id, posting)
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
        """Learn from many labels in row order, as ``update`` does; returns the outcomes in the type of the labels.

        Outcomes: "applied", "duplicate", "conflict", "unknown", "expired", "waiting" (with ``maturity``), "dropped"
        (a tie that Elo drops), or "rejected" (an invalid label). ``times``: when the labels came, for ``maturity``.
        Without ``ids`` labels go to the oldest open predictions of ``predict_many``, and a missing label closes its
        prediction ("skipped"). A frame with columns ``label`` and ``id`` comes back with ``outcome``.
        """
        return answer_many(self._answer, labels, {"id": ids, "time": times})

    def _answer(self, y: object, id: Id | None = None, key: str | None = None, *, time: Moment | None = None) -> str:
        if id is not None and is_missing(y):  # the prediction stays open
            raise BadInput(f"label {y!r} is missing; skip(id) closes a prediction without one")
        return self._update(y, id, key, batch=True, time=time)

    @locked
    def correct(self, id: Id, y: object) -> str:
        """Replace the posted label of this id: the old posting is reversed and a new one added.

        Up to rounding, bias, loss, certificate and the final step are as if the new label had come at once. The
        running means of ``eta="auto"`` and the scale of link sinh forget the old label only gradually.
        """
        id, label = id_of(id), self.validate_label(y)
        book = self.internals.tickets
        number = book.waiting_ids.get(id)  # of a label that is known but not due
        if id not in book.closed and number is None:
            raise UnknownTicket(f"id {id!r} has no posted label to correct (the last {book.remember:,} are kept)")
        if number is not None:
            if book.waiting[number].y == label:
                return "duplicate"
            book.waiting[number] = copy_with(book.waiting[number], y=label)
            return "corrected"
        if book.closed[id].y == label and book.closed[id].sign >= 0.0:
            return "duplicate"
        book.closed[id] = relabel(self, judged(self.internals.rule, book.closed[id]), label)
        return "corrected"

    @locked
    def expire(self, now: Moment) -> int:
        """Drop tickets older than ``ttl``; returns how many. Later labels for them are refused."""
        return len(self.internals.tickets.expire(moment(now, self.internals.tickets)))

    @locked
    def forget(self, id: Id) -> None:
        """Forget an id: its ticket is dropped, its label cannot be corrected, and the id may be used again."""
        self.internals.tickets.drop(id_of(id))

    def advance(self, time: Moment) -> int:
        """Learn the labels of rows that are mature at this time (see ``maturity``); returns how many.

        ``predict`` and ``update`` with a time do this first.
        """
        with self.lock:
            return advance(self, moment(time, self.internals.tickets))

    @locked
    def skip(self, id: Id | None = None) -> str:
        """No label will come: close the prediction with this id, or the one without an id.

        Returns ``skipped``, or ``duplicate`` if the id was skipped or has expired. A later label for a skipped id
        raises ``ExpiredTicket``. The row counts as served without a label.
        """
        return self._skip(id)

    def _skip(self, id: Id | None = None, key: str | None = None, batch: bool = False) -> str:
        book, id = self.internals.tickets, None if id is None else id_of(id)
        if id is not None and id in book.lapsed:
            return "duplicate"
        if id is not None and (id in book.closed or id in book.waiting_ids):
            raise LabelConflict(
                f"id {id!r} already has a label, so it cannot be skipped; use correct(id, label) to change it"
            )
        ticket, _, id, _ = book.find(id, key, batch)
        book.withdraw(ticket[0])
        if id is not None:
            book.lapse(id)
        return "skipped"

    @locked
    def reset_in_flight(self) -> None:
        """Forget how late labels came (logged), so that the late-label cap relaxes; bounds still account for it."""
        self.internals.note("reset_in_flight")
        self.internals.lateness.reset(self.internals.state)

    @locked
    def freeze(self) -> None:
        """Stop learning until ``resume``: labels only close their tickets."""
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
        """Use another step from now on; bounds account for it."""
        self.internals.note(f"step {self.internals.rule.schedule} to {schedule}")
        self.internals.rule = with_step(self.internals.rule, schedule)
        self.internals.constant_step = schedule.eta
        if hasattr(self, "eta"):
            set_attribute(self, "eta", schedule.eta)
            set_attribute(self, "schedule", schedule)

    # What a layer reports

    @property
    @locked
    def ids(self) -> dict[Id, str]:
        """The status of every remembered id: "open", "closed" or "expired"."""
        book = self.internals.tickets
        closed = dict.fromkeys(book.closed, "closed") | dict.fromkeys(book.lapsed, "expired")
        return closed | dict.fromkeys(book.by_id, "open") | dict.fromkeys(book.waiting_ids, "open")

    @property
    @locked
    def traffic(self) -> dict[str, float]:
        """How many rows were served, labelled and are still open, and how late labels came.

        ``open``: open tickets. ``peak``: the largest of these and of the recent lateness. ``peak_lateness``: the
        largest recent lateness of a posted label, in rows of its group, which sets the late-label cap. ``served``,
        ``labelled``: rows and labels so far. ``mean_delay``, ``longest_delay``: predictions served between a row and
        its label.
        """
        facts, late = self.internals.state.facts, self.internals.state.late
        posted, waiting = facts[fact.POSTED], len(self.internals.tickets)
        latest = int(max(late[::LATENESS], default=1))
        return {
            "open": waiting,
            "peak": max(latest, waiting),
            "peak_lateness": latest,
            "served": int(facts[fact.SERVED]),
            "labelled": int(posted),
            "mean_delay": facts[fact.DELAY_SUM] / posted if posted else 0.0,
            "longest_delay": int(facts[fact.DELAY_MOST]),
        }

    @property
    @locked
    def in_flight(self) -> dict[str, float]:
        """Deprecated: use ``traffic``. It will be removed in the next version; the argument ``in_flight`` stays."""
        warn_deprecated("layer.in_flight", "layer.traffic")
        return self.traffic

    @property
    @locked
    def queue(self) -> bool:
        """Whether predictions without ids queue; else each one replaces the one before it."""
        return self.internals.tickets.queue

    @property
    @locked
    def step(self) -> float:
        """The first step of the schedule; with ``auto`` that of the final layer."""
        rule = getattr(self.internals.rule, "final", None) or self.internals.rule
        return float(rule.schedule.step(1))

    @property
    @locked
    def steps(self) -> dict[str, float]:
        """The smallest and largest step, and how many were capped (late labels) or resized (large rows)."""
        facts = self.internals.state.facts
        return {
            "smallest": facts[fact.STEP_LOW] if math.isfinite(facts[fact.STEP_LOW]) else 0.0,
            "largest": facts[fact.STEP_HIGH],
            "capped": int(facts[fact.HELD]),
            "resized": int(facts[fact.RESIZED]),
        }

    @property
    @locked
    def log(self) -> list[tuple[str, int]]:
        """Manual changes (freeze, resume, steps, resets), each with the number of predictions served before it."""
        return list(self.internals.log)

    @locked
    def plot(self, run: Run[ColumnLike] | None = None) -> Figure:
        """A matplotlib figure: errors before and after with their bounds; with a ``run``, over time too."""
        from gradeq.report.figure import figure_of

        return figure_of(self, run)

    @locked
    def report(self, path: str | PathLike[str], run: Run[ColumnLike] | None = None) -> None:
        """Write the command line's HTML page of this layer; charts over rows need a ``run`` of this layer."""
        from gradeq.files.paths import write_text
        from gradeq.report.layer_story import page_of

        write_text(path, [page_of(self, run)])

    @property
    @locked
    def settings(self) -> Saved:
        """The arguments that make an equal, untrained layer."""
        others = self._other_settings
        return {
            name: others[name] if name in others else getattr(self, name)
            for name in arguments(type(self))
            if name not in OPTIONAL or others.get(name) is not None
        }

    @property
    def _other_settings(self) -> Saved:
        parts = self.internals
        others = {name: getattr(parts.tickets, name) for name in ("ttl", "maturity", "missing_is", "queue")}
        schedule = None if getattr(self, "eta", None) is not None else getattr(self, "schedule", None)
        return others | {"in_flight": parts.lateness.in_flight, "schedule": schedule}

    @property
    def terms(self) -> Terms:
        """What certificates need to know of this layer."""
        raise NotImplementedError

    @locked
    def equilibrium(self) -> Equilibrium:
        """Exact averages, the certificate from the state, the proven bound, and whether it is vacuous."""
        result = certify(self)
        self.internals.warnings.warn()
        return result

    @locked
    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this, if the stream continues as before."""
        return more_labels(reading_of(self), scalars.bound(bound))

    def since(self, earlier: Self) -> Window:
        """The exact averages over the labels posted since an earlier state of this layer, from the two states.

        Corrected labels count with their last value. Corrections of labels from before the earlier state are left
        out. A ticket of ``open`` that was served before the earlier state counts as posted before it.
        """
        if type(earlier) is not type(self):
            raise BadInput(
                f"since takes an earlier {type(self).__name__}, copied or loaded, not {type(earlier).__name__}"
            )
        with together(self, earlier):
            check_same_settings(self, earlier)
            last = reading_of(self)
            skipped = self.internals.names.count - len(last.names)
            return window(reading_of(earlier), last, revised_past(self, earlier), skipped)

    @abstractmethod
    def validate_label(self, y: object) -> Any:
        """The label, checked."""

    def displayed(self, f: Any, served: Any) -> Any:
        """What the user sees: the served value, or the raw prediction in shadow mode."""
        return f if self.shadow else served

    @locked
    def to_json(self) -> str:
        """The whole layer as one line of JSON: settings, state, open tickets, checksum."""
        return "".join(layer_json(self))

    @locked
    def save(self, path: str | PathLike[str]) -> None:
        """Write the layer to a file, completely or not at all."""
        from gradeq.files.paths import write_text

        write_text(path, chain(layer_json(self), "\n"))

    @locked
    def copy(self) -> Self:
        """An independent copy, state included."""
        return deepcopy(self)

    def merge(self, other: Self) -> None:
        """Merge the state of another partition of the same stream: its sums are added, its open tickets taken over.

        Both must have started untrained with the same settings. If one has served from parameters that the other has
        learned about, no bound is printed any more, since no single run did that (the certificate stays exact). Merge
        each partition once: a second time is refused only for rows with ids, others cannot be recognized.
        """
        check_partition(self, other)
        with together(self, other):
            merge(self, other)
