"""Processing by time: the sort is stable, whatever fits into memory, and results come back."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gradeq.errors import BadInput
from gradeq.files import Clock, Scatter, in_time_order, open_table, ordering, sorted_by_time


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradeq.files.table.ROWS", 500)
    monkeypatch.setattr(ordering, "_ROWS", 400)


def times_of(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    if kind == "ties":
        return rng.integers(0, 7, n)
    if kind == "one value":
        return np.zeros(n, np.int64)
    if kind == "floats":
        return np.round(rng.standard_normal(n), 1)
    if kind == "descending":
        return -np.arange(n)
    return np.datetime64("2024-01-01", "s") + rng.integers(0, 1000, n)


@pytest.mark.parametrize("memory", [1, 200_000, 1 << 30], ids=["all spilled", "runs", "in memory"])
@pytest.mark.parametrize("kind", ["ties", "one value", "floats", "descending", "dates"])
def test_rows_come_in_stable_order_of_time(tmp_path: Path, kind: str, memory: int) -> None:
    rng = np.random.default_rng(11)
    n = 6007
    times = times_of(kind, rng, n)
    table = pa.table({"t": times, "x": rng.random(n), "s": [f"row {i}" for i in range(n)]})
    pq.write_table(table, tmp_path / "t.parquet")
    opened = open_table([tmp_path / "t.parquet"])
    with sorted_by_time(opened, Clock("t"), ["x", "s"], memory=memory, folder=str(tmp_path)) as ordered:
        parts = list(ordered)
        assert len(list(tmp_path.iterdir())) == (1 if memory == 1 << 30 else 2)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    order = np.argsort(times, kind="stable")
    rows = np.concatenate([part.rows for part in parts])
    assert rows.tolist() == order.tolist()
    back = pa.Table.from_batches([part.batch for part in parts])
    assert back.equals(table.select(["x", "s"]).take(order).combine_chunks())
    seen = np.concatenate([part.times for part in parts])
    assert (np.diff(seen) >= 0).all()


def test_results_are_put_back_in_file_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    times, x = rng.integers(0, 50, 3000), rng.random(3000)
    pq.write_table(pa.table({"t": times, "x": x}), tmp_path / "t.parquet")
    table = open_table([tmp_path / "t.parquet"])
    for memory in (0, 1 << 20):
        results = Scatter(3000, ["double", "half"], memory=memory, folder=str(tmp_path))
        with sorted_by_time(table, Clock("t"), ["x"], memory=20_000) as ordered:
            for part in ordered:
                values = part.batch.column("x").to_numpy()
                results.put(part.rows, {"double": 2 * values, "half": values / 2})
        for chunk in table.batches():
            here = results.get(chunk.start, chunk.start + chunk.batch.num_rows)
            assert here["double"].tolist() == (2 * chunk.numbers("x")).tolist()
            assert here["half"].tolist() == (chunk.numbers("x") / 2).tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_times_alone_can_be_sorted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t\n" + "".join(f"2024-01-{d:02}\n" for d in (3, 1, 2, 1)))
    for memory in (1, 1 << 30):
        with sorted_by_time(open_table([tmp_path / "t.csv"]), Clock("t"), [], memory=memory) as it:
            assert np.concatenate([part.rows for part in it]).tolist() == [1, 3, 2, 0]


def test_a_file_in_time_order_is_known_as_such(tmp_path: Path) -> None:
    n = 2000
    for times, ordered in [
        (np.arange(n) // 3, True),
        (np.arange(n)[::-1], False),
        (np.r_[np.arange(1000), 5, np.arange(999)], False),
        (np.r_[np.arange(500), 498, np.arange(600, 2099)], False),
    ]:
        pq.write_table(pa.table({"t": times}), tmp_path / "t.parquet")
        assert in_time_order(open_table([tmp_path / "t.parquet"]), Clock("t")) is ordered


def test_a_row_without_a_time_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [*range(1200), None]}), tmp_path / "t.parquet")
    table = open_table([tmp_path / "t.parquet"])
    with (
        pytest.raises(BadInput, match=r"^row 1201: column 't' has no time"),
        sorted_by_time(table, Clock("t"), ["t"], memory=1, folder=str(tmp_path)),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
