"""The automatic step: the algorithm written out, raw alone is the plain layer, corrections, merging, refusals."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq import BadInput, Debiaser, Diverging, Ticket, from_json
from gradeq.rules.mixed import weights_of
from layers.late_reference import AutoDebiaser

GROUPS = ([], ["g"], ["g", "h"])


def rows(outcome, groups, n, seed):
    """Predictions, labels, groups and weights with a bias that moves and differs by group."""
    rnd = random.Random(seed)
    for i in range(n):
        own = {name: rnd.choice("abcd") for name in groups}
        bias = 0.4 * np.sin(i / 150) + (0.3 if own.get("g") == "a" else 0.0)
        if outcome == "binary":
            f = rnd.random() if i % 50 else float(i % 100 == 0)
            yield f, float(rnd.random() < f + bias), own, rnd.choice([1.0, 1.0, 0.5, 2.0])
        else:
            f = rnd.gauss(0, 1)
            yield f, f + bias + rnd.gauss(0, 0.5), own, rnd.choice([1.0, 1.0, 0.5, 2.0])


def delays(late, n, seed):
    """After how many rows each label comes; None: never."""
    rnd = random.Random(seed + 1)
    if not late:
        return [0] * n
    return [None if rnd.random() < 0.08 else int(rnd.expovariate(1 / 15)) for _ in range(n)]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("outcome", ["real", "binary"])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_algorithm_written_out(outcome, groups, late, weighted):
    n, seed = 800, 7 * len(groups) + late
    layer, plain = (Debiaser("auto", outcome=outcome, groups=groups), AutoDebiaser(outcome, len(groups)))
    due: dict[int, list[int]] = {}
    tickets, labels = {}, {}
    for i, ((f, y, own, w), wait) in enumerate(
        zip(rows(outcome, groups, n, seed), delays(late, n, seed), strict=True)
    ):
        w = w if weighted else 1.0
        tickets[i] = layer.open(f, own or None, weight=w)
        names = tuple(f"{name}={value}" for name, value in own.items())
        assert tickets[i].served == pytest.approx(plain.predict(i, f, names), abs=1e-10, rel=1e-10)
        labels[i] = (y, tickets[i].weight)
        if wait is not None:
            due.setdefault(i + wait, []).append(i)
        for k in due.pop(i, ()):
            posting = layer.post(tickets.pop(k), labels[k][0])
            assert posting.eta == pytest.approx(plain.update(k, *labels[k]), rel=1e-13)
    assert layer.theta == pytest.approx(dict(plain.u), abs=1e-12)
    assert weights_of(layer.internals.state) == pytest.approx(plain.hedge.weights(), abs=1e-10)
    assert layer.equilibrium().gap < 1e-12


def test_forecasts_of_0_and_1_do_not_start_the_weights():
    """Raw is clipped as the means are: while they know nothing all experts agree, and mixing costs nothing."""
    layer = Debiaser("auto", outcome="binary")
    tickets = [layer.open(f) for f in (1.0, 0.0, 0.5, 1.0)]
    for ticket in tickets:
        layer.post(ticket, 1.0)
    assert layer.internals.state.hedge[0] == 0.0


@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("outcome", ["real", "binary"])
def test_all_weight_on_raw_is_the_plain_layer_exactly(outcome, groups):
    eta = (0.03 if outcome == "binary" else 0.01) / max(1, len(groups))
    auto, plain = (Debiaser(step, outcome=outcome, groups=groups) for step in ("auto", eta))
    auto.internals.state.losses[:] = type(auto.internals.state.losses)("d", [0.0] + [1e9] * 8)
    auto.internals.state.hedge[0] = 1e-9
    f, y, own, w = zip(*rows(outcome, groups, 800, 3), strict=True)
    columns = {name: [each[name] for each in own] for name in groups} or None
    times = np.arange(800.0)
    late = times + [300.0 if wait is None else wait + 0.5 for wait in delays(True, 800, 3)]
    for when in ({}, {"times": times, "label_times": late}):
        served = [layer.run(f, y, columns, weights=w, **when).served for layer in (auto, plain)]
        assert np.array_equal(*served)
    assert auto.theta == plain.theta and auto.steps == plain.steps
    # Forecasts of 0 and 1 are clipped before they are mixed: what rounding may hide of a range is then another.
    assert np.allclose(auto.internals.state.sums, plain.internals.state.sums, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("outcome", ["real", "binary"])
def test_events_columns_pieces_and_compiled_code_agree_to_the_last_bit(outcome, groups, late, monkeypatch):
    n = 800
    f, y, own, w = (list(column) for column in zip(*rows(outcome, groups, n, 5), strict=True))
    y[10], w[11] = np.nan, 0.0
    columns = {name: np.array([each[name] for each in own]) for name in groups}
    times = np.arange(float(n))
    wait = [np.nan if d is None else d for d in delays(late, n, 5)]
    when = {"times": times, "label_times": times + wait} if late else {}

    def run(layer, a=0, b=n):
        part = slice(a, b)
        cut = {name: column[part] for name, column in columns.items()} or None
        return layer.run(f[part], y[part], cut, weights=w[part], **{k: v[part] for k, v in when.items()}).served

    def fresh():
        return Debiaser("auto", outcome=outcome, groups=groups)

    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    whole = fresh()
    served = run(whole)
    pieces, cut = [], fresh()
    for a, b in ((0, 1), (1, 400), (400, 401), (401, n)):
        pieces.extend(run(cut, a, b))
        cut = from_json(cut.to_json())
    assert np.array_equal(served, pieces) and cut.to_json() == whole.to_json()
    events, one_by_one, waiting = fresh(), [], []
    for i in range(n):
        for _, k in sorted(own for own in waiting if own[0] <= i):
            events.update(y[k], id=k)
        waiting = [own for own in waiting if own[0] > i]
        one_by_one.append(events.predict(f[i], own[i] or None, weight=w[i], id=i))
        if y[i] == y[i] and wait[i] == wait[i] and w[i] > 0.0:
            waiting.append((i + wait[i], i)) if late else events.update(y[i], id=i)
    assert np.array_equal(served, one_by_one)
    if pytest.importorskip("numba"):
        monkeypatch.setenv("GRADEQ_COMPILE", "1")
        fast = fresh()
        assert np.array_equal(run(fast), served) and fast.to_json() == whole.to_json()


def taught(groups=("g",), n=300, seed=0, **settings):
    """A layer that has learned from some rows, its tickets and labels kept by id."""
    layer = Debiaser("auto", groups=list(groups), **settings)
    for i, (f, y, own, _) in enumerate(rows(layer.outcome, groups, n, seed)):
        layer.predict(f, own or None, id=i)
        layer.update(y, id=i)
    return layer


def test_a_correction_changes_the_final_layer_and_the_losses_and_no_mean():
    layer, twin = taught(), taught()
    layer.correct(250, 40.0)
    one, other = layer.internals.state, twin.internals.state
    for name in ("offsets", "precisions", "own_offsets", "own_precisions", "hedge", "heard", "guard"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.losses != other.losses and one.u != other.u
    assert layer.equilibrium().gap < 1e-12
    wrong = list(rows("real", ("g",), 300, 0))[250][1]
    layer.correct(250, wrong)
    assert one.losses == pytest.approx(other.losses, rel=1e-12)
    assert layer.theta == pytest.approx(twin.theta, abs=1e-12)


def test_a_journal_gives_the_same_layer_again():
    layer, again = Debiaser("auto", groups=["g"]), Debiaser("auto", groups=["g"])
    journal, waiting, rnd = [], [], random.Random(0)
    for i, (f, y, own, w) in enumerate(rows("real", ["g"], 201, 2)):
        ticket = layer.open(f, own, weight=w)
        journal.append(ticket)
        waiting.append((ticket.to_json(), y))
        if i % 3 == 2:
            text, label = waiting.pop(rnd.randrange(len(waiting)))
            journal.append(layer.post(Ticket.from_json(text), label))
    journal.extend(layer.repost(journal[-1], 3.0))
    again.replay(journal)
    assert again.internals.state == layer.internals.state


def test_labels_that_never_come_have_no_influence_on_means_and_weights():
    quiet, noisy = Debiaser("auto"), Debiaser("auto")
    for f, y, _, _ in rows("real", [], 300, 4):
        noisy.open(f)  # never labelled
        quiet.post(quiet.open(f), y), noisy.post(noisy.open(f), y)
    for name in ("offsets", "precisions", "losses", "hedge", "u"):
        assert getattr(quiet.internals.state, name) == getattr(noisy.internals.state, name), name


def test_partitions_merge_in_any_order():
    parts = [taught(seed=seed, n=100 + 50 * seed) for seed in range(3)]
    for part in parts:
        part.internals.tickets.closed.clear()
    forward, backward = parts[0].copy(), parts[2].copy()
    for part in (parts[1], parts[2]):
        forward.merge(part)
    for part in (parts[1], parts[0]):
        backward.merge(part)
    assert forward.theta == pytest.approx(backward.theta, abs=1e-12)
    for name in ("offsets", "precisions", "losses", "hedge", "heard", "guard"):
        one, other = (list(getattr(layer.internals.state, name)) for layer in (forward, backward))
        assert one == pytest.approx(other, rel=1e-12), name
    low = min(min(part.internals.state.offsets) for part in parts)
    high = max(max(part.internals.state.offsets) for part in parts)
    assert all(low <= a <= high for a in forward.internals.state.offsets)


@given(seed=st.integers(0, 10**6), outcome=st.sampled_from(["real", "binary"]))
def test_the_mix_stays_within_the_residuals_seen(seed, outcome):
    rnd = random.Random(seed)
    layer = Debiaser("auto", outcome=outcome, groups=["g", "h"])
    low = high = 0.0
    for _ in range(120):
        f = rnd.random() if outcome == "binary" else rnd.gauss(0, 1)
        ticket = layer.open(f, {"g": rnd.randrange(3), "h": rnd.randrange(3)})
        y = float(rnd.random() < 0.5) if outcome == "binary" else f + rnd.choice([-1, 1]) * 10 ** rnd.uniform(-3, 3)
        if outcome == "real":
            assert f + low - 1e-9 <= ticket.memo[-1] <= f + high + 1e-9
            low, high = min(low, y - f), max(high, y - f)
        else:
            assert 0.0 <= ticket.memo[-1] <= 1.0
        layer.post(ticket, y)


def test_what_cannot_be_learned_from_is_refused_and_changes_nothing():
    layer = taught(groups=())
    ticket = layer.open(-1e308)
    before = layer.to_json()
    with pytest.raises(Diverging):
        layer.post(ticket, 1e308)
    with pytest.raises(Diverging):
        layer.run([0.0, -1e308], [1.0, 1e308])
    with pytest.raises(BadInput, match="mixed"):
        layer.post(Debiaser(0.1).open(1.0), 2.0)
    assert layer.to_json() == before
    for value in (1e150, -1e150, 0.0):
        layer.predict(value), layer.update(-value)
    assert np.isfinite(layer.predict(1.0))


@pytest.mark.parametrize("clip", [1e-6, 0.01, 0.4])
def test_the_harm_sentence_says_what_clipping_costs_and_it_holds_for_a_perfect_model(clip):
    layer = Debiaser(outcome="binary", clip=clip)
    labels = (np.random.default_rng(0).random(3000) < 0.5).astype(float)
    served = layer.run(np.clip(labels, 1e-6, 1.0 - 1e-6), labels).served
    loss = -np.log(np.where(labels == 1.0, served, 1.0 - served)).mean()
    said = float(layer.harm_cap().sentence.split()[-1])
    assert "the prediction clipped to" in layer.harm_cap().sentence
    assert said >= -np.log1p(-clip) and loss <= 1.05 * said
