"""The experiments run the general engine; the layers that users have give the same."""

import numpy as np
import pytest

from gradeq import Elo, QuantileEnsemble
from gradeq.paper.arena_figures import bias_norm, play, player_bias, streams
from gradeq.paper.mimic_figures import ENSEMBLE_STEPS, LEVEL, mix, stays, track


def test_elo_ratings_and_biases_are_those_of_the_layer(source) -> None:
    games = streams(source)[""]
    season = play(games, 0.05)
    layer = Elo(0.05)
    names = np.array(games.players)
    layer.run(names[games.a], names[games.b], 1.0 - games.y)
    rows = {row.player: row for row in layer.leaderboard()}
    for player in games.five:
        row = rows[games.players[player]]
        assert row.tracked == pytest.approx(season.final[player], abs=1e-9)
        assert row.bias == pytest.approx(player_bias(games, season, player)[1][-1], abs=1e-9)
    largest = max(abs(row.tracked) for row in rows.values()) / (0.05 * len(games.y))
    assert bias_norm(games, season)[1][-1] == pytest.approx(largest, abs=1e-12)


def test_the_mixed_quantiles_are_those_of_the_ensemble_layer(source) -> None:
    stream = stays(source)
    f, y = stream.prediction[-600:] / 6.0, stream.label[-600:] / 6.0
    thetas = np.column_stack([track(f, y, eta)[1] for eta in ENSEMBLE_STEPS])
    mixed, weights = mix(f, y, thetas, 0.1)
    layer = QuantileEnsemble(LEVEL, ENSEMBLE_STEPS, 0.1, final_eta=None)
    served = np.asarray(layer.run(f, y).served)
    assert np.abs(served - mixed.served).max() < 1e-9
    assert weights[0] == pytest.approx(np.full(8, 1 / 8))
