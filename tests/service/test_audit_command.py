"""``gradeq audit`` of a store."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from gradeq.cli import run
from gradeq.service.desk import Desk
from gradeq.service.store import open_store
from gradeq.service.witness import Witness
from service.test_audit import fill
from service.test_desk import SPECS


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "store.db")
    store = open_store(path)
    witness = Witness(str(tmp_path / "witness"), store)
    desk = Desk(store, witness=witness)
    desk.start()
    for name in ("groups", "quantile"):
        desk.create("t", name, SPECS[name])
        fill(desk, name, SPECS[name], np.random.default_rng(1), 30)
    desk.stop()
    witness.close()
    store.close()
    return path


def test_a_sound_store_has_a_line_for_each_layer_and_exit_code_0(store, tmp_path, capsys):
    assert run(["audit", store, "--witness", str(tmp_path / "witness")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:20] for line in lines] == ["ok       t/groups: 5", "ok       t/quantile:", "ok       the store h"]
    assert run(["audit", f"sqlite:///{store}", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sound"] and [own["name"] for own in found["layers"]] == ["groups", "quantile"]


def test_a_damaged_store_has_exit_code_3_and_says_what_is_wrong(store, tmp_path, capsys):
    with closing(sqlite3.connect(store)) as own, own:
        own.execute("UPDATE sums SET labels = labels + 1 WHERE layer = 2")
    assert run(["audit", store]) == 3
    out = capsys.readouterr().out
    assert "ok       t/groups" in out and "damaged  t/quantile: the sums of 1 parameters" in out
    assert run(["audit", store, "--quiet"]) == 3 and capsys.readouterr().out == ""
    assert run(["audit", store, "--json"]) == 3
    assert not json.loads(capsys.readouterr().out)["sound"]


def test_what_the_witness_saw_and_the_store_lacks_is_told(store, tmp_path, capsys):
    with closing(sqlite3.connect(store)) as own, own:
        own.execute("UPDATE layers SET seq = seq - 1 WHERE number = 1")
    assert run(["audit", store, "--witness", str(tmp_path / "witness")]) == 3
    assert "missing  t/groups: 1 acknowledged entries are missing" in capsys.readouterr().out


def test_what_is_no_store_is_refused_in_one_line(tmp_path, capsys):
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as own:
        own.execute("CREATE TABLE theirs (x)")
    assert run(["audit", str(other)]) == 3
    assert "another program" in capsys.readouterr().err
    assert run(["audit", str(tmp_path / "none.db")]) == 2
    assert run(["audit", "sqlite:///none.db"]) == 2
