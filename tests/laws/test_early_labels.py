"""Labels of one value that come earlier are held back without being asked for; ordinary late labels are not."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gradeq as gq
from gradeq.engine.early_labels import EarlyLabels
from gradeq.errors import Diverging, GradeqWarning

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
    assert not layer._book.held_back  # labels of both values were equally late


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
    assert learning is not None and learning.held_back == len(layer._book.held_back) > 0
    assert "labels held back" in str(learning) and "none has come" not in str(learning)


def test_a_warning_says_what_was_seen_and_what_helps() -> None:
    layer = gq.Debiaser(outcome="binary")
    with pytest.warns(
        GradeqWarning, match="labels are held back: the first 3 late labels .*maturity="
    ) as said:
        every_day(layer, Churn(days=20))
    assert len(said) == 1
    assert layer.equilibrium().rows == 0
    assert set(layer.ids.values()) == {"open"}


@pytest.mark.filterwarnings("ignore:labels are held back")
@pytest.mark.parametrize(
    "times", [np.arange, lambda n: np.datetime64("2024-01-01", "D") + np.arange(n)]
)
def test_columns_in_pieces_hold_back_what_the_whole_holds_back(times: Any) -> None:
    churn = Churn()
    clock = times(200)
    day, known = clock[churn.day], clock[churn.known]
    whole = gq.Debiaser(outcome="binary")
    run = whole.run(churn.f, churn.y, times=day, label_times=known)
    assert np.abs(run.values - RATE).max() < 0.06
    assert whole._book.early is not None and whole._book.early.why
    n = len(churn.f)
    for cuts in ([0, 100, 101, 900, 1300, n], [*range(0, n, 150), n]):
        pieces = gq.Debiaser(outcome="binary")
        for a, b in pairwise(cuts):
            own = slice(a, b)
            pieces.run(churn.f[own], churn.y[own], times=day[own], label_times=known[own])
            pieces = gq.from_json(pieces.to_json())
        assert pieces._state.saved() == whole._state.saved()
        assert pieces._book.state() == whole._book.state()


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
        patch.setattr("gradeq.layers.layer.run_columns", refuse)
        with pytest.raises(Diverging):
            layer.run(
                churn.f[rest], churn.y[rest], times=churn.day[rest], label_times=churn.known[rest]
            )
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
    assert watched._state.saved() == free._state.saved()
    assert watched._book.early is not None and watched._book.early.since is None


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
    layer.run(
        f, length[:half], times=np.arange(half), label_times=np.arange(half) + length[:half], **more
    )
    assert "smaller" in layer._book.early.why or "larger" in layer._book.early.why
    assert len(layer._book.held_back) > layer.equilibrium().rows


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
    assert len(gq.from_json(one.to_json())._book.held_back) == 10


def test_sums_of_one_label_at_a_time_are_those_of_columns() -> None:
    rng = np.random.default_rng(0)
    y, f, delay = rng.normal(size=300), rng.uniform(size=300), rng.integers(2, 90, 300)
    one, many = EarlyLabels(), EarlyLabels()
    looks = [
        one.count(float(a), float(b), float(c), k)
        for k, (a, b, c) in enumerate(zip(y, f, delay, strict=True))
    ]
    found = many.count_all(y, f, delay.astype(float), np.arange(300))
    assert found.tolist() == looks
    assert one.state() == many.state()
    assert EarlyLabels.restored(one.state()).state() == one.state()


@pytest.mark.parametrize("size", [1e-300, 1e150])
def test_labels_of_any_size_can_be_saved(size: float) -> None:
    layer = gq.Debiaser(0.01)
    for k in range(80):
        layer.predict(size, id=k)
    for k in range(80):
        layer.update(-size if k % 3 else size, id=79 - k)
    assert gq.from_json(layer.to_json())._book.state() == layer._book.state()
