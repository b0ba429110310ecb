"""How far a parameter may go before the layer counts as diverging, event by event."""

from __future__ import annotations

import random

import pytest

from gradeq import Debiaser
from gradeq.errors import Diverging


def late(layer: Debiaser, rounds: int, waiting: int) -> None:
    """Serve so many at once, then label them all: without a cap the step is too large for that."""
    for _ in range(rounds):
        for _ in range(waiting):
            layer.predict(0.0, {"g": 1})
        for _ in range(waiting):
            layer.update(1.0)


@pytest.mark.parametrize("eta", [0.05, 1.0, 1.95])
def test_nothing_that_is_proven_to_stay_is_called_diverging(eta: float) -> None:
    """Labels at once: |theta| <= b max(1, eta / (2 - eta)) for every sequence, and an adversary gets there."""
    layer, rnd = Debiaser(eta=eta, groups=["g"]), random.Random(1)
    for _ in range(600):
        g = rnd.randrange(3)
        served = layer.predict(0.0, {"g": g}, weight=rnd.choice([0.5, 1.0]))
        layer.update(-1.0 if served > 0.0 else 1.0)
    assert layer.equilibrium().rows == 600


def test_a_refused_label_changes_nothing_and_can_be_posted_again() -> None:
    layer = Debiaser(eta=1.9, groups=["g"], late_cap=None, queue=True)
    with pytest.raises(Diverging):
        late(layer, 100, 5)
    before = layer.to_json()
    with pytest.raises(Diverging):
        layer.update(1.0)
    assert layer.to_json() == before
