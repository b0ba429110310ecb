"""Labels of one value that come earlier are held back without being asked for; ordinary late labels are not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradeq as gq
from gradeq.engine.label_stats import EarlyLabels
from gradeq.errors import Diverging, GradeqWarning, StateError
from gradeq.kernels import early as kernel
from gradeq.kernels.compile import compiled

RATE, MATURE, DAYS, EACH = 0.084, 30, 60, 25


class Churn:
    """Customers who leave on some day before the thirtieth, which is known then, or stay, which is known after it."""

    def __init__(self, seed: int = 1, days: int = DAYS, each: int = EACH) -> None:
        rng, n = np.random.default_rng(seed), days * each
        self.day = np.repeat(np.arange(days), each)
        self.y = (rng.random(n) < RATE).astype(float)
        self.known = self.day + np.where(self.y == 1.0, rng.integers(1, MATURE, n), MATURE)
        self.f = np.full(n, RATE)


def every_day(layer: Any, churn: Churn, again: bool = False, never: bool = False) -> list[float]:
    """The mean of what is served on each day: predictions in the morning, labels that are known in the evening."""
    means = []
    for day in range(churn.day[-1] + 1):
        rows = np.flatnonzero(churn.day == day)
        means.append(np.mean([layer.predict(RATE, id=int(k), time=day) for k in rows]))
        for k in np.flatnonzero(churn.known == day).tolist():
            if churn.y[k] or not never:
                layer.update(churn.y[k], id=k)
        layer = gq.from_json(layer.to_json()) if again else layer
    return means


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize("outcome", ["binary", "real"])
def test_churn_that_is_known_early_does_not_move_what_is_served(outcome: str) -> None:
    def layer(**own: Any) -> Any:
        return gq.Debiaser(outcome=outcome, **own)  # type: ignore[arg-type]

    free = every_day(layer(maturity=0), Churn())
    assert max(free) > 0.6  # what would come of it
    held = every_day(layer(), Churn())
    assert held[: MATURE + 1] == pytest.approx([RATE] * (MATURE + 1))
    assert max(abs(mean - RATE) for mean in held) < 0.05
    assert every_day(layer(), Churn(), again=True) == held
    assert every_day(layer(), Churn(), never=True) == pytest.approx([RATE] * DAYS)


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(("told", "true"), [(0.084, 0.3), (0.084, 0.8), (0.5, 0.95)])
def test_a_model_that_is_grossly_wrong_is_put_right_though_few_labels_come(
    told: float, true: float, columns: bool
) -> None:
    rng, n = np.random.default_rng(3), 6000
    y, clock = (rng.random(n) < true).astype(float), np.arange(n)
    y[rng.random(n) > 0.15] = np.nan  # most labels never come
    known = clock + rng.integers(1, 500, n)
    layer = gq.Debiaser(outcome="binary")
    if columns:
        served = layer.run(np.full(n, told), y, times=clock, label_times=known).values
    else:
        due: dict[int, list[int]] = {}
        served = np.empty(n)
        for k in range(n):
            for late in due.pop(k, ()):
                layer.update(y[late], id=late)
            served[k] = layer.predict(told, id=k)
            if y[k] == y[k]:
                due.setdefault(int(known[k]), []).append(k)
    assert abs(served[-1000:].mean() - true) < 0.08
    assert not layer.internals.tickets.held_back  # labels of both values were equally late


@pytest.mark.filterwarnings("ignore:labels are held back")
def test_labels_of_both_values_that_are_equally_late_are_learned_however_rare_one_is() -> None:
    layer, posted = gq.Debiaser(outcome="binary"), 0
    for k in range(6000):
        if k % 10 == 5:
            layer.update(float(k % 1000 == 505), id=k - 5)
            posted += 1
        layer.predict(0.5, id=k)
    assert posted == 600 and layer.equilibrium().rows == posted


def test_a_verdict_says_that_labels_are_held_back_and_not_that_none_came() -> None:
    layer = gq.Debiaser(outcome="binary")
    with pytest.warns(GradeqWarning, match="held back"):
        every_day(layer, Churn(days=25))
    learning = layer.equilibrium().learning
    assert learning is not None and learning.held_back == len(layer.internals.tickets.held_back) > 0
    assert "labels held back" in str(learning) and "none has come" not in str(learning)


def test_a_warning_says_what_was_seen_and_what_helps() -> None:
    layer = gq.Debiaser(outcome="binary")
    with pytest.warns(GradeqWarning, match="labels are held back: the first 3 late labels .*maturity=") as said:
        every_day(layer, Churn(days=20))
    assert len(said) == 1
    assert layer.equilibrium().rows == 0
    assert set(layer.ids.values()) == {"open"}


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize("times", [np.arange, lambda n: np.datetime64("2024-01-01", "D") + np.arange(n)])
def test_columns_in_pieces_hold_back_what_the_whole_holds_back(times: Any) -> None:
    churn = Churn()
    clock = times(200)
    day, known = clock[churn.day], clock[churn.known]
    whole = gq.Debiaser(outcome="binary")
    run = whole.run(churn.f, churn.y, times=day, label_times=known)
    assert np.abs(run.values - RATE).max() < 0.06
    assert whole.internals.tickets.early is not None and whole.internals.tickets.early.why
    n = len(churn.f)
    for cuts in ([0, 100, 101, 900, 1300, n], [*range(0, n, 150), n]):
        pieces = gq.Debiaser(outcome="binary")
        for a, b in pairwise(cuts):
            own = slice(a, b)
            pieces.run(churn.f[own], churn.y[own], times=day[own], label_times=known[own])
            pieces = gq.from_json(pieces.to_json())
        assert pieces.internals.state.saved() == whole.internals.state.saved()
        assert pieces.internals.tickets.state() == whole.internals.tickets.state()


@pytest.mark.filterwarnings("ignore:labels are held back")
def test_a_run_that_is_refused_leaves_held_labels_as_they_were(monkeypatch: Any) -> None:
    churn = Churn()
    layer = gq.Debiaser(outcome="binary")
    cut, rest = slice(0, 600), slice(600, None)
    layer.run(churn.f[cut], churn.y[cut], times=churn.day[cut], label_times=churn.known[cut])
    before = layer.to_json()

    def refuse(*_: Any) -> Any:
        raise Diverging("a step is too large")

    with monkeypatch.context() as patch:
        patch.setattr("gradeq.layers.internals.run_columns", refuse)
        with pytest.raises(Diverging):
            layer.run(churn.f[rest], churn.y[rest], times=churn.day[rest], label_times=churn.known[rest])
    assert layer.to_json() == before


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bias", [0.0, 0.15])
def test_ordinary_late_labels_are_learned_as_they_come(seed: int, bias: float) -> None:
    rng, n = np.random.default_rng(seed), 3000
    f = rng.uniform(0.1, 0.8, n)
    y = (rng.random(n) < f + bias).astype(float)
    known = np.arange(n) + rng.exponential(rng.choice([5.0, 100.0, 1000.0]), n)
    watched, free = gq.Debiaser(outcome="binary"), gq.Debiaser(outcome="binary", maturity=0)
    for layer in (watched, free):
        layer.run(f, y, times=np.arange(n), label_times=known)
    assert watched.internals.state.saved() == free.internals.state.saved()
    assert watched.internals.tickets.early is not None and watched.internals.tickets.early.since is None


def test_labels_that_come_in_order_are_learned_however_wrong_the_model_is() -> None:
    n = 2000
    layer = gq.Debiaser(outcome="binary")
    layer.run(np.full(n, 0.05), np.ones(n), times=np.arange(n), label_times=np.arange(n) + 500)
    assert layer.equilibrium().rows == 1500


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize("kind", ["mean", "quantile", "keyed"])
def test_a_duration_that_is_known_when_it_ends_is_held_back(kind: str) -> None:
    rng, n = np.random.default_rng(2), 4000
    length = rng.exponential(1500.0, n)
    more: dict[str, Any] = {}
    layer: Any = gq.Debiaser(0.05) if kind == "mean" else gq.QuantileTracker(0.5)
    if kind == "keyed":
        layer, more = gq.Keyed(gq.Debiaser(0.05)), {"key": ["a", "b"] * (n // 2)}
    half = n // 3
    f = np.full(half, 1500.0 if kind != "quantile" else 1500.0 * np.log(2.0))
    if more:
        more = {"key": more["key"][:half]}
    layer.run(f, length[:half], times=np.arange(half), label_times=np.arange(half) + length[:half], **more)
    assert "smaller" in layer.internals.tickets.early.why or "larger" in layer.internals.tickets.early.why
    assert len(layer.internals.tickets.held_back) > layer.equilibrium().rows


@pytest.mark.filterwarnings("ignore:labels are held back")
def test_partitions_that_hold_labels_back_go_on_when_they_are_merged() -> None:
    one, other = gq.Debiaser(outcome="binary"), gq.Debiaser(outcome="binary")
    for layer, name in ((one, "a"), (other, "b")):
        for k in range(100):
            layer.predict(0.05, id=f"{name}{k}")
    outcomes = [other.update(1.0, id=f"b{k}") for k in range(90, 99)]
    assert set(outcomes) == {"waiting"}
    one.merge(other)
    assert one.update(1.0, id="a99") == "waiting"
    assert len(gq.from_json(one.to_json()).internals.tickets.held_back) == 10


class Stream(NamedTuple):
    """Rows served one after the other, what their labels say, and after how many rows these come (nan: never)."""

    f: Any
    y: Any
    delay: Any

    def columns(self, layer: Any, cuts: Iterable[int]) -> Any:
        """What is served, and the layer after runs over these pieces, saved and loaded between them."""
        clock, y, served = (np.arange(len(self.f)), np.where(np.isnan(self.delay), np.nan, self.y), [])
        for a, b in pairwise(cuts):
            own = slice(a, b)
            known = clock[own] + np.nan_to_num(self.delay[own])
            served += layer.run(self.f[own], y[own], times=clock[own], label_times=known).values.tolist()
            layer = gq.from_json(layer.to_json())
        return served, layer

    def events(self, layer: Any, skips: bool) -> Any:
        """The same, event by event; ``skips``: whether a row that will have no label is given up at once."""
        due: dict[int, list[int]] = {}
        served = []
        for k, (f, delay) in enumerate(zip(self.f.tolist(), self.delay.tolist(), strict=True)):
            for own in due.pop(k, ()):
                layer.update(self.y[own].item(), id=own)
            served.append(layer.predict(f, id=k, time=k))
            if delay == delay:
                due.setdefault(k + max(1, int(delay)), []).append(k)
            elif skips:
                layer.skip(k)
        return served, layer


N = 2500


def layer_of(stream: Stream) -> Any:
    return gq.Debiaser(outcome="binary" if set(stream.y.tolist()) == {0.0, 1.0} else "real")


def streams(share: float, seed: int = 7) -> dict[str, Stream]:
    """Of each only a share ever gets a label; in the honest ones delays depend on no label, given its row."""
    rng = np.random.default_rng(seed)
    k, noise, some = np.arange(N), rng.normal(size=N), rng.random(N) < share
    weekend, feature = (k // 50) % 7 > 4, rng.random(N)
    shifted, length = 20.0 * (k > N // 2) + noise, rng.exponential(150.0, N)
    zero, mean = np.zeros(N), rng.gamma(2.0, 100.0, N)
    churn = (rng.random(N) < 0.2).astype(float)
    found = {
        "weekends are later": Stream(10.0 * weekend, 10.0 * weekend + 2.0 + noise, np.where(weekend, 150, 20)),
        "weekends, a model that does not know": Stream(zero, 10.0 * weekend + noise, np.where(weekend, 150, 20)),
        "a feature": Stream(50.0 * feature, 50.0 * feature + 3.0 + noise, 1 + 200 * feature),
        "a drift that the model follows": Stream(0.1 * k, 0.1 * k + noise, 1 + 300 * k // N),
        "a drift": Stream(zero, 0.1 * k + noise, 1 + 30 * k // N),
        "a level, later": Stream(zero, shifted, np.where(k > N // 2, 40, 2)),
        "a level, earlier": Stream(zero, shifted, np.where(k > N // 2, 2, 40)),
        "a wrong probability": Stream(zero + 0.5, (rng.random(N) < 0.05).astype(float), 1 + rng.exponential(40.0, N)),
        "churn": Stream(zero + 0.2, churn, np.where(churn == 1.0, rng.integers(20, 600, N), 620)),
        "a duration": Stream(zero + 150.0, length, 1 + length),
        "a duration that is foreseen in part": Stream(mean, mean * length / 150.0, 1 + mean * length / 150.0),
    }  # fmt: skip
    return {name: own._replace(delay=np.where(some, np.floor(own.delay), np.nan)) for name, own in found.items()}


NAMES = list(streams(1.0))
DEPENDENT = ("churn", "a duration", "a duration that is foreseen in part")


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_events_and_columns_hold_back_and_learn_the_same(name: str, share: float) -> None:
    stream = streams(share)[name]
    served, whole = stream.columns(layer_of(stream), [0, N])
    again, pieces = stream.columns(layer_of(stream), [0, 400, 401, 1300, N])
    assert again == served
    assert pieces.internals.state.saved() == whole.internals.state.saved()
    assert pieces.internals.tickets.state() == whole.internals.tickets.state()
    for skips in (False, True):
        again, events = stream.events(layer_of(stream), skips)
        assert again == served
        assert events.internals.tickets.early.state() == whole.internals.tickets.early.state()
        assert events.internals.tickets.held_back == whole.internals.tickets.held_back


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in DEPENDENT])
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_no_honest_label_waits_for_ever_where_most_rows_never_get_one(name: str, share: float) -> None:
    stream = streams(share)[name]
    _, layer = stream.columns(layer_of(stream), [0, N])
    held, most = layer.internals.tickets.held_back, int(np.nanmax(stream.delay))
    assert all(number > N - 3 * most for number in held)
    _, layer = stream.events(layer_of(stream), False)
    assert layer.internals.tickets.held_back == held


@pytest.mark.parametrize("name", ["weekends are later", "a feature", "a drift that the model follows"])
def test_what_predictions_say_of_labels_and_delays_gives_no_doubt(name: str) -> None:
    stream = streams(0.3)[name]
    _, layer = stream.columns(layer_of(stream), [0, N])  # a warning would be an error
    assert not layer.internals.tickets.held_back


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("name", DEPENDENT)
def test_labels_that_are_later_by_their_value_wait_until_rows_of_their_age_have_theirs(
    name: str, share: float
) -> None:
    stream = streams(share)[name]
    cut = 300
    half = Stream(*(own[:cut] for own in stream))
    with pytest.warns(GradeqWarning, match="held back.*maturity="):
        _, layer = half.events(layer_of(stream), False)
    posted = int(np.nansum(np.arange(cut) + np.maximum(half.delay, 1.0) < cut))
    assert len(layer.internals.tickets.held_back) > 0.5 * posted
    assert "delays so far" in (layer.internals.tickets.early.warning or "")


def test_after_enough_labels_without_doubt_none_is_looked_at() -> None:
    rng, n = np.random.default_rng(0), 6000
    f = rng.normal(size=n)
    stream = Stream(f, f + rng.normal(size=n), np.floor(1 + rng.exponential(60.0, n)))
    _, whole = stream.columns(gq.Debiaser(0.05), [0, n])
    _, events = stream.events(gq.Debiaser(0.05), False)
    early = whole.internals.tickets.early
    assert early.settled and not early.known
    assert events.internals.tickets.early.state() == early.state()


def test_one_text_counts_late_labels_compiled_or_not() -> None:
    rng, n = np.random.default_rng(0), 300
    y, f, delay = rng.normal(size=n), rng.uniform(size=n), rng.integers(2, 90, n).astype(float)
    number = np.arange(1.0, n + 1.0)
    one, sums, fast = EarlyLabels(), np.array(EarlyLabels().sums), np.array(EarlyLabels().sums)
    for k in range(n):
        one.count(y[k].item(), f[k].item(), int(number[k] + delay[k]) - 1, k + 1, lambda: 1e9)
    assert kernel.watched(sums, y, f, delay, number, 1e9) == n
    assert sums.tolist() == one.sums
    loop = compiled(kernel.watched, ())
    if loop is not None:
        assert loop(fast, y, f, delay, number, 1e9) == n
        assert fast.tolist() == one.sums
    assert EarlyLabels.restored(one.state()).state() == one.state()


def test_a_state_that_knows_nothing_of_predictions_goes_on() -> None:
    old = {"sums": [2.0, 1.5, 0.4, 9.0, 41.0, 0.0, 0.0, 0.0], "origin": 1.0, "newest": 7, "probable": True,
           "known": [[0, 2]], "since": 12, "why": "seen"}  # fmt: skip
    early = EarlyLabels.restored(old)
    assert (early.since, early.why, early.known) == (12, "seen", {0: 2})
    assert EarlyLabels.restored(early.state()).state() == early.state()
    with pytest.raises(StateError, match="late labels"):
        EarlyLabels.restored({**old, "sums": [1.0, 2.0]})


@pytest.mark.parametrize("size", [1e-300, 1e150])
def test_labels_of_any_size_can_be_saved(size: float) -> None:
    layer = gq.Debiaser(0.01)
    for k in range(80):
        layer.predict(size, id=k)
    for k in range(80):
        layer.update(-size if k % 3 else size, id=79 - k)
    assert gq.from_json(layer.to_json()).internals.tickets.state() == layer.internals.tickets.state()
