"""One layer over all partitions on real Spark: no cut shows, replays change nothing, kills lose nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gradeq as gq
from gradeq.errors import BadInput, OtherSettings, StateError
from gradeq.layers.rounds import part_of, posted
from gradeq.spark import adjust_whole, elo, layer_in, whole_stream
from gradeq.spark.global_layer import FILE
from spark.local_spark import PANDAS, missing
from spark.whole_child import MOMENTS, layer

pytestmark = pytest.mark.filterwarnings(PANDAS)
COLUMNS = {"prediction": "f", "label": "y"}
ROUNDS, SIZE = 4, 150


def table(seed: int = 1) -> pa.Table:
    """Rows of some rounds, forecasts too low, one label in ten missing."""
    rng, n = np.random.default_rng(seed), ROUNDS * SIZE
    f = rng.normal(100.0, 10.0, n)
    y = f + 3.0 + rng.normal(0.0, 2.0, n)
    return pa.table({
        "row": np.arange(n), "day": np.arange(n) // SIZE, "g": rng.choice(["a", "b", "c"], n), "f": f,
        "y": pa.array(y, mask=rng.random(n) < 0.1),
    })  # fmt: skip


def by_hand(rows: pa.Table) -> tuple[gq.Debiaser, list[Any], Any]:
    """The same rounds in one process: the layer, every round, what was served."""
    now, sums, told, shown = layer(), {}, [], []
    for day in range(ROUNDS):
        own = rows.slice(day * SIZE, SIZE)
        y = own["y"].to_numpy(zero_copy_only=False)
        out, part = part_of(now, own["f"].to_numpy(), y, {"g": own["g"].to_pylist()})
        now, sums, done = posted(now, sums, part)
        told.append(done)
        shown.append(out)
    return now, told, np.concatenate(shown)


@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_however_rows_are_partitioned_it_is_what_one_process_does(spark: Any, partitions: int) -> None:
    rows = table()
    now, told, shown = by_hand(rows)
    order = np.random.default_rng(partitions).permutation(len(rows))
    frame = spark.createDataFrame(rows.take(order)).repartition(partitions)
    made = adjust_whole(frame, layer(), batch="day", **COLUMNS)
    assert made.layer.to_json() == now.to_json()
    assert list(made.rounds) == told
    found = made.rows.orderBy("row").toArrow()
    assert np.array_equal(found["adjusted"].to_numpy(), shown)
    assert found.drop_columns(["adjusted"]).to_pydict() == rows.to_pydict()


def test_against_one_machine_bias_and_loss_are_near_and_the_bound_holds(spark: Any) -> None:
    """One machine hears every label before the next row; rounds hear 150 rows late, and say what that costs."""
    rows = table(2)
    made = adjust_whole(spark.createDataFrame(rows), layer(), batch="day", **COLUMNS)
    alone, found = layer(), made.layer.equilibrium()
    y = rows["y"].to_numpy(zero_copy_only=False)
    alone.run(rows["f"].to_numpy(), y, groups={"g": rows["g"].to_pylist()})
    single = alone.equilibrium()
    assert found.rows == single.rows
    assert found.bias_before == pytest.approx(single.bias_before, rel=1e-12)
    assert abs(single.bias_after) < abs(found.bias_after) < abs(found.bias_before)
    assert single.loss_after < found.loss_after < found.loss_before
    assert found.gap < 1e-12 and found.bound is not None and single.bound < found.bound
    for coordinate in found.coordinates:
        assert coordinate.bound is None or abs(coordinate.bias_after) <= coordinate.bound
    for done in made.rounds:
        assert done.rows == SIZE and done.step * done.lateness <= 0.1 * 3


def stream_folder(folder: Path, rows: pa.Table) -> None:
    """One file for each micro-batch."""
    (folder / "in").mkdir(parents=True)
    for day in range(ROUNDS):
        path = folder / "in" / f"{day}.parquet"
        pq.write_table(rows.slice(day * SIZE, SIZE).drop_columns(["day"]), path)
        os.utime(path, (1_700_000_000 + day, 1_700_000_000 + day))


def child(folder: Path, *more: str) -> int:
    """Run the stream in a process of its own: how it ended."""
    tests = Path(__file__).parents[1]
    paths = [str(Path(gq.__file__).parents[1]), str(tests), os.environ.get("PYTHONPATH", "")]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    call = [sys.executable, "-m", "spark.whole_child", str(folder), *more]
    ended = subprocess.run(call, env=own, cwd=tests, capture_output=True, timeout=600, check=False)
    return ended.returncode


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stream_that_is_killed_goes_on_as_if_nothing_had_happened(tmp_path: Path, moment: str) -> None:
    if why := missing():
        pytest.skip(why)
    rows = table(3)
    stream_folder(tmp_path, rows)
    assert child(tmp_path, moment, "2") == -signal.SIGKILL
    assert child(tmp_path) == 0
    now, told, shown = by_hand(rows)
    kept, last = layer_in(tmp_path / "state")
    assert kept.to_json() == now.to_json() and last == told[-1]
    found = pa.concat_tables([pq.read_table(tmp_path / "out" / str(day)) for day in range(ROUNDS)])
    found = found.sort_by("row")
    assert found["row"].to_pylist() == rows["row"].to_pylist()
    assert np.array_equal(found["adjusted"].to_numpy(), shown)


def test_a_micro_batch_that_comes_again_changes_nothing(spark: Any, tmp_path: Path) -> None:
    rows, seen = table(4), []
    post = whole_stream(
        tmp_path, layer(), write=lambda frame, k: seen.append(frame.orderBy("row").toArrow()), **COLUMNS
    )  # fmt: skip
    frames = [spark.createDataFrame(rows.slice(day * SIZE, SIZE)) for day in range(2)]
    for k, frame in enumerate(frames):
        post(frame, k)
    before = (tmp_path / FILE).read_text()
    post(frames[1].repartition(3), 1)
    assert (tmp_path / FILE).read_text() == before
    assert seen[2].equals(seen[1])
    with pytest.raises(BadInput, match="micro-batch 0 comes after 1 was written"):
        post(frames[0], 0)
    assert (tmp_path / FILE).read_text() == before


def test_a_state_that_is_damaged_or_of_other_settings_is_refused(spark: Any, tmp_path: Path) -> None:
    post = whole_stream(tmp_path, layer(), **COLUMNS)
    post(spark.createDataFrame(table().slice(0, 20)), 0)
    with pytest.raises(OtherSettings, match="eta"):
        whole_stream(tmp_path, gq.Debiaser(0.3, groups=["g"]), **COLUMNS)
    text = (tmp_path / FILE).read_text()
    for bad in (text[:-5], "{}", json.dumps({**json.loads(text), "after": "no layer"})):
        (tmp_path / FILE).write_text(bad)
        with pytest.raises(StateError):
            whole_stream(tmp_path, layer(), **COLUMNS)
    with pytest.raises(BadInput, match="no micro-batch has ended"):
        layer_in(tmp_path / "elsewhere")


def test_bad_input_is_refused_in_one_line(spark: Any) -> None:
    frame = spark.createDataFrame(table().slice(0, 30))
    good = {"batch": "day", **COLUMNS}
    used = layer()
    used.predict(1.0, groups={"g": "a"})
    for given, own, changed, why in (
        (frame, gq.Debiaser("auto"), {}, "rounds are for a Debiaser with a given eta"),
        (frame, gq.Debiaser(0.1, groups=["g", "h"]), {}, "one group column at most"),
        (frame, used, {}, "has served rows already"),
        (table(), layer(), {}, "give a DataFrame of Spark"),
        (frame, layer(), {"label": "sold"}, "column 'sold' is missing"),
        (frame, layer(), {"prediction": "g"}, "column 'g' holds string, not a number"),
        (frame, layer(), {"batch": "f"}, "column 'f' holds double, not text"),
        (frame, layer(), {"prediction": 5}, "give the name of a column"),
        (frame, layer(), {"prediction": "y"}, "given twice"),
        (frame.withColumnRenamed("row", "adjusted"), layer(), {}, "'adjusted' is to be added but exists already"),
        (frame.withColumn("f", frame.f * float("inf")), layer(), {}, "finite"),
        (frame.selectExpr("day", "g", "cast(null as double) f", "y"), layer(), {}, "'f' has nulls"),
        (frame.selectExpr("cast(null as int) day", "g", "f", "y"), layer(), {}, "'day' has nulls"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=why) as refused:
            adjust_whole(given, own, **{**good, **changed})
        assert "\n" not in str(refused.value)


def games(seed: int = 5, n: int = 1500) -> pa.Table:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, n)
    b = (a + rng.integers(1, 12, n)) % 12
    score = np.where(rng.random(n) < 0.2, 0.5, rng.random(n) < 1 / (1 + np.exp((a - b) / 4.0)))
    names = [[f"p{k}" for k in own] for own in (a, b)]
    home, weight = rng.choice([-1.0, 0.0, 1.0], n), rng.choice([1.0, 2.0, 0.3], n)
    return pa.table({"a": names[0], "b": names[1], "s": score, "h": home, "w": weight})


@pytest.mark.parametrize("partitions", [1, 5, 20])
def test_the_all_time_leaderboard_is_that_of_one_machine(spark: Any, partitions: int) -> None:
    rows = games()
    alone = gq.Elo(0.1, home_advantage=True)
    alone.run(
        rows["a"].to_pylist(), rows["b"].to_pylist(), rows["s"].to_numpy(), weights=rows["w"].to_numpy(),
        home=rows["h"].to_numpy(),
    )  # fmt: skip
    frame = spark.createDataFrame(rows).repartition(partitions)
    found = elo(frame, gq.Elo(0.1, home_advantage=True), a="a", b="b", score="s", weight="w", home="h")
    ours, theirs = ([row[:8] for row in own.leaderboard("all-time")] for own in (found, alone))
    assert ours == theirs and len(ours) == 12
    assert found.board("all-time").home[:3] == alone.board("all-time").home[:3]
    assert found.equilibrium().rows == alone.equilibrium().rows


def test_bad_games_are_refused_in_one_line(spark: Any) -> None:
    frame = spark.createDataFrame(games(n=20))
    good = {"a": "a", "b": "b", "score": "s"}
    for given, own, changed, why in (
        (frame, gq.Debiaser(0.1), {}, "give an Elo layer"),
        (frame, gq.Elo(0.1), {"a": "x"}, "column 'x' is missing"),
        (frame, gq.Elo(0.1), {"score": "a"}, "column 'a' holds string, not a number"),
        (frame.selectExpr("a", "b", "s + 7 s"), gq.Elo(0.1), {}, "outside"),
        (frame.selectExpr("a", "b", "cast(null as double) s"), gq.Elo(0.1), {}, "'s' has nulls"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=why) as refused:
            elo(given, own, **{**good, **changed})
        assert "\n" not in str(refused.value)
