"""With too many pairs the table is given up: it is said, the view of the moment stands, and all else goes on."""

import json

import numpy as np
import pytest

import gradeq as gq
from gradeq.leaderboard.ranks import CROWDED
from gradeq.ledger import pair_table


def games(seed, n=800):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, n)
    b = (a + rng.integers(1, 12, n)) % 12
    return a.tolist(), b.tolist(), (rng.random(n) < 0.5 + 0.03 * (a - b)).astype(float).tolist()


@pytest.mark.parametrize("made", [lambda: gq.Elo(0.1), gq.Elo, lambda: gq.Elo(0.1, home_advantage=True)])
def test_a_table_of_too_many_pairs_is_given_up(monkeypatch, made):
    whole = made()
    whole.run(*games(1))
    monkeypatch.setattr(pair_table, "MOST_CELLS", 40)
    layer = made()
    layer.run(*games(1))
    board = layer.board()
    assert board.lines[1] == CROWDED and board.fit is None
    assert [row.elo for row in board.rows] == [row.elo_now for row in board.rows]
    now = {row.player: row for row in whole.board("now").rows}
    for row in board.rows:
        known = now[row.player]
        assert row.elo_now == known.elo_now and row.bias == known.bias and row.tracked == known.tracked
    assert layer.equilibrium() == whole.equilibrium()
    again = gq.from_json(layer.to_json())
    assert again.board() == board and not json.loads(layer.to_json())["state"]["columns"]["met"]["values"]
    more = made()
    more.run(*games(2, 60))
    more.merge(layer)
    assert more.board().lines[1] == CROWDED
