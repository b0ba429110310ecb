"""Python says once what the command line says in its summary: probabilities as numbers, labels dated too early."""

import random
import warnings

import pytest

import gradeq as gq
from gradeq.errors import GradeqWarning


def stream(rows: int = 60, seed: int = 4) -> tuple[list[float], list[float]]:
    rng = random.Random(seed)
    predictions = [rng.uniform(0.05, 0.95) for _ in range(rows)]
    return predictions, [float(rng.random() < p) for p in predictions]


def said(call) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(own.category, GradeqWarning) for own in found)
    assert all(own.filename == __file__ for own in found)  # at the line that called
    return [str(own.message) for own in found]


def one_by_one(layer, predictions, labels) -> None:
    for f, y in zip(predictions, labels, strict=True):
        layer.predict(f)
        layer.update(y)
    layer.equilibrium()


def whole(layer, predictions, labels) -> None:
    layer.run(predictions, labels)


@pytest.mark.parametrize("feed", [whole, one_by_one])
def test_probabilities_taken_as_numbers_are_told_of_once(feed):
    layer = gq.Debiaser()
    (line,) = said(lambda: feed(layer, *stream()))
    assert "look like probabilities" in line and 'outcome="binary"' in line
    assert said(lambda: feed(layer, *stream(seed=5))) == []


@pytest.mark.parametrize("feed", [whole, one_by_one])
def test_what_cannot_be_probabilities_is_not(feed):
    predictions, labels = stream()
    assert said(lambda: feed(gq.Debiaser(outcome="binary"), predictions, labels)) == []
    assert said(lambda: feed(gq.Debiaser(), [f + 1.0 for f in predictions], labels)) == []
    assert said(lambda: feed(gq.Debiaser(), predictions, [y / 2 for y in labels])) == []
    assert said(lambda: feed(gq.Debiaser(), predictions, [0.0] * 60)) == []
    assert said(lambda: feed(gq.Debiaser(), predictions[:20], labels[:20])) == []


def test_series_are_looked_at_too():
    predictions, labels = stream()
    layer = gq.Keyed(gq.Debiaser(eta=0.1))
    (line,) = said(lambda: layer.run(predictions, labels, key=["a", "b"] * 30))
    assert "look like probabilities" in line


def test_a_warning_as_an_error_leaves_a_whole_layer():
    predictions, labels = stream()
    layer, same = gq.Debiaser(), gq.Debiaser()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GradeqWarning):
            layer.run(predictions, labels)
    said(lambda: same.run(predictions, labels))
    assert layer.to_json() == same.to_json()


@pytest.mark.parametrize("kind", ["debias", "quantile", "elo"])
def test_labels_dated_before_their_rows_are_counted_with_an_example(kind):
    times, due = [0.0, 1.0, 2.0, 3.0], [0.0, 5.0, 1.5, 2.5]
    calls = {
        "debias": lambda: gq.Debiaser().run([9.0] * 4, [7.0] * 4, times=times, label_times=due),
        "quantile": lambda: gq.QuantileTracker(0.9).run([9.0] * 4, [7.0] * 4, times=times, label_times=due),
        "elo": lambda: gq.Elo().run(["a"] * 4, ["b"] * 4, [1.0] * 4, times=times, label_times=due),
    }
    (line,) = said(calls[kind])
    assert "2 of 4 labels have a label time before the time of their row" in line
    assert "row 2, 1.5 before 2" in line and "swapped" in line


def test_a_row_without_a_label_is_not_dated_too_early():
    nan = float("nan")
    layer = gq.Debiaser()
    assert said(lambda: layer.run([9.0, 9.0], [7.0, nan], times=[1, 2], label_times=[1, 0])) == []
