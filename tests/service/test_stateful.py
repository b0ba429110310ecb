"""Labels, duplicates, conflicts, corrections, crashes at any statement and restarts, against an exact model."""

import os
import tempfile
from contextlib import contextmanager
from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gradeq.ledger.exact import UNIT
from gradeq.service.audit import Auditor
from gradeq.service.desk import Desk
from gradeq.service.layer_spec import layer_of
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store import open_store
from gradeq.service.store.database import StoreUnavailable
from gradeq.service.store.sqlite import Sqlite

SPEC = {"kind": "debias", "eta": 0.25, "groups": ["g"], "maturity": 0}
VALUES = st.sampled_from((-1.5, 0.1, 0.3, 7e3))
IDS = st.integers(0, 2)  # few, so that ids meet again
GROUPS = st.sampled_from("ab")
CRASH = st.none() | st.integers(0, 8)


class Crash(StoreUnavailable):
    """The process ends here."""


class Fragile:
    """A connection that crashes at one of the statements to come."""

    def __init__(self, own, driver):
        self._own, self._driver = own, driver

    def execute(self, sql, params=()):
        self._driver.count_down()
        return self._own.execute(sql, params)

    def executemany(self, sql, params):
        self._driver.count_down()
        return self._own.executemany(sql, params)


def fragile(store):
    """Let the writes of a store crash; ``left`` says at which statement."""
    driver = store.driver
    driver.left = None

    def count_down():
        if driver.left is not None:
            driver.left -= 1
            if driver.left < 0:
                raise Crash("the process ended")

    @contextmanager
    def writing():
        with Sqlite.writing(driver) as own:
            yield Fragile(own, driver)
        count_down()  # all is on disk, and nobody was told

    driver.count_down, driver.writing = count_down, writing
    return store


class Service(RuleBasedStateMachine):
    """The desk on a store that crashes, and beside it the sums as fractions and a layer of the library."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.desk = None
        self._open()
        self.desk.create("t", "own", SPEC)
        self.layer = layer_of(SPEC)
        self.tickets, self.postings = {}, {}
        self.sent = {}
        self.sums = {}

    def _open(self):
        self.store = fragile(open_store(f"{self.folder.name}/store.db"))
        self.desk = Desk(self.store)
        self.desk.start()

    def _close(self):
        self.desk.stop()
        self.store.close()

    def teardown(self):
        self._close()
        self.folder.cleanup()

    def _told(self, send, crash):
        """The answer; after a crash the service is started again and the client sends the same again."""
        self.store.driver.left, self.again = crash, False
        try:
            answer = send().result()[0]
            if answer.stored:
                self.store.driver.left = None
                return answer
        except Crash:
            pass
        self.store.driver.left = None
        self._close()
        self._open()
        self.again = True
        return send().result()[0]

    def _did(self, answer, status):
        """Whether this was done now, or before the crash, which only the second answer tells."""
        return answer.status == status or (self.again and answer.status == "duplicate")

    def _add(self, posting):
        for name in posting.row.names:
            g = Fraction(posting.sign * posting.weight * posting.errors[0])
            own = self.sums.get(name, (0, Fraction(0), Fraction(0)))
            moved = Fraction(posting.eta * float(g))
            self.sums[name] = own[0] + int(posting.sign), own[1] + g, own[2] + moved

    @rule(id=IDS, f=VALUES, group=GROUPS, crash=CRASH)
    def predict(self, id, f, group, crash):
        item = Prediction(id=id, prediction=f, groups={"g": group})
        answer = self._told(lambda: self.desk.predict("t", "own", [item]), crash)
        if id in self.sent:
            same = self.sent[id] == (f, group)
            assert answer.status == ("duplicate" if same else "conflict"), answer
            if same:
                assert answer.adjusted == self.tickets[id].served
            return
        assert self._did(answer, "served"), answer
        self.sent[id] = f, group
        self.tickets[id] = self.layer.open(f, groups={"g": group})
        assert answer.adjusted == self.tickets[id].served

    @rule(id=IDS, y=VALUES, correct=st.booleans(), crash=CRASH)
    def label(self, id, y, correct, crash):
        item = Label(id=id, label=y, correct=correct)
        answer = self._told(lambda: self.desk.label("t", "own", [item]), crash)
        if id not in self.tickets:
            assert answer.status == "unknown"
        elif id not in self.postings:
            assert self._did(answer, "applied"), answer
            self.postings[id] = self.layer.post(self.tickets[id], y)
            self._add(self.postings[id])
        elif self.postings[id].y == y:
            assert answer.status == "duplicate"
        elif not correct:
            assert answer.status == "conflict"
        elif self.layer.frozen:
            assert answer.status == "rejected" and "frozen" in answer.detail
        else:
            assert self._did(answer, "corrected"), answer
            old, new = self.layer.repost(self.postings[id], y)
            self._add(old)
            self._add(new)
            self.postings[id] = new

    @rule()
    def freeze_or_resume(self):
        do = "resume" if self.layer.frozen else "freeze"
        self.desk.control("t", "own", do).result()
        getattr(self.layer, do)()

    @precondition(lambda self: self.tickets)
    @rule()
    def restart(self):
        self._close()
        self._open()

    @invariant()
    def the_service_is_the_library(self):
        if self.desk is not None and hasattr(self, "sums"):
            assert self.desk.runtime("t", "own").layer.to_json() == self.layer.to_json()

    @invariant()
    def sums_are_exact(self):
        if self.desk is None or not hasattr(self, "sums"):
            return
        unit = 1 << UNIT
        found = {
            name: (own.rows, Fraction(own.gradient, unit), Fraction(own.moved, unit))
            for (name, _), own in self.store.sums(1).items()
        }
        nothing = (0, 0, 0)
        for name in found.keys() | self.sums.keys():
            assert found.get(name, nothing) == self.sums.get(name, nothing)
        (row,) = self.store.layers()
        assert Auditor(self.store).tail(row).faults == []


TestService = Service.TestCase
EXAMPLES = int(os.environ.get("GRADEQ_STATEFUL", "25"))  # make test-faults tries more
TestService.settings = settings(max_examples=EXAMPLES, stateful_step_count=40)
