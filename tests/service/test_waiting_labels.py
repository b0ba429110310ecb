"""Labels that a service keeps until their rows are mature, or because labels of one value come earlier."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gradeq as gq
from gradeq.errors import BadInput
from gradeq.layers.internals import silenced
from gradeq.service.audit import Auditor
from gradeq.service.desk import Desk
from gradeq.service.maintenance import export_state
from gradeq.service.runtime import LayerRuntime
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store import open_store

DAY, RATE, WHO = 86400.0, 0.084, "t"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@contextmanager
def desk_of(path: Path, clock: Clock) -> Iterator[Desk]:
    store = open_store(str(path))
    desk = Desk(store, clock=clock)
    desk.start()
    yield desk
    desk.stop()
    store.close()


def sound(path: Path) -> None:
    """The audit of the whole store finds nothing, and the journal done again is the layer that was saved."""
    store = open_store(str(path))
    for row in store.layers():
        assert Auditor(store).full(row).faults == []
        live = LayerRuntime.load(store, row)
        assert gq.from_json(export_state(store, row)).equilibrium().rows == live.layer.equilibrium().rows
    store.close()


def labelled(desk: Desk, *items: tuple[str, float], **more: Any) -> list[str]:
    found = desk.label(WHO, "churn", [Label(label=y, id=id, **more) for id, y in items]).result()
    return [answer.status for answer in found]


def served(desk: Desk, ids: list[str], f: float = RATE) -> list[Any]:
    items = [Prediction(id=id, prediction=f) for id in ids]
    return [answer.adjusted for answer in desk.predict(WHO, "churn", items).result()]


def test_a_label_is_learned_when_its_row_is_mature_and_not_before(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "store.db"
    with desk_of(path, clock) as desk:
        desk.create(WHO, "churn", {"kind": "debias", "eta": 0.5, "maturity": "30d"})
        served(desk, ["a", "b"], 1.0)
        clock.now += DAY
        assert labelled(desk, ("a", 3.0)) == ["waiting"]
        assert labelled(desk, ("a", 3.0)) == ["duplicate"]
        assert labelled(desk, ("a", 4.0)) == ["conflict"]
        assert labelled(desk, ("a", 5.0), correct=True) == ["corrected"]
        assert served(desk, ["c"], 1.0) == [1.0]
    sound(path)
    with desk_of(path, clock) as desk:  # a restart loses nothing
        clock.now += 28 * DAY
        assert served(desk, ["d"], 1.0) == [1.0]
        clock.now += 2 * DAY
        assert served(desk, ["e"], 1.0)[0] > 1.0
        assert labelled(desk, ("b", 3.0)) == ["applied"]
        assert labelled(desk, ("a", 5.0)) == ["duplicate"]
    sound(path)


def test_what_is_mature_is_learned_though_nobody_calls(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "store.db"
    with desk_of(path, clock) as desk:
        desk.create(WHO, "churn", {"kind": "debias", "eta": 0.5, "maturity": 10, "missing_is": 0.0})
        served(desk, ["a", "b"], 1.0)
        assert labelled(desk, ("a", 3.0)) == ["waiting"]
        clock.now += 11
        for _ in range(100):
            with desk.reading(WHO, "churn") as live:
                rows = live.layer.equilibrium().rows
            if rows == 2:
                break
            time.sleep(0.1)
        assert rows == 2
        assert labelled(desk, ("b", 0.0), ("b", 1.0)) == ["duplicate", "conflict"]
    sound(path)


@pytest.mark.parametrize("spec", [{}, {"maturity": "30d"}, {"maturity": "30d", "missing_is": 0.0}])
def test_churn_is_served_as_it_was_predicted(tmp_path: Path, spec: dict[str, Any]) -> None:
    clock, path, rng = Clock(), tmp_path / "store.db", random.Random(4)
    known: dict[int, list[tuple[str, float]]] = {}
    means: list[float] = []
    with desk_of(path, clock) as desk:
        desk.create(WHO, "churn", {"kind": "debias", "outcome": "binary", **spec})
        for day in range(50):
            ids = [f"{day}-{k}" for k in range(40)]
            means.append(sum(served(desk, ids)) / len(ids))
            for id in ids:
                gone = rng.random() < RATE
                if gone or "missing_is" not in spec:
                    known.setdefault(day + (rng.randint(1, 29) if gone else 30), []).append((id, float(gone)))
            clock.now += DAY / 2
            if known.get(day):
                labelled(desk, *known[day])
            clock.now += DAY / 2
        with desk.reading(WHO, "churn") as live:
            early = live.layer.internals.tickets.early
            warned = early is not None and bool(early.why)
            rows = live.layer.equilibrium().rows
    assert means[:30] == pytest.approx([RATE] * 30)
    assert max(abs(mean - RATE) for mean in means) < 0.06
    assert warned == (not spec)
    assert rows > 500
    sound(path)


@pytest.mark.parametrize("spec", [{}, {"maturity": "30d"}])
def test_a_layer_whose_labels_wait_is_moved_with_them(tmp_path: Path, spec: dict[str, Any]) -> None:
    """Exported and imported in the middle, it serves and answers as the one that stayed."""
    clock, path, rng = Clock(), tmp_path / "store.db", random.Random(5)
    known: dict[int, list[tuple[str, float]]] = {}
    with desk_of(path, clock) as desk:
        desk.create(WHO, "churn", {"kind": "debias", "outcome": "binary", **spec})
        for day in range(45):
            items = [Prediction(id=f"{day}-{k}", prediction=RATE) for k in range(30)]
            for item in items:
                gone = rng.random() < RATE
                due = day + (rng.randint(1, 29) if gone else 30)
                known.setdefault(due, []).append((str(item.id), float(gone)))
            labels = [Label(id=id, label=y) for id, y in known.get(day, ())]
            if day == 20:
                (row,) = desk.store.layers()
                text = export_state(desk.store, row)
                assert gq.from_json(text).internals.tickets.waiting
                desk.create(WHO, "moved", {}, text)
                assert export_state(desk.store, desk.store.layer(WHO, "moved")) == text
            found = [
                (
                    [answer.adjusted for answer in desk.predict(WHO, name, items).result()],
                    [answer.status for answer in desk.label(WHO, name, labels).result()],
                )
                for name in (("churn", "moved") if day >= 20 else ("churn",))
            ]
            assert found[0] == found[-1], day
            clock.now += DAY
    sound(path)


def test_a_layer_of_the_library_is_moved_with_the_labels_that_it_holds_back(tmp_path: Path) -> None:
    layer, rng = silenced(gq.Debiaser(outcome="binary")), random.Random(6)
    for k in range(400):
        layer.predict(RATE, id=k)
        if k >= 30 and rng.random() < RATE:
            layer.update(1.0, id=k - 30)
    held = list(layer.internals.tickets.waiting_ids)
    assert held
    clock, path = Clock(), tmp_path / "store.db"
    with desk_of(path, clock) as desk:
        desk.create(WHO, "churn", {}, layer.to_json())
        assert export_state(desk.store, desk.store.layer(WHO, "churn")) == layer.to_json()
        sent = desk.label(WHO, "churn", [Label(id=held[0], label=1.0)]).result()
        assert [answer.status for answer in sent] == ["duplicate"]
        for k in range(400):
            y = float(k in held)
            assert desk.label(WHO, "churn", [Label(id=k, label=y)]).result()[0].status in (
                "applied", "duplicate", "waiting",
            )  # fmt: skip
            layer.update(y, id=k)
        assert desk.runtime(WHO, "churn").layer.equilibrium() == layer.equilibrium()
    sound(path)


def test_maturity_does_not_go_with_signed_tickets(tmp_path: Path) -> None:
    with desk_of(tmp_path / "store.db", Clock()) as desk, pytest.raises(BadInput, match="remove maturity"):
        desk.create(WHO, "churn", {"kind": "debias", "maturity": "30d", "tickets": "signed"})
