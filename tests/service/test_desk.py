"""The desk: a service layer is the library's layer plus a journal, bit for bit."""

import json

import numpy as np
import pytest

import gradeq as gq
from gradeq.ledger.exact import Sum, amounts
from gradeq.service.problems import LayerExists, NoSuchLayer
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store.journal_store import CORRECTION, POSTING, REVERSAL

SPECS = {
    "debias": {"kind": "debias", "eta": 0.05},
    "groups": {"kind": "debias", "eta": 0.05, "groups": ["g", "h"]},
    "features": {"kind": "debias", "eta": 0.02, "groups": ["g"], "features": ["x"]},
    "binary": {"kind": "debias", "eta": 0.1, "outcome": "binary", "groups": ["g"]},
    "auto": {"kind": "debias", "groups": ["g"]},
    "ridge": {"kind": "debias", "eta": 0.05, "groups": ["g"], "penalty": "ridge", "strength": 0.1},
    "decay": {"kind": "debias", "eta": 0.5, "decay": 0.4},
    "quantile": {"kind": "quantile", "level": 0.9, "eta": 0.1},
    "auto quantile": {"kind": "quantile", "level": 0.9},
    "interval": {"kind": "interval", "coverage": 0.8, "eta": 0.1},
    "quantiles": {"kind": "quantiles", "levels": [0.1, 0.5, 0.9], "eta": 0.1},
    "conformal": {"kind": "conformal", "score": "absolute", "coverage": 0.9},
    "ensemble": {"kind": "ensemble", "level": 0.9, "etas": [0.05, 0.5], "ensemble_eta": 0.1},
    "keyed": {"kind": "debias", "eta": 0.05, "keyed": True},
    "elo": {"kind": "elo", "eta": 0.1},
    "elo auto": {"kind": "elo"},
    "elo drop": {"kind": "elo", "eta": 0.1, "ties": "drop"},
}


def item_of(spec, rng, id):
    if spec["kind"] == "elo":
        a, b = rng.choice(6, 2, replace=False)
        return Prediction(id=id, a=f"p{a}", b=f"p{b}")
    groups = {name: str(rng.choice(list("abc"))) for name in spec.get("groups", ())} or None
    features = {name: float(rng.normal()) for name in spec.get("features", ())} or None
    binary = spec.get("outcome") == "binary"
    f = float(rng.uniform(0.05, 0.95)) if binary else float(rng.normal())
    if spec["kind"] == "quantiles":
        f = sorted(float(x) for x in rng.normal(size=3))
    key = int(rng.integers(4)) if spec.get("keyed") else None
    return Prediction(id=id, prediction=f, groups=groups, features=features, key=key)


def label_of(spec, rng):
    if spec["kind"] == "elo":
        return float(rng.choice([0.0, 0.5, 1.0]))
    return float(rng.random() < 0.4) if spec.get("outcome") == "binary" else float(rng.normal(0.5))


def library_open(layer, spec, item):
    given = {"groups": item.groups, "features": item.features}
    given = {name: own for name, own in given.items() if own}
    if spec["kind"] == "elo":
        return layer.open(item.a, item.b)
    return layer.open(item.prediction, **given, **({"key": item.key} if spec.get("keyed") else {}))


def columns(layer):
    return json.loads(layer.to_json())["state"]["columns"]


@pytest.mark.parametrize("name", SPECS)
def test_the_service_is_the_library_to_the_last_bit_and_so_is_what_a_restart_reads(name, desk):
    from gradeq.service.layer_spec import layer_of

    spec, rng = SPECS[name], np.random.default_rng(1)
    if spec.get("outcome") == "binary":  # the library's open and post hold no label back
        spec = {**spec, "maturity": 0}
    assert desk.create("t", "demand", spec)
    assert not desk.create("t", "demand", spec)
    own, waiting = layer_of(spec), []
    for turn in range(30):
        items = [item_of(spec, rng, f"{turn}-{k}") for k in range(rng.integers(1, 6))]
        answers = desk.predict("t", "demand", items).result()
        for item, answer in zip(items, answers, strict=True):
            ticket = library_open(own, spec, item)
            waiting.append((item.id, ticket))
            shown = ticket.served if spec["kind"] == "elo" else own.value_of(ticket)
            if hasattr(shown, "threshold"):
                assert (answer.lower, answer.upper) == shown.interval
            else:
                assert answer.adjusted == (list(shown) if isinstance(shown, tuple) else shown)
        labels = []
        while waiting and rng.random() < 0.7:
            id, ticket = waiting.pop(int(rng.integers(len(waiting))))
            labels.append(Label(id=id, label=label_of(spec, rng)))
            posting = own.post(ticket, labels[-1].label)
            if rng.random() < 0.2:
                labels.append(Label(id=id, label=label_of(spec, rng), correct=True))
                if labels[-1].label != posting.y:
                    own.repost(posting, labels[-1].label)
        if labels:
            told = [answer.status for answer in desk.label("t", "demand", labels).result()]
            assert set(told) <= {"applied", "corrected", "duplicate"}
    live = desk.runtime("t", "demand")
    assert columns(live.layer) == columns(own)
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert columns(again.layer) == columns(own) and again.sums == live.sums
    assert again.head == live.head == desk.store.head(live.number)


