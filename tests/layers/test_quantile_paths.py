"""Quantile trackers: events, columns, any cut, saved and resumed, late, compiled: the same bits."""

import numpy as np
import pytest

from gradeq import (
    BadInput,
    Conformal,
    IntervalTracker,
    Lasso,
    MultiQuantileTracker,
    Posting,
    Power,
    QuantileEnsemble,
    QuantileTracker,
    Ridge,
    RiskControl,
    Ticket,
    from_json,
)
from laws.kinds import certified

N = 240
LEVELS = [0.05, 0.25, 0.5, 0.6, 0.95]


def missed(theta, y):
    return float(y > theta)


MAKERS = {
    "sinh": lambda: QuantileTracker(0.9, 0.2),
    "linear": lambda: QuantileTracker(0.8, 0.2, link="linear"),
    "warm": lambda: QuantileTracker(0.9, "plain", warm=True),
    "groups": lambda: QuantileTracker(0.9, "plain", groups=["race"]),
    "linear groups": lambda: QuantileTracker(0.3, 0.1, link="linear", groups=["race", "sex"]),
    "overlapping": lambda: QuantileTracker(0.9, "plain", groups=["race", "sex"], warm=True),
    "features": lambda: QuantileTracker(0.9, 0.1, features=["x"], groups=["sex"]),
    "decay": lambda: QuantileTracker(0.9, schedule=Power(0.5, 0.5), groups=["race"]),
    "ridge": lambda: QuantileTracker(0.9, 0.1, penalty=Ridge(0.1), groups=["race"]),
    "lasso": lambda: QuantileTracker(0.9, 0.1, link="linear", penalty=Lasso(0.01)),
    "auto": lambda: QuantileTracker(0.9, "auto"),
    "auto warm": lambda: QuantileTracker(0.9, "auto", warm=True, groups=["race"]),
    "levels": lambda: MultiQuantileTracker(LEVELS, "plain"),
    "levels linear": lambda: MultiQuantileTracker(LEVELS, 0.1, link="linear"),
    "levels groups": lambda: MultiQuantileTracker(LEVELS, "plain", groups=["race", "sex"]),
    "levels features": lambda: MultiQuantileTracker(LEVELS, 0.05, features=["x"]),
    "one of several": lambda: MultiQuantileTracker([0.7], "plain"),
    "levels auto": lambda: MultiQuantileTracker(LEVELS, "auto"),
    "interval": lambda: IntervalTracker(0.8, "plain", groups=["race"]),
    "interval linear": lambda: IntervalTracker(0.8, 0.3, link="linear"),
    "interval busy": lambda: IntervalTracker(0.8, "plain", in_flight=5),
    "ensemble": lambda: QuantileEnsemble(0.9, [0.01, 0.1, 1.0], 0.3),
    "ensemble floor": lambda: QuantileEnsemble(0.9, [0.01, 0.1, 1.0], 0.3, None, floor=0.1),
    "ensemble linear": lambda: QuantileEnsemble(0.9, [0.01, 1.0], 0.3, 0.1, link="linear"),
    "conformal": lambda: Conformal("absolute", 0.8),
    "conformal cqr": lambda: Conformal("cqr", 0.8, "auto"),
    "risk": lambda: RiskControl(missed, 0.2, 0.1, start=0.5),
}
OWN = [name for name in MAKERS if not name.startswith(("ensemble", "risk"))]
COMPILED = [
    (name, late)
    for name in ("sinh", "levels groups", "interval linear", "ridge", "ensemble floor")
    for late in (False, True)
    if (name, late) != ("ridge", True)  # late labels with a penalty go event by event
]


def width(layer):
    """How many forecasts a row has."""
    if isinstance(layer, Conformal):
        return 2 if layer.score_name == "cqr" else 1
    return len(getattr(layer, "levels", [0.0]))


def stream(layer, seed=0, n=N, missing=0.1):
    rng = np.random.default_rng(seed)
    centre = np.cumsum(rng.normal(size=n))
    labels = centre + 0.7 + rng.standard_t(2, size=n)
    base = centre
    if width(layer) > 1:
        base = np.sort(centre[:, None] + rng.normal(size=(n, width(layer))), axis=1)
    labels[rng.random(n) < missing] = np.nan
    columns = {"weights": rng.choice([0.0, 0.5, 1.0, 2.0], n)}
    values = {"race": list("aaabbc"), "sex": list("fm")}
    if layer.settings.get("groups"):
        columns["groups"] = {g: rng.choice(values[g], n) for g in layer.settings["groups"]}
    if layer.settings.get("features"):
        columns["features"] = {"x": rng.normal(size=n)}
    times = np.sort(rng.uniform(0, 100, n)).round(1)
    return base, labels, columns, times, times + rng.exponential(4, n).round(1)


def cut(columns, rows):
    def own(value):
        return {k: v[rows] for k, v in value.items()} if isinstance(value, dict) else value[rows]

    return {name: own(value) for name, value in columns.items()}


