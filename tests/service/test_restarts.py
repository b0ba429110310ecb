"""PostgreSQL may be restarted at any time: what was acknowledged is there, once."""

import threading
import time

from gradeq.errors import GradeqError
from gradeq.service.audit import audit_store
from gradeq.service.desk import Desk
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store import open_store


def hammered(address, restart, restarts, pause):
    """Clients that send again what was not acknowledged, while the database is restarted: what they were told."""
    store = open_store(address)
    desk = Desk(store)
    desk.start()
    desk.create("t", "own", {"kind": "debias", "eta": 0.05})
    told, retried = {}, []
    done, ended = threading.Event(), threading.Event()  # no new event; no further try

    def client(own):
        k = 0
        while not done.is_set():
            id, k = f"{own}-{k}", k + 1
            for send in (
                lambda id=id: desk.predict("t", "own", [Prediction(id=id, prediction=1.0)]),
                lambda id=id: desk.label("t", "own", [Label(id=id, label=2.0)]),
            ):
                while True:
                    try:
                        (answer,) = send().result()
                        if answer.stored:
                            break
                    except GradeqError:
                        pass
                    if ended.is_set():
                        return
                    retried.append(id)
                    time.sleep(0.01)
                assert answer.status in ("served", "applied", "duplicate"), answer
            told[id] = answer.seq

    clients = [threading.Thread(target=client, args=(k,), daemon=True) for k in range(4)]
    for thread in clients:
        thread.start()
    try:
        for _ in range(restarts):
            time.sleep(pause)
            restart()
        time.sleep(pause)
        done.set()
        for thread in clients:
            thread.join(30.0)
    finally:
        done.set()
        ended.set()
    assert not any(thread.is_alive() for thread in clients), desk.health
    desk.stop()
    (found,) = audit_store(store)
    journal = {entry.id: entry.seq for entry in store.entries(1) if entry.kind == 2}
    store.close()
    return told, journal, retried, found


def test_immediate_restarts_lose_and_double_nothing(postgres):
    def restart():
        postgres.stop("immediate")
        for last in (False, False, True):  # what ended at once may still hold its memory
            try:
                postgres.start()
                return
            except AssertionError:
                if last:
                    raise
                time.sleep(1.0)

    told, journal, retried, found = hammered(postgres.address(), restart, 2, 0.4)
    assert found.faults == [] and retried and len(told) > 20
    assert {f'"{id}"': seq for id, seq in told.items()}.items() <= journal.items()
    assert found.labels == len(journal)
