"""Input that a state has seen is refused by id, by time and by content; --again takes it and the state notes it."""

from pathlib import Path

import pytest

import gradeq as gq
from cli.calling import here, ok, prices, refused, scores, table, write

BASE = ("--prediction", "forecast", "--label", "price", "--eta", "0.1")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return [{"id": k, **row} for k, row in enumerate(prices(60))]


def run(*options: object, state: str = "s.json"):
    return here("debias", *options, "--state", state)


def test_the_same_rows_are_known_by_their_content_whatever_the_file(rows):
    write(Path("a.csv"), rows)
    write(Path("b.csv"), [{"note": "new", **row} for row in rows])  # a column that is not used
    write(Path("half1.csv"), rows[:25])
    write(Path("half2.csv"), rows[25:])
    ok(run("a.csv", *BASE, "-o", "out.csv"))
    before = Path("s.json").read_bytes()
    for files in (["a.csv"], ["b.csv"], ["half1.csv", "half2.csv"]):
        line = refused(run(*files, *BASE, "-o", "other.csv"))
        assert "has seen these 60 rows: run 1 served them and wrote out.csv; give --again" in line
    assert Path("s.json").read_bytes() == before and not Path("other.csv").exists()
    ok(run("half1.csv", *BASE))
    assert "run 2 served them" in refused(run("half1.csv", *BASE))
    changed = [row | {"price": row["price"] + (k == 59)} for k, row in enumerate(rows)]
    ok(run(write(Path("c.csv"), changed), *BASE))
    ok(run("a.csv", *BASE, "--again", "--quiet"))
    layer = gq.load("s.json")
    assert layer.log == [("again: the state has seen these 60 rows: run 1 served them and wrote out.csv", 205)]
    assert layer.traffic["served"] == 205
    assert "again" in str(ok(here("audit", "s.json", "--json")).json["log"])


def test_only_the_last_hundred_runs_are_remembered(rows):
    one = write(Path("one.csv"), rows[:1])
    ok(run(one, *BASE, "--quiet"))
    for k in range(1, 51):
        ok(run(write(Path("next.csv"), [rows[1] | {"forecast": k}]), *BASE, "--quiet"))
    assert "run 1 served" in refused(run(one, *BASE))
    layer = gq.load("s.json")
    runs = layer.internals.tickets.desk["runs"]
    layer.internals.tickets.desk["runs"] = [[k, f"{k}", 1, []] for k in range(-49, 1)] + runs
    layer.internals.tickets.desk["runs"][50], layer.internals.tickets.desk["runs"][0] = (
        layer.internals.tickets.desk["runs"][0],
        layer.internals.tickets.desk["runs"][50],
    )
    layer.save("s.json")
    ok(run(write(Path("next.csv"), [rows[1] | {"forecast": 99}]), *BASE, "--quiet"))
    assert len(gq.load("s.json").internals.tickets.desk["runs"]) == 100
    ok(run(one, *BASE, "--quiet"))


def test_rows_from_before_the_last_time_are_refused(rows):
    timed = (*BASE, "--time", "day")
    ok(run(write(Path("a.csv"), rows[20:40]), *timed))
    before = Path("s.json").read_bytes()
    line = refused(run(write(Path("b.csv"), rows[:20]), *timed))
    assert "the first time here is 0, before 39, the last one that the state has seen; give --again" in line
    assert Path("s.json").read_bytes() == before
    same = [row | {"day": 39} for row in rows[40:50]]
    ok(run(write(Path("c.csv"), same), *timed))  # the same moment is not before it
    ok(run("b.csv", *timed, "--again", "--quiet"))
    assert "before 39" in refused(run(write(Path("d.csv"), rows[30:39]), *timed))
    dated = [row | {"day": f"2024-01-{k + 1:02d}"} for k, row in enumerate(rows[:9])]
    assert "holds dates without a zone here, and times were numbers before" in refused(
        run(write(Path("e.csv"), dated), *timed)
    )
    for delay in ("3", "2d"):
        state = f"{delay}.json"
        later = [row | {"day": f"2024-02-{k + 1:02d}"} for k, row in enumerate(rows[:9])]
        ok(run(write(Path("f.csv"), later), *timed, "--delay", delay, state=state))
        line = refused(run("e.csv", *timed, "--delay", delay, state=state))
        assert "is 2024-01-01, before 2024-02-09" in line


def test_known_ids_are_refused_and_taken_again(rows):
    for row in rows[::4]:
        row["price"] = ""
    given = (*BASE, "--id", "id")
    ok(run(write(Path("a.csv"), rows[:30]), *given))
    file = write(Path("b.csv"), [row | {"forecast": row["forecast"] + 1} for row in rows[29:]])
    assert "row 1: id '29' is in the state already and has its label; give --again" in refused(run(file, *given))
    file = write(Path("c.csv"), [row | {"forecast": row["forecast"] + 1} for row in [*rows[30:], rows[28]]])
    assert "row 31: id '28' is in the state already and waits for its label" in refused(run(file, *given))
    ok(run(file, *given, "--again", "--quiet"))
    layer = gq.load("s.json")
    assert layer.log == [("again: 1 id was served before", 61)]
    assert layer.traffic["open"] == 15 and layer.traffic["served"] == 61
    # Without a state ids are unique within the run, wherever pieces end.
    assert "row 3: id '5' appears twice" in refused(
        here("debias", write(Path("d.csv"), [rows[5], rows[6], rows[5]]), *given)
    )
    assert "row 2: column 'id' has no id" in refused(
        here("debias", write(Path("e.csv"), [rows[5], rows[6] | {"id": ""}]), *given)
    )
    ok(here("debias", "a.csv", *given))


