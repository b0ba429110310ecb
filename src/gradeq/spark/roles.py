"""The columns of a Spark frame by role, checked before any job starts; the session; errors in one line."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gradeq import errors
from gradeq.errors import BadInput, missing_extra
from gradeq.layers.keyed import KINDS, Keyed
from gradeq.layers.layer import Layer
from gradeq.layers.predicting import COLUMN as BIN
from gradeq.layers.run import served_names
from gradeq.ledger import facts as fact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


KeyedLayer = Keyed[Any]  # of any layer that can be keyed
STORE = "spark.sql.streaming.stateStore"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def check_spark() -> None:
    if find_spec("pyspark") is None:
        raise missing_extra("spark", "layers on Spark")


def session(cores: int = 2, **settings: object) -> SparkSession:
    """A local Spark session on ``cores`` cores; further settings by name, dots as underscores.

    Streams need the RocksDB state store, which this sets; on a cluster set ``stream_settings()`` yourself.
    """
    check_spark()
    java = os.environ.get("JAVA_HOME")
    if not (java and (Path(java) / "bin" / "java").exists()) and shutil.which("java") is None:
        raise BadInput(
            "no Java was found, which Spark needs; install Java 17 (Debian: openjdk-17-jre-headless) or set JAVA_HOME"
        )
    # Workers are started by name: without this they may be another Python than the one that runs.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    config = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **stream_settings(),
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("gradeq")
    for name, value in config.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream_settings() -> dict[str, str]:
    """The settings of a session in which ``follow`` works."""
    return {f"{STORE}.providerClass": ROCKSDB, f"{STORE}.rocksdb.changelogCheckpointing.enabled": "true"}


# How a worker's traceback ends; Spark wraps it in the traces of two languages.
_RAISED = re.compile(r"^(?:[^\n]*: )?gradeq\.errors\.(\w+): ([^\n]+)$", re.MULTILINE)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise gradeq's own errors from inside a Spark job, in one line.

    Spark is lazy: it finds bad values when it computes rows. Put this around ``count``, ``collect``, ``write`` or
    ``awaitTermination``. The methods of ``Adjusted`` already do.
    """
    try:
        yield
    except errors.GradeqError:
        raise
    except Exception as error:
        refusal = refusal_in(str(error))
        if refusal is None:
            raise
        raise refusal from None


def refusal_in(text: str) -> errors.GradeqError | None:
    """The error of gradeq that the text of a Spark error contains, or None.

    >>> refusal_in("Job aborted\\ngradeq.errors.BadInput: label 'x' is not a number\\n\\tat org.apache")
    BadInput("label 'x' is not a number")
    """
    raised = _RAISED.search(text)
    if raised is None:
        return None
    kind = getattr(errors, raised[1], None)
    if not (isinstance(kind, type) and issubclass(kind, errors.GradeqError)):
        return None
    return kind(raised[2].strip())


RESERVED_PREFIX = "_gradeq_"  # of temporary columns


class Roles(NamedTuple):
    """The columns by role; None if there is none."""

    predictions: tuple[str, ...]
    label: str | None
    key: str
    order: tuple[str, ...]
    groups: tuple[str, ...]
    features: tuple[str, ...]
    weight: str | None = None
    label_time: str | None = None
    id: str | None = None
    time: str | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        single = (self.label, self.key, self.weight, self.label_time, self.id)
        several = (*self.predictions, *self.order, *self.groups, *self.features)
        return (*several, *(name for name in single if name is not None))


def as_keyed(layer: Layer) -> KeyedLayer:
    """The layer itself if it is keyed, else a keyed layer of its kind; raises if it has served rows."""
    if not isinstance(layer, Layer):
        raise BadInput(f"layer is {layer!r}; give a layer such as gradeq.Debiaser()")
    if isinstance(layer, Keyed):
        if layer.internals.state.facts[fact.SERVED]:
            raise BadInput("the layer has served rows already; give a fresh one, and what was learned as state")
        if layer.pool:
            raise BadInput(
                "keys that share what they learn (pool=True) cannot be spread over machines; leave out pool"
            )
        return layer
    if layer.kind not in KINDS:
        raise BadInput(f"{type(layer).__name__} cannot be keyed; give a Debiaser or a quantile tracker")
    return Keyed(layer)


