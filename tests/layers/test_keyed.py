"""Many series: every key is a layer of its own, in one table."""

import numpy as np
import pytest

import gradeq as gq
from gradeq import (
    BadInput,
    Conformal,
    Debiaser,
    Diverging,
    Elo,
    Keyed,
    MultiQuantileTracker,
    Power,
    QuantileTracker,
    Ridge,
    UnknownTicket,
    from_json,
)

PATTERNS = [
    lambda: Debiaser(eta=0.1),
    lambda: Debiaser(outcome="real", schedule=Power(0.5, 0.5)),
    lambda: Debiaser("plain", outcome="binary"),
    lambda: QuantileTracker(0.9, eta=0.2),
    lambda: QuantileTracker(0.9, eta=0.2, link="linear"),
    lambda: MultiQuantileTracker([0.1, 0.5, 0.9], eta=0.2),
]


def stream(pattern, n=600, keys=23, seed=0):
    rng = np.random.default_rng(seed)
    base, labels = rng.normal(size=n), rng.normal(0.4, 1.5, size=n)
    if getattr(pattern, "outcome", "") == "binary":
        base, labels = 1 / (1 + np.exp(-base)), (labels > 0).astype(float)
    times = np.arange(n, dtype=float)
    return base, labels, rng.integers(0, keys, n), times, times + rng.integers(0, 60, n)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("make", PATTERNS, ids=lambda make: repr(make().settings))
def test_a_key_is_served_as_by_a_layer_of_its_own(make, late):
    base, labels, keys, times, due = stream(make())
    when = {"times": times, "label_times": due} if late else {}
    many = Keyed(make())
    run = many.run(base, labels, key=keys, **when)
    for key in np.unique(keys):
        rows = keys == key
        alone = make()
        own = {name: column[rows] for name, column in when.items()}
        served = alone.run(base[rows], labels[rows], **own).served
        assert np.array_equal(np.asarray(run.served)[rows], np.asarray(served))


@pytest.mark.parametrize("make", PATTERNS, ids=lambda make: repr(make().settings))
def test_events_columns_cuts_and_resumed_runs_agree(make):
    base, labels, keys, _, _ = stream(make())
    whole, events, cut = Keyed(make()), Keyed(make()), Keyed(make())
    served = np.asarray(whole.run(base, labels, key=keys).served)
    one_by_one = []
    for f, y, key in zip(base, labels, keys, strict=True):
        one_by_one.append(events.predict(f, key=int(key)))
        events.update(y)
    assert np.array_equal(served, np.array(one_by_one))
    pieces = []
    for a, b in [(0, 7), (7, 300), (300, 600)]:
        pieces.append(np.asarray(cut.run(base[a:b], labels[a:b], key=keys[a:b]).served))
        cut = from_json(cut.to_json())
    assert np.array_equal(served, np.concatenate(pieces))
    assert whole.to_json() == cut.to_json() == events.to_json()


def test_compiled_equals_interpreted(monkeypatch):
    pytest.importorskip("numba")
    base, labels, keys, _, _ = stream(None, n=2000, keys=400)
    slow = Keyed(Debiaser(eta=0.1))
    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    expected = slow.run(base, labels, key=keys).served
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    fast = Keyed(Debiaser(eta=0.1))
    assert np.array_equal(expected, fast.run(base, labels, key=keys).served)
    assert slow.to_json() == fast.to_json()


@pytest.mark.parametrize("make", PATTERNS, ids=lambda make: repr(make().settings))
def test_the_table_and_the_whole_are_certified(make):
    base, labels, keys, _, _ = stream(make())
    many = Keyed(make())
    run = many.run(base, labels, key=keys)
    table = many.table()
    assert table.rows.sum() == len(base) and table.keys[0] == str(keys[0])
    assert np.allclose(table.from_state, table.bias_after, atol=1e-12)
    whole = many.equilibrium()
    assert whole.rows == len(base) and whole.gap < 1e-12
    if make().kind == "debias":
        assert whole.bias_after == pytest.approx(np.mean(run.served - labels), abs=1e-12)
        assert whole.loss_after == pytest.approx(np.mean((run.served - labels) ** 2), abs=1e-12)
        assert whole.loss_before == pytest.approx(np.mean((base - labels) ** 2), abs=1e-12)
    assert whole.bound is None or abs(whole.largest) <= whole.bound


def test_integers_and_text_name_the_same_key():
    many = Keyed(Debiaser(eta=0.5))
    many.run([0.0, 0.0], [1.0, 1.0], key=np.array([7, 8]))
    assert many.predict(0.0, key="7") == many.predict(0.0, key=8) == 0.5


