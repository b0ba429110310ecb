"""What gradeq is compared with does the same work, and what is said of it is what was measured."""

import math
import shutil

import numpy as np
import pytest

from benchmarks.cases import COLUMNS, EVENTS
from benchmarks.inputs import Data
from benchmarks.peers import install, program, said
from benchmarks.peers.goals import goals
from benchmarks.peers.growth import Growth, slope
from benchmarks.peers.latency import Latency
from benchmarks.peers.page import whole
from benchmarks.peers.race import Lane, Result, gap, race
from benchmarks.peers.systems import LOOP, OURS, PASS, SYSTEMS, entries, missing
from benchmarks.peers.tables import ALONE, Filed

ROWS = 300
SMALL = {"players": 12, "keys": 7}
SAME = [
    (system, task)
    for system in SYSTEMS
    if system not in (OURS, PASS)
    for task, entry in entries(system).items()
    if entry.close is not None
]


def served(system, task, rows=ROWS):
    return np.asarray(entries(system)[task].job(Data(rows, **SMALL))(), dtype=float)


@pytest.mark.parametrize(("system", "task"), SAME, ids=str)
def test_the_same_algorithm_serves_the_same(system, task):
    if missing(system):
        pytest.skip(missing(system))
    theirs, ours = served(system, task), served(OURS, task)
    assert theirs.shape == ours.shape
    assert np.abs(theirs - ours).max() <= entries(system)[task].close


@pytest.mark.parametrize("kind", EVENTS)
def test_events_one_by_one_are_the_columns(kind):
    """What is timed as an event is the work that is timed as a column."""
    if not EVENTS[kind].same or kind == "quantile, sinh":
        return
    assert np.array_equal(served(OURS, f"event: {kind}"), served(OURS, EVENTS[kind].same))


def test_columns_are_the_same_whenever_they_are_asked_for():
    one, two = Data(50), Data(50)
    one["y"], two["score"]
    for name in ("f", "y", "x", "a", "b", "score", "level forecasts"):
        assert np.array_equal(one[name], two[name])
    assert (one["a"] != one["b"]).all() and not np.array_equal(one["f"], one["y"])


def test_every_task_of_the_program_is_one_that_we_do():
    ours = entries(OURS)
    assert {task.name for task in program.TASKS.values()} <= set(COLUMNS)
    assert set(program.EVENTS) == set(EVENTS)
    for axis in program.AXES.values():
        assert axis.task in ours
        for system in axis.rows:
            assert axis.task in entries(system)
    done = {task.name for task in program.TASKS.values()} | set(program.EVENTS.values())
    for system in SYSTEMS:
        assert done & set(entries(system)), f"{system} takes part in nothing"


def test_the_peers_are_pinned_and_all_of_them_are_asked_for():
    lines = install.wanted(install.WANTED.read_text(encoding="utf-8"))
    names = {line.split("==")[0] for line in lines}
    assert all("==" in line for line in lines)
    assert names == {own.package for own in SYSTEMS.values()} - {"", "gradeq"}


def test_a_race_compares_and_measures(monkeypatch):
    """Real processes: ratios are of the same rows, and a system that cannot start is a line, not an end."""
    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    systems = [OURS, PASS] if shutil.which("cc") or shutil.which("gcc") else [OURS]
    found = race("one", "scalar", systems, 2, rows=400)
    assert [own.system for own in found] == systems
    for own in found:
        assert own.rows == 400 and own.cpu > 0.0 and own.error == ""
        assert own.ours == found[0].cpu
    failed = race("one", "scalar", ["torch loop"], 1, rows=0)
    if missing("torch loop"):
        assert failed[0].cpu is None and "torch" in failed[0].error


def test_outputs_that_differ_end_the_run(tmp_path):
    class Served:
        def __init__(self, name, values):
            self.out = tmp_path / f"{name}.npy"
            np.save(self.out, values)

    entry = entries("river")["scalar"]
    lanes = {
        Lane(OURS, 3): Served("ours", np.zeros(3)),
        Lane("river", 3): Served("river", np.array([0.0, 0.0, 1e-12])),
        Lane("elote", 3): Served("elote", np.array([0.0, 0.0, 1e-3])),
        Lane("riix", 3): Served("riix", np.zeros(2)),
    }
    assert gap("scalar", Lane("river", 3), entry, lanes) == 1e-12
    for system in ("elote", "riix"):
        with pytest.raises(AssertionError, match=system):
            gap("scalar", Lane(system, 3), entry, lanes)


