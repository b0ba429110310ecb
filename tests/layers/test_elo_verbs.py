"""Elo has the verbs of every other layer; `play` is both at once, and old spellings work for one version."""

import numpy as np
import pytest

import gradeq as gq
from gradeq.layers.registry import from_json

SETTINGS = {
    "plain": {"eta": 0.1},
    "auto": {},
    "drop": {"eta": 0.1, "ties": "drop"},
    "ridge": {"eta": 0.1, "penalty": gq.Ridge(0.05)},
    "proximal": {"eta": 0.1, "proximal": 0.01},
    "decay": {"schedule": gq.Power(1.0, 0.3)},
    "home": {"eta": 0.1, "home_advantage": True},
}


def games(n=60, seed=3):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        a, b = rng.choice(7, 2, replace=False)
        yield f"p{a}", f"p{b}", float(rng.choice([0.0, 0.5, 1.0]))


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_predict_and_update_are_play_and_columns(settings):
    pairs, played, columns = (gq.Elo(**settings) for _ in range(3))
    served, outcomes = [], []
    for a, b, y in games():
        assert pairs.peek(a, b) == played.peek(a, b)
        served.append(pairs.predict(a, b))
        assert pairs.traffic["open"] == 1
        outcomes.append((pairs.update(y), played.play(a, b, y)))
    run = columns.run(*map(list, zip(*games(), strict=True)))
    assert all(one == other for one, other in outcomes)
    assert run.served == served
    assert pairs.to_json() == played.to_json() == columns.to_json()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_old_spellings_do_what_they_did(settings):
    new, old = gq.Elo(**settings), gq.Elo(**settings)
    for k, (a, b, y) in enumerate(games()):
        w = 1.0 if k < 30 else 1.0 + k % 3
        assert new.peek(a, b) == old.predict(a, b)
        outcome = new.play(a, b, y, w)
        assert outcome == (old.update(a, b, y, w) if k % 2 else old.update(a, b, score=y, weight=w))
    assert new.to_json() == old.to_json()
    if "proximal" not in settings:
        for layer in (new, old):
            layer.predict("p1", "p2", id="late")
        assert new.update(1, id="late") == old.settle(1, id="late") == "applied"
        assert new.to_json() == old.to_json()


def test_an_old_spelling_warns_in_one_line_where_it_stands():
    elo = gq.Elo(0.1)
    with pytest.warns(DeprecationWarning, match=r"^Elo\.update\(a, b, score\) .* use Elo\.play") as said:
        elo.update("a", "b", 1)
        elo.update(a="a", b="b", score=1)
    elo.predict("a", "b")
    with pytest.warns(DeprecationWarning, match=r"^Elo\.settle.* use Elo\.update\(score, id\)$") as more:
        elo.settle(1)
    assert {own.filename for own in (*said, *more)} == {__file__}
    assert elo.equilibrium().rows == 3


def test_without_ids_one_game_waits_and_the_next_replaces_it():
    elo = gq.Elo(0.1)
    elo.predict("a", "b")
    with pytest.warns(gq.ReplacedPrediction, match="peek"):
        elo.predict("c", "d")
    assert elo.update(1) == "applied" and elo.ratings["c"] > 0.0 == elo.ratings["a"]
    with pytest.raises(gq.UnknownTicket, match="call predict first"):
        elo.update(1)
    elo.predict("a", "b")
    assert elo.update(None) == "skipped" and elo.traffic["open"] == 0


@pytest.mark.parametrize("settings", [{"eta": 0.1}, {}], ids=["plain", "auto"])
def test_replaced_games_are_counted_by_the_certificate_and_the_report(settings, tmp_path):
    elo, page = gq.Elo(**settings), tmp_path / "elo.html"
    elo.play("a", "b", 1)
    elo.report(page)
    assert elo.equilibrium().learning.replaced == 0 and "replaced" not in str(elo.equilibrium())
    assert "replaced before a label came" not in page.read_text()
    elo.predict("a", "b")
    with pytest.warns(gq.ReplacedPrediction):
        elo.predict("c", "d")
    elo.predict_many(["a", "b"], ["c", "d"])
    elo = from_json(elo.to_json())
    assert elo.equilibrium().learning.replaced == 2
    assert elo.equilibrium().learning.method == ("plain" if settings else "auto")
    assert "2 predictions were replaced before a label came" in str(elo.equilibrium())
    elo.report(page)
    assert "2 predictions were replaced before a label came" in page.read_text()


def test_a_batch_without_ids_queues_and_scores_go_to_the_oldest():
    one, many = gq.Elo(0.1, late_cap=None), gq.Elo(0.1, late_cap=None)
    assert many.predict_many(["a", "c", "e"], ["b", "d", "f"]) == [0.5] * 3
    for k, pair in enumerate(("ab", "cd", "ef")):
        one.predict(*pair, id=k)
    many = from_json(many.to_json())
    assert many.update_many([1, None, 0]) == ["applied", "skipped", "applied"]
    assert one.update_many([1, 0], ids=[0, 2]) == ["applied"] * 2
    assert many.ratings == one.ratings


def test_a_queue_of_games():
    elo = gq.Elo(0.1, queue=True)
    assert elo.queue and elo.settings["queue"] and not gq.Elo().queue
    elo.predict("a", "b"), elo.predict("c", "d")
    elo = from_json(elo.to_json())
    assert elo.update(1) == elo.update(0) == "applied"
    assert elo.ratings["a"] > 0.0 > elo.ratings["c"]


def test_the_proximal_lasso_takes_scores_at_once_only():
    elo = gq.Elo(0.1, proximal=0.01)
    elo.predict("a", "b")
    elo.play("c", "d", 1)
    before = elo.to_json()
    with pytest.raises(gq.BadInput, match="at once"):
        elo.update(1)
    with pytest.raises(gq.BadInput, match="at once"):
        elo.predict_many(["a"], ["b"])
    assert elo.to_json() == before
