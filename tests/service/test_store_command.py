"""``gradeq store``: backup, export, import, fold, rebuild, accept."""

import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import gradeq as gq
from gradeq.cli import run
from gradeq.service.desk import Desk
from gradeq.service.schemas import Label
from gradeq.service.store import open_store
from service.test_audit import fill
from service.test_desk import SPECS
from service.test_import_export import used


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "store.db")
    store = open_store(path)
    desk = Desk(store, clock=lambda: 1e9)
    desk.start()
    for tenant, name in (("t", "groups"), ("t", "quantile"), ("other", "groups")):
        desk.create(tenant, name, SPECS[name])
    for name in ("groups", "quantile"):
        fill(desk, name, SPECS[name], np.random.default_rng(1), 30)
    desk.stop()
    store.close()
    return path


def changed(path, sql):
    with closing(sqlite3.connect(path)) as own, own:
        own.execute(sql)


def test_a_backup_is_taken_while_a_server_is_at_work_and_overwrites_nothing(path, tmp_path, capsys):
    store = open_store(path)
    desk = Desk(store)
    desk.start()
    copy = str(tmp_path / "copy.db")
    assert run(["store", "backup", path, copy]) == 0
    fill(desk, "groups", SPECS["groups"], np.random.default_rng(2), 10, first=500)
    desk.stop()
    store.close()
    assert run(["audit", copy]) == 0
    assert run(["store", "backup", path, copy]) == 2
    assert "already exists" in capsys.readouterr().err
    assert run(["store", "backup", path, str(tmp_path / "no" / "copy.db")]) == 2


def test_a_layer_goes_out_to_a_state_file_and_in_again(path, tmp_path, capsys):
    state = str(tmp_path / "state.json")
    assert run(["store", "export", path, "quantile", "-o", state]) == 0
    assert run(["audit", state]) == 0
    layer = gq.load(state)
    assert layer.traffic["open"] > 0
    assert run(["store", "import", state, path, "--name", "again"]) == 0
    assert "default/again: 30 served" in capsys.readouterr().out
    again = str(tmp_path / "again.json")
    assert run(["store", "export", path, "again", "-o", again]) == 0
    assert json.loads(open_text(again)) == json.loads(open_text(state))
    assert run(["store", "import", state, path, "--name", "again"]) == 2
    assert run(["audit", path]) == 0
    assert run(["store", "export", path, "groups", "-o", state]) == 2
    assert "t/groups, other/groups" in capsys.readouterr().err
    assert run(["store", "export", path, "other/groups", "-o", state]) == 0
    assert run(["store", "export", path, "none", "-o", state]) == 2


def open_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_a_state_file_of_the_command_line_starts_a_layer_of_the_service(tmp_path, capsys):
    rows = "".join(f"{k},{k % 5},{k % 7}\n" for k in range(40))
    (tmp_path / "rows.csv").write_text(f"id,f,y\n{rows}" + "100,1.0,\n")
    state, path = str(tmp_path / "state.json"), str(tmp_path / "store.db")
    done = run(["debias", str(tmp_path / "rows.csv"), "--prediction", "f", "--label", "y", "--id", "id",
                "--eta", "0.1", "--state", state, "-o", str(tmp_path / "out.csv")])  # fmt: skip
    assert done == 0
    assert run(["store", "import", state, path, "--name", "demand"]) == 0
    store = open_store(path)
    desk = Desk(store)
    desk.start()
    layer = gq.load(state)
    ids = list(layer.ids)
    (waiting,) = [id for id in ids if layer.ids[id] == "open"]
    told = desk.label("default", "demand", [Label(id=waiting, label=2.0), Label(id=ids[0], label=77.0)])
    assert [answer.status for answer in told.result()] == ["applied", "conflict"]
    layer.update(2.0, id=waiting)
    assert desk.runtime("default", "demand").layer.theta == layer.theta
    assert run(["store", "import", state, path, "--name", "other"]) == 2
    assert "another server is using" in capsys.readouterr().err
    desk.stop()
    store.close()


