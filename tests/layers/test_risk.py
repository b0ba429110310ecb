"""Risk control: events are columns, an error out of range changes nothing, and bounds with a unit and late labels."""

import numpy as np
import pytest

from gradeq import BadInput, Posting, RiskControl


def missed(theta, y):
    return float(y > theta)


def test_late_columns_equal_late_events_and_any_cut():
    rng = np.random.default_rng(0)
    n = 300
    y, times = rng.normal(size=n), np.arange(float(n))
    due = times + rng.integers(0, 20, n)
    whole, cut, events = (RiskControl(missed, 0.2, 0.1, start=0.5) for _ in range(3))
    served = whole.run(y, times, due).served
    pieces = []
    for a, b in ((0, 1), (1, 120), (120, n)):
        pieces.extend(cut.run(y[a:b], times[a:b], due[a:b]).served)
        cut = RiskControl.from_json(cut.to_json(), missed)
    assert np.array_equal(served, pieces) and whole.to_json() == cut.to_json()
    one_by_one, waiting = [], []
    for i in range(n):
        for _, k in sorted(own for own in waiting if own[0] <= i):
            events.update(y[k], id=k)
        waiting = [own for own in waiting if own[0] > i]
        one_by_one.append(events.predict(id=i))
        waiting.append((due[i], i))
    assert np.array_equal(served, one_by_one)
    assert events.theta == whole.theta and events.steps == whole.steps


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_an_error_out_of_range_is_refused_and_changes_nothing(wrong):
    layer = RiskControl(lambda theta, y: wrong if y == 9.0 else 0.5, 0.1, 0.2)
    layer.run([1.0, 2.0])
    layer.predict(id="a")
    before = layer.to_json()
    for act in (lambda: layer.update(9.0, id="a"), lambda: layer.run([1.0, 9.0])):
        with pytest.raises(BadInput, match=r"must lie in \[0, 1\]"):
            act()
        assert layer.to_json() == before
    layer.update(1.0, id="a")
    with pytest.raises(BadInput):
        layer.correct("a", 9.0)
    assert layer.correct("a", 2.0) == "corrected"
    assert layer.equilibrium().gap < 1e-12


def test_a_posting_notes_its_error_and_reads_back():
    layer = RiskControl(lambda theta, y: float(len(y) > 2), 0.1, 0.2)
    posting = layer.post(layer.open(), ["a", "b", "c"])
    assert posting.memo == (1.0,)
    assert Posting.from_json(posting.to_json()).memo == posting.memo


@pytest.mark.parametrize("most", [0.5, 1.0, 8.0])
@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_in_any_unit_and_with_late_labels(most, late, seed):
    rng = np.random.default_rng(seed)
    layer = RiskControl(lambda theta, y: most * (y > theta), most / 4, 0.2 / most, span=(-1.0, 1.0), most=most)
    waiting = []
    for _ in range(600):
        ticket = layer.open()
        y = min(1.0, ticket.served + 1e-9) if ticket.served < rng.uniform(0, 1) else -1.0
        waiting.append((ticket, y))
        while len(waiting) > late:
            layer.post(*waiting.pop(rng.integers(len(waiting))))
    result = layer.equilibrium()
    assert result.bound is not None and result.gap < 1e-12
    assert abs(layer.risk - most / 4) <= result.bound * (1 + 1e-9)
    more = layer.labels_until(result.bound / 2)
    assert more is None or more > 0


def test_the_trace_ends_where_the_layer_is():
    layer = RiskControl(missed, 0.2, 0.1, start=0.5)
    trace = layer.run(np.linspace(-1, 1, 300)).trace
    assert trace.theta[-1].tolist() == list(layer.theta.values())


@pytest.mark.parametrize("most", [0.01, 1.0, 2.5, 40.0])
def test_the_bound_holds_with_weights_in_any_unit(most):
    """The last label is the heaviest, and takes theta beyond the end of its span."""
    eta, target = 0.01 / most, 0.3 * most
    layer = RiskControl(lambda knob, y: most * float(y > knob), target=target, eta=eta, span=(0.0, 1.0), most=most)
    for _ in range(2000):
        if layer.theta["(all)"] <= 1.0 < layer.theta["(all)"] + eta * most * 0.7:
            break
        layer.predict(1.0)
        layer.update(1.0)
    layer.predict(1.9)
    layer.update(1.0)
    found = layer.equilibrium()
    assert abs(found.largest) <= found.bound * (1.0 + 1e-9)
