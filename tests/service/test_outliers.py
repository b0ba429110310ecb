"""One absurd label changes nothing, whatever the kind of the layer; a layer that diverges says why, everywhere."""

import math

import numpy as np
import pytest

from gradeq.service.audit import audit_store
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import Label, Prediction
from service.running import running
from service.test_desk import SPECS, columns, item_of, label_of

OPEN = {name: own for name, own in SPECS.items() if label_of(own, np.random.default_rng(0)) % 0.5}
OPEN |= {
    "exp": {"kind": "debias", "eta": 0.05, "link": "exp"},
    "signed": {"kind": "debias", "tickets": "signed"},
}  # labels may be any number


def served(desk, spec, rng, id):
    item = item_of(spec, rng, id)
    if spec.get("link") == "exp":
        item.prediction = abs(item.prediction) + 0.1
    return desk.predict("t", "demand", [item]).result()[0]


def heard(desk, id, y, ticket=None, correct=False, atomic=False):
    sent = Label(label=y, id=id, ticket=ticket, correct=correct)
    return desk.label("t", "demand", [sent], atomic=atomic).result()[0]


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("y", [1e308, -1e308, 1e200, 1e100, -1e60, 1e20])
def test_one_absurd_label_is_refused_and_nothing_has_changed(name, y, desk):
    spec, rng = OPEN[name], np.random.default_rng(4)
    desk.create("t", "demand", spec)
    for k in range(12):
        own = served(desk, spec, rng, k)
        assert heard(desk, k, abs(label_of(spec, rng)), own.ticket).status == "applied"
    own = served(desk, spec, rng, "next")
    live = desk.runtime("t", "demand")
    before, sums, head = columns(live.layer), dict(live.sums), live.head
    for told in (
        heard(desk, "next", y, own.ticket),
        heard(desk, "next", y, own.ticket, atomic=True),
        heard(desk, 3, y, None if own.ticket is None else heard_ticket(desk, spec, 3), correct=True),
    ):
        assert told.status == "rejected"
        assert repr(y) in told.detail and "; check" in told.detail
    assert columns(live.layer) == before and live.sums == sums and live.head == head
    assert not live.layer.frozen and not live.stopped
    # Ordinary events go on, and the books balance.
    assert heard(desk, "next", 1.0, own.ticket).status == "applied"
    reached = live.layer.equilibrium()
    assert reached.balance == "even" and math.isfinite(reached.loss_after) and reached.gap < 1e-12
    assert [found.faults for found in audit_store(desk.store)] == [[]]


def heard_ticket(desk, spec, id):
    """The signed ticket of a label that was sent: the id alone is known to the journal."""
    from gradeq.service.schemas import decode_ticket, encode_id
    from gradeq.service.signed_tickets import SignedTicket, sign_ticket

    live = desk.runtime("t", "demand")
    with desk.store.write() as tx:
        entry = tx.find(live.number, [encode_id(id)])[encode_id(id), 1]
    return sign_ticket(
        desk.store.secret, live.number, SignedTicket(entry.id, entry.at, entry.payload, decode_ticket(entry.body))
    )


def test_large_numbers_are_no_reason_where_all_are_large(desk):
    rng = np.random.default_rng(5)
    desk.create("t", "demand", SPECS["debias"])
    for k in range(30):
        f = 1e30 * float(rng.normal())
        desk.predict("t", "demand", [Prediction(id=k, prediction=f)]).result()
        assert heard(desk, k, 1e30 * float(rng.normal())).status == "applied"


def test_no_weight_wipes_out_what_was_learned(desk):
    """A weight is relative to the mean of all so far, its own included: it is never above the number of rows."""
    desk.create("t", "demand", SPECS["debias"])
    for k in range(10):
        weight = 1e30 if k == 9 else 1.0
        desk.predict("t", "demand", [Prediction(id=k, prediction=1.0, weight=weight)]).result()
        assert heard(desk, k, 2.0).status == "applied"
    with desk.reading("t", "demand") as live:
        assert 0.0 < live.layer.theta["(all)"] < 1.0


def diverge(client, path):
    """A step and a lateness that no layer survives: the answer to the label that is too much."""
    for k in range(100):
        client.post(f"{path}/predictions", json={"id": k, "prediction": 1.0})
        told = client.post(f"{path}/labels", json={"id": k - 5, "label": 2.0}) if k >= 5 else None
        if told is not None and told.status_code != 200:
            return told.json()
    raise AssertionError("it does not diverge")


def test_a_layer_that_diverges_says_why_in_every_place(tmp_path):
    with running(str(tmp_path / "store.db")) as own:
        path = own.layer(eta=1.5, late_cap=None)
        told = diverge(own.client, path)
        why = "Step 1.5 is too large: the corrections are diverging"
        assert told["status"] == "rejected" and why in told["detail"] and "set_step" in told["remedy"]
        for where in ("", "/equilibrium"):
            shown = own.client.get(path + where).json()
            assert shown["learning"] is False and why in shown["stopped"]
        (line,) = [line for line in own.logged if line["event"] == "diverged"]
        assert line["layer"] == "demand" and why in line["why"] and line["level"] == "error"
        rows = own.client.get(f"{path}/journal?limit=1000").json()["rows"]
        (entry,) = [row for row in rows if row["kind"] == "control"]
        assert entry["body"]["do"] == "freeze" and why in entry["body"]["why"]
        screen = own.service.pages.overview("default", "demand", 0.0)
        (notice,) = [one for one in screen.notices if one.level == "red"]
        assert why in notice.claim and "set_step" in notice.remedy
        assert (screen.light.level, screen.light.reason) == ("red", "Diverged")
        # A restart knows it, before and after a snapshot; to resume forgets it.
        store, live = own.service.store, own.service.desk.runtime("default", "demand")
        assert why in LayerRuntime.load(store, store.layer("default", "demand")).stopped
        with store.write() as tx:
            own.service.desk._save(tx, live)
        assert why in LayerRuntime.load(store, store.layer("default", "demand")).stopped
        for do in ({"do": "freeze"}, {"do": "set_step", "eta": 0.05}):
            assert own.client.post(f"{path}/control", json=do).status_code == 200
            assert why in own.client.get(path).json()["stopped"]
        own.client.post(f"{path}/control", json={"do": "resume"})
        shown = own.client.get(path).json()
        assert shown["learning"] is True and shown["stopped"] == ""
        assert LayerRuntime.load(store, store.layer("default", "demand")).stopped == ""