@pytest.mark.parametrize("name", ["groups", "quantiles", "keyed", "elo drop", "interval"])
def test_the_sums_in_the_store_are_those_of_the_journal_exactly_in_any_order(name, desk):
    spec, rng = SPECS[name], np.random.default_rng(2)
    desk.create("t", "demand", spec)
    for k in range(60):
        desk.predict("t", "demand", [item_of(spec, rng, k)]).result()
        if k >= 5:
            desk.label("t", "demand", [Label(id=k - 5, label=label_of(spec, rng))]).result()
        if k % 7 == 6:
            desk.label("t", "demand", [Label(id=k - 5, label=label_of(spec, rng), correct=True)]).result()
    live = desk.runtime("t", "demand")
    from gradeq.service.schemas import decode_posting

    entries = desk.store.entries(live.number)
    postings = [decode_posting(e.body) for e in entries if e.kind in (POSTING, REVERSAL, CORRECTION)]
    found = {}
    for k in rng.permutation(len(postings)).tolist():
        if live.layer.internals.learns is None or live.layer.internals.learns(postings[k].y):
            for account, own in amounts(postings[k]):
                found[account] = found.get(account, Sum()).plus(own)
    assert desk.store.sums(live.number) == found


def test_the_same_again_is_answered_as_before_and_anything_else_is_a_conflict(desk):
    desk.create("t", "demand", SPECS["groups"] | {"groups": ["g"]})
    first = Prediction(id="order-17", prediction=42.0, groups={"g": "north"})
    other = Prediction(id="order-17", prediction=43.0, groups={"g": "north"})
    predict = lambda *items: desk.predict("t", "demand", items).result()  # noqa: E731
    label = lambda *items: desk.label("t", "demand", items).result()  # noqa: E731
    once, twice, conflict = predict(first, first, other)
    assert (once.status, twice.status, conflict.status) == ("served", "duplicate", "conflict")
    assert once.adjusted == twice.adjusted == 42.0 and once.seq == twice.seq == 1
    assert [own.status for own in predict(first, other)] == ["duplicate", "conflict"]
    told = label(*(Label(id=id, label=y) for id, y in (("order-17", 45.5), ("order-17", 45.5), ("order-17", 1.0))))
    assert [own.status for own in told] == ["applied", "duplicate", "conflict"]
    assert label(Label(id=17, label=1.0))[0].status == "unknown"
    assert predict(Prediction(prediction=42.0, groups={"g": "north"}))[0].adjusted == 42.175
    assert predict(Prediction(prediction=42.0))[0].status == "rejected"
    assert [own.status for own in desk.runtime("t", "demand").rejections][-1] == "rejected"


def test_all_or_none(desk):
    desk.create("t", "demand", SPECS["debias"])
    before = columns(desk.runtime("t", "demand").layer)
    bad = [Prediction(id="a", prediction=1.0), Prediction(id="b", prediction=None)]
    told = desk.predict("t", "demand", bad, atomic=True).result()
    assert [own.status for own in told] == ["rejected", "rejected"]
    assert columns(desk.runtime("t", "demand").layer) == before and desk.store.head(1).seq == 0
    twice = [Prediction(id="a", prediction=1.0), Prediction(id="a", prediction=2.0)]
    told = desk.predict("t", "demand", twice, atomic=True).result()
    assert [own.status for own in told] == ["rejected", "conflict"] and desk.store.head(1).seq == 0
    desk.predict("t", "demand", [Prediction(id="a", prediction=1.0)]).result()
    one, two, right = (Label(id="a", label=1.0), Label(id="a", label=2.0), Label(id="a", label=3.0, correct=True))
    told = desk.label("t", "demand", [one, two], atomic=True).result()
    assert [own.status for own in told] == ["rejected", "conflict"] and desk.store.head(1).seq == 1
    told = desk.label("t", "demand", [one, one, right], atomic=True).result()
    assert [own.status for own in told] == ["applied", "duplicate", "corrected"]
    told = desk.label("t", "demand", [two, one], atomic=True).result()
    assert [own.status for own in told] == ["conflict", "conflict"]


