"""The automatic step for quantiles: the algorithm written out, the same bits on every path, corrections."""

import math
import random

import numpy as np
import pytest

from gradeq import BadInput, MultiQuantileTracker, QuantileTracker, from_json
from layers.late_reference import AutoTracker

GROUPS = ([], ["g"], ["g", "h"])
LEVELS = [0.1, 0.5, 0.9]
# levels, distance of the forecasts of neighbouring levels, scores without a forecast
KINDS = {
    "one level": ([0.9], 0.0, False),
    "one level, warm": ([0.9], 0.0, True),
    "one forecast for all levels": (LEVELS, 0.0, False),
    "a forecast for each level": (LEVELS, 1.0, False),
}


def made(kind, groups):
    levels, _, warm = KINDS[kind]
    if len(levels) == 1:
        return QuantileTracker(levels[0], "auto", groups=groups, warm=warm)
    return MultiQuantileTracker(levels, "auto", groups=groups)


def rows(kind, groups, n, seed):
    """Forecasts, label, groups and weight of each row; the level of labels moves and differs by group."""
    levels, apart, warm = KINDS[kind]
    rnd = random.Random(seed)
    for i in range(n):
        own = {name: rnd.choice("abcd") for name in groups}
        centre = 0.0 if warm else rnd.gauss(0, 1)
        noise = rnd.expovariate(1) if warm else rnd.gauss(0, 1) + 0.5 * math.sin(i / 100)
        y = centre + noise + (1.0 if own.get("g") == "a" else 0.0)
        middle = len(levels) // 2
        base = [centre + apart * (k - middle) for k in range(len(levels))]
        yield base, y, own, rnd.choice([1.0, 1.0, 0.5, 2.0])


