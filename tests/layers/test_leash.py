"""How far a parameter may go before the layer counts as diverging, event by event."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gradeq import Debiaser, Keyed
from gradeq.errors import Diverging


def test_a_label_does_not_cost_a_look_at_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most tickets ever open, over all keys, is needed only when a parameter goes far."""
    looks: list[int] = []

    def counted(*values: Any) -> Any:
        looks.extend(len(v) for v in values if hasattr(v, "__len__"))
        return max(*values)

    monkeypatch.setattr("gradeq.engine.desk.max", counted, raising=False)
    layer, rnd = Keyed(Debiaser(eta=0.05)), random.Random(0)
    for i in range(500):
        layer.predict(rnd.random(), i % 50)
        layer.update(rnd.random())
    assert len(looks) == 1


def late(layer: Debiaser, rounds: int, waiting: int) -> None:
    """Serve so many at once, then label them all: without a cap the step is too large for that."""
    for _ in range(rounds):
        for _ in range(waiting):
            layer.predict(0.0, {"g": 1})
        for _ in range(waiting):
            layer.update(1.0)


def test_the_leash_never_exceeds_what_the_tickets_ever_open_allow() -> None:
    layer, rnd = Debiaser(eta=0.05, groups=["g"], late_cap=None), random.Random(1)
    for burst in (40, *(rnd.randrange(1, 9) for _ in range(300))):
        for _ in range(burst):
            layer.predict(rnd.random(), {"g": rnd.randrange(3)}, weight=rnd.choice([0.5, 1.0, 2.0]))
        for _ in range(burst):
            layer.update(rnd.random() * 10.0 ** rnd.randrange(4))
            desk: Any = layer.desk
            assert desk.head.leash <= 10.0 * max(desk.peaks) * desk.heaviest
        if burst == 40 or rnd.random() < 0.05:
            layer.reset_in_flight()


def test_a_refused_label_changes_nothing_and_can_be_posted_again() -> None:
    layer = Debiaser(eta=1.9, groups=["g"], late_cap=None)
    with pytest.raises(Diverging):
        late(layer, 100, 5)
    before = layer.to_json()
    with pytest.raises(Diverging):
        layer.update(1.0)
    assert layer.to_json() == before
