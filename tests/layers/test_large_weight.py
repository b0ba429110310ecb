"""One weight that outweighs all others slows every later row: it is warned of once, by name, wherever weights go."""

import warnings

import numpy as np
import pytest

import gradeq as gq
from cli.calling import here, ok, write
from gradeq.layers.internals import LARGE_WEIGHT
from gradeq.report.layer_story import story_of
from gradeq.service.dashboard.trends import worse_in_story

N = 60
CLAIM = "outweighs all others"


def weights(at=0, large=1e6, n=N):
    w = np.random.default_rng(at).uniform(0.5, 2.0, n)
    w[at] = large
    return w


def rows(n=N):
    rng = np.random.default_rng(1)
    f = rng.normal(5.0, 2.0, n)
    return f, f + rng.normal(1.0, 1.0, n)


def said(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [str(w.message) for w in caught if LARGE_WEIGHT in str(w.message)]
    assert all(issubclass(w.category, gq.GradeqWarning) for w in caught)
    return found


def events(layer, w):
    f, y = rows(len(w))
    for i in range(len(w)):
        layer.predict(f[i], weight=w[i])
        layer.update(y[i])


@pytest.mark.parametrize("at", [0, 7, 25])
def test_events_and_columns_name_the_weight_the_row_the_effect_and_the_remedy_once(at):
    f, y = rows()
    w = weights(at)
    one, whole = gq.Debiaser(eta=0.1), gq.Debiaser(eta=0.1)
    for call in (lambda: events(one, w), lambda: whole.run(f, y, weights=w)):
        (text,) = said(call)
        assert f"the weight 1e+06 of row {at + 1} {LARGE_WEIGHT}" in text
        assert "times as slowly, until about" in text and "np.minimum" in text
    assert one.internals.state.largest_weight == whole.internals.state.largest_weight
    assert said(lambda: whole.run(f, y, weights=np.ones(N))) == []  # once


def test_the_effect_is_as_large_as_is_said():
    layer = gq.Debiaser(eta=0.1)
    w = np.where(np.arange(N) == 0, 1e6, 1.0)
    f, y = rows()
    (text,) = said(lambda: layer.run(f, y, weights=w))
    assert "up to 5e+04 times as slowly, until about 1e+06 rows" in text
    relative = w / (np.cumsum(w) / np.arange(1, N + 1))
    assert 1.0 / relative[20:].min() == pytest.approx(5e4, rel=0.06)


@pytest.mark.parametrize(
    "w",
    [
        np.ones(400),
        np.full(400, 2500.0),
        np.random.default_rng(1).uniform(300, 2500, 400),
        np.exp(np.random.default_rng(2).normal(size=400)),
        np.where(np.arange(400) == 200, 100.0, 1.0),
        np.where(np.arange(400) % 7 == 0, 1e6, 1.0),
        np.random.default_rng(3).choice([0.0, 1.0], 400),
        weights(n=25),
    ],
)
def test_weights_that_slow_nothing_for_long_are_not_warned_of(w):
    f, y = rows(len(w))
    assert said(lambda: gq.Debiaser(eta=0.1).run(f, y, weights=w)) == []
    assert said(lambda: events(gq.Debiaser(eta=0.1), w)) == []


def test_a_warning_that_is_made_an_error_leaves_the_layer_as_it_was():
    layer = gq.Debiaser(eta=0.1)
    events(layer, weights(n=30))
    before = layer.to_json()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gq.GradeqWarning, match=LARGE_WEIGHT):
            layer.predict(1.0, weight=1.0)
    assert layer.to_json() == before
    layer.predict(1.0, weight=1.0)


def test_each_key_has_a_mean_of_its_own():
    f, y = rows(2 * N)
    w = np.concatenate([np.full(N, 1e6), np.ones(N)])  # two units of weights, one for each key
    keys = np.repeat(["a", "b"], N)
    assert said(lambda: gq.Keyed(gq.Debiaser(eta=0.1)).run(f, y, key=keys, weights=w)) == []
    w[N + 3] = 1e6
    layer = gq.Keyed(gq.Debiaser(eta=0.1))
    (text,) = said(lambda: layer.run(f, y, key=keys, weights=w))
    assert "the weight 1e+06 of key 'b' outweighs" in text


def test_a_saved_layer_remembers_it_and_an_older_state_loads_without():
    f, y = rows()
    layer = gq.Debiaser(eta=0.1)
    said(lambda: layer.run(f, y, weights=weights()))
    again = gq.from_json(layer.to_json())
    assert again.internals.state.largest_weight == layer.internals.state.largest_weight
    (notice,) = [n for n in story_of(again).notices if CLAIM in n.claim]
    assert "1e+06 of row 1" in notice.claim and "median" in notice.remedy
    assert any(CLAIM in n.claim for n in worse_in_story(again, again.equilibrium(), story_of(again)))
    (text,) = said(lambda: events(again, np.ones(3)))
    assert "of row 1 " in text


def test_partitions_that_are_merged_know_the_weight_and_no_longer_the_row():
    f, y = rows()
    one, other = gq.Debiaser(eta=0.1), gq.Debiaser(eta=0.1)
    said(lambda: one.run(f, y, weights=weights()))
    other.run(f, y, weights=weights(large=1.0))
    one.merge(other)
    (notice,) = [n for n in story_of(one).notices if CLAIM in n.claim]
    assert "The weight 1e+06 outweighs" in notice.claim


def test_a_row_that_is_taken_back_leaves_no_weight():
    layer = gq.Debiaser(eta=0.1)
    said(lambda: events(layer, np.full(5, 2.0)))
    before = layer.to_json()
    with pytest.raises(gq.BadInput):
        layer.run([1.0, 2.0], [1.0, "x"], weights=[1.0, 1e9])
    assert layer.to_json() == before
    layer.peek(1.0)
    assert max(layer.internals.state.largest_weight[::3]) == 2.0


def test_the_command_line_says_it_in_this_run_and_while_it_lasts(tmp_path):
    f, y = rows()
    made = [{"f": a, "y": b, "w": c} for a, b, c in zip(f, y, weights(), strict=True)]
    first = write(tmp_path / "a.csv", made)
    call = ("--prediction", "f", "--label", "y", "--weight", "w", "--eta", "0.1", "--state", tmp_path / "s.json")
    for file in (first, write(tmp_path / "b.csv", [{**row, "w": 1.0} for row in made])):
        found = ok(here("debias", file, *call, "--json")).json["warnings"]
        (own,) = [w for w in found if CLAIM in w["claim"]]
        assert own["level"] == "amber" and "The weight 1e+06 of row 1 " in own["claim"]
        assert "times as slowly" in own["evidence"] and own["remedy"]
    assert CLAIM in ok(here("audit", tmp_path / "s.json")).out
    games = [{"a": "x", "b": "y" if i % 2 else "z", "winner": "a", "w": 1e6 if not i else 1} for i in range(60)]
    elo = ("--a", "a", "--b", "b", "--winner", "winner", "--weight", "w")
    assert CLAIM in ok(here("elo", write(tmp_path / "g.csv", games), *elo)).out
