"""Predictions today, labels next week: files over days give what one Python layer gives for the same events."""

import csv
import random
from pathlib import Path
from typing import Any

import pytest

import gradeq as gq
from cli.calling import here, ok, refused, table, write
from gradeq.cli.label_job import WORDS

LATE = 3


def month(seed: int = 5, days: int = 30, rows: int = 20) -> list[list[dict[str, Any]]]:
    """Orders of every day: too low a forecast, by region, and what came true."""
    rng = random.Random(seed)
    found = []
    for day in range(days):
        made = []
        for k in range(rows):
            f = rng.gauss(10.0, 2.0)
            y = round(f + 1.0 + 0.05 * day + rng.gauss(0.0, 1.0), 3)
            date = f"2024-03-{day + 1:02d}"
            made.append(
                {
                    "order": f"{day}-{k}",
                    "forecast": round(f, 3),
                    "region": rng.choice("ns"),
                    "shop": rng.choice("abc"),
                    "day": date,
                    "sold": "" if rng.random() < 0.1 else y,
                    "known": f"{date}T{rng.randrange(24):02d}:00",
                }
            )
        found.append(made)
    return found


def split(folder: Path, days: list[list[dict[str, Any]]]) -> tuple[list[Path], list[Path]]:
    """A file of predictions and a file of labels for every day; labels in another order."""
    asked, told = [], []
    for k, rows in enumerate(days):
        served = [{name: row[name] for name in ("order", "forecast", "region", "shop", "day")} for row in rows]
        labels = [{name: row[name] for name in ("order", "sold", "known")} for row in rows]
        random.Random(k).shuffle(labels)
        asked.append(write(folder / f"predictions{k}.csv", served))
        told.append(write(folder / f"labels{k}.csv", labels))
    return asked, told


def answers(path: Path) -> dict[str, float]:
    with open(path, newline="") as file:
        return {row["order"]: float(row["sold"]) for row in csv.DictReader(file) if row["sold"]}


FORECAST = ("--prediction", "forecast", "--id", "order")
SETTINGS: dict[str, tuple[tuple[str, ...], Any]] = {
    "auto by region": (("debias", "--by", "region"), lambda: gq.Debiaser(groups="region")),
    "keyed": (("debias", "--key", "shop"), lambda: gq.Keyed(gq.Debiaser())),
    "interval": (("quantile", "--interval", "0.8"), lambda: gq.IntervalTracker(0.8)),
    "levels": (
        ("quantile", "--level", "0.1", "--level", "0.9", "--eta", "0.2", "--by", "region", "--by", "shop"),
        lambda: gq.MultiQuantileTracker([0.1, 0.9], 0.2, groups=["region", "shop"]),
    ),
    "ridge": (
        ("debias", "--eta", "0.05", "--by", "region", "--penalty", "ridge", "--strength", "0.1"),
        lambda: gq.Debiaser(0.05, groups="region", penalty=gq.Ridge(0.1)),
    ),
}  # fmt: skip


def columns(layer: Any, rows: list[dict[str, str]]) -> dict[str, Any]:
    """The groups and the key that a layer asks for."""
    found: dict[str, Any] = {}
    if layer.internals.names.groups:
        found["groups"] = {name: [row[name] for row in rows] for name in layer.internals.names.groups}
    if layer.kind == "keyed":
        found["key"] = [row["shop"] for row in rows]
    return found


def serve(layer: Any, path: Path) -> Any:
    rows = table(path)
    values = [float(row["forecast"]) for row in rows]
    return layer.predict_many(values, ids=[row["order"] for row in rows], **columns(layer, rows))


