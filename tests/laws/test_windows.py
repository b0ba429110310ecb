"""A window averages the labels that were posted in it, with their last values, and nothing else."""

import math
import warnings

import numpy as np
import pytest

import gradeq as gq
from gradeq.layers.replay import Revisions
from laws.kinds import KINDS


def by_hand(layer, ids, names):
    """Sums over the last postings of these ids: of w e z by coordinate, and of weights."""
    width, sums, weights = layer.internals.rule.width, {name: [] for name in names}, []
    for id in ids:
        posting = gq.Posting(*layer.internals.tickets.closed[id])
        weights.append(posting.weight)
        errors = layer.internals.rule.judge(posting.served, posting.base, posting.y, posting.memo)[0][:width]
        place = layer.internals.names.place(posting.row)
        for j, z in zip(place.params, posting.row.values, strict=True):
            skipped = layer.internals.names.count - len(names) // width
            for k, error in enumerate(errors):
                sums[names[(j - skipped) * width + k]].append(posting.weight * error * z)
    return {name: math.fsum(own) for name, own in sums.items()}, math.fsum(weights)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_a_window_holds_its_own_labels_with_their_last_values(name, saved):
    kind, rng = KINDS[name], np.random.default_rng(8)
    layer, posted = kind.make(), set()

    def post(id):
        y = kind.label(rng)
        layer.update(y, id=id)
        posted.add(id)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for id in range(30):
            layer.predict(*kind.args(rng), **kind.where(rng), id=id)
            if id % 3:
                post(id)
        earlier, before = layer.copy(), set(posted)
        for id in range(30, 60):
            layer.predict(*kind.args(rng), **kind.where(rng), id=id)
            post(id)
            if id % 4 == 0:
                post(id - 30 - (id - 30) % 3)
            layer.correct(int(rng.choice(sorted(before))), kind.label(rng))
            layer.correct(int(rng.choice(sorted(posted - before))), kind.label(rng))
            posted |= {id}
    if saved:
        layer, earlier = kind.saved(layer.to_json()), kind.saved(earlier.to_json())
    found = layer.since(earlier)
    sums, weight = by_hand(layer, posted - before, list(found.average_gradient))
    learned = [
        id
        for id in posted - before
        if not (name == "elo ties dropped" and layer.internals.tickets.closed[id].y == 0.5)
    ]
    if name != "elo ties dropped":
        assert found.rows == len(learned)
        for coordinate, total in sums.items():
            assert found.average_gradient[coordinate] == pytest.approx(total / weight, abs=1e-9)
    assert found.gap < 1e-8


def test_a_window_with_more_corrections_than_are_remembered_is_refused(monkeypatch):
    from gradeq.layers import replay

    monkeypatch.setattr(replay, "REMEMBERED", 4)
    layer = gq.Debiaser(0.1)
    for id in range(9):
        layer.predict(1.0, id=id)
        layer.update(2.0, id=id)
    earlier = layer.copy()
    for id in range(2):
        layer.correct(id, 3.0)
    assert layer.since(earlier).rows == 0
    layer.correct(2, 3.0)
    with pytest.raises(gq.BadInput, match="corrected in between"):
        layer.since(earlier)


def test_a_label_that_waited_then_and_was_corrected_since_is_of_the_window():
    layer = gq.Debiaser(0.5, maturity=10)
    layer.predict(0.0, id="a", time=0), layer.predict(0.0, id="b", time=9)
    layer.update(5.0, id="a"), layer.update(3.0, id="b")
    earlier = layer.copy()
    assert layer.advance(11) == 1 and layer.correct("a", 7.0) == "corrected"
    found = layer.since(earlier)
    assert found.rows == 1 and found.bias["(all)"] == -7.0


def test_corrections_that_an_earlier_version_did_not_remember_are_refused():
    layer = gq.Debiaser(0.5)
    layer.predict(0.0, id="a"), layer.update(5.0, id="a")
    earlier = layer.copy()
    layer.correct("a", 7.0)
    layer.internals.revisions = Revisions()
    with pytest.raises(gq.BadInput, match="1 label was corrected in between"):
        layer.since(earlier)


def test_corrected_labels_of_a_partition_that_was_merged_since_are_of_the_window():
    layer, part = gq.Debiaser(0.5), gq.Debiaser(0.5)
    for id in "abc":
        layer.predict(0.0, id=id), layer.update(1.0, id=id)
    earlier = layer.copy()
    part.predict(0.0, id="x"), part.update(5.0, id="x")
    part.correct("x", 7.0)
    layer.merge(part)
    found = layer.since(earlier)
    assert found.rows == 1 and found.bias["(all)"] == pytest.approx(-7.0)