def run(layer, base, labels, columns, times=None, due=None):
    """The thresholds or quantiles served to these rows."""
    given = (labels,) if isinstance(layer, RiskControl) else (base, labels)
    return layer.run(*given, times=times, label_times=due, **columns).values


def row_of(layer, base, columns, i):
    """One event: what is given to predict or open."""
    row = {}
    for name, value in columns.items():
        own = {k: v[i] for k, v in value.items()} if isinstance(value, dict) else value[i]
        row["weight" if name == "weights" else name] = own
    return () if isinstance(layer, RiskControl) else (base[i],), row


def predict(layer, base, columns, i, **more):
    """What one event was served, as an array."""
    given, row = row_of(layer, base, columns, i)
    served = layer.predict(*given, **row, **more)
    served = getattr(served, "threshold", served)
    return served[0] if isinstance(served, tuple) and len(served) == 1 else served


def resumed(layer):
    text = layer.to_json()
    again = RiskControl.from_json(text, missed) if isinstance(layer, RiskControl) else from_json(text)
    assert again.to_json() == text
    return again


@pytest.mark.parametrize("name", MAKERS)
def test_events_equal_columns_to_the_last_bit(name):
    batch, events = MAKERS[name](), MAKERS[name]()
    base, labels, columns, _, _ = stream(batch)
    served = run(batch, base, labels, columns)
    one_by_one = []
    for i in range(N):
        one_by_one.append(predict(events, base, columns, i, id=i))
        if labels[i] == labels[i]:
            events.update(labels[i], id=i)
    assert np.array_equal(served, one_by_one)
    assert batch.theta == events.theta
    assert batch.equilibrium() == events.equilibrium()
    assert batch.steps == events.steps


@pytest.mark.parametrize("name", OWN)
def test_open_and_post_are_predict_and_update_and_a_journal_of_them_is_the_state(name):
    """Tickets and postings go through JSON; some labels come late, some never, some are corrected."""
    kept, ours, again = MAKERS[name](), MAKERS[name](), MAKERS[name]()
    base, labels, columns, _, _ = stream(ours)
    tickets, journal = {}, []
    waits = np.random.default_rng(1).integers(0, 6, N)

    def told(entry):
        journal.append(type(entry).from_json(entry.to_json()))
        assert journal[-1] == entry
        return journal[-1]

    for i in range(N):
        given, row = row_of(ours, base, columns, i)
        shown = np.array(predict(kept, base, columns, i, id=i))
        tickets[i] = told(ours.open(*given, **row))
        assert np.array_equal(shown, tickets[i].served)
        for k in [k for k in tickets if k + waits[k] <= i and labels[k] == labels[k]]:
            posting = told(ours.post(tickets.pop(k), labels[k]))
            assert kept.update(labels[k], id=k) == "applied"
            if k % 40 == 0:
                for entry in ours.repost(posting, labels[k] + 1.0):
                    told(entry)
                assert kept.correct(k, labels[k] + 1.0) == "corrected"
    assert kept.internals.state == ours.internals.state
    assert kept.equilibrium() == ours.equilibrium()
    again.replay(journal)
    assert again.to_json() == ours.to_json()
    assert {type(entry) for entry in journal} == {Ticket, Posting}


@pytest.mark.parametrize("name", ["sinh", "levels", "interval linear"])
def test_a_ticket_of_other_levels_is_refused_and_changes_nothing(name):
    layer, before = MAKERS[name](), MAKERS[name]().to_json()
    with pytest.raises(BadInput, match="other levels"):
        layer.post(MultiQuantileTracker([0.2, 0.3, 0.4]).open(1.0), 2.0)
    assert layer.to_json() == before


@pytest.mark.parametrize("name", ["linear", "sinh", "levels linear", "interval"])
def test_a_correction_leaves_the_running_scale_as_it_was(name):
    right, wrong = MAKERS[name](), MAKERS[name]()
    base, labels, columns, _, _ = stream(right, missing=0.0)
    columns["weights"] = np.ones(N)
    for layer in (right, wrong):
        run(layer, base, labels, columns)
        predict(layer, base, columns, 0, id="x")
        layer.update(labels[0], id="x")
    wrong.correct("x", labels[0] + 1e6)
    wrong.correct("x", labels[0])
    assert np.array_equal(predict(right, base, columns, 1), predict(wrong, base, columns, 1))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_any_cut_saved_and_resumed_equals_the_whole_run(name, late):
    whole, parts = MAKERS[name](), MAKERS[name]()
    base, labels, columns, times, due = stream(whole)
    served = run(whole, base, labels, columns, times if late else None, due if late else None)
    pieces = []
    for a, b in ((0, 70), (70, 71), (71, 150), (150, N)):
        rows = slice(a, b)
        when = (times[rows], due[rows]) if late else (None, None)
        pieces.append(run(parts, base[rows], labels[rows], cut(columns, rows), *when))
        parts = resumed(parts)
    assert np.array_equal(served, np.concatenate(pieces))
    assert whole.to_json() == parts.to_json()


