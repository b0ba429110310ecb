"""Late, missing, unordered, doubled, corrected and expired labels."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq import (
    BadInput,
    Debiaser,
    Diverging,
    ExpiredTicket,
    LabelConflict,
    UnknownTicket,
    from_json,
)
from gradeq.theory import capped_radius_ticket_fixed


def naive_capped_steps(times, due, groups, eta, c, in_flight=1, labelled=None):
    """The rule of the cap, written out: P_g counted by scanning every earlier ticket."""
    n = len(times)
    turn = [next((i for i in range(k + 1, n) if times[i] >= due[k]), n) for k in range(n)]
    peaks, steps = {}, []
    for i in range(n):
        row_peaks = []
        for g in groups[i]:
            open_now = sum(1 for k in range(i + 1) if g in groups[k] and (k == i or turn[k] > i))
            peaks[g] = max(peaks.get(g, in_flight), open_now)
            row_peaks.append(peaks[g])
        steps.append(min(eta, c / sum(row_peaks)) if max(row_peaks) >= 2 else eta)
    return steps


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("in_flight", [1, 4])
def test_the_cap_is_the_rule_written_out(columns, in_flight):
    rng = np.random.default_rng(columns)
    n = 120
    times = np.sort(rng.integers(0, 60, n)).astype(float)
    due = times + rng.integers(0, 8, n)
    a, b = rng.choice(list("xy"), n), rng.choice(list("uvw"), n)
    names = ["a", "b"][:columns]
    layer = Debiaser(eta=0.2, groups=names, in_flight=in_flight)
    groups = {"a": a, "b": b}
    run = layer.run(
        rng.normal(size=n),
        rng.normal(size=n),
        {k: groups[k] for k in names},
        times=times,
        label_times=due,
    )
    assert run.labelled + run.waiting == n
    cells = [[f"{k}={groups[k][i]}" for k in names] for i in range(n)]
    steps = naive_capped_steps(times, due, cells, 0.2, 0.1, in_flight)
    pace = layer.desk.head.pace
    assert (pace.low, pace.high) == (min(steps), max(steps))
    assert pace.held == sum(step < 0.2 for step in steps)


def test_labels_at_once_are_never_capped():
    layer = Debiaser(eta=0.5)
    layer.run(np.zeros(50), np.ones(50))
    assert layer.desk.head.pace.low == 0.5


def test_the_layer_stays_inside_its_proven_radius_where_a_constant_step_diverges():
    """Hold and release: the schedule that makes an open mass above 1 diverge (result A1)."""
    d, cycles = 60, 40

    def attack(layer):
        worst, number = 0.0, 0
        for cycle in range(cycles):
            held = []
            for _ in range(d):
                layer.predict(0.0, id=f"h{number}")
                held.append(f"h{number}")
                number += 1
            for _ in range(400):  # let fresh labels bring theta to zero
                layer.predict(0.0, id=f"f{number}")
                layer.update(0.0, id=f"f{number}")
                number += 1
            for id in held:
                layer.update(1.0 if cycle % 2 else -1.0, id=id)
            worst = max(worst, abs(layer.theta["(all)"]))
        return worst

    assert attack(Debiaser(eta=0.05)) <= capped_radius_ticket_fixed(1.0, 0.1, d + 1)
    with pytest.raises(Diverging, match="smaller eta"):
        attack(Debiaser(eta=0.05, late_cap=None))


def test_divergence_raises_and_leaves_the_state_unchanged():
    n = 4000
    times = np.arange(n, dtype=float)
    layer = Debiaser(eta=1.5, late_cap=None)
    layer.predict(0.0), layer.update(0.0)
    before = layer.to_json()
    with pytest.raises(Diverging, match="smaller eta"):
        layer.run(np.zeros(n), np.ones(n), times=times, label_times=times + 30)
    assert layer.to_json() == before


@given(st.integers(0, 10**9))
def test_posting_order_does_not_matter_to_rounding(seed):
    n, rnd = 40, random.Random(seed)
    base = [rnd.gauss(0, 1) for _ in range(n)]
    labels = [rnd.gauss(1, 1) for _ in range(n)]
    states = []
    for _ in range(2):
        layer = Debiaser(eta=0.01, groups=["g"])
        for i in range(n):
            layer.predict(base[i], {"g": i % 3}, id=i)
        order = list(range(n))
        rnd.shuffle(order)
        for i in order:
            layer.update(labels[i], id=i)
        states.append(layer.theta)
    assert states[0] == pytest.approx(states[1], abs=1e-15)


@given(st.integers(0, 10**9), st.booleans())
def test_a_label_that_has_not_arrived_changes_nothing_served_before(seed, auto):
    n, rnd = 60, random.Random(seed)
    times = np.arange(n, dtype=float)
    due = times + np.array([rnd.choice([0, 1, 5, 20, 100]) for _ in range(n)])
    base = np.array([rnd.gauss(0, 1) for _ in range(n)])
    labels = np.array([rnd.gauss(1, 1) for _ in range(n)])
    victim = rnd.randrange(n)
    changed = labels.copy()
    changed[victim] += 1000.0
    eta = "auto" if auto else 0.2
    one = Debiaser(eta=eta).run(base, labels, times=times, label_times=due).served
    two = Debiaser(eta=eta).run(base, changed, times=times, label_times=due).served
    first = next((i for i in range(victim + 1, n) if times[i] >= due[victim]), n)
    assert np.array_equal(one[:first], two[:first])
    assert first == n or not np.array_equal(one[first:], two[first:])


def test_rows_out_of_time_order_are_processed_in_time_order_ties_in_file_order():
    rng = np.random.default_rng(0)
    n = 200
    times = rng.integers(0, 50, n).astype(float)
    base, labels = rng.normal(size=n), rng.normal(size=n)
    order = np.argsort(times, kind="stable")
    mixed = Debiaser(eta=0.1).run(base, labels, times=times).served
    sorted_ = Debiaser(eta=0.1).run(base[order], labels[order]).served
    assert np.array_equal(mixed[order][:-1], sorted_[:-1])


def test_a_ticket_that_never_closes_does_not_keep_the_others():
    layer = Debiaser(eta=0.1)
    layer.predict(0.0, id="never")
    for i in range(2000):
        layer.predict(0.0, id=i)
        layer.update(1.0, id=i)
    assert layer.in_flight["open"] == 1
    assert len(layer.desk.queue) < 200 and len(layer.desk.gone) < 200
    assert layer.update(1.0) == "applied" and layer.in_flight["open"] == 0


def test_oldest_first_without_ids():
    layer = Debiaser(eta=0.5, late_cap=None)
    layer.predict(0.0), layer.predict(10.0)
    layer.update(1.0), layer.update(10.0)
    assert layer.theta["(all)"] == 0.5


def test_a_doubled_label_is_told_and_ignored_another_value_is_a_conflict():
    layer = Debiaser(eta=0.5)
    layer.predict(0.0, id="a")
    assert layer.update(1.0, id="a") == "applied"
    before = layer.theta
    assert layer.update(1.0, id="a") == "duplicate"
    with pytest.raises(LabelConflict, match="correct"):
        layer.update(2.0, id="a")
    with pytest.raises(UnknownTicket, match="never served"):
        layer.update(2.0, id="b")
    with pytest.raises(BadInput, match="already served"):
        layer.predict(0.0, id="a")
    assert layer.theta == before


def test_correcting_a_label_posts_the_difference_and_keeps_the_certificate():
    rng = np.random.default_rng(2)
    right, wrong = Debiaser(eta=0.1, groups=["g"]), Debiaser(eta=0.1, groups=["g"])
    labels = rng.normal(size=30)
    for i in range(30):  # all served first, so that both serve the same
        for layer in (right, wrong):
            layer.predict(0.0, {"g": i % 2}, id=i)
    for i, y in enumerate(labels):
        right.update(y, id=i)
        wrong.update(y + 5.0 * (i == 7), id=i)
    assert wrong.correct(7, labels[7]) == "corrected"
    assert wrong.correct(7, labels[7]) == "duplicate"
    assert wrong.theta == pytest.approx(right.theta, abs=1e-14)
    assert wrong.equilibrium().gap < 1e-14
    assert wrong.equilibrium().bias_after == pytest.approx(
        right.equilibrium().bias_after, abs=1e-13
    )


def test_expired_tickets_leave_the_count_and_refuse_their_label():
    layer = Debiaser(eta=0.5, ttl=10.0)
    layer.predict(0.0, id="old", time=0.0)
    layer.predict(0.0, id="new", time=11.0)
    assert layer.in_flight["open"] == 1
    with pytest.raises(ExpiredTicket, match="expired"):
        layer.update(1.0, id="old")
    assert layer.update(1.0, id="new") == "applied"


def test_expiry_in_columns_drops_what_comes_too_late():
    times = np.arange(20.0)
    due = times + np.where(np.arange(20) % 2, 1.0, 9.0)
    layer = Debiaser(eta=0.1, ttl=5.0)
    run = layer.run(np.zeros(20), np.ones(20), times=times, label_times=due)
    assert run.expired > 0
    assert run.labelled + run.expired + run.waiting == 20
    assert max(layer.desk.peaks) <= 5


def test_waiting_labels_are_kept_with_the_state_and_posted_when_due():
    layer = Debiaser(eta=0.1)
    layer.run(np.zeros(3), np.ones(3), times=np.arange(3.0), label_times=np.array([5.0, 5.0, 7.0]))
    assert layer.theta["(all)"] == 0.0 and layer.in_flight["open"] == 3
    again = from_json(layer.to_json())
    run = again.run(np.zeros(1), [math.nan], times=[6.0], label_times=[math.nan])
    assert run.served[0] > 0.0 and again.in_flight["open"] == 1


def test_reset_in_flight_relaxes_the_cap_and_is_logged():
    layer = Debiaser(eta=0.5)
    for i in range(8):
        layer.predict(0.0, id=i)
    for i in range(8):
        layer.update(0.0, id=i)
    layer.predict(0.0, id="capped")
    layer.update(0.0, id="capped")
    assert layer.desk.head.pace.low == 0.1 / 8
    layer.reset_in_flight()
    held = layer.desk.head.pace.held
    layer.predict(0.0, id="free")
    assert layer.desk.head.pace.held == held and layer.desk.log[-1][0] == "reset_in_flight"


def test_the_certificate_is_exact_with_varying_steps():
    rng = np.random.default_rng(4)
    n = 500
    times = np.arange(n, dtype=float)
    labels = rng.normal(1.0, 1.0, n)
    layer = Debiaser(eta=0.2, groups=["g"])
    run = layer.run(
        np.zeros(n),
        labels,
        {"g": rng.integers(0, 3, n)},
        times=times,
        label_times=times + rng.integers(0, 40, n),
    )
    result = layer.equilibrium()
    assert not result.exact and result.gap < 1e-13
    posted = run.posts
    assert result.bias_after == pytest.approx(
        np.mean(run.served[posted] - labels[posted]), abs=1e-13
    )
    assert result.bound is None or abs(result.largest) <= result.bound