def result(task, system, rows, cpu, **more):
    return Result(task, system, rows, cpu, 2 * cpu, 1.0, 100.0, None, "a <remark>", **more)


COLUMNS_FOUND = [
    result("quantile", OURS, 1000, 1e-8, ours=1e-8, loop=4e-9, memory=1e-9),
    result("quantile", LOOP, 1000, 4e-9, ours=1e-8, loop=4e-9, memory=1e-9),
    result("quantile", OURS, 10, 5e-8, ours=5e-8, loop=4e-9, memory=1e-9),
    result("quantile", "torch loop", 10, 1e-3, ours=5e-8, loop=4e-9, memory=1e-9),
    Result("quantile", "river", 5, None, None, None, None, None, "", error="no such module"),
]
EVENTS_FOUND = [Latency("scalar", OURS, 10, 2.0, 3.0, 2.0), Latency("scalar", "river", 10, 1.0, 1.5, 1.0)]
FILES_FOUND = [
    Filed("Parquet", "gradeq debias --key", 100, 3.0, 3.0, 500.0),
    Filed("Parquet", ALONE, 100, 1.0, 1.0, 200.0),
]
GROWTH_FOUND = [Growth("rows", OURS, 0.01, {10: 1.0, 100: 1.02})]
TABLES = [
    said.of_columns(COLUMNS_FOUND), said.of_events(EVENTS_FOUND), said.of_files(FILES_FOUND),
    said.of_growth(GROWTH_FOUND),
]  # fmt: skip


def test_ratios_are_of_the_same_rows_and_yardsticks_are_shown_once():
    lines = {(row[1], row[2]): row for row in TABLES[0].rows}
    assert (OURS, "10") not in lines and (OURS, "1,000") in lines
    assert lines["torch loop", "10"][5] == "20,000"  # 1e-3 over 5e-8, not over 1e-8
    assert "no such module" in lines["river", "5"][-1]
    assert TABLES[1].rows[1][-1] == "0.50" and TABLES[2].rows[0][5] == "3.00"
    for table in TABLES:
        assert all(len(row) == len(table.head) for row in table.rows)
        assert len(said.markdown(table).splitlines()) == len(table.rows) + 2
        assert table.title in said.text(table)


def test_a_task_is_one_line_with_the_ratio_of_every_system():
    table = said.of_tasks(COLUMNS_FOUND)
    assert table.head == ("task", "gradeq, rows/s", LOOP, "torch loop", "river")
    assert table.rows == [("quantile", "100 M", "0.40", "20,000", "")]


def test_goals_say_met_or_missed_and_why():
    held = {goal.what: goal for goal in goals(COLUMNS_FOUND, EVENTS_FOUND, FILES_FOUND)}
    assert held["quantile: times as fast as the torch loop >= 5,000"].met
    slow = held["quantile: speed over the C loop >= 0.6"]
    assert not slow.met and slow.figure == pytest.approx(0.4) and slow.why in str(slow)
    assert not held["events of one parameter in a second >= 1,000,000"].met
    assert not held["Parquet, 100 rows, over reading and writing <= 2"].met
    assert held["Parquet, 100 rows, MB <= 600"].met


def test_the_page_stands_by_itself():
    kind = {
        "title": "numbers", "explained": "why", "measures": [{"key": "bias", "title": "bias", "format": ".3f"}],
        "rules": {"gradeq auto": "ours", "rolling": "theirs"},
        "streams": {"one <stream>": {"gradeq auto": {"bias": 0.5}, "rolling": {"bias": None}}},
        "all": {"gradeq auto": {"bias": 0.5}, "rolling": {"bias": 0.25}},
    }  # fmt: skip
    held = list(goals(COLUMNS_FOUND, EVENTS_FOUND, FILES_FOUND))
    text = whole(COLUMNS_FOUND, TABLES, held, {"kinds": [kind]}, "2 cores")
    assert "http" not in text and "<script" not in text
    assert "one &lt;stream&gt;" in text and "a &lt;remark&gt;" in text and "<svg" in text
    assert text.count("<td>0.500") == 1 and text.count("0.500</td>") == 2


@pytest.mark.parametrize("power", [-0.5, 0.0, 1.0, 2.0])
def test_the_slope_is_the_power(power):
    assert math.isclose(slope({n: 3.0 * n**power for n in (5, 20, 90)}), power, abs_tol=1e-12)
