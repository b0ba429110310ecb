"""Without ids a layer waits for one label at a time: a label that is missed shifts no other pair."""

import copy
import math
import warnings

import numpy as np
import pytest

import gradeq as gq
from laws.kinds import KINDS

TAKEN = ("applied", "dropped")  # dropped: a tie, where ties are not games


def replaced_in(layer):
    """How many predictions were replaced, as the certificate says it (that of games does not)."""
    learning = layer.equilibrium().learning
    return sum(layer.internals.tickets.replaced.values()) if learning is None else learning.replaced


def missed_every(n, kind, seed=3, rows=120, **given):
    """A loop whose n-th rows get no label: predictions without ids, and the same with ids; both layers, the rows."""
    rng = np.random.default_rng(seed)
    plain, named = kind.make(), kind.make()
    for k in range(rows):
        args, where, y = kind.args(rng), kind.where(rng), kind.label(rng)
        served = plain.predict(*args, **where)
        assert served == named.predict(*args, **where, id=k)
        if k % n == 0:
            continue
        key = {"key": where["key"]} if kind.keyed else {}
        assert plain.update(y, **key) == named.update(y, id=k)
    return plain, named


@pytest.mark.filterwarnings("ignore::gradeq.GradeqWarning")
@pytest.mark.parametrize("name", KINDS)
def test_a_missed_label_shifts_no_other_pair(name):
    plain, named = missed_every(7, KINDS[name])
    assert plain.internals.state == named.internals.state
    keys = 4 if KINDS[name].keyed else 1
    assert plain.traffic["open"] <= keys
    replaced = replaced_in(plain)
    assert replaced + plain.traffic["open"] == math.ceil(120 / 7)
    said = f"{replaced} predictions were replaced before a label came"
    assert KINDS[name].games or said in str(plain.equilibrium())
    again = KINDS[name].saved(plain.to_json())
    assert again.to_json() == plain.to_json() == plain.copy().to_json()
    assert replaced_in(again) == replaced


def test_the_loop_of_the_readme_with_one_continue():
    rng = np.random.default_rng(7)
    layer = gq.Debiaser(eta=0.05)
    with pytest.warns(gq.ReplacedPrediction, match=r"ids.*skip\(\).*peek.*queue=True") as said:
        for day in range(3000):
            forecast = 100 + 10 * rng.normal()
            layer.predict(forecast)
            sold = forecast + 6 + 5 * rng.normal()
            if day in (10, 500):
                continue
            layer.update(sold)
    found = layer.equilibrium()
    assert found.loss_after < 27.0 and found.rows == 2998
    assert len(said) == 1 and said[0].filename == __file__
    assert str(found).endswith("2 predictions were replaced before a label came")


def test_the_warning_comes_once_for_each_layer_and_as_an_error_changes_nothing():
    layer = gq.Keyed(gq.Debiaser(0.1))
    layer.predict(1.0, key="a"), layer.predict(1.0, key="b")
    before = layer.to_json()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gq.GradeqWarning, match="of key 'a'"):
            layer.predict(2.0, key="a")
        with pytest.raises(gq.GradeqWarning):
            layer.predict_many([2.0, 1.0], key=["b", "c"])
    assert layer.to_json() == before
    with pytest.warns(gq.GradeqWarning):
        layer.predict(2.0, key="a")
    layer.predict(2.0, key="b")
    again = gq.from_json(layer.to_json())
    again.predict(3.0, key="a")
    assert again.equilibrium().learning.replaced == 3 and again.traffic["open"] == 2
    assert issubclass(gq.GradeqWarning, UserWarning)


@pytest.mark.parametrize("name", KINDS)
def test_a_look_changes_nothing_and_shows_what_is_served_next(name):
    kind, rng = KINDS[name], np.random.default_rng(11)
    layer = kind.make()
    for k in range(40):
        args, where = kind.args(rng), kind.where(rng)
        if kind.keyed and k % 5 == 0:
            where["key"] = f"new {k}"
        before = layer.to_json()
        seen = layer.peek(*args, **where)
        assert layer.to_json() == before
        layer.peek(*args, **where)
        served = layer.predict(*args, **where, id=k)
        assert np.all(seen == served) if name != "conformal" else seen.interval == served.interval
        layer.update(kind.label(rng), id=k)
    if kind.keyed:
        assert "never" not in layer.keys
        layer.peek(*kind.args(rng), **{**kind.where(rng), "key": "never"})
        assert "never" not in layer.keys
    shadow = gq.Debiaser(0.5, shadow=True)
    shadow.predict(1.0), shadow.update(5.0)
    assert shadow.peek(1.0) == 1.0


MATURING = {
    "debias": (lambda: gq.Debiaser(0.5, groups=["g"], maturity=3.0), (1.0,), {"groups": {"g": "a"}}),
    "interval": (lambda: gq.IntervalTracker(0.8, 0.5, maturity=3.0), (1.0,), {}),
    "ensemble": (lambda: gq.QuantileEnsemble(0.9, [0.1, 1.0], 0.5, maturity=3.0), (1.0,), {}),
    "risk": (lambda: gq.RiskControl(lambda theta, y: y > theta, 0.25, 0.5, maturity=3.0), (), {}),
    "keyed": (lambda: gq.Keyed(gq.Debiaser(0.5, maturity=3.0)), (1.0,), {"key": "a"}),
}


