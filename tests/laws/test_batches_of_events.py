"""Many events in one call are the same events one by one, for every layer; refused means unchanged."""

import math

import numpy as np
import pytest

import gradeq as gq
from gradeq import BadInput, GradeqError
from laws.kinds import KINDS

ROWS = 60


def rows_of(kind, rng, n=ROWS):
    """Arguments of n events: positional ones, and groups, features, key, weight and time by name."""
    found = []
    for k in range(n):
        where = kind.where(rng) | {"time": float(rng.integers(3 * n))}
        if kind.weights:
            where["weight"] = float(rng.choice([0.0, 1.0, 2.0]))
        found.append((kind.args(rng), where | {"id": f"row {k}" if k % 2 else k}))
    return found


def columns_of(kind, rows):
    """The same as columns."""
    given = {"weights": [where["weight"] for _, where in rows]}
    given |= {"ids": [where["id"] for _, where in rows], "times": [where["time"] for _, where in rows]}
    for name, own in (("groups", kind.groups), ("features", kind.features)):
        if own:
            given[name] = {column: [where[name][column] for _, where in rows] for column in own}
    if kind.keyed:
        given["key"] = [where["key"] for _, where in rows]
    if kind.bare:
        return (len(rows),), given
    args = [list(column) for column in zip(*(args for args, _ in rows), strict=True)]
    return tuple([np.array(args[0])] if kind.forecasts > 1 else args), given


@pytest.mark.parametrize("name", KINDS)
def test_many_events_in_one_call_are_those_events_one_by_one(name):
    kind = KINDS[name]
    rng = np.random.default_rng(3)
    one, many = kind.make(), kind.make()
    for layer in (one, many):  # a layer that has learned something, some of it late
        own = np.random.default_rng(4)
        for args, where in rows_of(kind, own, 30):
            layer.predict(*args, **where | {"id": f"early {where['id']}"})
        for k in range(0, 30, 3):
            layer.update(kind.label(own), id=f"early {f'row {k}' if k % 2 else k}")
    rows = rows_of(kind, rng)
    served = [one.predict(*args, **where) for args, where in rows]
    args, given = columns_of(kind, rows)
    found = np.asarray(many.predict_many(*args, **given))
    assert one.to_json() == many.to_json()
    if name != "conformal":
        assert found.tolist() == np.asarray(served).tolist()
    labels = [kind.label(rng) for _ in range(80)]
    ids = [(f"row {k}" if k % 2 else k) for k in rng.integers(0, ROWS + 10, 80).tolist()]
    outcomes = []
    for y, id in zip(labels, ids, strict=True):
        try:
            outcomes.append(one.update(y, id=id))
        except GradeqError as refusal:
            outcomes.append({"UnknownTicket": "unknown", "LabelConflict": "conflict"}[type(refusal).__name__])
    assert many.update_many(labels, ids=ids) == outcomes
    assert {"applied", "unknown"} <= set(outcomes) and one.to_json() == many.to_json()


@pytest.mark.parametrize("name", KINDS)
def test_a_run_with_ids_leaves_the_tickets_that_events_leave(name):
    kind = KINDS[name]
    rng = np.random.default_rng(5)
    one, many = kind.make(), kind.make()
    rows = rows_of(kind, rng)
    labels = [kind.label(rng) if rng.random() < 0.7 else math.nan for _ in rows]
    for (args, where), y in zip(rows, labels, strict=True):
        one.predict(*args, **{own: value for own, value in where.items() if own != "time"})
        if not math.isnan(y):
            one.update(y, id=where["id"])
    for part in (slice(0, 25), slice(25, 26), slice(26, ROWS)):
        args, given = columns_of(kind, rows[part])
        del given["times"]
        many.run(*([] if kind.bare else args), labels[part], **given)
    assert one.to_json() == many.to_json()
    waiting = [where["id"] for (_, where), y in zip(rows, labels, strict=True) if math.isnan(y)]
    assert [id for id, state in many.ids.items() if state == "open"] == waiting
    again = kind.saved(many.to_json())
    assert again.to_json() == many.to_json()
    assert set(again.update_many([0.0] * len(waiting), ids=waiting)) <= {"applied", "dropped"}


