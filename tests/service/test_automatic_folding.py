"""A server that is told to folds old rows by itself, and its books stay in balance."""

import io
import json

import numpy as np

from gradeq.cli import run
from gradeq.service import maintenance, runtime
from gradeq.service.audit import audit_store
from gradeq.service.desk import Desk
from gradeq.service.schemas import Label
from gradeq.service.store import open_store
from gradeq.service.telemetry import Log
from service.test_desk import SPECS, item_of, label_of

DAY = 86_400.0


def lived(path, clock, rows=200):
    """A desk over a store with rows of long ago, in its snapshots."""
    rng, store = np.random.default_rng(2), open_store(path)
    for part in range(3):
        desk = Desk(store, clock=lambda: clock - 30 * DAY)
        desk.start()
        desk.create("t", "demand", SPECS["groups"])
        for k in range(part * rows, (part + 1) * rows):
            desk.predict("t", "demand", [item_of(SPECS["groups"], rng, k)]).result()
            desk.label("t", "demand", [Label(id=k, label=label_of(SPECS["groups"], rng))]).result()
        desk.stop()
    desk = Desk(store, clock=lambda: clock)
    desk.start()
    desk.create("t", "signed", SPECS["debias"] | {"tickets": "signed"})
    return desk


def folded(desk, keep, lines):
    """What a watch folds in its first round, of which it tells in so many lines."""
    text = io.StringIO()
    watching = maintenance.AuditWatch(desk, Log(text))
    watching.retention = keep
    watching.start()
    for _ in range(500):
        if len(watching.results) == 2 and len(text.getvalue().splitlines()) == lines:
            break
        watching._end.wait(0.02)
    watching.stop()
    told = map(json.loads, text.getvalue().splitlines())
    return [(line["layer"], line["entries"], line.get("why", "")) for line in told if line["event"] == "fold"]


def test_old_rows_are_folded_while_a_server_works_and_the_audit_is_clean(address):
    desk = lived(address, 1e9)
    before, served = desk.runtime("t", "demand").layer.to_json(), desk.store.head(1)
    assert folded(desk, None, 0) == []
    told = dict((name, (gone, why)) for name, gone, why in folded(desk, 7 * DAY, 2))
    assert told["demand"][0] >= 700 and told["demand"][1] == ""
    assert told["signed"][0] == 0 and "ttl" in told["signed"][1]
    assert desk.runtime("t", "demand").layer.to_json() == before and desk.store.head(1) == served
    assert [found.faults for found in audit_store(desk.store)] == [[], []]
    again = runtime.LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == before and again.sums == desk.runtime("t", "demand").sums
    assert [name for name, _, _ in folded(desk, 60 * DAY, 1)] == ["signed"]
    desk.stop()
    desk.store.close()


def test_a_server_that_only_reads_folds_nothing(capsys):
    assert run(["serve", "--keep", "7", "--read-only"]) == 2
    assert "--keep" in capsys.readouterr().err
    assert run(["serve", "--keep", "0"]) == 2