def test_expired_tickets_and_layers_that_are_not_there(desk):
    desk.create("t", "demand", SPECS["debias"] | {"ttl": "1h"})
    desk.predict("t", "demand", [Prediction(id="a", prediction=1.0)]).result()
    began, desk.clock = desk.clock(), lambda: began + 4000.0
    assert desk.label("t", "demand", [Label(id="a", label=1.0)]).result()[0].status == "expired"
    with pytest.raises(NoSuchLayer):
        desk.predict("other", "demand", [])
    with pytest.raises(LayerExists):
        desk.create("t", "demand", SPECS["debias"])
    desk.remove("t", "demand")
    with pytest.raises(NoSuchLayer):
        desk.label("t", "demand", [])


@pytest.mark.parametrize("name", ["groups", "auto quantile", "elo", "keyed"])
def test_signed_tickets_leave_nothing_until_their_labels_come(name, desk):
    spec, rng = SPECS[name] | {"tickets": "signed"}, np.random.default_rng(3)
    desk.create("t", "demand", spec)
    from gradeq.service.layer_spec import layer_of

    own, waiting = layer_of(spec), []
    for k in range(80):
        item = item_of(spec, rng, k)
        answer = desk.predict("t", "demand", [item]).result()[0]
        waiting.append(
            (
                answer,
                own.preview(
                    *desk.runtime("t", "demand").open_arguments(item)[0],
                    **desk.runtime("t", "demand").open_arguments(item)[1],
                ),
            )
        )
        while waiting and rng.random() < 0.5:
            answer, ticket = waiting.pop(int(rng.integers(len(waiting))))
            y = label_of(spec, rng)
            sent = Label(label=y, ticket=answer.ticket)
            assert [own.status for own in desk.label("t", "demand", [sent, sent]).result()] == [
                "applied",
                "duplicate",
            ]
            own.adopt(ticket, y)
    assert columns(desk.runtime("t", "demand").layer) == columns(own)
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert columns(again.layer) == columns(own)
    alone = desk.label("t", "demand", [Label(id=waiting[0][0].id, label=0.0)]).result()[0]
    assert alone.status == "rejected" and "ticket" in alone.detail
    forged = waiting[0][0].ticket[:-4] + "AAAA"
    assert desk.label("t", "demand", [Label(label=0.0, ticket=forged)]).result()[0].status == "rejected"


def test_a_frozen_layer_serves_and_hears(desk):
    desk.create("t", "demand", SPECS["debias"])
    desk.control("t", "demand", "freeze").result()
    answer = desk.predict("t", "demand", [Prediction(id="a", prediction=1.0)]).result()[0]
    assert answer.adjusted == 1.0 and not answer.learning
    assert desk.label("t", "demand", [Label(id="a", label=2.0)]).result()[0].status == "applied"
    assert desk.runtime("t", "demand").layer.theta == {"(all)": 0.0}
    desk.control("t", "demand", "set_step", {"eta": 0.5}).result()
    desk.control("t", "demand", "resume").result()
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    assert again.layer.to_json() == desk.runtime("t", "demand").layer.to_json()


def test_a_store_that_cannot_write_still_serves_the_last_good_state(desk):
    from gradeq.service.store.database import StoreUnavailable

    desk.create("t", "demand", SPECS["debias"])
    desk.predict("t", "demand", [Prediction(id="a", prediction=1.0)]).result()
    desk.label("t", "demand", [Label(id="a", label=3.0)]).result()
    before = columns(desk.runtime("t", "demand").layer)
    append = desk.store.driver._writer
    desk.store.driver._writer = Refusing(append)
    answer = desk.predict("t", "demand", [Prediction(id="b", prediction=1.0)]).result()[0]
    assert answer.adjusted == 1.1 and not answer.stored and "full" in answer.detail
    with pytest.raises(StoreUnavailable):
        desk.label("t", "demand", [Label(id="b", label=3.0)]).result()
    assert not desk.health.writable
    desk.store.driver._writer = append
    assert desk.label("t", "demand", [Label(id="b", label=3.0)]).result()[0].status == "unknown"
    assert desk.health.writable and columns(desk.runtime("t", "demand").layer) == before


class Refusing:
    """A connection whose commits fail as on a full disk."""

    def __init__(self, own):
        self.own = own

    def __getattr__(self, name):
        return getattr(self.own, name)

    def execute(self, sql, *params):
        import sqlite3

        if sql == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return self.own.execute(sql, *params)