@pytest.mark.parametrize("name", ["overlapping", "auto", "interval", "keyed groups", "elo"])
def test_labels_that_wait_for_their_time_keep_their_ids(name):
    kind = KINDS[name]
    rng = np.random.default_rng(6)
    rows = rows_of(kind, rng)
    labels = np.array([kind.label(rng) if rng.random() < 0.8 else math.nan for _ in rows])
    times = np.arange(ROWS)
    due = times + rng.integers(1, 30, ROWS)
    one, many = kind.make(), kind.make()
    for part in (slice(0, 20), slice(20, ROWS)):
        args, given = columns_of(kind, rows[part])
        given |= {"times": times[part], "label_times": due[part], "weights": None}
        many.run(*args, labels[part], **given)
        many = kind.saved(many.to_json())
    for now, (args, where) in enumerate(rows):
        ready = [k for k in range(now) if due[k] <= now and one.ids[rows[k][1]["id"]] == "open"]
        for k in sorted(ready, key=lambda k: (due[k], k)):
            if not math.isnan(labels[k]):
                one.update(float(labels[k]), id=rows[k][1]["id"])
        where = {own: value for own, value in where.items() if own not in ("time", "weight")}
        one.predict(*args, **where)
    assert one.internals.state.saved() == many.internals.state.saved()
    one = kind.saved(one.to_json())
    assert one.ids == many.ids and one.internals.tickets.closed == many.internals.tickets.closed
    late = int(np.flatnonzero((due >= ROWS) & ~np.isnan(labels) & (labels != 0.5))[0])
    id, y = rows[late][1]["id"], float(labels[late])
    other = 0.0 if y else 1.0
    assert many.update_many([y, other], ids=[id, id]) == ["duplicate", "conflict"]
    assert (many.correct(id, other), many.correct(id, other)) == ("corrected", "duplicate")
    assert [own.y for own in many.internals.tickets.waiting.values() if own.id == id] == [other]


@pytest.mark.parametrize(
    "bad",
    [
        {"ids": ["a", "b", "a"]}, {"ids": ["a", "b", "known"]}, {"ids": ["a", None, "c"]}, {"ids": [1, 2, 0.5]},
        {"ids": ["a"]}, {"times": [1.0, math.nan, 2.0]}, {"weights": [1.0, -1.0, 1.0]}, {"groups": None},
        {"groups": {"g": ["new", "x"]}}, {"times": [1.0]},
    ],
    ids=repr,
)  # fmt: skip
def test_predict_many_takes_all_rows_or_none(bad):
    layer = gq.Debiaser(groups="g")
    layer.predict(1.0, groups={"g": "x"}, id="known")
    before = layer.to_json()
    given = {"groups": {"g": ["new", "x", "y"]}} | bad
    with pytest.raises(BadInput) as error:
        layer.predict_many([1.0, 2.0, 3.0], **given)
    assert "\n" not in str(error.value) and layer.to_json() == before


def test_every_label_has_an_outcome_of_its_own():
    layer = gq.Debiaser(0.1, outcome="binary", ttl=5.0)
    layer.predict_many([0.5, 0.5, 0.5, 0.5], ids=["a", "b", "c", "d"], times=[0.0, 4.0, 5.0, 6.0])
    ids = ["b", "b", "b", "a", "c", "c", "zz"]
    found = layer.update_many([1, 1, 0, 1, 7, None, 1], ids=ids)
    expected = ["applied", "duplicate", "conflict", "expired", "rejected", "rejected", "unknown"]
    assert found == expected
    assert layer.update_many([1, 0, 1]) == ["applied", "applied", "unknown"]  # the oldest first
    with pytest.raises(BadInput, match="id has 1 rows"):
        layer.update_many([1, 0], ids=["a"])


def test_a_label_for_a_forgotten_id_says_so():
    layer = gq.Debiaser(0.1)
    with pytest.raises(gq.UnknownTicket, match="never served here; predict"):
        layer.update(1.0, id="a")
    layer.internals.tickets.remember = 2
    layer.predict_many([1.0] * 3, ids=["a", "b", "c"])
    layer.update_many([1.0] * 3, ids=["a", "b", "c"])
    layer = gq.from_json(layer.to_json())
    with pytest.raises(gq.UnknownTicket, match=r"never served here, or it was forgotten \(1 id was"):
        layer.update(1.0, id="a")
    layer.predict(1.0, id="open")
    layer.forget("open")
    assert "open" not in layer.ids and layer.traffic["open"] == 0
    layer.predict(1.0, id="open")


