"""A value has one name, whatever file or type it comes in; a state continued from another finds what it knows."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import gradeq as gq
from gradeq.errors import BadInput
from gradeq.files import open_table
from gradeq.files.codebook import MANY, Codebook
from gradeq.inputs.arguments import column_name, name_of, split_name
from gradeq.kernels.texts import code_texts
from gradeq.layers.columns import codes
from gradeq.layers.serialization import checksum

ZONE = dt.timezone(dt.timedelta(hours=2))
DAY = dt.datetime(2024, 1, 1)

# The cells of a column by the arrow type it has in a Parquet file; None: absent.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["b", "007", "1.10", None, "é ünï", "Total", "nan", "2024", "-", "b"]),
    "integers": (pa.int64(), [3, -7, 0, None, 10**15, 3]),
    "whole floats": (pa.float64(), [3.0, -7.0, -0.0, None, 1e15, 2.5]),
    "short floats": (pa.float32(), [0.1, 2.0, None, 0.25, 1 / 3]),
    "truth": (pa.bool_(), [True, False, None, True]),
    "days": (pa.date32(), [dt.date(2024, 1, 1), None, dt.date(1999, 12, 31)]),
    "seconds": (pa.timestamp("s"), [DAY, None, DAY.replace(hour=12, second=5)]),
    "microseconds": (pa.timestamp("us"), [DAY, DAY.replace(hour=1, microsecond=500000), None]),
    "nanoseconds": (pa.timestamp("ns"), [DAY, DAY.replace(minute=30), None]),
    "zones": (pa.timestamp("us", "UTC"), [DAY.replace(tzinfo=dt.UTC), None, DAY.replace(tzinfo=ZONE)]),
    "decimals": (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("2.00"), None, Decimal("-3.00")]),
}  # fmt: skip


def read(path: Any) -> pa.Array:
    """The column as the command reads it from a file."""
    return pa.concat_arrays([chunk.cells("g") for chunk in open_table([str(path)]).batches(["g"])])


def sources(table: pa.Table, tmp: Any) -> dict[str, Any]:
    """The same column from every source that can hold it."""
    column = table["g"].combine_chunks()
    cells = column.to_pylist()
    frame, other = table.to_pandas(), pl.from_arrow(table)
    pa.parquet.write_table(table, tmp / "t.parquet")
    found = {
        "arrow": table["g"],
        "parquet": read(tmp / "t.parquet"),
        "dictionary": column.dictionary_encode(),
        "pandas": frame["g"],
        "pandas, arrow": table.to_pandas(types_mapper=pd.ArrowDtype)["g"],
        "polars": other["g"],
    }
    writers: dict[str, Callable[[Any], Any]] = {
        "arrow": lambda path: pa.csv.write_csv(table, path),
        "polars": other.write_csv,
        "pandas": lambda path: frame.to_csv(path, index=False),
    }
    for who, write in writers.items():
        write(tmp / f"{who}.csv")
        found[f"csv of {who}"] = read(tmp / f"{who}.csv")
    if not pa.types.is_float32(column.type):  # a list of Python has lost that they are short
        found["list"] = cells
        found["objects"] = np.array(cells, dtype=object)
    if not column.null_count:
        found["numpy"] = frame["g"].to_numpy()
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        found["numpy"] = np.array(column.to_numpy(zero_copy_only=False))
    return found


def many(cells: list[Any], times: int) -> list[Any]:
    return [cells[k % len(cells)] for k in range(times * len(cells))]


@pytest.mark.parametrize("times", [1, MANY])
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_table_gives_the_same_names_and_state_from_every_source(kind: str, times: int, tmp_path: Any) -> None:
    type_, cells = COLUMNS[kind]
    cells = many(cells, times)
    table = pa.table({"n": np.arange(len(cells)), "g": pa.array(cells, type_)})
    rng = np.random.default_rng(1)
    f, y = rng.normal(size=(2, len(cells)))
    states, keyed, named = {}, {}, {}
    for source, column in sources(table, tmp_path).items():
        layer, series = gq.Debiaser(0.1, groups=["g"]), gq.Keyed(gq.Debiaser(0.1))
        layer.run(f, y, groups={"g": column})
        series.run(f, y, key=column)
        states[source], keyed[source] = layer.to_json(), series.to_json()
        found = codes(column, "g")
        named[source] = [found.names[code] for code in found.codes]
    if not pa.types.is_float32(type_) and times == 1:
        layer, series = gq.Debiaser(0.1, groups=["g"]), gq.Keyed(gq.Debiaser(0.1))
        for own, value, label in zip(cells, f, y, strict=True):
            layer.predict(value, {"g": own})
            series.predict(value, key=own)
            layer.update(label)
            series.update(label)
        states["events"], keyed["events"] = layer.to_json(), series.to_json()
    for found in (named, states, keyed):
        wrong = {source for source, own in found.items() if own != found["arrow"]}
        assert not wrong, (wrong, next(found[source] for source in wrong)[:300], found["arrow"][:300])


def test_spellings_of_one_value_have_one_name_and_other_texts_keep_theirs() -> None:
    assert {name_of(own) for own in (7, 7.0, "7", "7.0", "7.00", np.float32(7), Decimal("7.0"))} == {"7"}
    assert {name_of(own) for own in (True, "true", "TRUE", np.True_)} == {"True"}
    days = (DAY, DAY.date(), "2024-01-01T00:00", "2024-01-01 00:00:00.000000", np.datetime64("2024-01-01T00"))
    assert {name_of(own) for own in (*days, pd.Timestamp(DAY))} == {"2024-01-01"}
    noon = (DAY.replace(hour=12, tzinfo=ZONE), "2024-01-01T12:00:00+02:00", "2024-01-01T10:00Z")
    assert {name_of(own) for own in noon} == {"2024-01-01 10:00:00+00:00"}
    assert {name_of(own) for own in (None, "", math.nan, pd.NA, pd.NaT, np.datetime64("NaT"))} == {"(missing)"}
    own = ["007", "1.10", "01.0", "v1.0", "1.0.0", "tRue", "2024-13-01 00:00", "9007199254740993.0", "+7", " 7"]
    assert [name_of(text) for text in own] == own
    for text in (name_of(text) for text in ("7.0", "true", "2024-01-01T00:00:00", "2024-01-01T10:00Z")):
        assert name_of(text) == text


def test_many_texts_are_named_as_one_by_one(monkeypatch: Any) -> None:
    monkeypatch.setattr("gradeq.files.codebook.kernel", lambda *given: code_texts)
    rng = np.random.default_rng(3)
    odd = ["true", "7.0", "12.000", "2024-01-01T00:00:00", "2024-01-01 10:00:00Z", "-3.0"]
    for spelled in (None, *odd):
        cells = [f"{k}x{k}" for k in range(2100)] + [str(k) for k in range(2100)]
        cells = [cells[k] for k in rng.permutation(len(cells))]
        if spelled is not None:
            cells[4150] = spelled
        book = Codebook()
        found = book.of_cells(cells)
        assert [book.names[code] for code in found] == [name_of(cell) for cell in cells]
        assert book.names == list(dict.fromkeys(map(name_of, cells)))


def altered(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    """A state as an earlier version would have written it."""
    body = json.loads(text)
    change(body)
    del body["sha256"]
    return json.dumps({**body, "sha256": checksum(body)})


def test_columns_and_values_with_equals_signs_are_two_parameters_and_old_states_load() -> None:
    both = gq.Debiaser(0.5, groups=["a", "a=b"], features=["a=b=c"])
    both.predict(0.0, {"a": "b=c", "a=b": "c"}, {"a=b=c": 1.0})
    both.update(1.0)
    assert len(both.theta) == 3
    columns = gq.Debiaser(0.5, groups=["a", "a=b"], features=["a=b=c"])
    columns.run([0.0], [1.0], groups={"a": ["b=c"], "a=b": ["c"]}, features={"a=b=c": [1.0]})
    assert columns.to_json() == both.to_json() == gq.from_json(both.to_json()).to_json()
    assert split_name(f"{column_name('a=b')}=c=d") == ("a=b", "c=d")

    now = gq.Debiaser(0.5, groups=["a=b", "t"], features=["x=y"])
    for id, truth in enumerate((True, False, True)):
        now.predict(1.0, {"a=b": "c=d", "t": truth}, {"x=y": 2.0}, id=id)
    now.update(3.0, id=0)
    now.run([1.0], [2.0], {"a=b": ["e"], "t": [True]}, {"x=y": [1.0]}, times=[0.0], label_times=[9.0])
    old = now.to_json().replace("\\\\=", "=").replace("t=True", "t=true").replace("t=False", "t=FALSE")
    assert "a=b=c=d" in old and "t=true" in old
    assert gq.from_json(altered(old, lambda body: None)).to_json() == now.to_json()


def test_old_names_that_would_become_one_stay_two() -> None:
    layer = gq.Keyed(gq.Debiaser(0.5, groups=["g"]))
    for key, group in (("x", "p"), ("y", "q"), ("z", "p")):
        layer.predict(1.0, key=key, groups={"g": group}, id=key)
    old = layer.to_json().replace('"x"', '"true"').replace('"y"', '"True"').replace("g=p", "g=1.0")
    loaded = gq.from_json(altered(old, lambda body: None))
    assert loaded.keys == ["true", "True", "z"] and set(loaded.internals.names.roster.names) == {"g=1", "g=q"}
    assert loaded.update(2.0, "true" if "true" in loaded.ids else "x") == "applied"

    elo = gq.Elo()
    elo.predict("1", "2", id="game")
    old = altered(elo.to_json().replace('"1"', '"1.0"'), lambda body: None)
    assert gq.from_json(old).to_json() == elo.to_json()


BAD_IDS = [[1], (1,), {}, math.nan, math.inf, 1.5, True, b"x", Decimal(1), DAY, int]


@pytest.mark.parametrize("id", BAD_IDS, ids=repr)
def test_an_id_that_a_state_cannot_keep_is_refused_and_nothing_changes(id: Any) -> None:
    layer = gq.Debiaser(0.1)
    layer.predict(1.0, id=1)
    before = layer.to_json()
    verbs: list[Callable[[], Any]] = [
        lambda: layer.predict(1.0, id=id),
        lambda: layer.update(1.0, id=id),
        lambda: layer.correct(id, 1.0),
        lambda: layer.forget(id),
        lambda: layer.run([1.0], [1.0], ids=[id]),
        lambda: layer.predict_many([1.0], ids=[id]),
    ]
    for verb in verbs:
        with pytest.raises(BadInput, match="id"):
            verb()
    assert list(layer.update_many([1.0], ids=[id])) == ["rejected"]
    assert layer.to_json() == before


NO_NAMES = [["a"], ("a",), {"a": 1}, {"a"}, np.array(["a"]), np.array([]), np.array("a"), pd.Series(["a"]), []]


@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
def test_what_holds_values_names_nothing_anywhere(name: Any) -> None:
    elo, keyed, grouped = gq.Elo(), gq.Keyed(gq.Debiaser(0.1)), gq.Debiaser(0.1, groups=["g"])
    column = np.empty(2, object)
    column[0] = column[1] = name
    verbs: list[Callable[[], Any]] = [
        lambda: elo.peek(name, "b"),
        lambda: elo.play("b", name, 1),
        lambda: elo.run(column, ["b", "c"], [1, 0]),
        lambda: keyed.predict(1.0, key=name),
        lambda: keyed.run([1.0, 2.0], [1.0, 2.0], key=column),
        lambda: grouped.predict(1.0, groups={"g": name}),
        lambda: grouped.run([1.0, 2.0], [1.0, 2.0], groups={"g": [name, name]}),
        lambda: grouped.run([1.0, 2.0], [1.0, 2.0], groups={"g": column}),
    ]
    before = [layer.to_json() for layer in (elo, keyed, grouped)]
    for verb in verbs:
        with pytest.raises(BadInput):
            verb()
    assert [layer.to_json() for layer in (elo, keyed, grouped)] == before


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf, "x", [1], 10**400, pd.NaT], ids=repr)
def test_a_time_that_is_not_finite_is_refused_and_nothing_changes(time: Any) -> None:
    layer = gq.Debiaser(0.1, ttl=5.0)
    layer.predict(1.0, id=1, time=0.0)
    before = layer.to_json()
    for verb in (
        lambda: layer.predict(1.0, time=time),
        lambda: layer.expire(time),
        lambda: layer.run([1.0], [1.0], times=[time]),
        lambda: layer.predict_many([1.0], times=[time]),
    ):
        with pytest.raises(BadInput):
            verb()
    assert layer.to_json() == before
    layer.expire(6.0)
    assert not layer.internals.tickets.opened
