"""Times that cannot be set against each other are refused in one line: zones, none, numbers."""

import datetime as dt
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradeq as gq
from cli.calling import here, ok, refused, write

START = dt.datetime(2024, 3, 1, 8)
DAYS = [START + dt.timedelta(days=i) for i in range(6)]
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
ZONED = [day.replace(tzinfo=BERLIN) for day in DAYS]
NUMBERS = [float(i) for i in range(6)]
KINDS = {"numbers": NUMBERS, "dates without a zone": DAYS, "dates with a zone": ZONED}
PAIRS = [(a, b) for a in KINDS for b in KINDS if a != b]

FORMS: dict[str, Any] = {
    "list": list,
    "pandas": pd.Series,
    "polars": lambda cells: pl.Series("t", cells),
    "arrow": pa.array,
    "arrow chunks": lambda cells: pa.chunked_array([pa.array(cells)]),
    "objects": lambda cells: np.array(cells, dtype=object),
}


def layers() -> dict[str, Any]:
    def given(kind: Any, **more: Any) -> Any:
        return lambda when, due: kind.run([1.0] * 6, [2.0] * 6, times=when, label_times=due, **more)

    elo = gq.Elo()
    return {
        "debias": given(gq.Debiaser()),
        "interval": given(gq.IntervalTracker(0.8)),
        "keyed": given(gq.Keyed(gq.Debiaser(eta=0.1)), key=["a", "b"] * 3),
        "elo": lambda when, due: elo.run(["a"] * 6, ["b"] * 6, [1.0] * 6, times=when, label_times=due),
    }


def cells_of(kind: str) -> list[str]:
    return [str(cell) for cell in KINDS[kind]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("rows", "labels"), PAIRS)
def test_columns_of_different_kinds_are_refused_in_python(form, rows, labels):
    make = FORMS[form]
    layer = gq.Debiaser()
    before = layer.to_json()
    with pytest.raises(gq.BadInput) as refusal:
        layer.run([1.0] * 6, [2.0] * 6, times=make(KINDS[rows]), label_times=make(KINDS[labels]))
    assert rows in str(refusal.value) and labels in str(refusal.value)
    assert "label_times" in str(refusal.value) and "\n" not in str(refusal.value)
    assert layer.to_json() == before


@pytest.mark.parametrize("name", layers())
def test_every_layer_refuses_them(name):
    run = layers()[name]
    with pytest.raises(gq.BadInput, match="cannot be compared"):
        run(DAYS, ZONED)
    run(DAYS, DAYS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_one_kind_are_taken(form, kind):
    make = FORMS[form]
    times = make(KINDS[kind])
    gq.Debiaser().run([1.0] * 6, [2.0] * 6, times=times, label_times=times)


def test_two_zones_are_one_kind():
    utc = [day.astimezone(dt.UTC) for day in ZONED]
    one, other = gq.Debiaser(eta=0.1), gq.Debiaser(eta=0.1)
    labels = [1.0, 5.0, 2.0, 4.0, 0.0, 9.0]
    one.run([1.0] * 6, labels, times=ZONED, label_times=utc)
    other.run([1.0] * 6, labels, times=utc, label_times=ZONED)
    assert one.theta == other.theta


@pytest.mark.parametrize("cells", [[*DAYS[:3], *ZONED[3:]], [*ZONED[:3], *DAYS[3:]]])
def test_zones_mixed_within_a_column_are_refused(cells):
    with pytest.raises(gq.BadInput, match=r"times\[3\] .* zone"):
        gq.Debiaser().run([1.0] * 6, [2.0] * 6, times=cells)


def test_a_column_that_begins_without_a_time_is_still_one_of_dates():
    late = [None, *ZONED[1:]]
    with pytest.raises(gq.BadInput, match="cannot be compared"):
        gq.Debiaser().run([1.0] * 6, [2.0] * 6, times=DAYS, label_times=late)
    gq.Debiaser().run([1.0] * 6, [2.0] * 6, times=ZONED, label_times=late)


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("saved", [False, True])
def test_a_layer_goes_on_in_the_kind_of_time_that_it_began_with(before, after, saved):
    layer = gq.Debiaser(ttl=1e18)
    layer.run([1.0] * 6, [2.0] * 6, times=KINDS[before], label_times=KINDS[before])
    if saved:
        layer = gq.from_json(layer.to_json())
    text = layer.to_json()
    for call in (
        lambda: layer.run([1.0] * 6, [2.0] * 6, times=KINDS[after]),
        lambda: layer.predict_many([1.0] * 6, times=KINDS[after]),
        lambda: layer.predict(1.0, time=KINDS[after][0]),
        lambda: layer.expire(KINDS[after][0]),
    ):
        with pytest.raises(gq.BadInput, match=f"{after}.*{before}"):
            call()
    assert layer.to_json() == text
    layer.predict(1.0, time=KINDS[before][-1])


def test_events_too_keep_to_one_kind_of_time():
    layer = gq.Debiaser(ttl="30d")
    with pytest.raises(gq.BadInput):
        layer.predict("x", time=NUMBERS[0])  # refused, so not a word about its time is kept
    layer.predict(1.0, time=DAYS[0])
    with pytest.raises(gq.BadInput, match="dates with a zone"):
        layer.predict(1.0, time=ZONED[1])


def test_partitions_with_other_kinds_of_time_are_not_merged():
    one, other = gq.Debiaser(eta=0.1), gq.Debiaser(eta=0.1)
    one.run([1.0] * 6, [2.0] * 6, times=DAYS)
    other.run([1.0] * 6, [2.0] * 6, times=ZONED)
    text = one.to_json()
    with pytest.raises(gq.BadInput, match="zone"):
        one.merge(other)
    assert one.to_json() == text


@pytest.mark.parametrize("cell", [dt.date(1066, 10, 14), dt.datetime(2300, 1, 1)])
@pytest.mark.parametrize("form", ["list", "numpy", "polars", "arrow"])
def test_a_date_beyond_nanoseconds_is_refused_and_never_wraps(form, cell):
    def numpy(cells: Any) -> Any:
        return np.array(cells, "datetime64[s]")

    times = {**FORMS, "numpy": numpy}[form]([cell])
    with pytest.raises(gq.BadInput, match="1677"):
        gq.Debiaser().run([1.0], [2.0], times=times)


def file_of(folder: Path, ending: str, rows: str, labels: str, name: str = "in") -> Path:
    path = folder / f"{name}.{ending}"
    if ending == "csv":
        own = zip(cells_of(rows), cells_of(labels), strict=True)
        return write(path, [{"p": 1, "y": 2, "n": 1, "t": t, "k": k} for t, k in own])
    columns = {"p": [1.0] * 6, "y": [2.0] * 6, "n": [1] * 6, "t": KINDS[rows], "k": KINDS[labels]}
    pq.write_table(pa.table(columns), path)
    return path


BASE = ("--prediction", "p", "--label", "y")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["debias", "quantile", "elo"])
@pytest.mark.parametrize(("rows", "labels"), PAIRS)
def test_files_with_different_kinds_of_time_are_refused(tmp_path, ending, command, rows, labels):
    path = file_of(tmp_path, ending, rows, labels)
    base = {"quantile": (*BASE, "--level", "0.9")}.get(command, BASE)
    if command == "elo":
        base = ("--a", "p", "--b", "y", "--score", "n")
    line = refused(here(command, path, *base, "--time", "t", "--label-time", "k"))
    assert f"'t' holds {rows}" in line and f"'k' {labels}" in line
    assert ("zone (2024-01-31T17:05:00+01:00)" in line) == ("numbers" not in (rows, labels))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_several_files_keep_to_one_kind_of_time(tmp_path, ending):
    naive = file_of(tmp_path, ending, "dates without a zone", "dates without a zone", "a")
    zoned = file_of(tmp_path, ending, "dates with a zone", "dates with a zone", "b")
    for paths in ([naive, zoned], [zoned, naive]):
        line = refused(here("debias", *paths, *BASE, "--time", "t"))
        assert "zone" in line and paths[1].name in line


