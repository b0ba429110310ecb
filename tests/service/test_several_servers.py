"""Several servers on one store: every one of them is the library's layer fed in the order of the journal."""

import json
import threading
import time

import numpy as np
import pytest

from gradeq.service.desk import Desk
from gradeq.service.layer_spec import layer_of
from gradeq.service.schemas import Label, Prediction, decode_json, decode_posting, decode_ticket
from gradeq.service.store import open_store
from gradeq.service.store.journal_store import CONTROL, TICKET

SPECS = {
    "groups": {"kind": "debias", "eta": 0.05, "groups": ["g"]},
    "auto": {"kind": "debias", "groups": ["g"]},
    "quantile": {"kind": "quantile", "level": 0.9, "eta": 0.1},
    "elo": {"kind": "elo", "eta": 0.1},
}
SERVERS, TURNS = 3, 25


def columns(layer):
    return json.loads(layer.to_json())["state"]["columns"]


def wait_until(true, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


def item_of(spec, rng, id):
    if spec["kind"] == "elo":
        a, b = rng.choice(6, 2, replace=False)
        return Prediction(id=id, a=f"p{a}", b=f"p{b}")
    groups = {"g": str(rng.choice(list("abc")))} if spec.get("groups") else None
    return Prediction(id=id, prediction=float(rng.normal()), groups=groups)


def label_of(spec, rng):
    return float(rng.integers(2)) if spec["kind"] == "elo" else float(rng.normal(0.5))


def worker(desk, spec, who, seed, failed):
    """Predictions, labels of its own and of others', duplicates and corrections."""
    try:
        rng = np.random.default_rng(seed)
        for turn in range(TURNS):
            items = [item_of(spec, rng, f"{who}-{turn}-{k}") for k in range(3)]
            told = desk.predict("t", "demand", items).result()
            assert [own.status for own in told] == ["served"] * 3
            labels = [Label(id=item.id, label=label_of(spec, rng)) for item in items]
            if spec.get("tickets") == "signed":
                labels = [Label(label=own.label, ticket=t.ticket) for own, t in zip(labels, told, strict=True)]
            told = desk.label("t", "demand", [*labels, labels[0]]).result()
            assert [own.status for own in told] == ["applied"] * 3 + ["duplicate"]
            if turn % 5 == 0 and not labels[0].ticket:
                other = Label(id=labels[1].id, label=1.0 - labels[1].label, correct=True)
                assert desk.label("t", "demand", [other]).result()[0].status == "corrected"
    except BaseException as error:
        failed.append(error)


@pytest.mark.parametrize("tickets", ["stored", "signed"])
@pytest.mark.parametrize("name", SPECS)
def test_servers_that_share_a_layer_all_have_the_state_of_its_journal(name, tickets, postgres):
    spec = SPECS[name] | {"tickets": tickets}
    address, failed = postgres.address(), []
    desks = [Desk(open_store(address)) for _ in range(SERVERS)]
    for desk in desks:
        desk.start()
    desks[0].create("t", "demand", spec)
    threads = [threading.Thread(target=worker, args=(desk, spec, k, k, failed)) for k, desk in enumerate(desks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    store, own, postings = desks[0].store, layer_of(spec), 0
    for entry in store.entries(store.layer("t", "demand").number):
        if entry.kind == CONTROL:
            getattr(own, decode_json(entry.body)["do"])()
        else:
            postings += entry.kind != TICKET
            own.replay([(decode_ticket if entry.kind == TICKET else decode_posting)(entry.body)])
    assert postings >= SERVERS * TURNS * 3
    for desk in desks:
        live = desk.runtime("t", "demand")
        wait_until(lambda live=live: live.head == store.head(live.number))
        assert columns(live.layer) == columns(own) and live.sums == store.sums(live.number)
    if tickets == "signed":  # others labelled between serving and posting: that is in the lateness
        assert own.traffic["peak"] > 1
    for desk in desks:
        desk.stop()
        desk.store.close()


def test_a_layer_that_another_server_creates_or_deletes(postgres):
    address = postgres.address()
    one, two = (Desk(open_store(address)) for _ in range(2))
    one.start(), two.start()
    one.create("t", "demand", SPECS["groups"])
    item = Prediction(id="a", prediction=1.0, groups={"g": "x"})
    assert two.predict("t", "demand", [item]).result()[0].status == "served"
    assert one.predict("t", "demand", [item]).result()[0].status == "duplicate"
    one.remove("t", "demand")
    with pytest.raises(ValueError, match="no layer"):
        two.predict("t", "demand", [item]).result()
    one.create("t", "demand", SPECS["quantile"])
    assert two.predict("t", "demand", [Prediction(id="a", prediction=1.0)]).result()[0].status == "served"
    for desk in (one, two):
        desk.stop()
        desk.store.close()


def test_a_server_that_cannot_hear_of_the_others_says_so(postgres, monkeypatch):
    desk = Desk(open_store(postgres.address()))
    desk.start()
    desk.create("t", "demand", SPECS["groups"] | {"tickets": "signed"})
    item = Prediction(id="a", prediction=1.0, groups={"g": "x"})
    assert not desk.predict("t", "demand", [item]).result()[0].stale
    postgres.stop()
    monkeypatch.setattr("gradeq.service.desk.STALE_AFTER", 0.3)
    wait_until(lambda: desk.predict("t", "demand", [item]).result()[0].stale)
    assert desk.predict("t", "demand", [item]).result()[0].adjusted == 1.0
    postgres.start()
    wait_until(lambda: not desk.predict("t", "demand", [item]).result()[0].stale)
    desk.stop()
    desk.store.close()
