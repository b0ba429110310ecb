"""Which column of a frame is what: names and types, checked before any job starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradeq.errors import BadInput
from gradeq.layers.bins import COLUMN as BIN
from gradeq.layers.keyed import KINDS, Keyed
from gradeq.layers.layer import Layer
from gradeq.ledger import facts as fact

OURS = "_gradeq_"  # how the columns begin that are needed on the way


class Roles(NamedTuple):
    """The names of columns by what they are; None: there is none."""

    predictions: tuple[str, ...]
    label: str | None
    key: str
    order: tuple[str, ...]
    groups: tuple[str, ...]
    features: tuple[str, ...]
    weight: str | None
    label_time: str | None
    id: str | None

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns that are read."""
        single = (self.label, self.key, self.weight, self.label_time, self.id)
        several = (*self.predictions, *self.order, *self.groups, *self.features)
        return (*several, *(name for name in single if name is not None))


def as_keyed(layer: Any) -> Keyed:
    """The layer of many keys, fresh: the one given, or one of the pattern given."""
    if not isinstance(layer, Layer):
        raise BadInput(f"layer is {layer!r}; give a layer such as gradeq.Debiaser()")
    if isinstance(layer, Keyed):
        if layer._state.facts[fact.SERVED]:
            raise BadInput(
                "the layer has served rows already; give a fresh one, and what was learned as state"
            )
        if layer.pool:
            raise BadInput(
                "keys that share what they learn (pool=True) cannot be spread over machines; leave out pool"
            )
        return layer
    if layer.kind not in KINDS:
        raise BadInput(
            f"{type(layer).__name__} cannot be keyed; give a Debiaser or a quantile tracker"
        )
    return Keyed(layer)


def roles_of(
    keyed: Keyed, prediction: Any, label: Any, key: Any, order: Any, **single: Any
) -> Roles:
    """The columns by what they are; those of groups and features have the names that the layer gave them."""
    names = keyed._names
    groups = tuple(name for name in names.groups if keyed.bins is None or name != BIN)
    return Roles(
        texts(prediction, "prediction"), one(label, "label"), str(one(key, "key", needed=True)),
        texts(order, "order"), groups, tuple(names.features),
        **{name: one(own, name) for name, own in single.items()},
    )  # fmt: skip


def texts(value: Any, what: str) -> tuple[str, ...]:
    """One name of a column, or several."""
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, Sequence) or not several:
        raise BadInput(f"{what}={value!r}: give the name of a column, or a list of names")
    return tuple(str(one(name, what, needed=True)) for name in several)


def one(value: Any, what: str, needed: bool = False) -> str | None:
    """One name of a column, or None where it may be left out."""
    if (value is None and not needed) or (isinstance(value, str) and value):
        return value
    raise BadInput(f"{what}={value!r}: give the name of a column")


def check_frame(frame: Any, what: str = "frame") -> None:
    """Refuse what is no DataFrame of Spark."""
    if not (hasattr(frame, "schema") and hasattr(frame, "sparkSession")):
        raise BadInput(
            f"{what} is {type(frame).__name__}; give a DataFrame of Spark (spark.createDataFrame makes one)"
        )


def check_columns(frame: Any, roles: Roles, added: Sequence[str]) -> None:
    """Refuse a frame that lacks a column, has one of another type, or one that would be overwritten."""
    from pyspark.sql import types as T

    names = frame.columns
    for name in roles.needed:
        if names.count(name) != 1:
            reason = "is there more than once" if name in names else "is missing"
            raise BadInput(f"column {name!r} {reason}; the frame has {', '.join(names)}")
    for name in names:
        if name in added or name.startswith(OURS):
            raise BadInput(
                f"the frame has a column {name!r} already, which is to be added; rename it"
            )
    number, moment = (
        (T.NumericType, T.BooleanType),
        (T.DateType, T.TimestampType, T.TimestampNTZType),
    )
    spoken = (T.StringType, T.IntegralType, T.BooleanType, T.DateType)
    kinds = [
        (roles.predictions, (T.NumericType,), "a number"),
        ((roles.label,), number, "a number"),
        ((roles.weight,), (T.NumericType,), "a number"),
        (roles.features, number, "a number"),
        ((roles.key,), spoken, "text, a whole number, a truth value or a date"),
        (roles.order, (*moment, T.NumericType, T.StringType), "a number, a date or text"),
        (roles.groups, (*spoken, *moment, T.FractionalType), "text, a number or a date"),
        ((roles.id,), (T.StringType, T.IntegralType), "text or a whole number"),
        ((roles.label_time,), (*moment, T.NumericType), "a number or a date"),
    ]
    for columns, wanted, words in kinds:
        for own in columns:
            if own is not None and not isinstance(frame.schema[own].dataType, wanted):
                found = frame.schema[own].dataType.simpleString()
                raise BadInput(f"column {own!r} holds {found}, not {words}; cast it first")
    if roles.label_time is not None:
        check_times(frame, roles.order[0], roles.label_time)


def check_times(frame: Any, time: str, label_time: str) -> None:
    """Refuse label times that cannot be compared with the times of the rows."""
    from pyspark.sql import types as T

    own, due = (frame.schema[name].dataType for name in (time, label_time))
    if isinstance(own, T.StringType) or isinstance(own, T.NumericType) != isinstance(
        due, T.NumericType
    ):
        raise BadInput(
            f"label times ({label_time!r}, {due.simpleString()}) are compared with the first column of order "
            f"({time!r}, {own.simpleString()}); give both as dates or both as numbers"
        )