def test_a_span_of_days_is_a_time_to_live_for_dates():
    from datetime import datetime, timedelta

    first, day = datetime(2024, 1, 1), timedelta(days=1)
    layer = gq.Debiaser(ttl="14d")
    layer.predict(1.0, id="a", time=first)
    layer.predict(1.0, id="b", time=np.datetime64("2024-01-10"))
    layer.predict_many([1.0, 1.0], ids=["c", "d"], times=[first + 14 * day, first + 15 * day])
    assert layer.ids == {"a": "expired", "b": "open", "c": "open", "d": "open"}
    assert gq.from_json(layer.to_json()).settings == layer.settings == gq.Debiaser(ttl="336h").settings
    for wrong in ("2 weeks", "-3d", "d", "", "nan d"):
        with pytest.raises(BadInput, match="is not a duration"):
            gq.Debiaser(ttl=wrong)


def test_one_name_may_stand_for_a_list_of_names():
    one = gq.Debiaser(0.1, groups="carrier", features="x", bins=[0.5])
    assert one.settings == gq.Debiaser(0.1, groups=["carrier"], features=["x"], bins=[0.5]).settings


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_in_frames_out(library):
    frames = pytest.importorskip(library)
    made = frames.table if library == "pyarrow" else frames.DataFrame
    layer, plain = (gq.IntervalTracker(0.8, 0.1, groups="g"), gq.IntervalTracker(0.8, 0.1, groups="g"))
    rows = {"id": ["a", "b"], "prediction": [1.0, 2.0], "g": ["x", "y"], "weight": [1.0, 2.0]}
    frame = layer.predict_many(made(rows))
    lower, upper = (np.asarray(frame[name]) for name in ("lower", "upper"))
    expected = plain.predict_many([1.0, 2.0], {"g": ["x", "y"]}, ids=["a", "b"], weights=[1.0, 2.0])
    assert type(frame) is type(made(rows)) and np.array_equal(np.stack([lower, upper], axis=1), expected)
    done = layer.update_many(made({"id": ["b", "a", "q"], "label": [5.0, 1.0, 1.0]}))
    assert list(map(str, done["outcome"])) == ["applied", "applied", "unknown"]
    reached = layer.equilibrium()
    table = reached.to_frame()
    assert list(map(str, table["name"])) == [c.name for c in reached.coordinates]


@pytest.mark.parametrize("name", ["scalar", "keyed", "elo", "risk"])
def test_ids_of_numpy_are_those_of_python(name):
    kind, rng = KINDS[name], np.random.default_rng(5)
    rows = [(kind.args(rng), kind.where(rng), kind.label(rng)) for _ in range(4)]
    ids = [np.int64(7), np.str_("x"), np.int32(-1), np.uint8(3)]
    layers = kind.make(), kind.make()
    for layer, own in zip(layers, (ids, [7, "x", -1, 3]), strict=True):
        for (args, where, y), id in zip(rows, own, strict=True):
            layer.predict(*args, **where, id=id)
            layer.update(y, id=id)
            layer.correct(id, 1.0 - y)
        columns = [list(column) for column in zip(*(args for args, _, _ in rows), strict=True)]
        given = {"key": [where["key"] for _, where, _ in rows]} if kind.keyed else {}
        if not kind.bare:
            layer.predict_many(*columns, **given, ids=[np.int64(20), "b", np.str_("c"), 4])
        layer.forget(own[0])
    assert layers[0].to_json() == layers[1].to_json()
    for bad in (np.True_, True, 1.0, np.float64(2.0), math.nan, [1], (1,)):
        with pytest.raises(BadInput, match="neither text nor a whole number"):
            layers[0].predict(*rows[0][0], **rows[0][1], id=bad)


def test_a_look_between_a_run_and_events_changes_nothing():
    def life(look):
        layer = gq.Debiaser(0.05, penalty=gq.Ridge(0.1), maturity=6)
        layer.run([10.0], [12.0], ids=["a"], times=[1])
        layer.predict_many([10.0] * 20, ids=range(20), times=range(5, 25))
        if look:
            layer.equilibrium()
        for k in range(20):
            layer.update(11.0, id=k)
        return layer.to_json()

    assert life(look=False) == life(look=True)
