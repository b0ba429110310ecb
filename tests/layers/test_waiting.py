"""Labels that wait for their time over many runs: a run looks at those that are due, and the cut never shows."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

import gradeq as gq
from gradeq.engine.tickets import TicketBook
from gradeq.errors import BadInput, GradeqError, StateError

KINDS = {
    "scalar": lambda ttl: gq.Debiaser(0.1, ttl=ttl),
    "groups": lambda ttl: gq.Debiaser(0.1, groups=["g"], ttl=ttl),
    "penalty": lambda ttl: gq.Debiaser(0.1, groups=["g"], penalty=gq.Ridge(0.1), ttl=ttl),
    "auto": lambda ttl: gq.QuantileTracker(0.9, ttl=ttl),
    "keyed": lambda ttl: gq.Keyed(gq.Debiaser(0.1, ttl=ttl)),
}


def rows(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 60, n)).astype(float)
    f, y = rng.normal(size=(2, n))
    return {
        "f": f, "y": y, "times": times, "label_times": times + rng.integers(0, 40, n),
        "g": rng.integers(0, 5, n), "ids": np.arange(n),
    }  # fmt: skip


def given(kind: str, data: dict[str, np.ndarray], part: slice) -> tuple[list, dict]:
    own = {name: column[part] for name, column in data.items()}
    named = {"key": own["g"]} if kind == "keyed" else {"groups": {"g": own["g"]}}
    more = {} if kind in ("scalar", "auto") else named
    return [own["f"], own["y"]], more | {name: own[name] for name in ("times", "label_times", "ids")}


@pytest.mark.parametrize("ttl", [None, 15.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cut_of_a_file_with_waiting_labels_does_not_show(kind: str, ttl: float | None) -> None:
    data = rows(300, 1)
    bounds = np.flatnonzero(np.diff(data["times"], prepend=-1.0))  # moments are not torn apart
    whole, pieces = KINDS[kind](ttl), KINDS[kind](ttl)
    columns, more = given(kind, data, slice(None))
    ran = whole.run(*columns, **more)
    for a, b in zip(bounds, [*bounds[1:], 300], strict=True):
        columns, more = given(kind, data, slice(a, b))
        last = pieces.run(*columns, **more)
        pieces = gq.from_json(pieces.to_json()) if a % 7 == 0 else pieces
    assert ran.waiting == last.waiting == len(pieces.internals.tickets.waiting) > 0
    assert pieces.to_json() == whole.to_json()


@pytest.mark.parametrize("late", [0, 3])
def test_short_runs_beside_many_groups_count_as_one_long_run_does(late: int) -> None:
    many, n = np.arange(400), 300
    data = rows(n, 6)
    label_times = data["times"] + late * (np.arange(n) % 2)
    layers = [gq.Debiaser(0.1, groups=["g"]) for _ in range(2)]
    for layer, cuts in zip(layers, ([0, n], [0, 7, 90, 91, 180, 250, n]), strict=True):
        layer.run(many * 0.1, many * 0.2, groups={"g": many})
        cuts = [int(np.searchsorted(data["times"], data["times"][c])) if c < n else n for c in cuts]
        for a, b in pairwise(cuts):
            own = {"times": data["times"][a:b], "label_times": label_times[a:b]}
            layer.run(data["f"][a:b], data["y"][a:b], {"g": data["g"][a:b]}, **own)
    assert layers[0].to_json() == layers[1].to_json()


def test_what_is_due_is_found_and_nothing_else_is_looked_at() -> None:
    rng = np.random.default_rng(2)
    layer = gq.Debiaser(0.1)
    columns, more = given("scalar", rows(200, 3), slice(None))
    layer.run(*columns, **more | {"label_times": more["times"] + rng.integers(61, 200, 200)})
    book: TicketBook = layer.internals.tickets
    for id in rng.permutation(200)[:60].tolist():
        layer.forget(id)
    for until in (60, 100, 150, 400):
        expected = [own for own in book.waiting.values() if own.due <= until]
        assert book.due_by(until) == expected
        book.hold([], expected)  # they were posted
        assert not book.due_by(until) and all(own.due > until for own in book.waiting.values())
    assert not book.waiting and not book.waiting_ids and len(book.due) <= 64


def test_a_refused_run_leaves_waiting_labels_as_they_were() -> None:
    layer, data = gq.Debiaser(0.1, groups=["g"]), rows(100, 4)
    columns, more = given("groups", data, slice(None))
    layer.run(*columns, **more)
    before = layer.to_json()
    again = {"times": data["times"] + 200, "label_times": data["times"] + 200}
    with pytest.raises(BadInput):  # a group that cannot be
        layer.run(*columns, groups={"g": [[1]] * 100}, **again)
    huge = np.full(100, 1.7e308)
    with pytest.raises(GradeqError):  # it diverges when all is placed
        layer.run(-huge, huge, groups={"g": data["g"] + 9}, **again)
    assert layer.to_json() == before
    layer.run(columns[0][:1], columns[1][:1], groups={"g": [1]}, times=[500.0])
    assert list(layer.internals.tickets.waiting) == [101]  # its own, which the next row will post


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_goes_its_own_way(kind: str) -> None:
    data = rows(60, 5)
    layer = KINDS[kind](15.0)
    columns, more = given(kind, data, slice(None))
    layer.run(*columns, **more)
    key = {"key": 1} if kind == "keyed" else {}
    groups = {"groups": {"g": 1}} if kind in ("groups", "penalty") else {}
    for id in ("a", "b"):
        layer.predict(1.0, **key, **groups, id=id, time=61.0)
    layer.internals.tickets.desk["kept"] = {"rows": [1]}
    before = layer.to_json()
    twin = deepcopy(layer)
    assert twin.to_json() == before
    twin.update(2.0, id="a")
    twin.forget("b")
    twin.correct(int(next(iter(twin.internals.tickets.closed))), 9.0)
    twin.predict(1.0, **key, **groups, id="c", time=90.0)
    twin.internals.tickets.desk["kept"]["rows"].append(2)
    assert layer.to_json() == before != twin.to_json()


def test_a_state_that_was_spelled_otherwise_loads_and_one_that_was_altered_does_not() -> None:
    layer = gq.Debiaser(schedule=gq.Power(0.5, 0.5), groups=["g"])
    layer.run([1.0] * 700, [2.0] * 700, groups={"g": list(range(700))})
    layer.predict(1.0, {"g": 'with "sha256":"' + "0" * 64 + '",'}, id=1)
    text = layer.to_json()
    body = json.loads(text)
    spelled = [text, text + "\n", text.encode(), json.dumps(body, indent=1), json.dumps(body)]
    for other in spelled:
        assert gq.from_json(other).to_json() == text
    body["state"]["frozen"] = True
    for other in (json.dumps(body), json.dumps(body, sort_keys=True, separators=(",", ":"))):
        with pytest.raises(StateError, match="checksum"):
            gq.from_json(other)


def test_rows_with_ids_none_of_whose_labels_is_due_yet() -> None:
    layer = gq.Debiaser(0.1)
    ran = layer.run([1.0, 2.0], [1.0, 2.0], times=[0, 1], label_times=[9, 9], ids=["a", "b"])
    assert ran.waiting == 2 and layer.ids == {"a": "open", "b": "open"}