def test_rows_that_no_snapshot_holds_stay_and_the_command_says_why(tmp_path, capsys):
    path = str(tmp_path / "live.db")
    store = open_store(path)
    desk = Desk(store, clock=lambda: 1e9)
    desk.start()
    desk.create("t", "groups", SPECS["groups"])
    fill(desk, "groups", SPECS["groups"], np.random.default_rng(1), 30)
    entries = desk.runtime("t", "groups").head.seq
    assert run(["store", "fold", path, "--keep", "1"]) == 0
    assert capsys.readouterr().out == (
        f"t/groups: 0 of {entries} entries folded now; {entries} that are old enough stay: only what is in every "
        "snapshot can go, and a server saves one every 20,000 entries and when it stops\n"
    )
    desk.stop()
    store.close()
    assert run(["store", "fold", path, "--keep", "1"]) == 0
    assert "old enough" not in capsys.readouterr().out


def test_old_rows_are_folded_and_the_store_is_in_order(path, capsys):
    assert run(["store", "fold", path, "--keep", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and not lines[0].startswith("t/groups: 0 of")
    gone, entries = map(int, re.match(r"t/groups: (\d+) of (\d+) entries", lines[0]).groups())
    assert run(["audit", path]) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if " t/groups: " in line]
    assert f"{entries} entries, {gone} of them folded; 0 labels and " in told
    assert f"waiting in the other {entries - gone}" in told
    assert run(["store", "fold", path, "--keep", "0"]) == 2
    changed(path, "UPDATE sums SET labels = labels + 1")
    assert run(["store", "fold", path, "--keep", "1", "--layer", "quantile"]) == 3


@pytest.mark.parametrize("folded", [False, True])
def test_sums_and_snapshots_are_made_anew_in_a_copy_and_the_original_stays(path, tmp_path, capsys, folded):
    if folded:
        assert run(["store", "fold", path, "--keep", "1"]) == 0
    state, again = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert run(["store", "export", path, "t/groups", "-o", state]) == 0
    changed(path, "UPDATE sums SET labels = labels + 1")
    changed(path, "DELETE FROM sums WHERE layer = 2")
    if not folded:
        changed(path, "UPDATE snapshots SET body = x'00'")
    assert run(["audit", path, "--quiet"]) == 3
    with open(path, "rb") as file:
        before = file.read()
    copy = str(tmp_path / "copy.db")
    assert run(["store", "rebuild", path, copy]) == 0
    assert run(["audit", copy]) == 0 and run(["audit", path, "--quiet"]) == 3
    assert run(["store", "export", copy, "t/groups", "-o", again]) == 0
    assert open_text(again) == open_text(state)
    with open(path, "rb") as file:
        assert file.read() == before


def test_a_damaged_journal_is_not_laundered(path, tmp_path, capsys):
    changed(path, "UPDATE journal SET at = at + 1 WHERE layer = 1 AND seq = 4")
    copy = tmp_path / "copy.db"
    assert run(["store", "rebuild", path, str(copy)]) == 3
    assert "is damaged: " in capsys.readouterr().err and not copy.exists()


def test_a_stopped_layer_learns_again_once_its_books_balance(path, capsys):
    changed(path, "UPDATE layers SET stopped = 'because'")
    assert run(["store", "accept", path, "t/groups"]) == 0
    store = open_store(path, read_only=True)
    assert [row.head.stopped for row in store.layers()] == ["", "because", "because"]
    store.close()
    changed(path, "UPDATE sums SET labels = labels + 1")
    assert run(["store", "accept", path, "quantile"]) == 3


def test_used_layers_of_the_library_come_with_a_word_about_what_cannot_come_along(tmp_path, capsys):
    layer = used(SPECS["debias"])
    layer.predict(1.0)
    layer.save(tmp_path / "state.json")
    assert run(["store", "import", str(tmp_path / "state.json"), str(tmp_path / "new.db"), "--name", "x"]) == 0
    assert "1 prediction waits without an id" in capsys.readouterr().out