@pytest.mark.parametrize("name", MATURING)
def test_a_look_at_a_later_time_knows_the_labels_that_are_mature_by_then(name):
    make, args, where = MATURING[name]
    layer, moved = make(), 0
    for k in range(12):
        before = layer.to_json()
        now, seen = layer.peek(*args, **where), layer.peek(*args, **where, time=float(k))
        assert layer.to_json() == before
        assert seen == layer.predict(*args, **where, id=k, time=float(k))
        moved += seen != now
        assert layer.update(5.0 + k, id=k) == "waiting"
    assert moved


@pytest.mark.parametrize("none", [None, math.nan, np.float32("nan")], ids=repr)
@pytest.mark.parametrize("name", KINDS)
def test_a_skipped_prediction_is_one_whose_label_never_comes(name, none):
    kind, rngs = KINDS[name], [np.random.default_rng(5) for _ in range(2)]
    skipping, waiting = kind.make(), kind.make()
    for k in range(60):
        for layer, rng in zip((skipping, waiting), rngs, strict=True):
            layer.predict(*kind.args(rng), **kind.where(rng), id=k)
            y = kind.label(rng)
            if k % 3:
                layer.update(y, id=k)
            elif layer is skipping:
                assert (layer.update(none, id=k) if k % 2 else layer.skip(id=k)) == "skipped"
    assert skipping.internals.state == waiting.internals.state
    assert skipping.traffic["open"] == 0 and skipping.ids[3] == "expired"
    assert skipping.skip(id=3) == skipping.update(none, id=3) == "duplicate"
    again = kind.saved(skipping.to_json())
    for layer in (skipping, again):
        with pytest.raises(gq.ExpiredTicket, match="was skipped"):
            layer.update(0.5, id=3)
        assert list(layer.update_many([0.5], ids=[3])) == ["expired"]
        with pytest.raises(gq.LabelConflict):
            layer.skip(id=4)
        with pytest.raises(gq.UnknownTicket):
            layer.skip(id="never")
        with pytest.raises(gq.UnknownTicket):
            layer.skip()
    assert replaced_in(skipping) == 0


def test_a_skip_without_an_id_closes_the_open_prediction():
    layer = gq.Debiaser(0.5)
    for forecast, sold in ((1.0, 2.0), (5.0, None), (1.0, 2.0), (7.0, math.nan)):
        layer.predict(forecast)
        layer.update(sold)
    layer.predict(1.0), layer.skip()
    assert layer.traffic["open"] == 0 and layer.equilibrium().rows == 2
    assert layer.theta["(all)"] == 0.75
    many = gq.Keyed(gq.Debiaser(0.5))
    many.predict(1.0, key="a"), many.predict(1.0, key="b")
    assert many.skip(key="a") == "skipped" and many.update(2.0) == "applied"
    assert many.theta == {"a": 0.0, "b": 0.5}


def test_a_queue_is_first_in_first_out_and_is_saved():
    layer = gq.Debiaser(0.5, late_cap=None, queue=True)
    for f in (0.0, 10.0, 20.0):
        layer.predict(f)
    layer = copy.deepcopy(gq.from_json(layer.to_json()))
    assert layer.queue and "queue=True" in repr(layer) and layer.settings["queue"] is True
    assert [layer.update(y) for y in (1.0, None, 20.0)] == ["applied", "skipped", "applied"]
    assert layer.theta["(all)"] == 0.5 and layer.equilibrium().learning.replaced == 0
    with pytest.raises(AttributeError):
        layer.queue = False
    assert not gq.Debiaser(0.5).queue and "queue" not in repr(gq.Debiaser(0.5))
    with pytest.raises(gq.BadInput, match="queue"):
        gq.Debiaser(0.5, queue="yes")
    keyed = gq.Keyed(gq.QuantileTracker(0.9, 0.1, queue=True))
    assert keyed.queue and "queue=True" in repr(gq.from_json(keyed.to_json()))
    with pytest.raises(gq.GradeqError, match="queue"):
        gq.Debiaser(0.5).merge(gq.Debiaser(0.5, queue=True))


def test_predictions_with_ids_are_never_replaced():
    layer = gq.Debiaser(0.5, late_cap=None)
    layer.predict(0.0, id="a"), layer.predict(1.0), layer.predict(2.0, id="b")
    with pytest.warns(gq.GradeqWarning):
        layer.predict(3.0)
    assert layer.traffic["open"] == 3
    assert layer.update(4.0) == "applied" and layer.theta["(all)"] == 0.5  # of the last one without an id
    assert layer.update(0.0, id="a") == layer.update(2.0, id="b") == "applied"


