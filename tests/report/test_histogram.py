"""The histogram of a stream: every value counted once, bins round, the same for any cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.report.rolling import StreamHistogram


def draw(seed, rows):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-5, 6)
    return rng.normal(rng.normal() * scale, scale * rng.uniform(0.01, 3), rows)


@given(st.integers(0, 10**6), st.integers(1, 3000))
def test_every_finite_value_is_counted_once_in_at_most_48_bars(seed, rows):
    values = draw(seed, rows)
    tally = StreamHistogram()
    tally.add(np.concatenate([values, [np.nan, np.inf]]))
    shown = tally.histogram()
    assert sum(shown.counts) == rows
    assert len(shown.edges) == len(shown.counts) + 1 <= 49
    assert (shown.minimum, shown.maximum) == (values.min(), values.max())


@given(st.integers(0, 10**6), st.integers(1, 2000))
def test_the_cuts_of_a_stream_do_not_change_the_histogram(seed, rows):
    values = draw(seed, rows)
    whole, parts = StreamHistogram(0.0, 1.0), StreamHistogram(0.0, 1.0)
    whole.add(values)
    for chunk in np.array_split(values, 7):
        parts.add(chunk)
    assert whole.histogram() == parts.histogram()


@given(st.integers(0, 10**6))
def test_bars_agree_with_a_direct_count(seed):
    values = np.round(np.random.default_rng(seed).uniform(-0.5, 1.7, 400), 3)
    tally = StreamHistogram()
    tally.add(values)
    shown = tally.histogram()
    assert shown.edges[1] - shown.edges[0] == pytest.approx(0.05)
    for low, high, n in zip(shown.edges[:-1], shown.edges[1:], shown.counts, strict=True):
        assert n == int(((values >= low - 1e-9) & (values < high - 1e-9)).sum())


def test_values_outside_the_allowed_range_are_counted():
    tally = StreamHistogram(0.0, 1.0)
    tally.add(np.array([-0.2, 0.0, 0.5, 1.0, 1.3, 1.4]))
    shown = tally.histogram()
    assert (shown.below, shown.above) == (1, 2)


def test_a_far_outlier_does_not_flatten_the_rest():
    values = np.append(np.random.default_rng(1).uniform(0, 1, 5000), 1e5)
    tally = StreamHistogram()
    tally.add(values)
    shown = tally.histogram()
    assert shown.maximum == 1e5
    assert shown.edges[-1] < 1e3
    assert sum(shown.counts) == 5001


def test_nothing_gives_an_empty_histogram():
    assert StreamHistogram().histogram().counts == ()


def test_one_constant_gives_one_bar():
    tally = StreamHistogram()
    tally.add(np.zeros(10))
    assert tally.histogram().counts == (10,)