def test_only_a_fresh_plain_layer_can_be_keyed():
    used = Debiaser(eta=0.5)
    used.predict(1.0)
    with pytest.raises(BadInput, match="fresh"):
        Keyed(used)
    with pytest.raises(BadInput, match="group"):
        Keyed(Debiaser(eta=0.5, penalty=Ridge(0.1)))
    with pytest.raises(BadInput, match="key"):
        Keyed(Debiaser(eta=0.5)).run([1.0], [1.0])
    with pytest.raises(BadInput, match="too few labels"):
        Keyed(Debiaser("auto"))
    for other in (Elo(), Conformal("absolute", 0.9), Keyed(Debiaser()), 3):
        with pytest.raises(BadInput, match="cannot be keyed"):
            Keyed(other)


def test_a_refused_run_or_event_leaves_no_key_behind():
    many = Keyed(Debiaser(eta=0.5, groups=["g"]))
    many.predict(0.0, key="a", groups={"g": 1}, id=1)
    before = many.to_json()
    with pytest.raises(BadInput):
        many.predict(0.0, key="new", groups={"g": 2}, id=1)
    with pytest.raises(BadInput):
        many.predict(0.0, key="new", groups={"g": 2}, weight=-1.0)
    with pytest.raises(BadInput):
        many.run([0.0, 1.0], [1.0, 1.0], key=["x", "y"], groups={"g": [1]})
    with pytest.raises(BadInput):
        many.run([0.0, 1.0], [1.0, 1.0], key=["x"], groups={"g": [1, 2]})
    assert many.to_json() == before and many.keys == ["a"]


def test_two_partitions_by_key_joined_are_the_whole():
    base, labels, keys, _, _ = stream(None)
    parts = [Keyed(Debiaser(eta=0.1)) for _ in range(2)]
    whole = Keyed(Debiaser(eta=0.1))
    whole.run(base, labels, key=keys)
    for part, own in zip(parts, (keys < 9, keys >= 9), strict=True):
        part.run(base[own], labels[own], key=keys[own])
    parts[0].merge(parts[1])
    joined = parts[0]
    assert {key: joined.theta[key] for key in whole.theta} == whole.theta
    assert joined.equilibrium().bound == pytest.approx(whole.equilibrium().bound)
    for key in whole.keys:
        assert joined.equilibrium(key) == whole.equilibrium(key)


