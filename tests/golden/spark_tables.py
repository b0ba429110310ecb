"""Tables and streams through Spark: rows, states, certificates, leaderboards."""

import tempfile
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import gradeq as gq
from golden.lives import certificate
from golden.streams import PLAYERS, Chance
from golden.trees import plain
from spark.local_spark import PANDAS, missing, started

FAMILY = "spark"
LAYERS = {
    "debias": (lambda: gq.Debiaser(eta=0.1), True),
    "groups": (lambda: gq.Debiaser(eta=0.05, groups=["region"]), False),
    "features": (lambda: gq.Debiaser(eta=0.02, features=["size"]), True),
    "quantiles": (lambda: gq.MultiQuantileTracker([0.1, 0.5, 0.9]), False),
    "interval": (lambda: gq.IntervalTracker(0.8), True),
}
COLUMNS = {"prediction": "forecast", "label": "sold", "key": "shop", "order": ["time", "number"]}
STREAM = "shop string, row string, at double, forecast double, sold double"


def rows(name, n=240):
    """Rows of several keys; labels missing, late, of other weights."""
    chance, found = Chance(name), []
    for k in range(n):
        shop, f = chance.pick(["u", "v", "w", "7", "7.0"]), chance.normal()
        late = int(chance.random() * n / 6)
        found.append({
            "shop": shop, "forecast": f, "sold": None if chance.random() < 0.1 else f + 0.4 + chance.normal(),
            "time": k // 2, "number": k, "known": k // 2 + late, "weight": chance.pick([0.0, 0.5, 1.0, 2.0]),
            "region": chance.pick(["north", "south"]), "size": chance.normal(), "row": f"r{k}", "day": k // 60,
        })  # fmt: skip
    return pa.Table.from_pylist(found)


def columns_of(table, known):
    return {name: plain(table[name].to_pylist()) for name in table.column_names if name not in known}


def table_run(spark, name, folder):
    """Two runs, the second from the state of the first."""
    from gradeq.spark import adjust, read

    make, late = LAYERS[name]
    table, state, told = rows(name), None, {}
    for k, part in enumerate((table.slice(0, 140), table.slice(140))):
        given = {**COLUMNS, "label_time": "known" if late else None, "weight": "weight" if k else None}
        made = adjust(spark.createDataFrame(part), make(), state=state, buckets=3, **given)
        written = made.write(folder / f"{name}{k}")
        state = written.state
        out = written.rows.toArrow().sort_by("number")
        told[f"rows {k}"] = columns_of(out, table.column_names)
    again = read(spark, folder / f"{name}1")
    found = again.certificates.toArrow().sort_by("key")
    told["certificates"] = columns_of(found, ())
    told["certificate"] = plain(again.equilibrium().as_dict())
    return told


def stream(spark, folder):
    """Events of a stream: outcomes, and certificates at the end."""
    from gradeq.spark import certificates_of, events_of, follow, refusals

    chance, events = Chance("stream"), []
    for k in range(90):
        shop, late = chance.pick(["u", "v"]), 1 + int(9 * chance.random())
        events.append((float(k), shop, f"r{k}", chance.normal(), None))
        for copy in range(chance.pick([0, 1, 1, 1, 2])):
            y = chance.normal() if copy and chance.random() < 0.5 else 0.5
            events.append((k + late + 0.25 + copy, shop, f"r{k}", None, y))
    events.sort(key=lambda own: own[0])
    at, shop, row, f, y = zip(*events, strict=True)
    source = folder / "events"
    source.mkdir()
    table = pa.table({
        "shop": shop, "row": row, "at": at, "forecast": pa.array(f, pa.float64()), "sold": pa.array(y, pa.float64()),
    })  # fmt: skip
    pq.write_table(table, source / "events.parquet")
    frame = spark.readStream.schema(STREAM).parquet(str(source))
    followed = follow(
        frame, gq.Debiaser(eta=0.1), prediction="forecast", label="sold", key="shop", id="row", order="at", buckets=2
    )
    query = (
        followed.whole.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    with refusals():
        query.awaitTermination()
    out = spark.read.parquet(str(folder / "out"))
    told = [
        [plain(own[n]) for n in ("key", "id", "event", "outcome", "adjusted")] for own in events_of(out).collect()
    ]
    last = {own["key"]: own["theta"] for own in certificates_of(out).collect()}
    return {"events": sorted(told, key=repr), "theta": last}


def whole(spark, folder):
    """One layer over all partitions, in rounds; as a table, and as micro-batches."""
    from gradeq.spark import adjust_whole, layer_in, whole_stream

    table, seen = rows("whole"), []
    given = {"prediction": "forecast", "label": "sold"}
    made = adjust_whole(spark.createDataFrame(table), gq.Debiaser(0.2, groups=["region"]), batch="day", **given)
    out = made.rows.orderBy("number").toArrow()
    post = whole_stream(
        folder / "whole", gq.Debiaser(0.2, groups=["region"]),
        write=lambda frame, k: seen.append(frame.orderBy("number").toArrow()), **given,
    )  # fmt: skip
    for day in range(4):
        post(spark.createDataFrame(table.slice(60 * day, 60)), day)
    return {
        "rows": columns_of(out, table.column_names),
        "rounds": plain(list(made.rounds)),
        "certificate": certificate(made.layer),
        "batches": [columns_of(own, table.column_names) for own in seen],
        "stream certificate": certificate(layer_in(folder / "whole")[0]),
    }


def board(spark, folder):
    from gradeq.spark import elo

    chance, games = Chance("board"), []
    for _ in range(300):
        a = chance.pick(PLAYERS)
        b = chance.pick([own for own in PLAYERS if own != a])
        games.append(
            {
                "a": a,
                "b": b,
                "s": chance.pick([0.0, 0.5, 1.0]),
                "w": chance.pick([1.0, 2.0]),
                "h": chance.pick([1.0, 0.0]),
            }
        )
    frame = spark.createDataFrame(pa.Table.from_pylist(games)).repartition(3)
    layer = elo(frame, gq.Elo(0.1, home_advantage=True), a="a", b="b", score="s", weight="w", home="h")
    return {
        "leaderboard": plain([own[:8] for own in layer.leaderboard("all-time")]),
        "rows": layer.equilibrium().rows,
    }


MORE = {"stream": stream, "whole": whole, "board": board}


def cases():
    return {FAMILY: {**LAYERS, **MORE}}


def trees(family, names):
    if why := missing():
        raise RuntimeError(why)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as name:
        warnings.filterwarnings("ignore", PANDAS.split(":")[1], FutureWarning)
        spark, folder = started(), Path(name)
        try:
            for case in names:
                made = table_run(spark, case, folder) if case in LAYERS else MORE[case](spark, folder)
                yield case, made
        finally:
            spark.stop()
