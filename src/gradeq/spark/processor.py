"""A desk for each bucket inside Spark's state store: read, its events handled, written, with Spark's own commit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from gradeq.layers.registry import from_json
from gradeq.naming import name_of
from gradeq.spark.desk import Desk, Event, Outcome, desk_of
from gradeq.spark.roles import OURS, Roles
from gradeq.spark.work import revived

VARIABLE = "desk"  # the name of the state in Spark's store
KEPT = "state string, book string"
TIME, PLACE = f"{OURS}time", f"{OURS}place"
NANOSECONDS = 1_000_000  # in a millisecond


class Task(NamedTuple):
    """What every bucket needs: a fresh layer as JSON, the columns by what they are, those that are added."""

    pattern: str
    roles: Roles
    added: tuple[str, ...]
    certificates: tuple[str, ...]  # the columns of a certificate; none: none are asked for
    remember: int
    clock: str  # "events", "micro-batches", or "" where nothing expires


def event_of(row: Any, roles: Roles, time: Any) -> Event:
    """A row of the stream as an event."""
    bases = tuple(row[name] for name in roles.predictions)
    prediction = None if all(base is None for base in bases) else bases
    if prediction is not None and None in prediction:
        prediction = tuple(math.nan if base is None else base for base in prediction)
    weight = None
    if roles.weight is not None:
        weight = math.nan if row[roles.weight] is None else row[roles.weight]
    return Event(
        tuple(row[f"{PLACE}{k}"] for k in range(len(roles.order))),
        row[roles.key],
        row[roles.id],
        prediction[0] if prediction is not None and len(prediction) == 1 else prediction,
        None if roles.label is None else row[roles.label],
        {name: row[name] for name in roles.groups} or None,
        {name: row[name] for name in roles.features} or None,
        weight,
        time if time is not None else row[TIME],
    )


def out_columns(task: Task) -> list[str]:
    """The columns of the output."""
    return ["key", "id", "event", "outcome", *task.added, "reason", "certificate"]


def row_of(task: Task, found: Outcome) -> tuple[Any, ...]:
    """An outcome as a row of the output."""
    event, what, outcome, served, reason = found
    shown = (None,) * len(task.added) if served is None else served
    return (name_of(event.key), event.id, what or None, outcome, *shown, reason, None)


def certificate_row(task: Task, key: str, own: dict[str, Any]) -> tuple[Any, ...]:
    """The certificate of a key as a row of the output."""
    numbers = tuple(own[name] for name in task.certificates)
    return (key, None, "certificate", None, *(None,) * len(task.added), None, numbers)


def processor(task: Task) -> Any:
    """What Spark calls for each bucket of a micro-batch; made here, as PySpark may not be installed elsewhere."""
    from pyspark.sql import Row
    from pyspark.sql.streaming import StatefulProcessor

    columns = Row(*out_columns(task))
    numbers = Row(*task.certificates)

    class Buckets(StatefulProcessor):  # type: ignore[misc]  # PySpark is not looked into
        """One state for each bucket: its layer and its book of tickets."""

        def init(self, handle: Any) -> None:
            self.handle = handle
            self.kept = handle.getValueState(VARIABLE, KEPT)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            desk, time = self.desk(), self.time(timerValues)
            yield from self.done(
                desk, desk.handle([event_of(row, task.roles, time) for row in rows])
            )

        def handleExpiredTimer(
            self, key: Any, timerValues: Any, expiredTimerInfo: Any
        ) -> Iterator[Any]:
            desk = self.desk()
            yield from self.done(desk, desk.expire(self.time(timerValues)))

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            layer = revived(initialState["state"], from_json(task.pattern))
            self.keep(desk_of(layer, initialState["book"], task.remember))

        def desk(self) -> Desk:
            known = self.kept.get()
            if known is None:
                return Desk(from_json(task.pattern), task.remember)
            layer = revived(known[0], from_json(task.pattern))
            return desk_of(layer, known[1], task.remember)

        def time(self, values: Any) -> Any:
            if task.clock == "events":
                return None
            if task.clock == "micro-batches":
                return float(values.getCurrentProcessingTimeInMs() * NANOSECONDS)
            return 0.0

        def done(self, desk: Desk, outcomes: Any) -> Iterator[Any]:
            for found in outcomes:
                yield columns(*row_of(task, found))
            if task.certificates:
                for name, own in desk.certificates():
                    *rest, own = certificate_row(task, name, own)
                    yield columns(*rest, numbers(*own))
            self.keep(desk)

        def keep(self, desk: Desk) -> None:
            self.kept.update(desk.saved())
            due = desk.next_expiry
            if task.clock == "micro-batches" and due is not None:
                # One timer too many does nothing; the first moment after the ticket's life.
                self.handle.registerTimer(int(due // NANOSECONDS) + 1)

        def close(self) -> None:
            pass

    return Buckets()