@pytest.mark.parametrize("name", SETTINGS)
def test_thirty_days_of_files_are_the_events_of_one_layer(tmp_path, name):
    options, make = SETTINGS[name]
    days = month() if name == "auto by region" else month(days=9)
    asked, told = split(tmp_path, days)
    state, layer = tmp_path / "state.json", make()
    missing, repeated, corrected = (7, 11, 15) if len(days) > 10 else (2, 4, 3)
    for day, file in enumerate(asked):
        call = (
            options[0],
            file,
            *options[1:],
            *FORECAST,
            "--time",
            "day",
            "--state",
            state,
            "-o",
            tmp_path / "out.csv",
        )
        if day != missing:
            found = ok(here(*call, "--json")).json
            served = serve(layer, file)
            assert found["open"] == layer.traffic["open"]
            new = [name for name in table(tmp_path / "out.csv")[0] if name not in table(file)[0]]
            out = [[float(row[name]) for name in new] for row in table(tmp_path / "out.csv")]
            assert out == [value if isinstance(value, list) else [value] for value in map(plain, served)]
        if day == repeated:
            kept = state.read_bytes()
            assert "the state has seen these 20 rows: run " in refused(here(*call))
            assert state.read_bytes() == kept
            ok(here(*call, "--again", "--quiet"))
            for row in table(file):
                layer.forget(row["order"])
            serve(layer, file)
            by_now = layer.traffic["served"]
            assert gq.load(state).log[0] == ("again: 20 ids were served before", by_now)
        if day >= LATE:
            post = ("label", told[day - LATE], "--state", state, "--id", "order", "--label", "sold", "--json")
            counts = ok(here(*post)).json
            known = answers(told[day - LATE])
            outcomes = layer.update_many(list(known.values()), ids=list(known))
            assert {word: outcomes.count(word) for word in ("applied", "unknown", "duplicate")} == {
                word: counts[word] for word in ("applied", "unknown", "duplicate")
            }
            assert counts["skipped"] == 20 - len(known)
            if day - LATE == missing:
                assert counts["unknown"] == len(known) and counts["applied"] == 0
        if day == corrected + LATE and name != "ridge":
            id = next(iter(answers(told[corrected])))
            change = write(tmp_path / "change.csv", [{"order": id, "sold": 99.5}])
            post = ("label", change, "--state", state, "--id", "order", "--label", "sold", "--json")
            assert ok(here(*post)).json["conflict"] == 1
            assert ok(here(*post, "--correct")).json["corrected"] == 1
            layer.correct(id, 99.5)
    kept = gq.load(state)
    assert kept.internals.state.saved() == layer.internals.state.saved() and kept.ids == layer.ids
    assert kept.equilibrium().as_dict() == layer.equilibrium().as_dict()
    assert ok(here("audit", state)).out


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize(
    "words", [(0, 0.5, 1), ("b", "tie", "a"), ("model_b", "tie (bothbad)", "model_a"), ("Away", "draw", "HOME")]
)
def test_games_may_be_settled_later_by_scores_or_words(tmp_path, words):
    games = [{"id": k, "a": f"p{k % 5}", "b": f"p{(k + 1 + k % 3) % 5}", "s": ""} for k in range(30)]
    file, state = write(tmp_path / "games.csv", games), tmp_path / "elo.json"
    call = ("elo", file, "--a", "a", "--b", "b", "--score", "s", "--id", "id", "--state", state)
    assert ok(here(*call, "--json")).json["open"] == 30
    scores = [{"id": k, "s": words[k % 3]} for k in reversed(range(30))]
    post = ("label", write(tmp_path / "scores.csv", scores), "--state", state, "--id", "id", "--label", "s")
    told = ok(here(*post)).out
    assert "30 labels applied; 0 rows still wait for a label." in told
    layer = gq.Elo()
    layer.predict_many([g["a"] for g in games], [g["b"] for g in games], ids=[str(g["id"]) for g in games])
    won = dict(zip(words, (0.0, 0.5, 1.0), strict=True))
    layer.update_many([won[s["s"]] for s in scores], ids=[str(s["id"]) for s in scores])
    assert gq.load(state).internals.state.saved() == layer.internals.state.saved()
    board = layer.board()
    assert board.lines[0] in told.splitlines()
    for row in board.rows:
        assert any(line.split()[:1] == [row.player] and f" {row.elo:.0f} " in line for line in told.splitlines())