def roles_of(
    keyed: KeyedLayer,
    prediction: str | list[str],
    label: str | None,
    key: str,
    order: str | list[str],
    **single: str | None,
) -> Roles:
    """The columns by role; group and feature columns have the layer's names for them."""
    names = keyed.internals.names
    groups = tuple(name for name in names.groups if keyed.bins is None or name != BIN)
    predictions, ordered_by = column_names(prediction, "prediction"), column_names(order, "order")
    label, needed_key = column_or_none(label, "label"), str(column_or_none(key, "key", needed=True))
    others = {role: column_or_none(name, role) for role, name in single.items()}
    return Roles(predictions, label, needed_key, ordered_by, groups, tuple(names.features), **others)


def column_names(value: object, what: str) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, Sequence) or not several:
        raise BadInput(f"{what}={value!r}: give the name of a column, or a list of names")
    return tuple(str(column_or_none(name, what, needed=True)) for name in several)


def column_or_none(value: object, what: str, needed: bool = False) -> str | None:
    if (value is None and not needed) or (isinstance(value, str) and value):
        return value
    raise BadInput(f"{what}={value!r}: give the name of a column")


def check_frame(frame: DataFrame, what: str = "frame") -> None:
    if not (hasattr(frame, "schema") and hasattr(frame, "sparkSession")):
        raise BadInput(
            f"{what} is {type(frame).__name__}; give a DataFrame of Spark (spark.createDataFrame makes one)"
        )


# Spark's types, by the words that an error says for them.
TYPES = {
    "text": ("StringType",),
    "a number": ("NumericType",),
    "a whole number": ("IntegralType",),
    "a truth value": ("BooleanType",),
    "a date": ("DateType",),
    "a time": ("DateType", "TimestampType", "TimestampNTZType"),
}


def check_column(frame: DataFrame, name: str | None, kinds: str) -> None:
    """Raise unless the frame has this column once, with one of these types, such as "text or a number"."""
    from pyspark.sql import types as T

    if name is None:
        return
    if frame.columns.count(name) != 1:
        reason = "occurs more than once" if name in frame.columns else "is missing"
        raise BadInput(f"column {name!r} {reason}; the frame has {', '.join(frame.columns)}")
    actual = frame.schema[name].dataType
    allowed = tuple(getattr(T, kind) for words in re.split(", | or ", kinds) for kind in TYPES[words])
    if not isinstance(actual, allowed):
        raise BadInput(f"column {name!r} holds {actual.simpleString()}, not {kinds}; cast it first")


def check_free(frame: DataFrame, added: Sequence[str]) -> None:
    """Raise if the frame already has a column that is to be added."""
    for name in frame.columns:
        if name in added or name.startswith(RESERVED_PREFIX):
            raise BadInput(f"column {name!r} is to be added but exists already; rename it")


def check_columns(frame: DataFrame, roles: Roles, added: Sequence[str]) -> None:
    """Raise if a column is missing, has the wrong type, or would be overwritten."""
    from pyspark.sql import types as T

    for columns, kinds in (
        (roles.predictions, "a number"),
        ((roles.label, *roles.features), "a number or a truth value"),
        ((roles.key,), "text, a whole number, a truth value or a date"),
        (roles.order, "a number, a time or text"),
        (roles.groups, "text, a number, a truth value or a time"),
        ((roles.weight,), "a number"),
        ((roles.id,), "text or a whole number"),
        ((roles.label_time, roles.time), "a number or a time"),
    ):
        for name in columns:
            check_column(frame, name, kinds)
    check_free(frame, added)
    if roles.label_time is None:
        return
    time, due = (frame.schema[name].dataType for name in (roles.order[0], roles.label_time))
    if isinstance(time, T.StringType) or isinstance(time, T.NumericType) != isinstance(due, T.NumericType):
        raise BadInput(
            f"label times ({roles.label_time!r}, {due.simpleString()}) are compared with the first column of order "
            f"({roles.order[0]!r}, {time.simpleString()}); give both as dates or both as numbers"
        )


def keyed_columns(
    frame: DataFrame,
    layer: Layer,
    prediction: str | list[str],
    label: str | None,
    key: str,
    order: str | list[str],
    **single: str | None,
) -> tuple[KeyedLayer, Roles, list[str]]:
    """The keyed layer, the columns by role and those to be added, all checked."""
    check_spark()
    check_frame(frame)
    keyed = as_keyed(layer)
    roles = roles_of(keyed, prediction, label, key, order, **single)
    width, count = keyed.internals.rule.width, len(roles.predictions)
    if count not in (1, width):
        raise BadInput(f"{count} prediction columns for {width} levels; give one, or one for each level")
    added = served_names(keyed, width)
    check_columns(frame, roles, added)
    return keyed, roles, added
