"""Every label of one key, taken back: sums are as if they had never been sent, and the journal says so."""

import msgspec
import numpy as np
import pytest

import gradeq as gq
from gradeq.cli import run
from gradeq.report.sentences import text
from gradeq.service.audit import audit_store
from gradeq.service.auth import add_key, new_key
from gradeq.service.dashboard.layer_page import verdict_sentence
from gradeq.service.dashboard.overview import ServiceFacts, overview_of
from gradeq.service.layer_endpoints import equilibrium_answer as reached_by
from gradeq.service.maintenance import export_state
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import Label, Prediction, decode_posting
from gradeq.service.store import open_store
from gradeq.service.store.journal_store import POSTING, REVERSAL
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
    live, served = desk.runtime("t", "demand"), []
    assert reached_by(live).taken_back == 0 and "taken back" not in reached_by(live).verdict
    before = [
        decode_posting(e.body) for e in desk.store.entries(live.number) if e.kind == POSTING and e.author == GOOD
    ]
    served = [(e.id, e.body) for e in desk.store.entries(live.number)]
    done = desk.undo("t", "demand", BAD)
    assert done.taken_back + done.left == 20 and done.restored == 0
    assert done.left == 0 or spec.get("ties") == "drop"
    expected = LayerRuntime(live.row, live.layer, 0)
    for posting in before:
        expected.add_posting(posting)
    sums = {account: own for account, own in desk.store.sums(live.number).items() if own.rows}
    assert sums == expected.sums == {a: own for a, own in live.sums.items() if own.rows}
    assert all(own[1:] == (0, 0) for own in desk.store.sums(live.number).values() if not own.rows)
    assert [(e.id, e.body) for e in desk.store.entries(live.number)][: len(served)] == served
    assert [found.faults for found in audit_store(desk.store)] == [[]]
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == live.layer.to_json() and again.sums == live.sums
    reached = live.layer.equilibrium()
    assert reached.balance == "even" and reached.rows == sum(map(live_rows(live), before))
    assert desk.undo("t", "demand", BAD) == (0, 0, done.left)
    told = reached_by(live)
    assert told.taken_back == done.taken_back == told.labelled - told.rows
    assert f"{done.taken_back} labels were taken back" in told.verdict


def live_rows(live):
    return lambda posting: int(live.layer.internals.learns is None or live.layer.internals.learns(posting.y))


def test_what_stood_before_stands_again_and_what_others_corrected_stays(desk):
    fed(desk, SPECS["debias"], np.random.default_rng(4), rows=9)
    live = desk.runtime("t", "demand")
    first = [heard.posting.y for heard in live.recent_labels]
    assert label(desk, 1, 50.0, BAD, correct=True) == "corrected"  # of another's
    assert label(desk, 3, 60.0, GOOD, correct=True) == "corrected"  # by another
    assert desk.undo("t", "demand", BAD) == (2, 1, 1)
    for author in (0, GOOD, BAD):  # whoever asks for the same again
        assert desk.undo("t", "demand", BAD, author) == (0, 0, 1)
    assert [heard.posting.y for heard in live.recent_labels if heard.posting.sign > 0.0] == [
        first[1], first[2], 60.0, *first[4:6], *first[7:],
    ]  # fmt: skip
    assert label(desk, 0, first[0], GOOD) == "conflict"
    assert label(desk, 0, 1.5, GOOD, correct=True) == "corrected"
    assert label(desk, 0, 1.5, GOOD) == "duplicate"
    assert label(desk, 0, 2.5, GOOD, correct=True) == "corrected"
    assert [found.faults for found in audit_store(desk.store)] == [[]]
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == live.layer.to_json() and again.sums == live.sums
    assert [own.posting for own in again.recent_labels] == [own.posting for own in live.recent_labels]


def test_a_server_and_a_command_undo_a_key(address, capsys):
    with running(address) as own:
        layer = own.layer(eta=0.1)
        text, key = new_key("default", "bad", ["label"])
        add_key(own.service.store, key)
        bad = own.as_key(text)
        own.client.post(f"{layer}/predictions", json=[{"id": k, "prediction": 1.0} for k in range(700)])
        sent = [{"id": k, "label": 5.0} for k in range(600)]
        assert {one["status"] for one in bad.post(f"{layer}/labels", json=sent).json()} == {"applied"}
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
    live = desk.runtime("t", "demand")
    assert reached_by(live).verdict.startswith("no label to learn from: nothing to certify; 9 labels")
    view = overview_of(live.layer, ServiceFacts("demand", 0.0, 9.0))
    assert text(verdict_sentence(view)).endswith("9 labels were taken back, not in these averages.")


