"""The service serves and learns what the library does with the same events in the same order, bit for bit."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gradeq as gq
from service.running import Running, running

ROWS = 120
Made = tuple[dict[str, Any], Callable[[], Any]]
KINDS: dict[str, Made] = {
    "one": ({"kind": "debias", "eta": 0.1}, lambda: gq.Debiaser(eta=0.1)),
    "auto": ({"kind": "debias"}, lambda: gq.Debiaser()),
    "groups": ({"kind": "debias", "eta": 0.1, "groups": ["g", "h"]}, lambda: gq.Debiaser(eta=0.1, groups=["g", "h"])),
    "auto groups": ({"kind": "debias", "groups": ["g"]}, lambda: gq.Debiaser(groups=["g"])),
    "features": ({"kind": "debias", "eta": 0.05, "features": ["x"]}, lambda: gq.Debiaser(eta=0.05, features=["x"])),
    "binary": ({"kind": "debias", "outcome": "binary"}, lambda: gq.Debiaser(outcome="binary")),
    "shift": (
        {"kind": "debias", "outcome": "binary", "link": "shift", "eta": 0.05},
        lambda: gq.Debiaser(outcome="binary", link="shift", eta=0.05),
    ),
    "shadow": ({"kind": "debias", "eta": 0.1, "shadow": True}, lambda: gq.Debiaser(eta=0.1, shadow=True)),
    "decay": ({"kind": "debias", "eta": 0.5, "decay": 0.6}, lambda: gq.Debiaser(schedule=gq.Power(0.5, 0.6))),
    "ridge": (
        {"kind": "debias", "eta": 0.1, "groups": ["g"], "penalty": "ridge", "strength": 0.01},
        lambda: gq.Debiaser(eta=0.1, groups=["g"], penalty=gq.Ridge(0.01)),
    ),
    "quantile": ({"kind": "quantile", "level": 0.9}, lambda: gq.QuantileTracker(0.9)),
    "linear": (
        {"kind": "quantile", "level": 0.9, "eta": 0.2, "link": "linear", "groups": ["g"]},
        lambda: gq.QuantileTracker(0.9, 0.2, link="linear", groups=["g"]),
    ),
    "levels": (
        {"kind": "quantiles", "levels": [0.1, 0.5, 0.9], "eta": 0.1},
        lambda: gq.MultiQuantileTracker([0.1, 0.5, 0.9], 0.1),
    ),
    "interval": ({"kind": "interval", "coverage": 0.8}, lambda: gq.IntervalTracker(0.8)),
    "conformal": (
        {"kind": "conformal", "score": "absolute", "coverage": 0.8, "eta": 0.1},
        lambda: gq.Conformal("absolute", 0.8, 0.1),
    ),
    "ensemble": (
        {"kind": "ensemble", "level": 0.9, "etas": [0.05, 0.2], "ensemble_eta": 0.1},
        lambda: gq.QuantileEnsemble(0.9, [0.05, 0.2], 0.1),
    ),
    "keyed": ({"kind": "debias", "eta": 0.1, "keyed": True}, lambda: gq.Keyed(gq.Debiaser(eta=0.1))),
    "keyed levels": (
        {"kind": "quantile", "level": 0.5, "eta": 0.1, "keyed": True},
        lambda: gq.Keyed(gq.QuantileTracker(0.5, 0.1)),
    ),
    "elo": ({"kind": "elo"}, lambda: gq.Elo()),
    "elo k": ({"kind": "elo", "k": 16}, lambda: gq.Elo(k=16)),
}


@pytest.mark.parametrize("name", KINDS)
def test_service_and_library_agree_to_the_last_bit(name: str, tmp_path: Path) -> None:
    spec, make = KINDS[name]
    layer, rng = make(), random.Random(name)
    events = list(stream(rng, spec))
    with running(tmp_path / "store.db") as server:
        path = server.layer("it", **spec)
        for event in events[: len(events) // 2]:
            assert served(server, path, event) == alone(layer, event)
    with running(tmp_path / "store.db") as server:  # the rest after a restart
        for event in events[len(events) // 2 :]:
            assert served(server, path, event) == alone(layer, event)
        own = gq.from_json(server.client.get(f"{path}/state").text)
    assert own.theta == layer.theta
    assert own.equilibrium() == layer.equilibrium()
    assert (own.steps, own.traffic) == (layer.steps, layer.traffic)


def stream(rng: random.Random, spec: dict[str, Any]) -> Any:
    """Batches of predictions and labels, some of which come late, in another order, or never."""
    waiting: list[int] = []
    k = 0
    while k < ROWS:
        count = rng.choice([1, 10, 30])
        yield "predictions", [item(rng, spec, k + j) for j in range(count)]
        waiting += range(k, k + count)
        k += count
        rng.shuffle(waiting)
        due = [waiting.pop() for _ in range(rng.randrange(len(waiting) + 1))]
        due = [id for id in due if rng.random() < 0.9]
        if due:
            yield "labels", [{"id": id, "label": label(rng, spec)} for id in due]


def item(rng: random.Random, spec: dict[str, Any], id: int) -> dict[str, Any]:
    if spec["kind"] == "elo":
        a, b = rng.sample("abcdef", 2)
        return {"id": id, "a": a, "b": b}
    binary = spec.get("outcome") == "binary"
    f = rng.random() if binary else rng.gauss(10.0, 5.0)
    found: dict[str, Any] = {"id": id, "prediction": f}
    if "groups" in spec:
        found["groups"] = {g: rng.choice(["a", 7, None, True]) for g in spec["groups"]}
    if "features" in spec:
        found["features"] = {"x": rng.uniform(-1.0, 1.0)}
    if spec.get("keyed"):
        found["key"] = rng.choice(["one", 2])
    if spec["kind"] == "debias" and rng.random() < 0.1:
        found["weight"] = rng.choice([0.0, 0.5, 2.0])
    return found


def label(rng: random.Random, spec: dict[str, Any]) -> float:
    if spec["kind"] == "elo":
        return rng.choice([0.0, 0.5, 1.0])
    return float(rng.random() < 0.6) if spec.get("outcome") == "binary" else rng.gauss(12.0, 5.0)


def served(server: Running, path: str, event: Any) -> list[Any]:
    what, items = event
    answer = server.client.post(f"{path}/{what}", json=items if len(items) > 1 else items[0])
    assert answer.status_code == 200, answer.text
    answers = answer.json() if len(items) > 1 else [answer.json()]
    if what == "labels":
        return [one["status"] for one in answers]
    return [(one["adjusted"], one.get("lower"), one.get("upper")) for one in answers]


def alone(layer: Any, event: Any) -> list[Any]:
    """The same by the library."""
    what, items = event
    if what == "labels":
        return [layer.update(one["label"], id=one["id"]) for one in items]
    found = []
    for one in items:
        given = {name: value for name, value in one.items() if name not in ("prediction", "a", "b")}
        args = (one["a"], one["b"]) if "a" in one else (one["prediction"],)
        shown = layer.predict(*args, **given)
        if layer.kind == "conformal":
            found.append((shown.threshold, *shown.interval))
        elif layer.kind == "interval":
            found.append(([*shown], *shown))
        else:
            found.append(([*shown] if isinstance(shown, tuple) else shown, None, None))
    return found
