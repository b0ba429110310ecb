"""What is worked out for many players at once is what it would be one by one."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gradeq.leaderboard.fitting import SharedCovariance, connected_groups


def by_walking(i, j, players):
    """From every player along games, the first one that can be reached."""
    met = {k: {k} for k in range(players)}
    for one, two in zip(i, j, strict=True):
        met[one].add(two)
        met[two].add(one)
    found = []
    for k in range(players):
        seen, edge = {k}, [k]
        while edge:
            edge = [b for a in edge for b in met[a] if b not in seen and not seen.add(b)]
        found.append(min(seen))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_groups_are_the_players_joined_by_games(seed):
    rng = np.random.default_rng(seed)
    players, games = int(rng.integers(1, 40)), int(rng.integers(0, 45))
    i, j = rng.integers(0, players, games), rng.integers(0, players, games)
    found = connected_groups(SimpleNamespace(i=i, j=j), players)
    assert found.tolist() == by_walking(i.tolist(), j.tolist(), players)


def test_a_long_chain_of_games_is_one_group():
    order = np.random.default_rng(1).permutation(20_000)
    assert (connected_groups(SimpleNamespace(i=order[:-1], j=order[1:]), len(order)) == 0).all()


def test_the_diagonal_is_that_of_the_rows():
    rng = np.random.default_rng(2)
    common = SharedCovariance(rng.normal(size=(5, 30)), rng.integers(0, 4, 30), rng.random(30))
    rows = np.array([common.row(r) for r in range(30)])
    np.testing.assert_allclose(common.diagonal, np.diag(rows), rtol=1e-14)
    weighed = replace(common, weight=3.0, apart=rng.normal(size=30))
    expected = 3.0 * rows + np.outer(weighed.apart, weighed.apart)
    again = np.array([weighed.row(r) for r in range(30)])
    np.testing.assert_allclose(again, expected, rtol=1e-12, atol=1e-14)
