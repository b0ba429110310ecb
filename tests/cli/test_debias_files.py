"""gradeq debias on files gives what the library gives, to the last bit, however the file comes."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from cli.calling import column, gradeq, here, ok, refused, scores, table, write
from gradeq.cli import row_reader
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.keyed import Keyed
from gradeq.schedules import Power

COLUMNS = ("--prediction", "score", "--label", "outcome")
BINARY = (*COLUMNS, "--outcome", "binary")


@pytest.fixture
def rows():
    return scores()


@pytest.fixture
def file(rows, tmp_path: Path) -> Path:
    return write(tmp_path / "scores.csv", rows)


def numbers(rows, name: str) -> np.ndarray:
    return np.array([math.nan if row[name] == "" else float(row[name]) for row in rows])


def groups(rows, *names: str):
    return {name: [row[name] for row in rows] for name in names}


def same(path: Path, served) -> None:
    np.testing.assert_array_equal(column(path, "adjusted"), np.asarray(served))


def test_the_installed_command_serves_the_library_s_values_bit_for_bit(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    done = gradeq("debias", file, *BINARY, "--by", "region", "--by", "sex", "-o", out, cwd=tmp_path)
    assert done.code == 0 and "certificate exact" in done.out
    layer = Debiaser(outcome="binary", groups=["region", "sex"])
    run = layer.run(numbers(rows, "score"), numbers(rows, "outcome"), groups=groups(rows, "region", "sex"))
    same(out, run.served)
    for before, after in zip(rows, table(out), strict=True):
        after.pop("adjusted")
        assert after == {name: str(cell) for name, cell in before.items()}


def test_compas_gives_the_figures_of_the_authors_order(data_dir, reference_dir, tmp_path):
    with gzip.open(data_dir / "compas.csv.gz", "rt", encoding="utf-8") as text:
        header, *lines = text.read().splitlines()
    names = header.split(",")
    cells = {line.split(",")[0]: dict(zip(names, line.split(","), strict=True)) for line in lines}
    order = (reference_dir / "compas_row_order.txt").read_text().split()
    for row in cells.values():
        row["score"] = repr(int(row["v_decile_score"]) / 10)
    compas = write(tmp_path / "compas.csv", [cells[row] for row in order])
    settings = ("--prediction", "score", "--label", "is_recid", "--outcome", "binary")
    settings += ("--link", "shift", "--eta", "0.025")
    done = gradeq("debias", compas, *settings, "--json", cwd=tmp_path)
    found = ok(done).json
    assert (found["rows"], found["labelled"], found["eta"]) == (6787, 6787, 0.025)
    assert found["bias"]["before"] == pytest.approx(-0.11288, abs=5e-6)
    assert found["bias"]["after"] == pytest.approx(-0.00746, abs=5e-6)
    assert found["loss"]["name"] == "squared error"
    assert found["loss"]["before"] == pytest.approx(0.2509, abs=5e-5)
    assert found["loss"]["after"] == pytest.approx(0.2078, abs=5e-5)
    assert found["theta"]["(all)"] == pytest.approx(1.2664, abs=5e-5)
    assert found["certificate"]["gap"] < 1e-15 and not found["certificate"]["vacuous"]
    said = ok(gradeq("debias", compas, *settings, cwd=tmp_path)).out
    assert said.startswith("bias -0.113 -> -0.0075 over 6,787 rows; squared error 0.251 -> 0.208")


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--eta", "0.2"], {"eta": 0.2}),
        (["--link", "shift"], {"link": "shift"}),
        (["--eta", "auto"], {"eta": "auto"}),
        (["--eta", "0.3", "--decay", "0.4"], {"schedule": Power(0.3, 0.4)}),
        (["--clip", "0.01"], {"clip": 0.01}),
    ],
)
def test_each_option_sets_the_layer_it_names(file, rows, tmp_path, options, settings):
    out = tmp_path / "out.csv"
    ok(here("debias", file, *BINARY, *options, "-o", out, "--quiet"))
    layer = Debiaser(outcome="binary", **settings)
    same(out, layer.run(numbers(rows, "score"), numbers(rows, "outcome")).served)


def test_features_weights_and_penalty_reach_the_layer(file, rows, tmp_path):
    from gradeq.penalties import Ridge

    out = tmp_path / "out.csv"
    options = ["--feature", "x", "--by", "sex", "--weight", "weight", "--eta", "0.05"]
    options += ["--penalty", "ridge", "--strength", "0.1"]
    found = ok(here("debias", file, *BINARY, *options, "-o", out, "--json")).json
    layer = Debiaser(eta=0.05, outcome="binary", groups=["sex"], features=["x"], penalty=Ridge(0.1))
    run = layer.run(
        numbers(rows, "score"),
        numbers(rows, "outcome"),
        groups=groups(rows, "sex"),
        features={"x": numbers(rows, "x")},
        weights=numbers(rows, "weight"),
    )
    same(out, run.served)
    assert found["theta"] == layer.theta
    assert found["certificate"]["gap"] < 1e-14
    assert max(map(abs, found["certificate"]["average_penalty"].values())) > 0.0


def test_keys_have_layers_of_their_own(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    found = ok(here("debias", file, *BINARY, "--key", "shop", "-o", out, "--json")).json
    layer = Keyed(Debiaser(outcome="binary"))
    run = layer.run(numbers(rows, "score"), numbers(rows, "outcome"), key=[row["shop"] for row in rows])
    same(out, run.served)
    assert found["keys"] == 7 and "theta" not in found


def test_rows_are_served_by_time_and_written_in_the_order_of_the_file(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    found = ok(here("debias", file, *BINARY, "--time", "day", "-o", out, "--json")).json
    order = np.argsort(numbers(rows, "day"), kind="stable")
    served = np.empty(len(rows))
    layer = Debiaser(outcome="binary")
    run = layer.run(numbers(rows, "score")[order], numbers(rows, "outcome")[order])
    served[order] = run.served
    same(out, served)
    assert [row["id"] for row in table(out)] == [row["id"] for row in rows]
    assert found["theta"] == layer.theta


@pytest.mark.filterwarnings("ignore:.*labels? (has|have) a label time before")
def test_late_labels_are_learned_from_when_they_are_known(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    options = ["--time", "day", "--label-time", "known", "--ttl", "40", "--by", "sex"]
    found = ok(here("debias", file, *BINARY, *options, "-o", out, "--json")).json
    layer = Debiaser(outcome="binary", groups=["sex"], ttl=40.0)
    known = numbers(rows, "known")
    run = layer.run(
        numbers(rows, "score"),
        numbers(rows, "outcome"),
        groups=groups(rows, "sex"),
        times=numbers(rows, "day"),
        label_times=known,
    )
    same(out, run.served)
    assert found["learned"] == run.labelled < found["labelled"]
    assert found["capped"]["rows"] > 0 and found["capped"]["least"] < found["eta"]
    certificate = found["certificate"]
    assert certificate["gap"] < 1e-13
    assert certificate["average_gradient"] == pytest.approx(
        {c.name: c.average_gradient for c in layer.equilibrium().coordinates}, abs=1e-14
    )


def test_any_cut_of_the_stream_gives_the_same_bytes_and_figures(file, tmp_path, monkeypatch):
    def served(name: str, *options: str) -> tuple[bytes, dict]:
        out = tmp_path / name
        done = ok(here("debias", file, *BINARY, "--by", "region", *options, "-o", out, "--json"))
        return out.read_bytes(), done.json

    late = ("--time", "day", "--label-time", "known")
    whole = [served("a.csv"), served("b.csv", "--time", "day"), served("c.csv", *late)]
    monkeypatch.setattr("gradeq.files.table.BLOCK", 1 << 10)
    monkeypatch.setattr(row_reader, "_ROWS", 17)
    monkeypatch.setattr(row_reader, "_LONG", 0)  # read ahead and written behind in threads
    cut = [served("d.csv"), served("e.csv", "--time", "day"), served("f.csv", *late)]
    for (one, first), (other, second) in zip(whole, cut, strict=True):
        assert one == other
        for key in ("rows", "labelled", "learned", "theta", "capped"):
            assert first[key] == second[key]
        assert first["bias"] == pytest.approx(second["bias"], abs=1e-15)
        assert second["certificate"]["gap"] < 1e-13


def test_a_bad_row_late_in_a_long_file_leaves_nothing_behind(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("gradeq.files.table.BLOCK", 1 << 10)
    monkeypatch.setattr(row_reader, "_ROWS", 17)
    monkeypatch.setattr(row_reader, "_LONG", 0)
    rows[390]["score"] = "abc"
    file = write(tmp_path / "bad.csv", rows)
    line = refused(here("debias", file, *BINARY, "-o", tmp_path / "out.csv"))
    assert "row 391" in line
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize("kind", ["gz", "parquet", "stdin", "two files"])
def test_every_way_in_and_out_serves_the_same_values(file, rows, tmp_path, kind):
    plain = tmp_path / "plain.csv"
    ok(here("debias", file, *BINARY, "-o", plain, "--quiet"))
    expected = column(plain, "adjusted")
    out = tmp_path / ("out.parquet" if kind == "parquet" else "out.csv.gz")
    if kind == "stdin":
        done = gradeq("debias", "-", *BINARY, "-o", out, "--quiet", cwd=tmp_path,
                      stdin=file.read_text())  # fmt: skip
        ok(done)
    elif kind == "two files":
        first = write(tmp_path / "one.csv", rows[:150])
        second = write(tmp_path / "two.csv", rows[150:])
        ok(here("debias", first, second, *BINARY, "-o", out, "--quiet"))
    elif kind == "gz":
        zipped = tmp_path / "scores.csv.gz"
        zipped.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        ok(here("debias", zipped, *BINARY, "-o", out, "--quiet"))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        source = tmp_path / "scores.parquet"
        frame = pa.table(
            {
                "score": numbers(rows, "score"),
                "outcome": pa.array(numbers(rows, "outcome"), from_pandas=True),
                "id": [row["id"] for row in rows],
            }
        )
        pq.write_table(frame, source)
        ok(here("debias", source, *BINARY, "-o", out, "--quiet"))
        written = pq.read_table(out)
        assert written.column("adjusted").to_pylist() == expected
        assert written.select(frame.schema.names).equals(frame)
        return
    with gzip.open(out, "rt", encoding="utf-8", newline="") as text:
        (tmp_path / "unzipped.csv").write_text(text.read())
    assert column(tmp_path / "unzipped.csv", "adjusted") == expected


def test_runs_that_continue_a_state_equal_one_run(rows, tmp_path):
    rows = sorted(rows, key=lambda row: row["day"])
    whole = write(tmp_path / "whole.csv", rows)
    parts = [write(tmp_path / f"{k}.csv", part) for k, part in enumerate((rows[:123], rows[123:]))]
    late = ("--time", "day", "--label-time", "known", "--by", "region")
    for options in ((), ("--by", "region", "--by", "sex", "--eta", "0.1"), late):
        one, state = tmp_path / "one.json", tmp_path / "state.json"
        one.unlink(missing_ok=True)
        state.unlink(missing_ok=True)
        first = ok(here("debias", whole, *BINARY, *options, "--state", one, "-o",
                        tmp_path / "one.csv", "--json")).json  # fmt: skip
        values: list[float] = []
        for k, part in enumerate(parts):
            out = tmp_path / f"out{k}.csv"
            # The second call leaves the step out: that of the state holds.
            given = [o for o in options if k == 0 or o not in ("--eta", "0.1")]
            last = ok(here("debias", part, *BINARY, *given, "--state", state, "-o", out, "--json"))
            values += column(out, "adjusted")
        assert values == column(tmp_path / "one.csv", "adjusted")
        assert last.json["theta"] == first["theta"]
        assert last.json["rows"] == len(rows) - 123
        assert last.json["certificate"]["gap"] < 1e-13
        assert last.json["certificate"]["average_gradient"] == pytest.approx(
            first["certificate"]["average_gradient"], abs=1e-14
        )


def test_the_groups_of_the_summary_are_means_over_their_own_rows(file, rows, tmp_path):
    out = tmp_path / "out.csv"
    found = ok(here("debias", file, *BINARY, "--by", "region", "-o", out, "--json")).json
    served = np.array(column(out, "adjusted"))
    y, p = numbers(rows, "outcome"), numbers(rows, "score")
    known = ~np.isnan(y)
    names = {group["name"]: group for group in found["groups"]}
    assert set(names) == {"region=north", "region=south", "region==east", "region=(missing)"}
    for value, shown in (("north", "north"), ("", "(missing)"), ("=east", "=east")):
        mine = np.array([row["region"] == value for row in rows])
        group = names[f"region={shown}"]
        assert group["rows"] == mine.sum()
        own = mine & known
        assert group["labelled"] == own.sum()
        assert group["bias"]["before"] == pytest.approx((p - y)[own].mean(), abs=1e-14)
        assert group["bias"]["after"] == pytest.approx((served - y)[own].mean(), abs=1e-14)
        assert group["loss"]["after"] == pytest.approx(((served - y)[own] ** 2).mean(), abs=1e-14)
        assert group["bound"] > 0.0
    assert found["bias"]["after"] == pytest.approx((served - y)[known].mean(), abs=1e-14)
    clipped = np.clip(served, 1e-6, 1 - 1e-6)[known]
    log_loss = -(y[known] * np.log(clipped) + (1 - y[known]) * np.log(1 - clipped)).mean()
    assert found["log_loss"]["after"] == pytest.approx(log_loss, abs=1e-12)


def test_json_is_one_object_and_quiet_is_silent(file, tmp_path):
    done = gradeq("debias", file, *BINARY, "--json", cwd=tmp_path)
    assert done.out.count("\n") == 1 and ok(done).json["command"] == "debias"
    assert ok(gradeq("debias", file, *BINARY, "--quiet", cwd=tmp_path)).out == ""


def test_a_file_without_any_label_is_served_as_it_is(rows, tmp_path):
    bare = write(tmp_path / "bare.csv", [{**row, "outcome": "NA"} for row in rows])
    out = tmp_path / "out.csv"
    found = ok(here("debias", bare, *COLUMNS, "-o", out, "--json")).json
    assert found["labelled"] == 0 and found["bias"] == {"before": None, "after": None}
    assert column(out, "adjusted") == list(numbers(rows, "score"))
    assert "nothing to judge" in ok(here("debias", bare, *COLUMNS)).out
