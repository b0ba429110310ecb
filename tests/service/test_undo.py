"""Every label of one key, taken back: sums are as if they had never been sent, and the journal says so."""

import numpy as np
import pytest

from gradeq.cli import run
from gradeq.report.words import text
from gradeq.service.audit import audit_store
from gradeq.service.bodies import posting_in
from gradeq.service.dashboard.overview import Known, overview_of
from gradeq.service.dashboard.view import verdict
from gradeq.service.items import Label
from gradeq.service.keys import new_key
from gradeq.service.live import Live
from gradeq.service.shown import reached as reached_by
from gradeq.service.store import open_store
from gradeq.service.store.api_keys import add_key
from gradeq.service.store.schema import POSTING, REVERSAL
from service.desks import working_desk
from service.running import running
from service.test_desk import SPECS, item_of, label_of

GOOD, BAD = 1, 2


@pytest.fixture
def desk(address):
    with working_desk(address) as desk:
        yield desk


def label(desk, k, y, author, **more):
    (told,) = desk.label("t", "demand", [Label(id=k, label=y, **more)], author=author).result()
    return told.status


def fed(desk, spec, rng, rows=60):
    """Labels of two keys in turn; some are corrected by the other one."""
    desk.create("t", "demand", spec)
    for k in range(rows):
        desk.predict("t", "demand", [item_of(spec, rng, k)]).result()
        assert label(desk, k, label_of(spec, rng), BAD if k % 3 == 0 else GOOD) == "applied"


@pytest.mark.parametrize("name", SPECS)
def test_the_exact_sums_are_as_if_they_were_never_sent_and_the_audit_is_clean(name, desk):
    spec = SPECS[name]
    fed(desk, spec, np.random.default_rng(3))
    live, served = desk.live("t", "demand"), []
    assert reached_by(live).taken_back == 0 and "taken back" not in reached_by(live).verdict
    before = [
        posting_in(e.body)
        for e in desk.store.entries(live.number)
        if e.kind == POSTING and e.author == GOOD
    ]
    served = [(e.id, e.body) for e in desk.store.entries(live.number)]
    done = desk.undo("t", "demand", BAD)
    assert done.taken_back + done.left == 20 and done.restored == 0
    assert done.left == 0 or spec.get("ties") == "drop"
    expected = Live(live.row, live.layer, 0)
    for posting in before:
        expected.enter(posting)
    sums = {account: own for account, own in desk.store.sums(live.number).items() if own.rows}
    assert sums == expected.sums == {a: own for a, own in live.sums.items() if own.rows}
    assert all(own[1:] == (0, 0) for own in desk.store.sums(live.number).values() if not own.rows)
    assert [(e.id, e.body) for e in desk.store.entries(live.number)][: len(served)] == served
    assert [found.faults for found in audit_store(desk.store)] == [[]]
    again = Live.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == live.layer.to_json() and again.sums == live.sums
    reached = live.layer.equilibrium()
    assert reached.balance == "even" and reached.rows == sum(map(live_rows(live), before))
    assert desk.undo("t", "demand", BAD) == (0, 0, done.left)
    told = reached_by(live)
    assert told.taken_back == done.taken_back == told.labelled - told.rows
    assert f"{done.taken_back} labels were taken back" in told.verdict


def live_rows(live):
    return lambda posting: int(live.layer._learns is None or live.layer._learns(posting.y))


