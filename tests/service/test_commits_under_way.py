"""Signed tickets are served from what is committed: never from a state that a crash or a full disk takes back."""

from contextlib import contextmanager
from threading import Event

import pytest

from gradeq.service import signed_tickets
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store.database import StoreUnavailable
from service.desks import working_desk

SPEC = {"kind": "debias", "eta": 0.5, "tickets": "signed"}
LONG = 60.0  # seconds, after which a test that hangs fails


class Watched:
    """The lock that is held while memory is ahead of the store; ``asked`` is set once somebody wants it."""

    def __init__(self, lock):
        self.lock, self.asked, self.was_held = lock, Event(), []

    def acquire(self, timeout=-1):
        self.was_held.append(self.lock.locked())
        self.asked.set()
        return self.lock.acquire(timeout=timeout)

    def release(self):
        self.lock.release()

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


class SlowCommits:
    """Transactions that stop when all is done and nothing committed, until ``go_on``; ``failing``: then they fail."""

    def __init__(self, store, go_on):
        self.write, self.go_on, self.failing = store.write, go_on, False
        self.done, self.committed = Event(), Event()

    @contextmanager
    def __call__(self):
        with self.write() as tx:
            yield tx
            self.done.set()
            self.go_on.wait(LONG)
            if self.failing:
                raise StoreUnavailable("the disk is full")
        self.committed.set()


@pytest.fixture
def desk(tmp_path):
    with working_desk(str(tmp_path / "store.db")) as desk:
        desk.create("t", "demand", SPEC)
        yield desk


def predicted(desk, count=1):
    return desk.predict("t", "demand", [Prediction(prediction=0.0)] * count).result()


def labelled(desk, ticket, y=10.0):
    return desk.label("t", "demand", [Label(label=y, ticket=ticket)])


@contextmanager
def commit_under_way(desk, monkeypatch, ends_when_asked=True):
    """While a label is learned in memory and not yet in the store: the commit, and the lock that is held meanwhile.

    ``ends_when_asked``: the commit ends as soon as somebody wants to wait for it, else with this context.
    """
    live = desk.runtime("t", "demand")
    first = predicted(desk)[0].ticket
    watched = live.committing = Watched(live.committing)
    go_on = watched.asked if ends_when_asked else Event()
    commits = SlowCommits(desk.store, go_on)
    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "write", commits)
        answer = labelled(desk, first)
        assert commits.done.wait(LONG) and not commits.committed.is_set()
        assert live.layer.equilibrium().rows == 1  # memory is ahead
        try:
            yield commits, watched, answer
        finally:
            go_on.set()
            answer.exception(LONG)


def test_a_signed_ticket_waits_for_the_commit_under_way(desk, monkeypatch):
    monkeypatch.setattr(signed_tickets, "COMMIT_WAIT", LONG)
    with commit_under_way(desk, monkeypatch) as (commits, watched, answer):
        served = predicted(desk)[0]
        assert commits.committed.is_set() and watched.was_held == [True]
        assert answer.result(LONG)[0].status == "applied"
    assert served.adjusted == 5.0
    assert labelled(desk, served.ticket).result()[0].status == "applied"


def test_a_commit_that_takes_long_holds_no_prediction_up(desk, monkeypatch):
    monkeypatch.setattr(signed_tickets, "COMMIT_WAIT", 0.0)
    with commit_under_way(desk, monkeypatch, ends_when_asked=False) as (commits, *_):
        served = predicted(desk)[0]
        assert served.status == "served" and not commits.committed.is_set()
    assert labelled(desk, served.ticket).result()[0].status == "applied"


def test_signed_tickets_after_a_commit_that_failed_are_of_the_state_that_stands(desk, monkeypatch):
    monkeypatch.setattr(signed_tickets, "COMMIT_WAIT", LONG)
    with commit_under_way(desk, monkeypatch) as (commits, _, answer):
        commits.failing = True
        during = predicted(desk)[0]
        with pytest.raises(StoreUnavailable):
            answer.result(LONG)
        after = predicted(desk)[0]
    for served in (during, after):
        assert served.adjusted == 0.0  # what was learned is lost
        assert labelled(desk, served.ticket, 0.0).result()[0].status == "applied"