def test_gradeq_reads_what_the_service_saved(desk):
    desk.create("t", "demand", SPECS["groups"])
    desk.predict("t", "demand", [Prediction(id="a", prediction=1.0, groups={"g": 1, "h": 2})]).result()
    desk.stop()
    assert gq.from_json(desk.store.snapshot(1)[1]).kind == "debias"


def test_a_new_store_is_for_its_owner_alone(desk):
    path = desk.store.driver.path
    assert [own.stat().st_mode & 0o077 for own in path.parent.glob("store.db*")] == [0, 0, 0]


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "debias", "decay": "fast"},
        {"kind": "debias", "eta": None, "decay": 0.5},
        {"kind": "conformal", "score": "absolute", "coverage": 0.9, "decay": 0.5},
        {"kind": "quantile", "level": 0.9, "penalty": "ridge"},
        {"kind": "debias", "schedule": "falling"},
        {"kind": "debias", "groups": 3},
        {"kind": "ensemble", "level": 0.9},
        {"kind": "keyed"},
        {},
    ],
)
def test_settings_that_make_no_layer_are_refused_in_one_line(spec, desk):
    with pytest.raises(ValueError) as refused:
        desk.create("t", "demand", spec)
    assert "\n" not in str(refused.value) and not desk.names("t")


def test_what_is_refused_leaves_the_desk_as_it_was_and_frozen_is_frozen(desk):
    desk.create("t", "demand", SPECS["auto"] | {"groups": []})
    predict = lambda *items: desk.predict("t", "demand", items).result()  # noqa: E731
    predict(Prediction(id="a", prediction=1.0))
    desk.label("t", "demand", [Label(id="a", label=1000.0)]).result()
    with pytest.raises(ValueError, match="chooses its own steps"):
        desk.control("t", "demand", "set_step", {"eta": 0.1}).result()
    assert not desk.runtime("t", "demand").stale and desk.health.failures == 0
    desk.control("t", "demand", "freeze").result()
    before = columns(desk.runtime("t", "demand").layer)
    right = Label(id="a", label=2.0, correct=True)
    assert desk.label("t", "demand", [right]).result()[0].status == "rejected"
    assert columns(desk.runtime("t", "demand").layer) == before
    desk.control("t", "demand", "resume").result()
    assert desk.label("t", "demand", [right]).result()[0].status == "corrected"
    again = LayerRuntime.load(desk.store, desk.store.layer("t", "demand"))
    for live in (desk.runtime("t", "demand"), again):  # charts show labels as they are now
        assert [heard.posting.y for heard in live.recent_labels] == [2.0]


@pytest.mark.parametrize("spec", [{"keyed": True}, {"groups": ["g"]}, {"kind": "elo"}])
def test_so_many_names_are_kept_apart_and_no_more(spec, desk):
    desk.create("t", "demand", {"kind": "debias", "eta": 0.1, "max_names": 3} | spec)
    for k in range(5):
        item = Prediction(id=k, prediction=1.0, key=f"k{k}" if "keyed" in spec else None)
        if "groups" in spec:
            item.groups = {"g": f"v{k}"}
        if "kind" in spec:
            item = Prediction(id=k, a="p0", b=f"p{k + 1}")
        answer = desk.predict("t", "demand", [item]).result()[0]
        assert answer.status == ("served" if k < 3 - ("kind" in spec) or "groups" in spec else "rejected")
    names = desk.runtime("t", "demand").layer.theta
    assert len(names) == 3 + ("groups" in spec) and ("g=(other)" in names) == ("groups" in spec)


def test_what_an_operator_did_before_a_fold_is_not_done_again_after_it(desk):
    from gradeq.service.audit import audit_store
    from gradeq.service.maintenance import fold_layer

    now = desk.clock()
    desk.clock = lambda: now - 1e6
    desk.create("t", "demand", SPECS["debias"])
    for k in range(20):
        desk.predict("t", "demand", [Prediction(id=k, prediction=1.0)]).result()
        desk.label("t", "demand", [Label(id=k, label=2.0)]).result()
        if k == 9:
            desk.control("t", "demand", "set_step", {"eta": 0.2}).result()
            desk.control("t", "demand", "freeze").result()
            desk.control("t", "demand", "resume").result()
    desk.stop()
    (row,) = desk.store.layers()
    assert fold_layer(desk.store, row, 86_400.0, now) == 40
    assert [own.faults for own in audit_store(desk.store)] == [[]]