def test_parquet_files_of_two_zones_are_refused_by_column_and_file(tmp_path):
    utc = [day.astimezone(dt.UTC) for day in ZONED]
    paths = []
    for name, times in (("a", ZONED[:3]), ("b", utc[3:])):
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(pa.table({"p": [1.0] * 3, "y": [2.0] * 3, "t": times}), paths[-1])
    line = refused(here("debias", *paths, *BASE, "--time", "t"))
    assert all(word in line for word in ("b.parquet", "'t'", "Europe/Berlin", "in one zone")), line


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_state_goes_on_in_the_kind_of_time_that_it_began_with(tmp_path, ending, before, after):
    state = tmp_path / "state.json"
    first = file_of(tmp_path, ending, before, before, "first")
    own = ("--time", "t", "--state", state)
    ok(here("debias", first, *BASE, *own, "--quiet"))
    text = state.read_bytes()
    then = file_of(tmp_path, ending, after, after, "then")
    line = refused(here("debias", then, *BASE, *own, "--again"))
    assert f"--time holds {after} here, and times were {before} before" in line
    assert state.read_bytes() == text


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_label_times_are_of_the_kind_of_the_rows_that_wait(tmp_path, before, after):
    state = tmp_path / "state.json"
    rows = [{"id": i, "p": 1, "t": t} for i, t in enumerate(cells_of(before))]
    waits = ("--prediction", "p", "--time", "t", "--id", "id", "--state", state, "--quiet")
    ok(here("debias", write(tmp_path / "rows.csv", rows), *waits))
    text = state.read_bytes()
    labels = [{"id": i, "y": 2, "k": k} for i, k in enumerate(cells_of(after))]
    own = ("--state", state, "--id", "id", "--label", "y", "--label-time", "k")
    line = refused(here("label", write(tmp_path / "labels.csv", labels), *own))
    assert f"--label-time holds {after} here, and times were {before} before" in line
    assert state.read_bytes() == text


def test_a_state_that_says_dates_alone_takes_either(tmp_path):
    layer = gq.Debiaser(eta=0.1)
    layer.run([1.0] * 6, [2.0] * 6, times=DAYS)
    layer.internals.tickets.desk["times"] = {"kind": "dates"}  # as the first versions wrote it
    older = layer.to_json()
    for times in (DAYS, ZONED):
        gq.from_json(older).run([1.0] * 6, [2.0] * 6, times=times)
    with pytest.raises(gq.BadInput, match="numbers"):
        gq.from_json(older).run([1.0] * 6, [2.0] * 6, times=NUMBERS)


def test_a_state_of_the_command_goes_on_in_python(tmp_path):
    state = tmp_path / "state.json"
    path = file_of(tmp_path, "csv", "dates with a zone", "dates with a zone")
    ok(here("debias", path, *BASE, "--time", "t", "--label-time", "k", "--state", state, "--quiet"))
    with pytest.raises(gq.BadInput, match="zone"):
        gq.load(state).run([1.0] * 6, [2.0] * 6, times=DAYS)
    gq.load(state).run([1.0] * 6, [2.0] * 6, times=ZONED)
