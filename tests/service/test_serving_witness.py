"""A server asks the witness before it learns."""

import io
import json

import numpy as np

from gradeq.service.desk import Desk
from gradeq.service.maintenance import AuditWatch
from gradeq.service.server import open_witness
from gradeq.service.store import open_store
from gradeq.service.telemetry import Log
from service.test_audit import fill
from service.test_desk import SPECS, item_of


def test_a_store_that_went_back_serves_and_does_not_learn_and_the_audit_alone_would_not_see_it(tmp_path):
    path, seen, log = tmp_path / "store.db", str(tmp_path / "witness"), io.StringIO()
    spec, rng = SPECS["groups"], np.random.default_rng(1)

    def served(work):
        store = open_store(str(path))
        desk = Desk(store)
        desk.start()
        desk.witness = open_witness(seen, desk, Log(log))
        work(desk)
        desk.stop()
        desk.witness.close()
        store.close()

    def before(desk):
        desk.create("t", "own", spec)
        fill(desk, "own", spec, rng, 20)
        desk.store.driver.backup(str(tmp_path / "backup.db"))
        fill(desk, "own", spec, rng, 20, first=100)

    def after(desk):
        watch = AuditWatch(desk)
        assert watch.audit_layer(desk.store.layers()[0], full=True).faults == []
        (answer,) = desk.predict("t", "own", [item_of(spec, rng, 1000)]).result()
        assert (answer.status, answer.stored) == ("served", False)
        assert "acknowledged entries are missing" in desk.store.head(1).stopped

    served(before)
    (tmp_path / "backup.db").replace(path)
    served(after)
    (line,) = [json.loads(text) for text in log.getvalue().splitlines()]
    assert (line["event"], line["layer"]) == ("lost", "own")
