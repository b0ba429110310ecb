"""What the rating figures draw: averages of enough games, and no line over years without games."""

import numpy as np
import pytest

from gradeq.paper import plot
from gradeq.paper.arena_figures import EARLY, GAP, MIN_GAMES, SHUFFLED, broken, streams

NAMES = ("arena-elo", "arena-lasso", "arena-decaying")


@pytest.mark.parametrize("name", NAMES)
def test_no_line_runs_over_years_without_points(found, name) -> None:
    dated = 0
    for panel in found(name).sheets["football"].panels:
        for mark in panel.marks:
            if isinstance(mark, plot.Line) and mark.x.dtype.kind == "M":
                joined = ~np.isnan(mark.y[1:])
                assert np.all(np.diff(mark.x)[joined & ~np.isnan(mark.y[:-1])] <= GAP)
                dated += 1
    assert dated >= 15


def test_a_break_is_put_where_dates_are_far_apart() -> None:
    x = np.array(["1939-06-01", "1939-09-01", "1946-01-01"], dtype="datetime64[D]")
    days, values = broken(x, np.array([1.0, 2.0, 3.0]))
    assert len(days) == 4 and np.isnan(values).tolist() == [False, False, True, False]
    steps, same = broken(np.array([1, 5000]), np.array([1.0, 2.0]))
    assert steps.tolist() == [1, 5000] and same.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("suffix", ["", "football"])
def test_averages_begin_after_enough_games(found, source, suffix) -> None:
    games = streams(source)[suffix]
    first = len(games.y) // EARLY
    start = first + 1 if games.when is None else games.when[first].astype("datetime64[D]")
    loss, ratings, own = found("arena-elo").sheets[suffix].panels[2:]
    for panel in (loss, ratings, own):
        lines = [mark for mark in panel.marks if isinstance(mark, plot.Line)]
        assert lines and all(line.x[0] >= start for line in lines)
    for player, line in zip(games.five, own.marks[1:], strict=True):
        played = np.flatnonzero((games.a == player) | (games.b == player))
        begins = played[MIN_GAMES]
        assert line.x[0] >= (begins + 1 if games.when is None else games.when[begins])


def test_shuffled_battles_are_called_shuffled_and_their_numbers_other(found) -> None:
    for name in NAMES:
        result = found(name)
        assert SHUFFLED in result.summary and "shuffled" in result.data
        panels = result.sheets[""].panels
        assert all("shuffled" in panel.x for panel in (panels[0], *panels[2:]))
        for number in result.numbers:
            assert number.authors is None or "theirs: other battles" in number.name


def test_the_caption_of_decaying_steps_says_how_far_players_are_off(found, source) -> None:
    """On football the bias of a player at alpha = 0.5 stays large where the norm over all games is small."""
    result = found("arena-decaying")
    games = streams(source)["football"]
    ends = [abs(result.number(f"bias of {games.players[p]}").ours) for p in games.five]
    assert min(ends) == pytest.approx(0.059, abs=5e-4) and max(ends) == pytest.approx(0.187, abs=5e-4)
    assert f"off by {min(ends):.3f} to {max(ends):.3f} in win rate at the end" in result.summary
    assert "has not gone to zero here" in result.summary