@pytest.mark.parametrize("name", SPECS)
def test_labels_of_uneven_weight_that_were_all_taken_back_leave_no_figure(name, desk):
    """Weights of a third and of 2.5 do not add up to 0 again: what is left is rounding, and no figure of anything."""
    spec, rng = SPECS[name], np.random.default_rng(5)
    desk.create("t", "demand", spec)
    for k in range(60):
        item = item_of(spec, rng, k)
        if spec["kind"] != "elo":
            item = msgspec.structs.replace(item, weight=[1.0 / 3.0, 2.5, 1.0][k % 3])
        desk.predict("t", "demand", [item]).result()
        assert label(desk, k, label_of(spec, rng), GOOD) == "applied"
    left = desk.undo("t", "demand", GOOD).left
    assert [found.faults for found in audit_store(desk.store)] == [[]]
    live = desk.runtime("t", "demand")
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == live.layer.to_json()
    assert gq.from_json(live.layer.to_json()).to_json() == live.layer.to_json()
    reached = live.layer.equilibrium()
    assert reached.rows == 0 and (left == 0 or spec.get("ties") == "drop")
    for own in reached.coordinates:
        figures = own.average_gradient, own.bias_before, own.bias_after, own.loss_before, own.loss_after
        assert own.rows == 0 and not any(figures), own


WORSE = 3


def current(desk):
    return [heard.posting.y for heard in desk.runtime("t", "demand").recent_labels if heard.posting.sign > 0.0]


@pytest.mark.parametrize("order", [(BAD, WORSE, BAD), (WORSE, BAD), (WORSE, BAD, WORSE, BAD)])
def test_two_bad_keys_that_replaced_each_others_labels_can_both_be_undone(order, desk):
    """What an undo restores is the label of who had sent it, not of who asked for the undo."""
    desk.create("t", "demand", SPECS["debias"])
    desk.predict("t", "demand", [Prediction(id=0, prediction=1.0)]).result()
    label(desk, 0, 3.0, BAD)
    label(desk, 0, 4.0, WORSE, correct=True)
    for key in order:
        desk.undo("t", "demand", key, GOOD)
    assert current(desk) == []
    assert label(desk, 0, 2.0, GOOD, correct=True) == "corrected"  # just after the undo, by who asked for it
    assert desk.undo("t", "demand", GOOD) == (1, 0, 0) and current(desk) == []  # what was taken back stays so
    assert [found.faults for found in audit_store(desk.store)] == [[]]


def test_a_tie_that_replaced_a_win_gives_way_to_it_again(desk):
    desk.create("t", "demand", SPECS["elo drop"])
    desk.predict("t", "demand", [Prediction(id=0, a="x", b="y")]).result()
    label(desk, 0, 1.0, GOOD)
    label(desk, 0, 0.5, BAD, correct=True)
    assert desk.undo("t", "demand", BAD) == (0, 1, 0) and desk.undo("t", "demand", BAD) == (0, 0, 0)
    assert current(desk) == [1.0] and reached_by(desk.runtime("t", "demand")).rows == 1
    assert [found.faults for found in audit_store(desk.store)] == [[]]


def test_labels_that_teach_nothing_or_wait_are_left(desk):
    desk.create("t", "demand", SPECS["debias"] | {"maturity": 3600})
    desk.predict("t", "demand", [Prediction(id=0, prediction=1.0)]).result()
    assert label(desk, 0, 3.0, BAD) == "waiting" and desk.undo("t", "demand", BAD) == (0, 0, 1)
    desk.create("t", "other", SPECS["debias"])
    desk.predict("t", "other", [Prediction(id=0, prediction=1.0, weight=0.0)]).result()
    desk.label("t", "other", [Label(id=0, label=3.0)], author=BAD).result()
    assert desk.undo("t", "other", BAD) == (0, 0, 1)
    assert reached_by(desk.runtime("t", "other")).taken_back == 0


