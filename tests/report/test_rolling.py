"""Trailing means of a stream: exact for short ones, bounded for long ones, the same for any cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.errors import BadInput
from gradeq.report.rolling import Blocks, numbers, rolling, thin, window

NAMES = ("before", "after")


def stream(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {"before": rng.normal(3, 5, rows), "after": rng.uniform(-1, 1, rows)}


def direct(values, width):
    return np.array([values[i : i + width].mean() for i in range(len(values) - width + 1)])


def cuts(rows, seed):
    rng = np.random.default_rng(seed)
    inner = np.sort(rng.integers(0, rows + 1, rng.integers(0, 12)))
    return [0, *inner.tolist(), rows]


@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 10**6))
def test_rolling_is_the_mean_of_each_trailing_window(rows, width, seed):
    values = np.random.default_rng(seed).normal(0, 10, rows)
    assert np.allclose(rolling(values, width), direct(values, width), rtol=0, atol=1e-11)


@given(st.integers(2, 400), st.integers(1, 200))
def test_blocks_of_one_row_give_the_exact_trailing_mean(rows, width):
    columns = stream(rows)
    blocks = Blocks(NAMES, capacity=512)
    blocks.add(columns)
    series = blocks.trailing(width, points=10**6)
    assert series.window == width
    assert series.x.tolist() == list(range(width, rows + 1))
    for name in NAMES:
        assert np.allclose(series.means[name], direct(columns[name], width), rtol=0, atol=1e-11)


@given(st.integers(1, 3000), st.integers(0, 10**6))
def test_the_cuts_of_a_stream_change_no_bit(rows, seed):
    columns, codes = stream(rows, seed), np.random.default_rng(seed).integers(0, 5, rows)
    whole, parts = Blocks(NAMES, capacity=64), Blocks(NAMES, capacity=64)
    groups, group_parts = (Blocks(NAMES, 3, capacity=32) for _ in range(2))
    whole.add(columns)
    groups.add(columns, codes=codes)
    ends = cuts(rows, seed)
    for start, stop in pairwise(ends):
        chunk = {name: column[start:stop] for name, column in columns.items()}
        parts.add(chunk)
        group_parts.add(chunk, codes=codes[start:stop])
    assert parts.size == whole.size
    same(whole.trailing(100), parts.trailing(100))
    for code in range(5):
        same(groups.group_trailing(code, 20), group_parts.group_trailing(code, 20))
    for one, other in zip(whole.blocks()[:2], parts.blocks()[:2], strict=True):
        assert np.array_equal(one, other)
    assert all(np.array_equal(whole.blocks()[2][name], parts.blocks()[2][name]) for name in NAMES)


def same(one, other):
    assert one.window == other.window
    assert np.array_equal(one.x, other.x)
    for name in NAMES:
        assert np.array_equal(one.means[name], other.means[name])


@given(st.integers(100, 20_000))
def test_a_long_stream_gives_the_means_of_whole_blocks(rows):
    columns = stream(rows)
    blocks = Blocks(NAMES, capacity=128)
    blocks.add(columns)
    assert blocks.size * 128 >= rows
    series = blocks.trailing(window(rows))
    assert len(series.x) <= 420
    for x, mean in zip(series.x.tolist(), series.means["after"].tolist(), strict=True):
        last = int(x)
        assert mean == pytest.approx(columns["after"][last - series.window : last].mean(), abs=1e-9)


@given(st.integers(1, 400), st.integers(1, 40), st.integers(0, 10**6))
def test_a_group_rolls_over_its_own_rows(rows, width, seed):
    columns, codes = stream(rows, seed), np.random.default_rng(seed).integers(0, 4, rows)
    groups = Blocks(NAMES, 200, capacity=512)
    groups.add(columns, codes=codes)
    for code in range(4):
        mine = np.flatnonzero(codes == code)
        series = groups.group_trailing(code, width, points=10**6)
        assert series.x.tolist() == (mine[width - 1 :] + 1).tolist()
        expected = direct(columns["before"][mine], width) if len(mine) >= width else []
        assert np.allclose(series.means["before"], expected, rtol=0, atol=1e-10)


def test_groups_beyond_the_limit_take_no_memory_and_give_no_series():
    groups = Blocks(("e",), groups=10, capacity=64)
    groups.add({"e": np.ones(5000)}, codes=np.arange(5000))
    assert groups._sums.shape[1] == 10
    assert len(groups.group_trailing(4999, 1).x) == 0
    assert groups.group_trailing(3, 1).means["e"].tolist() == [1.0]


def test_x_is_taken_from_the_last_row_of_a_window():
    blocks = Blocks(("e",), capacity=4)
    blocks.add({"e": np.arange(8.0)}, np.arange(8.0) * 10)
    assert blocks.size == 2
    assert blocks.trailing(4).x.tolist() == [30.0, 50.0, 70.0]
    assert blocks.blocks()[1].tolist() == [0.0, 20.0, 40.0, 60.0]


@given(st.integers(0, 5000), st.integers(2, 500))
def test_thinning_keeps_both_ends_and_equal_spacing(length, points):
    picked = thin(length, points)
    assert len(picked) == min(length, points)
    if length:
        assert picked[0] == 0
        assert picked[-1] == length - 1
    gaps = np.diff(picked)
    assert len(set(gaps.tolist())) <= 2
    assert np.all(gaps >= 1)


@pytest.mark.parametrize(
    ("rows", "width"), [(0, 1), (60, 15), (2000, 100), (6787, 300), (20_000, 1000), (10**8, 5 * 10**6)]
)
def test_a_window_is_about_a_twentieth_of_the_file_however_long(rows, width):
    assert window(rows) == width


def test_a_group_window_has_at_least_sixty_rows():
    blocks = Blocks(("e",))
    blocks.add({"e": np.zeros(100)}, codes=np.zeros(100, np.int64))
    assert blocks.group_trailing(0).window == 60
    blocks.add({"e": np.zeros(3596)}, codes=np.zeros(3596, np.int64))
    assert blocks.group_trailing(0).window == 184


def test_a_story_series_has_none_where_nothing_is_drawn():
    assert numbers(np.array([1.23456789, np.nan, np.inf])) == (1.23457, None, None)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(BadInput, match="3 rows"):
        Blocks(NAMES).add({"before": np.ones(3), "after": np.ones(2)})
    with pytest.raises(BadInput, match="even"):
        Blocks(NAMES, capacity=7)
    with pytest.raises(BadInput, match="at least one row"):
        rolling(np.ones(3), 0)