def test_batches_without_ids_are_answered_in_their_order_beside_a_single_prediction():
    layer = gq.Debiaser(0.5, late_cap=None)
    layer.predict_many([0.0, 10.0, 20.0])
    layer.predict(99.0)  # out of curiosity
    assert list(layer.update_many([0.0, math.nan, 20.0])) == ["applied", "skipped", "applied"]
    assert layer.theta["(all)"] == 0.0
    with pytest.warns(gq.GradeqWarning):
        layer.predict_many([0.0, 10.0])  # the stray one is replaced, so that single labels fit too
    layer = gq.from_json(layer.to_json())
    layer.predict(50.0)
    assert layer.update(50.0) == "applied"  # predict and update go together
    assert [layer.update(y) for y in (0.0, 10.0)] == ["applied"] * 2
    assert layer.theta["(all)"] == 0.0 and layer.equilibrium().learning.replaced == 1
    with pytest.raises(gq.UnknownTicket, match="no prediction waits"):
        layer.update(1.0)


def test_a_label_without_a_key_is_refused_where_two_keys_wait():
    many = gq.Keyed(gq.Debiaser(0.5))
    many.predict(1.0, key="a"), many.predict(1.0, key="b")
    before = many.to_json()
    with pytest.raises(gq.BadInput, match=r"'a' and 'b' both wait.*key="):
        many.update(3.0)
    assert many.to_json() == before
    assert many.update(3.0, key="b") == many.update(2.0) == "applied"


@pytest.mark.filterwarnings("ignore::gradeq.GradeqWarning")
def test_replaced_predictions_are_counted_by_key_and_add_up_in_a_merge():
    parts = [gq.Keyed(gq.Debiaser(0.5)) for _ in range(2)]
    for part in parts:
        for _ in range(3):
            part.predict(1.0, key="a")
        part.predict(1.0, key="b")
    parts[0].merge(parts[1])
    assert parts[0].equilibrium().learning.replaced == 4
    assert "4 predictions were replaced" in str(parts[0].equilibrium()) or not parts[0].equilibrium().rows
    frame = parts[0].table().columns()
    assert list(frame["replaced"]) == [4, 0]
    assert "replaced" not in gq.Keyed(gq.Debiaser(0.5)).table().columns()


def test_the_first_of_two_opens_and_previews_is_not_replaced():
    layer = gq.Debiaser(0.5)
    layer.predict(1.0)
    tickets = [layer.open(1.0), layer.open(1.0)]
    layer.preview(1.0), layer.peek(1.0)
    assert layer.traffic["open"] == 1 and layer.equilibrium().learning.replaced == 0
    for ticket in tickets:
        layer.post(ticket, 1.0)
    assert layer.update(2.0) == "applied"


def old(text):
    """What an earlier version would have written of this queue."""
    from gradeq.layers import serialization

    kind, settings, state = serialization.load(text)
    settings = {name: value for name, value in settings.items() if name != "queue"}
    return "".join(serialization.dump(kind, settings, state))


def test_states_of_earlier_versions_go_on_as_they_were():
    layer = gq.Debiaser(0.5, late_cap=None, queue=True)
    layer.predict(0.0)
    one = gq.from_json(old(layer.to_json()))
    assert not one.queue and one.update(1.0) == "applied"
    one = gq.from_json(old(layer.to_json()))
    with pytest.warns(gq.GradeqWarning):
        one.predict(5.0)
    layer.predict(10.0)
    several = gq.from_json(old(layer.to_json()))
    assert several.queue  # it was used as a queue
    assert several.update(1.0) == several.update(10.0) == "applied"
    assert several.theta["(all)"] == 0.5


@pytest.mark.parametrize("name", KINDS)
def test_a_label_without_an_id_is_of_no_prediction_with_one_where_several_wait(name):
    kind, rng = KINDS[name], np.random.default_rng(13)
    layer = kind.make()
    where = kind.where(rng)
    key = {"key": where["key"]} if kind.keyed else {}
    for k in range(3):
        layer.predict(*kind.args(rng), **where, id=k)
    before = layer.to_json()
    for verb in (lambda: layer.update(kind.label(rng), **key), lambda: layer.update(0.5),
                 lambda: layer.skip(**key), lambda: layer.update(None)):  # fmt: skip
        with pytest.raises(gq.UnknownTicket, match=r"3 predictions.*with ids.*id=.*queue=True"):
            verb()
        assert layer.to_json() == before
    layer.predict(*kind.args(rng), **where)
    assert layer.update(kind.label(rng), **key) in TAKEN
    assert layer.update(kind.label(rng), id=0) in TAKEN
    assert layer.update(kind.label(rng), id=2) in TAKEN
    assert layer.update(kind.label(rng), **key) in TAKEN  # one is left: it is its label
    assert layer.ids == dict.fromkeys((0, 2, 1), "closed")
    with pytest.raises(gq.UnknownTicket, match="call predict first"):
        layer.update(kind.label(rng))


def test_a_queue_gives_a_label_without_an_id_to_the_oldest_prediction_of_all():
    layer = gq.Debiaser(0.1, queue=True)
    for k in range(3):
        layer.predict(1.0, id=k)
    assert [layer.update(1.0) for _ in range(3)] == ["applied"] * 3
    assert list(layer.ids) == [0, 1, 2]
