"""An old backup in the place of the store: signed tickets that the lost state served are refused."""

import shutil

import numpy as np
import pytest

from gradeq.service.schemas import Label, Prediction
from gradeq.service.signed_tickets import sign_ticket, verify_ticket
from service.desks import working_desk

SPEC = {"kind": "debias", "eta": 0.1, "tickets": "signed"}


def served(desk, count, f=0.0):
    items = [Prediction(prediction=f) for _ in range(count)]
    return [answer.ticket for answer in desk.predict("t", "demand", items).result()]


def labelled(desk, tickets, y):
    sent = [Label(label=y, ticket=ticket) for ticket in tickets]
    return desk.label("t", "demand", sent).result()


@pytest.fixture
def restored(tmp_path):
    """A store put back to an old backup, and tickets served before the backup and after it."""
    path, copy = str(tmp_path / "store.db"), str(tmp_path / "backup.db")
    with working_desk(path) as desk:
        desk.create("t", "demand", SPEC)
        labelled(desk, served(desk, 3), 1.0)
        early = served(desk, 5)
        labelled(desk, early[:1], 1.0)
        desk.store.driver.backup(copy)
        lost = []
        for _ in range(40):
            lost += served(desk, 1)
            labelled(desk, served(desk, 1), 10.0)
    shutil.copy(copy, path)
    return path, early[1:], lost


def test_tickets_of_a_lost_future_are_refused_however_far_the_store_goes_on(restored):
    path, early, lost = restored
    with working_desk(path) as desk:
        for turn in range(60):
            layer = desk.runtime("t", "demand").layer
            before = layer.to_json()
            answer = labelled(desk, [lost[turn % len(lost)]], 20.0)[0]
            if turn % len(lost):  # the first of them was served from the very state of the backup
                assert answer.status == "rejected" and "old backup" in answer.detail
                assert "again" in answer.remedy and layer.to_json() == before
            assert labelled(desk, served(desk, 1), -10.0)[0].status == "applied"
        statuses = [answer.status for answer in labelled(desk, early, 0.0)]
        assert statuses == ["applied"] * len(early)
        found = desk.runtime("t", "demand").layer.equilibrium()
        assert abs(found.largest) <= found.bound * (1 + 1e-9)


def test_late_tickets_are_known_after_a_restart_and_by_servers_that_saw_nothing(restored):
    path, early, _ = restored
    rng = np.random.default_rng(1)
    waiting = list(early)
    for _ in range(4):
        with working_desk(path) as desk:
            for _ in range(15):
                waiting += served(desk, int(rng.integers(3)))
                some = [waiting.pop(int(rng.integers(len(waiting)))) for _ in waiting[:2]]
                assert {answer.status for answer in labelled(desk, some, 1.0)} <= {"applied"}
            assert len(desk.runtime("t", "demand").hashes) > 0


def test_tickets_that_an_earlier_version_signed_are_taken_unless_they_are_ahead(restored):
    path, early, lost = restored
    with working_desk(path) as desk:
        secret, number = desk.store.secret, desk.runtime("t", "demand").number

        def older(text):
            own = verify_ticket(secret, number, text)
            return sign_ticket(secret, number, own._replace(seq=None, mark=""))

        assert labelled(desk, [older(early[0])], 1.0)[0].status == "applied"
        assert labelled(desk, [older(lost[-1])], 1.0)[0].status == "rejected"