@pytest.fixture
def served(tmp_path) -> Path:
    """A state with rows of three days that wait for their labels."""
    asked, _ = split(tmp_path, month(days=3))
    state = tmp_path / "state.json"
    for file in asked:
        ok(
            here(
                "debias", file, *FORECAST, "--eta", "0.1", "--time", "day", "--ttl", "3d", "--state", state, "--quiet"
            )
        )
    return state


def label(state: Path, rows: list[dict[str, Any]], *options: object) -> Any:
    file = write(state.with_name("labels.csv"), rows)
    return here("label", file, "--state", state, "--id", "order", "--label", "sold", *options)


def test_every_label_is_counted_once_and_what_is_not_used_is_written_down(served, tmp_path):
    out = tmp_path / "no.csv"
    rows = [
        {"order": "0-1", "sold": 12.5, "rejected": "007"}, {"order": "0-1", "sold": "12.50", "rejected": ""},
        {"order": "0-1", "sold": 13, "rejected": "x"}, {"order": "nobody", "sold": 1, "rejected": "=1"},
        {"order": "0-2", "sold": "NA", "rejected": ""}, {"order": "", "sold": "", "rejected": ""},
    ]  # fmt: skip
    done = ok(label(served, rows, "--rejected", out))
    assert (
        "1 label applied; 1 the same as before (duplicate); 1 unlike the label learned from (conflict); "
        "1 with an unknown id; 2 blank; 59 rows still wait" in done.out
    )
    assert "Since the state began: bias" in done.out and "squared error" in done.out and "certificate" in done.out
    assert "--correct replaces the old value by the new one" in done.out
    assert [(row["order"], row["sold"], row["rejected"], row["rejected_"]) for row in table(out)] == [
        ("0-1", "13", "x", "conflict"), ("nobody", "1", "=1", "unknown"),
    ]  # fmt: skip
    counts = ok(label(served, rows, "--correct", "--json")).json
    wanted = {"applied": 0, "duplicate": 0, "conflict": 0, "unknown": 1, "expired": 0, "corrected": 3, "skipped": 2}
    # 12.5 again is a duplicate only until 13 has come in its place.
    assert {name: counts[name] for name in wanted} == wanted | {"duplicate": 2, "corrected": 1}
    assert ok(label(served, rows, "--quiet")).out == ""


def test_labels_are_posted_in_the_order_of_their_times_and_expire(served):
    other = served.with_name("other.json")
    other.write_bytes(served.read_bytes())
    rows = [
        {"order": "0-1", "sold": 12.5, "known": "2024-03-03"}, {"order": "1-1", "sold": 9, "known": "2024-03-02"},
        {"order": "0-3", "sold": 9, "known": "2024-03-05"}, {"order": "0-4", "sold": "", "known": ""},
        {"order": "2-0", "sold": 11, "known": "2024-03-04"},
    ]  # fmt: skip
    counts = ok(label(served, rows, "--label-time", "known", "--json")).json
    assert (counts["applied"], counts["expired"], counts["skipped"]) == (3, 1, 1)
    ok(label(other, [rows[1], rows[0], rows[4]]))
    one, two = gq.load(served), gq.load(other)
    assert one.internals.state.saved() == two.internals.state.saved() and one.ids["0-3"] == "expired"
    assert one.theta != gq.Debiaser(0.1).theta
    again = ok(label(served, rows[2:3], "--json")).json
    assert again["expired"] == 1
    # Rows from before the last label's time are served, and it is said that they know what came later.
    file = write(served.with_name("next.csv"), [{"order": "n", "forecast": 9, "day": "2024-03-03"}])
    call = ("debias", file, *FORECAST, "--eta", "0.1", "--time", "day", "--ttl", "3d", "--state", served)
    assert "labels from their future" in ok(here(*call)).out