def test_a_frozen_layer_learns_no_label_in_the_place_of_one_taken_back(desk):
    fed(desk, SPECS["debias"], np.random.default_rng(4), rows=3)
    desk.undo("t", "demand", BAD)
    desk.control("t", "demand", "freeze").result()
    theta = desk.runtime("t", "demand").layer.theta
    assert label(desk, 0, 5.0, GOOD, correct=True) == "rejected"
    assert desk.runtime("t", "demand").layer.theta == theta


@pytest.mark.parametrize("name", ["debias", "groups", "quantile", "elo"])
def test_a_label_taken_back_before_an_export_is_not_taken_back_twice(name, desk):
    spec = SPECS[name]
    fed(desk, spec, np.random.default_rng(4), rows=9)
    assert desk.undo("t", "demand", BAD) == (3, 0, 0)
    text = export_state(desk.store, desk.store.layer("t", "demand"))
    assert desk.create("t", "again", {}, text)
    library = gq.from_json(text)
    with pytest.raises(gq.LabelConflict, match="taken back"):
        library.update(1.0, id=0)
    assert library.correct(0, 1.0) == "corrected" and library.correct(0, 1.0) == "duplicate"
    for own in ("demand", "again"):
        for status, more in (("conflict", {}), ("corrected", {"correct": True}), ("duplicate", {})):
            (told,) = desk.label("t", own, [Label(id=0, label=1.0, **more)], author=GOOD).result()
            assert told.status == status
    assert [found.faults for found in audit_store(desk.store)] == [[], []]
    reached, other = (reached_by(desk.runtime("t", own)) for own in ("demand", "again"))
    assert (reached.rows, reached.taken_back, reached.loss) == (other.rows, other.taken_back, other.loss)
    assert reached.rows == library.equilibrium().rows == 7
    assert library.theta == desk.runtime("t", "again").layer.theta == desk.runtime("t", "demand").layer.theta


def test_a_key_that_was_revoked_is_undone_too(tmp_path, capsys):
    with running(str(tmp_path / "store.db")) as own:
        layer = own.layer(eta=0.1)
        text, key = new_key("default", "bad", ["predict", "label"])
        add_key(own.service.store, key)
        bad = own.as_key(text)
        bad.post(f"{layer}/predictions", json={"id": 1, "prediction": 1.0})
        bad.post(f"{layer}/labels", json={"id": 1, "label": 5.0})
    assert run(["keys", "revoke", key.prefix, "--store", str(tmp_path / "store.db")]) == 0
    assert run(["store", "undo", str(tmp_path / "store.db"), "--key", key.prefix]) == 0
    assert "default/demand: 1 label of" in capsys.readouterr().out


def test_labels_that_another_server_has_just_taken_are_undone_too(postgres):
    address = postgres.address()
    with working_desk(address) as one:
        one.create("t", "demand", SPECS["debias"])
        with working_desk(address) as other:
            other.predict("t", "demand", [Prediction(id=0, prediction=1.0)]).result()
            assert label(other, 0, 3.0, BAD) == "applied"
            assert one.undo("t", "demand", BAD) == (1, 0, 0) and other.undo("t", "demand", BAD) == (0, 0, 0)


def test_a_state_in_which_an_ignored_tie_became_the_only_win_of_a_player_can_be_read(desk):
    desk.create("t", "demand", SPECS["elo drop"])
    desk.predict("t", "demand", [Prediction(id=k, a=f"a{k % 2}", b=f"b{k % 2}") for k in range(2)]).result()
    assert [label(desk, k, y, GOOD) for k, y in ((0, 0.5), (1, 1.0))] == ["applied"] * 2
    desk.control("t", "demand", "set_step", {"eta": 0.05}).result()
    desk.predict("t", "demand", [Prediction(id=3, a="a1", b="b1")]).result()
    label(desk, 3, 1.0, GOOD)
    assert label(desk, 0, 1.0, GOOD, correct=True) == "corrected"
    text = desk.copy("t", "demand").result()[1]
    assert gq.from_json(text).to_json() == text and gq.from_json(text).equilibrium().rows == 3