def test_ids_are_unique_across_keys(rows):
    keyed = [row | {"id": k // 2, "shop": k % 2} for k, row in enumerate(rows)]
    line = refused(run(write(Path("a.csv"), keyed), *BASE, "--key", "shop", "--id", "id"))
    assert "row 2: id '0' appears twice" in line and not Path("s.json").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--again",), "--again is for rows that are in the state already"),
        (("--id", "none"), "none"),
        (("--id",), "--id"),
    ],
)
def test_options_that_make_no_sense_are_refused(rows, options, word):
    file = write(Path("a.csv"), rows)
    assert word in refused(here("debias", file, *BASE, *options))


@pytest.mark.parametrize("given", [(), ("--id", "id"), ("--state", "s.json")])
def test_labels_are_left_out_only_where_they_can_come_later(rows, given):
    call = ("debias", write(Path("a.csv"), rows), "--prediction", "forecast")
    assert "--label is missing" in refused(here(*call, *given))
    late = ("--id", "id", "--state", "s.json", "--time", "day", "--label-time", "day")
    assert "give --label as well" in refused(here(*call, *late))
    found = ok(here(*call, *late[:4], "--json")).json
    assert (found["labels"], found["labelled"], found["open"], found["run"]) == ("later", 0, 60, 1)
    assert not [w for w in found["warnings"] if "Too few" in w["claim"]]


def test_ids_change_nothing_that_is_served(tmp_path):
    file = write(tmp_path / "scores.csv", scores())
    call = ("debias", file, "--prediction", "score", "--label", "outcome", "--by", "sex", "--weight", "weight")
    for when in ((), ("--time", "day", "--label-time", "known"), ("--delay", "7")):
        one, two = tmp_path / "one.csv", tmp_path / "two.csv"
        plain = ok(here(*call, *when, "-o", one, "--json")).json
        state = tmp_path / f"{len(when)}{when[-1:]}.json"
        named = ok(here(*call, *when, "-o", two, "--id", "id", "--state", state, "--json")).json
        assert table(one) == table(two)
        assert {k: plain[k] for k in plain if k != "warnings"} == {k: named[k] for k in plain if k != "warnings"}
        layer = gq.load(state)
        assert len(layer.ids) == 400 and layer.traffic["open"] > 30


def test_a_desk_that_makes_no_sense_is_a_damaged_state(rows):
    file = write(Path("a.csv"), rows)
    ok(run(file, *BASE, "--quiet"))
    for wrong in (
        {"runs": [[1, "x"]]},
        {"runs": 7},
        {"times": {"kind": "dates", "row": "noon"}},
        {"times": {"x": 1}},
    ):
        layer = gq.load("s.json")
        layer.internals.tickets.desk.update(wrong)
        layer.save("bad.json")
        assert "damaged" in refused(run(file, *BASE, state="bad.json"), 3)


def test_what_was_taken_again_and_what_came_too_late_is_said(rows):
    write(Path("a.csv"), rows)
    ok(run("a.csv", *BASE))
    done = ok(run("a.csv", *BASE, "--again"))
    assert "Note: Rows that the state had seen were taken again (--again)." in done.out
    assert "the state has seen these 60 rows: run 1 served them" in done.out
    assert "--again" not in ok(run(write(Path("c.csv"), rows[:7]), *BASE)).out
    dated = [
        row | {"day": f"2024-03-{1 + k // 4:02d}", "known": f"2024-03-{(2 if k % 4 else 9) + k // 4:02d}"}
        for k, row in enumerate(rows)
    ]
    late = ("--time", "day", "--label-time", "known")
    write(Path("d.csv"), dated)
    said = ok(run("d.csv", *BASE, *late, "--ttl", "3d", state="late.json")).out
    # Every fourth label comes 8 days later; those of the last days are not due by the last row.
    assert "labels came later than --ttl 3d allows and were not learned from." in said
    assert "--ttl" not in ok(run("d.csv", *BASE, *late, state="other.json")).out
    line = refused(run(write(Path("e.csv"), dated[:9]), *BASE, *late, "--ttl", "7d", state="late.json"))
    assert "with --ttl 3d, this run with --ttl 7d" in line


@pytest.mark.parametrize("more", [["--time", "day"], ["--id", "no"], ["--time", "day", "--id", "no"]])
def test_rows_that_come_again_whole_are_called_so_whatever_else_gives_them_away(rows, more):
    """By its content a run is named; the first id or time would leave open whether all of it was seen."""
    numbered = write(Path("a.csv"), [{"no": f"r{k}", **row} for k, row in enumerate(rows)])
    ok(run(numbered, *BASE, *more, "--quiet"))
    before = Path("s.json").read_bytes()
    assert "the state has seen these 60 rows: run 1 served them; give --again" in refused(run(numbered, *BASE, *more))
    assert Path("s.json").read_bytes() == before


def test_a_refusal_has_one_remedy_and_the_way_round_it(rows):
    timed = write(Path("a.csv"), rows[:30])
    ok(run(timed, *BASE, "--time", "day", "--quiet"))
    line = refused(run(write(Path("b.csv"), rows[30:]), *BASE))
    assert line.endswith("the rows of this state have times; give --time as before, or --again to go on without")