@pytest.mark.parametrize("name", MAKERS)
def test_late_columns_equal_late_events(name):
    batch, events = MAKERS[name](), MAKERS[name]()
    base, labels, columns, times, due = stream(batch)
    served = run(batch, base, labels, columns, times, due)
    posts = sorted((due[i], i) for i in range(N) if labels[i] == labels[i])
    one_by_one = []
    for i in range(N):
        while posts and posts[0][0] <= times[i] and posts[0][1] < i:
            _, k = posts.pop(0)
            events.update(labels[k], id=k)
        one_by_one.append(predict(events, base, columns, i, id=i))
    assert np.array_equal(served, one_by_one)
    assert batch.theta == events.theta
    assert certified(batch) == certified(events)
    assert batch.steps == events.steps


@pytest.mark.parametrize(("name", "late"), COMPILED)
def test_compiled_equals_interpreted(name, late, monkeypatch):
    pytest.importorskip("numba")
    plain, quick = MAKERS[name](), MAKERS[name]()
    base, labels, columns, times, due = stream(plain, n=700)
    when = (times, due) if late else (None, None)
    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    served = run(plain, base, labels, columns, *when)
    monkeypatch.setenv("GRADEQ_COMPILE", "1")
    assert np.array_equal(served, run(quick, base, labels, columns, *when))
    assert plain.to_json() == quick.to_json()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["sinh", "auto", "levels groups", "ensemble", "conformal", "risk"])
def test_a_label_that_has_not_arrived_changes_nothing_served_before(name, seed):
    base, labels, columns, times, due = stream(MAKERS[name](), seed)
    served = run(MAKERS[name](), base, labels, columns, times, due)
    rng = np.random.default_rng(seed)
    for k in rng.choice(np.flatnonzero(~np.isnan(labels)), 5, replace=False):
        other = labels.copy()
        other[k] += rng.choice([-1e3, 1e3])
        again = run(MAKERS[name](), base, other, columns, times, due)
        before = (times < due[k]) | (np.arange(N) <= k)
        assert np.array_equal(served[before], again[before])


@pytest.mark.parametrize("name", ["sinh", "linear", "levels", "ensemble linear", "conformal"])
def test_correcting_a_label_posts_the_difference(name):
    right, wrong = MAKERS[name](), MAKERS[name]()
    base, labels, _, _, _ = stream(right, n=40, missing=0.0)
    for i in range(40):
        predict(right, base, {}, i, id=i)
        predict(wrong, base, {}, i, id=i)
    for i in range(40):
        right.update(labels[i], id=i)
        wrong.update(labels[i] if i != 7 else labels[i] - 50.0, id=i)
    assert wrong.correct(7, labels[7]) == "corrected"
    for name_, value in right.theta.items():
        assert wrong.theta[name_] == pytest.approx(value, abs=1e-12)
    assert wrong.equilibrium().gap == pytest.approx(0.0, abs=1e-12)


def test_columns_in_any_form_serve_the_same():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    base, labels, _, _, _ = stream(MAKERS["levels"]())
    array = MAKERS["levels"]().run(base, labels).served
    listed = MAKERS["levels"]().run(list(base.T), labels).served
    assert isinstance(listed, list) and np.array_equal(np.stack(listed, axis=1), array)
    names = [f"q{k}" for k in range(base.shape[1])]
    frame = pd.DataFrame(base, columns=names, index=np.arange(N) + 7)
    served = MAKERS["levels"]().run(frame, labels).served
    assert list(served.columns) == names and served.index.equals(frame.index)
    assert np.array_equal(served.to_numpy(), array)
    polars = MAKERS["levels"]().run(pl.DataFrame(base, schema=names), labels).served
    assert polars.columns == names and np.array_equal(polars.to_numpy(), array)
    one = MAKERS["levels"]().run(base[:, 0], labels).served
    assert np.array_equal(one, MAKERS["levels"]().run([base[:, 0]] * 5, labels).values)


def test_crossing_forecasts_are_sorted_first():
    base, labels, _, _, _ = stream(MAKERS["levels"]())
    crossed = base[:, ::-1]
    assert np.array_equal(MAKERS["levels"]().run(crossed, labels).served, MAKERS["levels"]().run(base, labels).served)
    assert MAKERS["levels"]().predict([5.0, 4.0, 3.0, 2.0, 1.0]) == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_the_trace_ends_where_the_layer_is():
    layer = MAKERS["levels groups"]()
    base, labels, columns, _, _ = stream(layer)
    trace = layer.run(base, labels, **columns).trace
    assert dict(zip(trace.names, trace.theta[-1], strict=True)) == layer.theta
    ensemble = MAKERS["ensemble"]()
    base, labels, columns, _, _ = stream(ensemble)
    weights = ensemble.run(base, labels, **columns).tracker_weights
    assert dict(zip(weights.names, weights.theta[-1], strict=True)) == ensemble.tracker_weights
    assert np.allclose(weights.theta.sum(axis=1), 1.0)