def test_one_row_into_a_million_keys_copies_nothing_of_the_rest():
    import tracemalloc

    many = Keyed(Debiaser(eta=0.1))
    keys = np.arange(300_000)
    many.run(np.zeros(len(keys)), np.ones(len(keys)), key=keys)
    many.run([0.0], [1.0], key=np.array([5]))  # whether to compile is looked up once
    tracemalloc.start()
    many.run([0.0], [1.0], key=np.array([6]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000  # a copy of u alone would be 2.4 MB


GROUPED = [
    lambda: Debiaser(eta=0.1, groups=["g"]),
    lambda: Debiaser(eta=0.1, groups=["g", "h"]),
    lambda: Debiaser(schedule=Power(0.3, 0.5), groups=["g", "h"]),
    lambda: Debiaser(schedule=Power(0.3, 0.5), groups=["g"]),
    lambda: Debiaser(eta=0.1, bins=[0.0]),
    lambda: Debiaser(eta=0.05, groups=["g"], features=["x"]),
    lambda: QuantileTracker(0.9, eta=0.2, features=["x"]),
    lambda: QuantileTracker(0.9, eta=0.2, groups=["g", "h"]),
    lambda: MultiQuantileTracker([0.1, 0.9], eta=0.2, groups=["g"]),
]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("make", GROUPED, ids=lambda make: repr(make().settings))
def test_every_key_has_groups_of_its_own(make, late):
    base, labels, keys, times, due = stream(None, keys=5)
    rng = np.random.default_rng(1)
    columns = {"g": rng.choice(list("ab"), 600), "h": rng.choice(list("xyz"), 600)}
    wanted, x = make().settings["groups"], rng.normal(size=600)
    numeric = make().settings["features"]

    def features(rows):
        return {name: x[rows] for name in numeric} or None

    when = {"times": times, "label_times": due} if late else {}
    many, cut = Keyed(make()), Keyed(make())
    groups = {name: columns[name] for name in wanted} or None
    run = many.run(base, labels, key=keys, groups=groups, features=features(slice(None)), **when)
    for key in np.unique(keys):
        rows = keys == key
        own = {name: column[rows] for name, column in when.items()}
        its = {name: columns[name][rows] for name in wanted} or None
        alone = make().run(base[rows], labels[rows], its, features(rows), **own)
        assert np.array_equal(np.asarray(run.served)[rows], np.asarray(alone.served))
    for a, b in [(0, 100), (100, 600)]:
        its = {name: columns[name][a:b] for name in wanted} or None
        own = {name: column[a:b] for name, column in when.items()}
        cut.run(base[a:b], labels[a:b], key=keys[a:b], groups=its, features=features(slice(a, b)), **own)
        cut = from_json(cut.to_json())
    assert cut.to_json() == many.to_json()
    whole, table = many.equilibrium(), many.table()
    assert whole.rows == run.labelled and whole.gap < 1e-9
    assert len(table.keys) == len(table.rows) and ", " in table.keys[0]
    if numeric and not wanted:
        with pytest.raises(BadInput, match="table"):
            many.equilibrium(key=int(keys[0]))
    elif not late:
        for key in np.unique(keys):
            rows = keys == key
            alone = make()
            its = {name: columns[name][rows] for name in wanted} or None
            alone.run(base[rows], labels[rows], its, features(rows))
            one, other = many.equilibrium(key=key), alone.equilibrium()
            assert one.rows == other.rows and one.gap < 1e-12
            assert one.loss_after == pytest.approx(other.loss_after, abs=1e-12)
            biases = {c.name: c.bias_after for c in other.coordinates}
            found = {c.name: c.bias_after for c in one.coordinates if c.rows}
            assert found == pytest.approx(biases, abs=1e-12)
    if not late:
        events = Keyed(make())
        for i in range(100):
            its = {name: str(columns[name][i]) for name in wanted} or None
            served = events.predict(base[i], key=int(keys[i]), groups=its, features=features(i))
            assert np.array_equal(served, np.asarray(run.served)[i])
            events.update(labels[i])


def test_a_label_goes_to_the_oldest_open_ticket_of_its_key():
    many = Keyed(Debiaser(eta=0.5, late_cap=None, queue=True))
    many.predict(0.0, key="a"), many.predict(0.0, key="b"), many.predict(0.0, key="a")
    assert many.update(1.0, key="b") == "applied"
    assert many.update(2.0, key="a") == "applied"
    assert many.table().theta.tolist() == [1.0, 0.5]
    assert many.traffic["open"] == 1
    with pytest.raises(UnknownTicket, match="waits"):
        many.update(1.0, key="b")
    with pytest.raises(BadInput, match="never seen"):
        many.update(1.0, key="c")
    assert many.equilibrium(key="a").rows == 1


def test_a_run_that_diverges_leaves_every_key_as_it_was():
    n = 4000
    times, keys = np.arange(n, dtype=float), np.arange(n) % 2
    many = Keyed(Debiaser(eta=1.5, late_cap=None))
    many.run(np.zeros(2), np.ones(2), key=keys[:2])
    before = many.to_json()
    with pytest.raises(Diverging):
        many.run(np.zeros(n), np.ones(n), key=keys, times=times, label_times=times + 60)
    assert many.to_json() == before


def short_series(seed, keys=80, scales=1.0):
    """Short series whose point forecasts need the same kind of correction, in units of very different size."""
    rng = np.random.default_rng(seed)
    size = np.exp(scales * rng.normal(size=keys))
    key = np.concatenate([rng.permutation(keys) for _ in range(40)])
    f = size[key] * rng.normal(3.0, 1.0, len(key))
    y = f + size[key] * (0.3 * rng.normal(size=keys)[key] + rng.normal(size=len(key)))
    return f, y, key


def by_key(key, values):
    return np.bincount(key, values) / np.bincount(key)


def test_pooling_helps_short_series():
    """Coverage key by key and pinball loss in units of each key: better than apart, and than one layer of all."""
    f, y, key = short_series(4)
    level = 0.9
    make = {
        "pooled": lambda: gq.Keyed(gq.QuantileTracker(level), pool=True).run(f, y, key=key),
        "apart": lambda: gq.Keyed(gq.QuantileTracker(level)).run(f, y, key=key),
        "one": lambda: gq.QuantileTracker(level).run(f, y),
    }
    off, loss = {}, {}
    for name, run in make.items():
        served = np.asarray(run().served)
        off[name] = np.abs(by_key(key, (y <= served).astype(float)) - level).mean()
        pinball = np.maximum(level * (y - served), (level - 1.0) * (y - served))
        raw = np.maximum(level * (y - f), (level - 1.0) * (y - f))
        loss[name] = np.log(by_key(key, pinball) / by_key(key, raw)).mean()
    assert off["pooled"] < 0.6 * min(off["apart"], off["one"])
    assert loss["pooled"] < min(loss["apart"], loss["one"]) - 0.1


def test_a_pooled_key_begins_with_what_the_others_learned_in_its_own_unit():
    f, y, key = short_series(5)
    many = gq.Keyed(gq.QuantileTracker(0.9), pool=True)
    many.run(f, y, key=key)
    assert many.predict(100.0, key="new") == 100.0  # nothing is known of its scale
    many.update(140.0)
    many.predict(100.0, key="other")
    many.update(100.4)
    wide, narrow = (many.predict(100.0, key=name) - 100.0 for name in ("new", "other"))
    assert wide == pytest.approx(100.0 * narrow, rel=0.05) and narrow > 0.2


def test_every_pooled_key_has_its_own_exact_certificate():
    f, y, key = short_series(6)
    many = gq.Keyed(gq.IntervalTracker(0.8, support=(0, None)), pool=True)
    many.run(f, np.maximum(y, 0.0), key=key)
    table = many.table()
    assert np.allclose(table.bias_after, table.from_state, atol=1e-12)
    assert gq.from_json(many.to_json()).to_json() == many.to_json()
    one = many.equilibrium("3")
    assert one.rows == 40 and one.bound is not None and abs(one.largest) <= one.bound


@pytest.mark.parametrize(
    "layer, said",
    [
        (lambda: gq.Debiaser(), "name the key as a group"),
        (lambda: gq.QuantileTracker(0.9, 0.1), "chooses its own steps"),
        (lambda: gq.QuantileTracker(0.9, "plain"), "chooses its own steps"),
        (lambda: gq.QuantileTracker(0.9, groups=["g"]), "not among groups"),
        (lambda: gq.QuantileTracker(0.9, 0.1, link="linear"), "chooses its own steps"),
    ],
)
def test_what_cannot_be_pooled_says_why(layer, said):
    with pytest.raises(gq.BadInput, match=said):
        gq.Keyed(layer(), pool=True)


def test_pooled_keys_that_err_opposite_ways_each_learn_their_own_side():
    """What all share is then about 0; without an offset of its own a key would be left 1.2 away from its side."""
    rng, keys = np.random.default_rng(7), 60
    key = np.concatenate([rng.permutation(keys) for _ in range(40)])
    side = np.where(np.arange(keys) % 2 == 0, 2.0, -2.0)[key]
    f = rng.normal(size=len(key))
    y = f + side + rng.normal(size=len(key))
    served = np.asarray(gq.Keyed(gq.QuantileTracker(0.5), pool=True).run(f, y, key=key).served)
    assert np.abs(served - f - side)[len(key) // 2 :].mean() < 0.8


def test_steps_of_a_late_key_are_its_own():
    """A key whose only label came late, with a small step, has a bound for that step, not for the layer's first."""
    layer = Keyed(QuantileTracker(0.1, 100.0, link="linear", groups=["g", "h", "i"]))

    def opened(key, k):
        return layer.open(0.0, key=key, groups={"g": "ab"[k % 2], "h": "xy"[k // 2 % 2], "i": "u"})

    layer.post(opened("quick", 0), 1.0)  # at once, by the full step
    for key in ("late", "quick"):
        tickets = [opened(key, k) for k in range(12)]
        layer.post(tickets[0], -500.0)
        found = layer.equilibrium(key)
        assert found.bound is None or abs(found.largest) <= found.bound
        for c in found.coordinates:
            assert c.bound is None or abs(c.bias_after) <= c.bound
        for k, ticket in enumerate(tickets[1:]):
            layer.post(ticket, -500.0 if k % 2 else 500.0)
            whole = layer.equilibrium()
            assert whole.bound is None or abs(whole.largest) <= whole.bound


def test_a_key_by_position_works_for_one_version_and_warns_where_it_stands():
    new, old = Keyed(Debiaser(0.1, groups=["g"])), Keyed(Debiaser(0.1, groups=["g"]))
    where, columns = {"g": "x"}, {"g": ["x", "y"]}
    with pytest.warns(DeprecationWarning, match=r"^a key by position .* key=\.\.\.\)$") as said:
        assert old.peek(1.0, "a", where) == new.peek(1.0, key="a", groups=where)
        assert old.predict(1.0, "a", where, id=1) == new.predict(1.0, key="a", groups=where, id=1)
        old.update(2.0, id=1), new.update(2.0, id=1)
        old.open(1.0, "a", where), new.open(1.0, key="a", groups=where)
        old.run([1.0, 2.0], [3.0, 4.0], ["a", "b"], columns)
        new.run([1.0, 2.0], [3.0, 4.0], key=["a", "b"], groups=columns)
        old.predict_many([1.0, 2.0], ["a", "b"], columns, ids=[2, 3])
        new.predict_many([1.0, 2.0], key=["a", "b"], groups=columns, ids=[2, 3])
    assert old.to_json() == new.to_json() and len(said) == 5
    assert {own.filename.rpartition("/")[2] for own in said} <= {"test_keyed.py", "locking.py"}
    with pytest.raises(TypeError, match="key="):
        new.predict(1.0)
