"""Receipts against the journal: what a client was told must be there, once, under its number."""

import pytest

from gradeq import from_json
from gradeq.client import Client, Refused
from gradeq.service.audit import compare_receipts
from gradeq.service.store import open_store
from service.running import running


def test_the_client_and_the_service_agree_on_every_verb(address: str) -> None:
    with running(address) as server, Client(server.address, server.key) as client:
        assert client.create("demand", eta=0.5, groups=["region"])
        assert not client.create("demand", eta=0.5, groups=["region"])
        served = client.predict("demand", 42.0, id="order-17", groups={"region": "north"})
        assert (served.id, served.status, served.adjusted) == ("order-17", "served", 42.0)
        assert client.label("demand", 45.0, id="order-17").status == "applied"
        assert client.correct("demand", 44.0, id="order-17").status == "corrected"
        again = client.predict("demand", 42.0, id="order-17", groups={"region": "north"})
        assert (again.status, again.adjusted, again.seq) == ("duplicate", 42.0, served.seq)
        many = client.predict_many("demand", [1.0, 2.0], groups={"region": ["north", "south"]})
        assert [one.adjusted for one in many] == [2.0, 2.0]
        statuses = client.label_many("demand", [1.0, 2.0, 3.0], ids=[many[0].id, many[1].id, 17])
        assert [one.status for one in statuses] == ["applied", "applied", "unknown"]
        assert client.equilibrium("demand")
        assert [one["layer"] for one in client.layers()] == ["demand"]
        assert client.control("demand", "freeze")["done"] == "freeze"
        assert not client.predict("demand", 1.0, groups={"region": "north"}).learning
        client.control("demand", "resume")
        audit = client.audit("demand")
        assert audit.ok and audit.compared == 7
        state = client.state("demand")
        assert from_json(state).to_json() == state
        client.remove("demand")
        with pytest.raises(Refused, match="no layer 'demand'"):
            client.state("demand")


def test_signed_tickets_come_back_with_their_labels(address: str) -> None:
    with running(address) as server, Client(server.address, server.key) as client:
        client.create("demand", eta=0.5, tickets="signed")
        served = client.predict("demand", 42.0, id="order-17")
        assert served.seq is None and served.ticket
        assert client.label("demand", 45.0, ticket=served.ticket).status == "applied"
        assert client.label("demand", 45.0, ticket=served.ticket).status == "duplicate"
        assert client.audit("demand").compared == 1


def test_receipts_that_the_journal_does_not_bear_out_are_named(address: str) -> None:
    with running(address) as server, Client(server.address, server.key) as client:
        client.create("demand", eta=0.5)
        client.predict_many("demand", [1.0, 2.0, 3.0], ids=["x", "y", 3])
        client.label("demand", 1.0, id="x")
        numbers = client.receipts("demand").numbers
        assert client.audit("demand").ok
        numbers["ticket", "lost"] = 2
        numbers["posting", "y"] = 2
        numbers["ticket", 3] = 1
        numbers["ticket", "3"] = 3
        audit = client.audit("demand")
        assert not audit.ok
        assert audit.missing == [("ticket", "lost"), ("posting", "y"), ("ticket", "3")]
        assert audit.moved == [("ticket", 3, 1, 3)]


def test_a_row_that_is_there_twice_is_named(address: str) -> None:
    with running(address) as server, Client(server.address, server.key) as client:
        client.create("demand", eta=0.5)
        client.predict("demand", 1.0, id="x")
    store = open_store(address)
    with store.driver.writing() as own:
        own.execute("DROP INDEX journal_ids")
        own.execute(
            "INSERT INTO journal (layer, seq, kind, id, at, author, payload, body) "
            "SELECT layer, 2, kind, id, at, author, payload, body FROM journal"
        )
    assert compare_receipts(store, 1, [("ticket", "x", 1)]).doubled == [("ticket", "x")]
    store.close()


@pytest.mark.parametrize(
    "body", ['{"receipts": [["x", "y", 1]]}', '{"receipts": [["ticket", "y", 0]]}', '{"other": 1}']
)
def test_what_is_no_receipt_is_refused(address: str, body: str) -> None:
    with running(address) as server:
        path = server.layer()
        answer = server.client.post(f"{path}/audit", content=body)
        assert answer.status_code == 422 and answer.json()["code"] == "bad_receipts"
        assert server.client.post(f"{path}/audit").json()["ok"]