def waits(late, n, seed):
    rnd = random.Random(seed + 1)
    return [int(rnd.expovariate(1 / 60)) if late else 0 for _ in range(n)]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_algorithm_written_out(kind, groups, late):
    levels, _, warm = KINDS[kind]
    n, rnd = 700, random.Random(0)
    start = [math.asinh(-math.log1p(-tau)) for tau in levels] if warm else None
    layer, plain = made(kind, groups), AutoTracker(levels, len(groups), not warm, start)
    due, tickets = {}, {}
    for i, ((base, y, own, w), wait) in enumerate(zip(rows(kind, groups, n, 3), waits(late, n, 3), strict=True)):
        ticket = layer.open(base[0] if len(base) == 1 else base, own or None, weight=w)
        served = ticket.served if len(levels) > 1 else (ticket.served,)
        names = tuple(f"{name}={value}" for name, value in own.items())
        assert served == pytest.approx(plain.predict(i, base, names), rel=1e-11, abs=1e-11)
        tickets[i] = (ticket, y, ticket.weight)
        if not late or rnd.random() < 0.92:
            due.setdefault(i + wait, []).append(i)
        for k in due.pop(i, ()):
            ticket, label, weight = tickets.pop(k)
            assert layer.post(ticket, label).eta == pytest.approx(plain.update(k, label, weight), rel=1e-13)
    assert layer.internals.state.losses == pytest.approx(plain.hedge.losses, rel=1e-9)
    assert layer.equilibrium().gap < 1e-12


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("kind", KINDS)
def test_events_columns_pieces_and_compiled_code_agree_to_the_last_bit(kind, groups, late, monkeypatch):
    n = 600
    base, y, own, w = (list(column) for column in zip(*rows(kind, groups, n, 5), strict=True))
    y[10], w[11] = np.nan, 0.0
    f = np.array(base) if len(base[0]) > 1 else np.array(base)[:, 0]
    columns = {name: np.array([each[name] for each in own]) for name in groups}
    times, wait = np.arange(float(n)), waits(late, n, 5)
    when = {"times": times, "label_times": times + wait} if late else {}

    def run(layer, a=0, b=n):
        part = slice(a, b)
        cut = {name: column[part] for name, column in columns.items()} or None
        more = {name: column[part] for name, column in when.items()}
        return layer.run(f[part], y[part], cut, weights=w[part], **more).served

    monkeypatch.setenv("GRADEQ_COMPILE", "0")
    whole, cut, pieces = made(kind, groups), made(kind, groups), []
    served = run(whole)
    for a, b in ((0, 1), (1, 400), (400, 401), (401, n)):
        pieces.extend(run(cut, a, b))
        cut = from_json(cut.to_json())
    assert np.array_equal(served, pieces) and cut.to_json() == whole.to_json()
    events, one_by_one, waiting = made(kind, groups), [], []
    for i in range(n):
        for _, k in sorted(entry for entry in waiting if entry[0] <= i):
            events.update(y[k], id=k)
        waiting = [entry for entry in waiting if entry[0] > i]
        one_by_one.append(events.predict(f[i], own[i] or None, weight=w[i], id=i))
        if y[i] == y[i] and w[i] > 0.0:
            waiting.append((i + wait[i], i)) if late else events.update(y[i], id=i)
    assert np.array_equal(served, one_by_one)
    if pytest.importorskip("numba"):
        monkeypatch.setenv("GRADEQ_COMPILE", "1")
        fast = made(kind, groups)
        assert np.array_equal(run(fast), served) and fast.to_json() == whole.to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_are_served_as_they_are_while_every_label_was_the_forecast(kind):
    layer = made(kind, [])
    forecasts = [1.0 + k * KINDS[kind][1] for k in range(len(layer.levels))]
    f = forecasts if len(forecasts) > 1 else forecasts[0]
    for _ in range(50):
        assert layer.predict(f) == (tuple(f) if len(forecasts) > 1 else f)
        layer.update(forecasts[len(forecasts) // 2])


def late_stream(shape, n=6000):
    """Forecasts, labels 300 to 900 rows late (one by one or in batches of 600), a group; spread and level move."""
    rng = np.random.default_rng(4)
    t = np.arange(n, dtype=float)
    f, g = rng.normal(0, 1, n), rng.choice(["a", "b", "c"], n)
    y = f + np.exp(np.sin(t / 400)) * rng.standard_t(4, n) + (g == "a") + np.sin(t / 900)
    y[:5] = f[:5] + 1e-6  # a first scale that is far too small
    batches = 300 + 600 * np.ceil(t / 600)
    return f, y, g, t, batches if shape == "batches" else t + rng.integers(300, 900, n)


@pytest.mark.parametrize("shape", ["one by one", "batches"])
@pytest.mark.parametrize("groups", [[], ["g"]], ids=len)
@pytest.mark.parametrize("tau", [0.9, 0.5, 0.1])
def test_labels_hundreds_of_rows_late_do_no_harm(tau, groups, shape):
    f, y, g, times, back = late_stream(shape)

    def lost(served):
        return np.maximum(tau * (y - served), (tau - 1.0) * (y - served)).mean()

    def run(eta):
        layer = QuantileTracker(tau, eta, groups=groups)
        columns = {"g": g} if groups else None
        return layer.run(f, y, columns, times=times, label_times=back).served

    served = run("auto")
    assert lost(served) <= 1.1 * min(lost(f), lost(run(None)))
    assert np.abs(served).max() <= 3.0 * np.abs(y).max()


@pytest.mark.parametrize("heavy", [0.01, 1.0])
def test_heavy_late_labels_do_not_throw_the_experts_off(heavy):
    rng = np.random.default_rng(0)
    n = 3000
    f, times = rng.normal(size=n), np.arange(float(n))
    y, w = f + rng.normal(size=n), np.where(rng.random(n) < heavy, 50.0, 1.0)
    layer = QuantileTracker(0.9, "auto")
    served = layer.run(f, y, weights=w, times=times, label_times=times + 20).served
    assert np.abs(served - f).max() < 4.0  # the label itself is within 4 of its forecast


@pytest.mark.parametrize("tau", [0.9, 0.1])
def test_exact_forecasts_teach_the_experts_nothing_before_there_is_a_scale(tau):
    layer = QuantileTracker(tau, "auto")
    for y in [0.0] * 300 + [1.0]:
        layer.predict(0.0)
        layer.update(y)
    assert max(map(abs, layer.internals.state.offsets)) <= 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_a_correction_changes_the_final_tracker_and_the_losses_and_no_expert(kind):
    layer, twin = made(kind, ["g"]), made(kind, ["g"])
    for i, (base, y, own, _) in enumerate(rows(kind, ["g"], 200, 1)):
        for each in (layer, twin):
            each.predict(base[0] if len(base) == 1 else base, own, id=i)
            each.update(y, id=i)
    layer.correct(150, 40.0)
    one, other = layer.internals.state, twin.internals.state
    for name in ("offsets", "own_offsets", "own_heard", "hedge", "heard", "scale_num", "nums"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.losses != other.losses
    layer.correct(150, list(rows(kind, ["g"], 200, 1))[150][1])
    assert one.losses == pytest.approx(other.losses, rel=1e-12)
    assert one.u == pytest.approx(other.u, abs=1e-12)


def test_a_ticket_of_another_layer_is_refused():
    layer = QuantileTracker(0.9, "auto")
    before = layer.to_json()
    with pytest.raises(BadInput, match="mixed"):
        layer.post(QuantileTracker(0.9, 0.1).open(1.0), 2.0)
    assert layer.to_json() == before