def test_what_stood_before_stands_again_and_what_others_corrected_stays(desk):
    fed(desk, SPECS["debias"], np.random.default_rng(4), rows=9)
    live = desk.live("t", "demand")
    first = [heard.posting.y for heard in live.recent]
    assert label(desk, 1, 50.0, BAD, correct=True) == "corrected"  # of another's
    assert label(desk, 3, 60.0, GOOD, correct=True) == "corrected"  # by another
    assert desk.undo("t", "demand", BAD) == (2, 1, 1)
    for author in (0, GOOD, BAD):  # whoever asks for the same again
        assert desk.undo("t", "demand", BAD, author) == (0, 0, 1)
    assert [heard.posting.y for heard in live.recent if heard.posting.sign > 0.0] == [
        first[1], first[2], 60.0, *first[4:6], *first[7:],
    ]  # fmt: skip
    assert label(desk, 0, first[0], GOOD) == "conflict"
    assert (
        label(
            desk,
            0,
            1.5,
            GOOD,
            correct=True,
        )
        == "corrected"
    )
    assert label(desk, 0, 1.5, GOOD) == "duplicate"
    assert label(desk, 0, 2.5, GOOD, correct=True) == "corrected"
    assert [found.faults for found in audit_store(desk.store)] == [[]]
    again = Live.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == live.layer.to_json() and again.sums == live.sums
    assert [own.posting for own in again.recent] == [own.posting for own in live.recent]


def test_a_server_and_a_command_undo_a_key(address, capsys):
    with running(address) as own:
        layer = own.layer(eta=0.1)
        text, key = new_key("default", "bad", ["label"])
        add_key(own.service.store, key)
        bad = own.as_key(text)
        own.client.post(
            f"{layer}/predictions", json=[{"id": k, "prediction": 1.0} for k in range(700)]
        )
        sent = [{"id": k, "label": 5.0} for k in range(600)]
        assert {one["status"] for one in bad.post(f"{layer}/labels", json=sent).json()} == {
            "applied"
        }
        served = own.client.post(f"{layer}/predictions", json={"id": "x", "prediction": 1.0}).json()
        assert served["adjusted"] > 1.1
        assert bad.post(f"{layer}/undo", json={"key": key.prefix}).status_code == 403
        assert own.client.post(f"{layer}/undo", json={"key": "aaaaaaaa"}).status_code == 404
        assert own.client.post(f"{layer}/undo", json={}).status_code == 422
        told = own.client.post(f"{layer}/undo", json={"key": key.prefix}).json()
        assert (told["taken_back"], told["restored"], told["left"]) == (600, 0, 0)
        rows = own.client.get(f"{layer}/journal?after=1301").json()["rows"]
        assert {row["kind"] for row in rows} == {"reversal"} and len(rows) == 600
        served = own.client.post(f"{layer}/predictions", json={"id": "y", "prediction": 1.0}).json()
        assert served["adjusted"] == pytest.approx(1.0, abs=1e-9)
        bad.post(f"{layer}/labels", json={"id": 650, "label": 5.0})
    assert run(["store", "undo", address, "--key", key.prefix]) == 0
    assert "default/demand: 1 label of" in capsys.readouterr().out
    store = open_store(address, True)
    assert [one.faults for one in audit_store(store)] == [[]]
    assert sum(entry.kind == REVERSAL for entry in store.entries(1)) == 601
    store.close()


def test_a_key_that_undoes_itself_does_it_once(desk):
    fed(desk, SPECS["debias"], np.random.default_rng(4), rows=9)
    assert label(desk, 1, 50.0, BAD, correct=True) == "corrected"
    assert desk.undo("t", "demand", BAD, BAD) == (3, 1, 0)
    assert desk.undo("t", "demand", BAD, BAD) == (0, 0, 0)


def test_where_every_label_was_taken_back_verdict_and_page_say_so(desk):
    fed(desk, SPECS["debias"], np.random.default_rng(4), rows=9)
    assert desk.undo("t", "demand", GOOD).plus(desk.undo("t", "demand", BAD)) == (9, 0, 0)
    live = desk.live("t", "demand")
    assert reached_by(live).verdict.startswith(
        "no label to learn from: nothing to certify; 9 labels"
    )
    view = overview_of(live.layer, Known("demand", 0.0, 9.0))
    assert text(verdict(view)).endswith("9 labels were taken back, not in these averages.")