@pytest.mark.parametrize(
    ("rows", "options", "word"),
    [
        ([{"order": "0-1", "sold": 1}, {"order": "0-2", "sold": "x"}], (), "row 2: column 'sold' has 'x'"),
        ([{"order": "0-1", "sold": 1}, {"order": "0-2", "sold": "inf"}], (), "row 2"),
        ([{"order": "0-1", "sold": 1}, {"order": "", "sold": 1}], (), "row 2: column 'order' has no id"),
        ([{"order": "0-1", "sold": 1, "t": ""}], ("--label-time", "t"), "row 1: column 't' has no time"),
        ([{"order": "0-1", "sold": 1, "t": 5}], ("--label-time", "t"), "times were dates without a zone before"),
        ([{"order": "0-1", "sold": 1}], ("--label-time", "none"), "none"),
        ([{"order": "0-1", "sold": 1}], ("--rejected", "no/such/folder.csv"), "there is no folder"),
        ([{"order": "0-1", "sold": 1}], ("--rejected", "x.txt"), "must end in .csv"),
        ([{"order": "0-1", "day": 1}], (), "sold"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_bad_labels_are_refused_in_one_line_and_nothing_is_applied(served, rows, options, word):
    before, files = served.read_bytes(), set(served.parent.iterdir())
    line = refused(label(served, rows, *options))
    assert word in line
    assert served.read_bytes() == before
    assert {path for path in served.parent.iterdir() if path.name != "labels.csv"} == files


def test_what_is_no_state_is_refused(served, tmp_path):
    rows = [{"order": "0-1", "sold": 1}]
    assert "does not exist" in refused(label(tmp_path / "none.json", rows))
    assert not (tmp_path / "none.json").exists()
    served.write_text(served.read_text()[:-9])
    refused(label(served, rows), 3)
    binary = write(tmp_path / "p.csv", [{"order": "a", "p": 0.5}])
    state = tmp_path / "binary.json"
    ok(here("debias", binary, "--prediction", "p", "--outcome", "binary", "--id", "order", "--state", state))
    assert "outside [0, 1]" in refused(label(state, [{"order": "a", "sold": 7}]))


def test_a_layer_saved_in_python_takes_labels_from_files(tmp_path):
    layer, state = gq.Debiaser(0.1), tmp_path / "state.json"
    layer.predict_many([1.0, 2.0, 3.0], ids=[7, "8", "007"])
    layer.save(state)
    rows = [{"order": order, "sold": 1.5} for order in ("7", "8", "007", "9")]
    assert ok(label(state, rows, "--json")).json["applied"] == 3
    layer.update_many([1.5] * 3, ids=[7, "8", "007"])
    assert gq.load(state).internals.state.saved() == layer.internals.state.saved()


@pytest.mark.parametrize("spelled", ["{}.0", "{}"])
def test_ids_that_a_data_frame_wrote_as_floats_are_the_whole_numbers_they_were(spelled, tmp_path):
    asked = write(tmp_path / "asked.csv", [{"id": 1000 + k, "f": 1.0} for k in range(5)])
    told = write(tmp_path / "told.csv", [{"id": spelled.format(1000 + k), "y": 2.0} for k in range(5)])
    state = tmp_path / "state.json"
    ok(here("debias", asked, "--prediction", "f", "--id", "id", "--state", state))
    done = ok(here("label", told, "--state", state, "--id", "id", "--label", "y", "--json"))
    assert (done.json["applied"], done.json["unknown"], done.json["open"]) == (5, 0, 0)


def test_labels_that_no_row_waits_for_are_shown_beside_one_that_does(tmp_path):
    asked = write(tmp_path / "asked.csv", [{"id": f"2024-{k}", "f": 1.0} for k in range(3)])
    state = tmp_path / "state.json"
    ok(here("debias", asked, "--prediction", "f", "--id", "id", "--state", state))
    call = ("--state", state, "--id", "id", "--label", "y")
    none = write(tmp_path / "none.csv", [{"id": "2023-7", "y": 1.0}, {"id": "2024-2", "y": ""}])
    found = ok(here("label", none, *call, "--json")).json["warnings"]
    assert [warning["level"] for warning in found] == ["amber"]
    assert "'2023-7'" in found[0]["evidence"] and "'2024-0'" in found[0]["evidence"]
    assert "Warning: The state does not know the id of 1 label" in ok(here("label", none, *call)).out
    some = write(tmp_path / "some.csv", [{"id": "2023-7", "y": 1.0}, {"id": "2024-2", "y": 2.0}])
    assert "Note: The state does not know the id of 1 label." in ok(here("label", some, *call)).out


def test_a_file_of_labels_with_a_header_alone_is_nothing_to_do(served):
    before = gq.load(served)
    empty = served.parent / "empty.csv"
    empty.write_text("order,sold\n")
    own = ("--state", served, "--id", "order", "--label", "sold")
    done = ok(here("label", empty, *own))
    assert done.out.startswith("0 labels applied; ")
    found = ok(here("label", empty, *own, "--json", "--rejected", served.parent / "r.csv")).json
    assert [found[word] for word in WORDS] == [0] * len(WORDS)
    after = gq.load(served)
    assert after.ids == before.ids and after.theta == before.theta
    empty.write_text("")
    assert "is empty" in refused(here("label", empty, *own))


def test_strict_ends_with_1_where_a_label_was_not_used(served):
    known = {"order": "0-1", "sold": 1}
    own = ("--strict", "--quiet")
    assert label(served, [known], *own) == (0, "", "")
    assert label(served, [known], *own) == (0, "", "")  # a duplicate is no fault
    for row, word in (({"order": "nobody", "sold": 1}, "unknown"), (known | {"sold": 5}, "conflict")):
        done = label(served, [row, {"order": "0-2", "sold": ""}], *own)
        assert (done.code, done.out) == (1, "")
        assert done.err.count("\n") == 1 and f"1 of 1 label was not used (1 {word})" in done.err
        assert ok(label(served, [row], "--quiet")).code == 0
    assert label(served, [known | {"sold": 5}], *own, "--correct").code == 0


def test_labels_dated_before_their_rows_are_told_of_with_an_example(served):
    rows = [{"order": "0-1", "sold": 1, "t": "2001-01-01"}]
    done = ok(label(served, rows, "--label-time", "t"))
    assert "1 of 1 label is dated before its row" in done.out
    assert "id '0-1', 2001-01-01 before" in done.out and "cannot be known before" in done.out


def test_they_are_told_of_in_a_state_without_ttl_or_maturity_too(tmp_path):
    rows = [{"id": k, "t": "2025-10-20", "f": 100 + k} for k in range(10)]
    state = tmp_path / "s.json"
    own = ("--prediction", "f", "--id", "id", "--time", "t", "--state", state, "--quiet")
    ok(here("debias", write(tmp_path / "d.csv", rows), *own))
    labels = [{"id": k, "y": 103, "known": "2025-10-01"} for k in range(10)]
    call = ("--state", state, "--id", "id", "--label", "y", "--label-time", "known")
    done = ok(here("label", write(tmp_path / "l.csv", labels), *call))
    assert "10 of 10 labels are dated before their row" in done.out


def test_pages_tell_rows_that_wait_from_rows_without_a_label(tmp_path):
    rows = [{"id": k, "f": 100 + k % 5} for k in range(200)]
    state, page = tmp_path / "s.json", tmp_path / "r.html"
    own = ("--prediction", "f", "--id", "id", "--state", state, "--report", page, "--json")
    ok(here("debias", write(tmp_path / "d.csv", rows), *own))
    assert "without a label" not in page.read_text()
    labels = [{"id": k, "y": 103} for k in range(50)]
    ok(here("label", write(tmp_path / "l.csv", labels), "--state", state, "--id", "id", "--label", "y"))
    layer = gq.load(state)
    layer.report(page)
    assert "150 more wait for a label" in page.read_text() and "150 rows wait for their label" in page.read_text()
    assert "without a label" not in page.read_text()


def test_a_ttl_without_a_unit_is_said_to_be_seconds_where_times_are_dates(tmp_path):
    rows = [{"t": f"2025-10-{1 + k // 10:02d}", "f": 100 + k % 5, "y": 103 + k % 5} for k in range(200)]
    call = ("debias", write(tmp_path / "d.csv", rows), "--prediction", "f", "--label", "y", "--time", "t")
    for ttl, said in (("5", True), ("5d", False), ("5s", False)):
        done = ok(here(*call, "--ttl", ttl))
        assert ("--ttl 5 is read as seconds" in done.out) is said
