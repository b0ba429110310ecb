"""Late, missing, unordered, doubled, corrected and expired labels."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq import BadInput, Debiaser, Diverging, ExpiredTicket, LabelConflict, UnknownTicket, from_json
from gradeq.theory import late_squared_radius


def naive_steps(times, due, groups, eta, c, in_flight=1):
    """The lateness rule, written out: each label's step, in the order of posting."""
    n = len(times)
    turn = [next((i for i in range(k + 1, n) if times[i] >= due[k]), n) for k in range(n)]
    cells, steps = {}, []
    for i in range(n):
        for k in sorted((k for k in range(i) if turn[k] == i), key=lambda k: (due[k], k)):
            peaks = []
            for g in groups[k]:
                cell = cells.setdefault(g, {"P": in_flight, "E": 0, "n": 0, "len": 50})
                d = sum(1 for r in range(k, i) if g in groups[r])
                cell["P"], cell["E"] = max(cell["P"], d), max(cell["E"], d)
                cell["n"] += 1
                if cell["n"] >= cell["len"]:
                    cell.update(P=cell["E"], E=0, n=0)
                    cell["len"] = max(cell["len"] + 50, 4 * cell["P"])
                peaks.append(cell["P"])
            steps.append(min(eta, c / sum(peaks)) if max(peaks) >= 2 else eta)
    return steps


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("in_flight", [1, 4])
def test_the_step_of_a_late_label_is_the_rule_written_out(columns, in_flight):
    rng = np.random.default_rng(columns)
    n = 500
    times = np.sort(rng.integers(0, 250, n)).astype(float)
    due = times + np.where(np.arange(n) < 150, rng.integers(0, 8, n), rng.integers(0, 2, n))
    a, b = rng.choice(list("xy"), n), rng.choice(list("uvw"), n)
    names = ["a", "b"][:columns]
    layer = Debiaser(eta=0.2, groups=names, in_flight=in_flight)
    groups = {"a": a, "b": b}
    run = layer.run(
        rng.normal(size=n), rng.normal(size=n), {k: groups[k] for k in names}, times=times, label_times=due
    )
    assert run.labelled + run.waiting == n
    rows = [[f"{k}={groups[k][i]}" for k in names] for i in range(n)]
    steps = naive_steps(times, due, rows, 0.2, 0.1, in_flight)
    assert (layer.steps["smallest"], layer.steps["largest"]) == (min(steps), max(steps))
    assert layer.steps["capped"] == sum(step < 0.2 for step in steps)


def test_labels_at_once_are_never_capped():
    layer = Debiaser(eta=0.5)
    layer.run(np.zeros(50), np.ones(50))
    assert layer.steps == {"smallest": 0.5, "largest": 0.5, "capped": 0, "resized": 0}


def test_a_ticket_that_is_never_labelled_has_no_influence_at_all():
    """Labels that are lost, however many, change neither steps nor what is served."""
    lost, clean = Debiaser(eta=0.3), Debiaser(eta=0.3)
    for i in range(200):
        assert lost.predict(0.0, id=i) == clean.predict(0.0, id=i)
        if i % 3:
            lost.update(1.0, id=i), clean.update(1.0, id=i)
    assert lost.steps["capped"] == 0 and lost.theta == clean.theta


@given(st.integers(0, 10**9), st.sampled_from([{}, {"groups": ["g"]}, {"outcome": "binary"}]))
def test_given_postings_commute_to_rounding(seed, settings):
    """The step that a label gets depends on the order of arrival; what a posting adds does not."""
    rnd = random.Random(seed)
    layer = Debiaser(eta=0.05, **settings)
    groups = settings.get("groups")
    tickets = [layer.open(rnd.random(), {"g": rnd.randrange(3)} if groups else None) for _ in range(40)]
    start = layer.to_json()
    postings = [layer.post(ticket, float(rnd.random() < 0.5)) for ticket in rnd.sample(tickets, 40)]
    states = [layer.theta]
    for _ in range(2):
        again = from_json(start)
        rnd.shuffle(postings)
        again.replay(postings)
        states.append(again.theta)
    assert states[1] == pytest.approx(states[0], abs=1e-15) == states[2]


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

    harmonic = sum(1.0 / j for j in range(2, d + 401))
    assert attack(Debiaser(eta=0.05)) <= late_squared_radius(0.0, 1.0, 0.9, 0.1 * harmonic)
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
    assert layer.traffic["open"] == 1
    assert layer.update(1.0) == "applied" and layer.traffic["open"] == 0


def test_oldest_first_in_a_queue():
    layer = Debiaser(eta=0.5, late_cap=None, queue=True)
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
    assert wrong.equilibrium().bias_after == pytest.approx(right.equilibrium().bias_after, abs=1e-13)


def test_expired_tickets_leave_the_count_and_refuse_their_label():
    layer = Debiaser(eta=0.5, ttl=10.0)
    layer.predict(0.0, id="old", time=0.0)
    layer.predict(0.0, id="new", time=11.0)
    assert layer.traffic["open"] == 1
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
    assert layer.traffic["peak"] <= 6


def test_waiting_labels_are_kept_with_the_state_and_posted_when_due():
    layer = Debiaser(eta=0.1)
    layer.run(np.zeros(3), np.ones(3), times=np.arange(3.0), label_times=np.array([5.0, 5.0, 7.0]))
    assert layer.theta["(all)"] == 0.0 and layer.traffic["open"] == 3
    again = from_json(layer.to_json())
    run = again.run(np.zeros(1), [math.nan], times=[6.0], label_times=[math.nan])
    assert run.served[0] > 0.0 and again.traffic["open"] == 1


def test_reset_in_flight_relaxes_the_cap_and_is_logged_and_the_facts_do_not_forget():
    layer = Debiaser(eta=0.5)
    for i in range(8):
        layer.predict(0.0, id=i)
    for i in range(8):
        layer.update(1.0, id=i)
    assert layer.steps["smallest"] == 0.1 / 8
    layer.predict(0.0), layer.update(0.0)
    capped = layer.steps["capped"]
    layer.reset_in_flight()
    layer.predict(0.0), layer.update(0.0)
    assert layer.steps["capped"] == capped and layer.log[-1] == ("reset_in_flight", 9)
    result = layer.equilibrium()
    assert result.bound is None or abs(result.largest) <= result.bound


def test_the_certificate_is_exact_with_varying_steps():
    rng = np.random.default_rng(4)
    n = 500
    times = np.arange(n, dtype=float)
    labels = rng.normal(1.0, 1.0, n)
    layer = Debiaser(eta=0.2, groups=["g"])
    run = layer.run(
        np.zeros(n), labels, {"g": rng.integers(0, 3, n)}, times=times, label_times=times + rng.integers(0, 40, n)
    )
    result = layer.equilibrium()
    assert not result.exact and result.gap < 1e-13
    posted = run.posts
    assert result.bias_after == pytest.approx(np.mean(run.served[posted] - labels[posted]), abs=1e-13)
    assert result.bound is None or abs(result.largest) <= result.bound
