"""Predictions, labels and layers over HTTP: each item is answered, in order, and can be sent again."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.running import Running, running

NORTH = {"groups": {"region": "north"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("api") / "store.db") as made:
        yield made


@pytest.fixture
def layer(server: Running, request: pytest.FixtureRequest) -> str:
    return server.layer(request.node.name[:90].replace("[", "-").rstrip("]"), eta=0.05, groups=["region"])


def post(server: Running, path: str, body: Any, **more: Any) -> tuple[int, Any]:
    answer = server.client.post(path, json=body, **more)
    return answer.status_code, answer.json()


def test_three_calls_give_the_number_of_the_first_page(server: Running) -> None:
    made = server.client.put("/v1/layers/demand", json={"kind": "debias", "eta": 0.05, "groups": ["region"]})
    assert made.json() == {"layer": "demand", "created": True}
    path = "/v1/layers/demand"
    sent = {"id": "order-17", "prediction": 42.0, **NORTH}
    _, served = post(server, f"{path}/predictions", sent)
    assert (served["id"], served["adjusted"]) == ("order-17", 42.0)
    _, taken = post(server, f"{path}/labels", {"id": "order-17", "label": 45.5})
    assert (taken["id"], taken["status"]) == ("order-17", "applied")
    _, after = post(server, f"{path}/predictions", {"prediction": 42.0, **NORTH})
    assert after["adjusted"] == 42.175


def test_the_same_again_gives_the_same_answer_and_another_payload_conflicts(server: Running, layer: str) -> None:
    first = {"id": "a", "prediction": 10.0, **NORTH}
    post(server, f"{layer}/predictions", first)
    post(server, f"{layer}/labels", {"id": "a", "label": 12.0})
    status, again = post(server, f"{layer}/predictions", first)
    assert (status, again["status"], again["adjusted"]) == (200, "duplicate", 10.0)
    status, other = post(server, f"{layer}/predictions", first | {"prediction": 11.0})
    assert (status, other["status"]) == (409, "conflict")
    status, again = post(server, f"{layer}/labels", {"id": "a", "label": 12.0})
    assert (status, again["status"]) == (200, "duplicate")
    status, other = post(server, f"{layer}/labels", {"id": "a", "label": 13.0})
    assert (status, other["status"]) == (409, "conflict")
    assert "12.0" in other["detail"] and "correct" in other["remedy"]
    status, mended = post(server, f"{layer}/labels", {"id": "a", "label": 13.0, "correct": True})
    assert (status, mended["status"]) == (200, "corrected")
    assert server.client.get(f"{layer}/equilibrium").json()["bias"]["before"] == -3.0


def test_a_list_is_answered_item_by_item_in_order(server: Running, layer: str) -> None:
    sent: list[Any] = [
        {"id": 1, "prediction": 1.0, **NORTH},
        {"id": 2, "prediction": "x"},
        {"id": "1", "prediction": 1.0, **NORTH},
        {"id": 3, "predicton": 1.0},
        {"id": 1, "prediction": 1.0, **NORTH},
        {"id": 1, "prediction": 2.0, **NORTH},
        7,
        {"id": 4, "prediction": 1.0, "groups": {"country": "nl"}},
    ]
    status, answers = post(server, f"{layer}/predictions", sent)
    assert status == 200
    found = [(one.get("id"), one["status"]) for one in answers]
    assert found == [
        (1, "served"), (2, "rejected"), ("1", "served"), (3, "rejected"), (1, "duplicate"), (1, "conflict"),
        (None, "rejected"), (4, "rejected"),
    ]  # fmt: skip
    for one in answers:
        assert one["status"] != "rejected" or (one["detail"] and one["remedy"])
    assert post(server, f"{layer}/predictions", []) == (200, [])


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"id": "never", "label": 1.0}, 404, "unknown"),
        ({"id": "old", "label": "high"}, 422, "rejected"),
        ({"id": "old"}, 422, "rejected"),
        ({"label": 1.0}, 422, "rejected"),
        ({"id": "old", "label": 1.0, "ticket": "x"}, 422, "rejected"),
        ({"id": "", "label": 1.0}, 422, "rejected"),
        ({"id": "a" * 256, "label": 1.0}, 422, "rejected"),
        ({"id": "\u00e9" * 128, "label": 1.0}, 422, "rejected"),
        ({"id": 2**63, "label": 1.0}, 422, "rejected"),
        ({"id": True, "label": 1.0}, 422, "rejected"),
    ],
)
def test_one_label_has_the_code_of_what_became_of_it(server: Running, body: Any, status: int, word: str) -> None:
    layer = server.layer("codes")
    post(server, f"{layer}/predictions", {"id": "old", "prediction": 1.0})
    found, answer = post(server, f"{layer}/labels", body)
    assert (found, answer["status"]) == (status, word)
    assert answer["detail"] and answer["remedy"] and "\n" not in answer["detail"]


def test_an_atomic_list_is_done_whole_or_not_at_all(server: Running, layer: str) -> None:
    good = [{"id": k, "prediction": 1.0, **NORTH} for k in range(3)]
    for bad in ({"id": 9, "prediction": None}, {"id": 9, "predicton": 1.0}):
        status, answers = post(server, f"{layer}/predictions?atomic=true", [*good, bad])
        assert status == 422 and answers[-1]["status"] == "rejected"
        assert server.client.get(layer).json()["served"] == 0
    assert post(server, f"{layer}/predictions?atomic=true", good)[0] == 200
    labels = [{"id": k, "label": 2.0} for k in (0, 1, 7)]
    assert post(server, f"{layer}/labels?atomic=true", labels)[0] == 422
    assert server.client.get(layer).json()["labelled"] == 0
    assert post(server, f"{layer}/labels?atomic=true", labels[:2])[0] == 200
    assert server.client.get(layer).json()["labelled"] == 2
    twins = [{"id": "t", "prediction": 1.0, **NORTH}, {"id": "t", "prediction": 2.0, **NORTH}]
    before = server.client.get(layer).json()["served"]
    assert post(server, f"{layer}/predictions?atomic=true", twins)[0] == 422
    assert server.client.get(layer).json()["served"] == before


def test_labels_after_the_time_to_live_are_expired(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server:
        layer = server.layer("short", ttl=60.0)
        post(server, f"{layer}/predictions", {"id": "a", "prediction": 1.0})
        now = server.service.desk.clock
        server.service.desk.clock = lambda: now() + 61.0
        status, answer = post(server, f"{layer}/labels", {"id": "a", "label": 1.0})
        assert (status, answer["status"]) == (410, "expired")


def test_a_frozen_layer_serves_and_says_so(server: Running, layer: str) -> None:
    post(server, f"{layer}/predictions", {"id": 1, "prediction": 1.0, **NORTH})
    post(server, f"{layer}/predictions", {"id": 2, "prediction": 1.0, **NORTH})
    post(server, f"{layer}/labels", {"id": 1, "label": 3.0})
    assert post(server, f"{layer}/control", {"do": "freeze"})[0] == 200
    moved = server.client.get(f"{layer}/equilibrium").json()["theta"]
    _, answer = post(server, f"{layer}/labels", {"id": 2, "label": 9.0})
    assert (answer["status"], answer["learning"]) == ("applied", False)
    _, served = post(server, f"{layer}/predictions", {"id": 3, "prediction": 1.0, **NORTH})
    assert served["learning"] is False and served["adjusted"] == 1.1
    assert server.client.get(f"{layer}/equilibrium").json()["theta"] == moved
    assert server.client.get(layer).json()["learning"] is False
    assert post(server, f"{layer}/control", {"do": "resume"})[0] == 200
    assert server.client.get(layer).json()["learning"] is True


@pytest.mark.parametrize(
    "body",
    [{}, {"do": "explode"}, {"do": "freeze", "eta": 1.0}, {"do": "set_step"}, {"do": "set_step", "eta": -1.0},
     {"do": "set_step", "eta": "big"}, {"do": "resume", "why": "x"}, {"do": 1}],
)  # fmt: skip
def test_a_control_that_makes_no_sense_changes_nothing(server: Running, body: Any) -> None:
    layer = server.layer("controls", eta=0.1)
    status, answer = post(server, f"{layer}/control", body)
    assert status == 422 and answer["detail"] and answer["remedy"]
    assert server.client.get(f"{layer}/journal").json()["rows"] == []


def test_a_step_can_be_set(server: Running, layer: str) -> None:
    assert post(server, f"{layer}/control", {"do": "set_step", "eta": 0.5})[0] == 200
    assert server.client.get(f"{layer}/equilibrium").json()["step"] == 0.5


def test_a_layer_is_made_once_and_listed_and_removed(server: Running) -> None:
    path, body = "/v1/layers/short-lived", {"kind": "quantile", "level": 0.9}
    assert server.client.put(path, json=body).status_code == 201
    assert server.client.put(path, json=body).json()["created"] is False
    other = server.client.put(path, json=body | {"level": 0.8})
    assert (other.status_code, other.json()["code"]) == (409, "layer_exists")
    names = [one["layer"] for one in server.client.get("/v1/layers").json()]
    assert "short-lived" in names
    assert server.client.get(path).json()["settings"] == {"level": 0.9}
    assert server.client.delete(path).json() == {"layer": "short-lived", "removed": True}
    for answer in (
        server.client.get(path),
        server.client.delete(path),
        server.client.post(f"{path}/labels", json=[]),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "no_such_layer")


@pytest.mark.parametrize(
    "body",
    [{}, {"kind": "magic"}, {"kind": "debias", "etta": 1}, {"kind": "debias", "eta": -1}, {"kind": "quantile"},
     {"kind": "debias", "groups": 7}, {"kind": "debias", "tickets": "gold"}, {"kind": "keyed"},
     {"kind": "debias", "max_names": 0}, {"kind": "debias", "schedule": 1},
     {"kind": "debias", "ttl": -1}, {"kind": "debias", "eta": float("nan")}, {"kind": ["debias"]}],
)  # fmt: skip
def test_settings_that_make_no_layer_are_refused_in_one_line(server: Running, body: Any) -> None:
    answer = server.client.put("/v1/layers/never", content=json.dumps(body))
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["detail"] and told["remedy"] and "\n" not in told["detail"] + told["remedy"]
    assert server.client.get("/v1/layers/never").status_code == 404


def test_the_journal_comes_a_page_at_a_time(server: Running, layer: str) -> None:
    for k in range(5):
        post(server, f"{layer}/predictions", {"id": k, "prediction": 1.0, **NORTH})
        post(server, f"{layer}/labels", {"id": k, "label": 1.0})
    seen, after = [], 0
    while after is not None:
        page = server.client.get(f"{layer}/journal", params={"after": after, "limit": 3}).json()
        seen += page["rows"]
        after = page["after"]
    assert [row["seq"] for row in seen] == list(range(1, 11))
    assert [row["kind"] for row in seen] == ["ticket", "posting"] * 5
    assert [row["id"] for row in seen[::2]] == list(range(5))


def test_a_layer_goes_on_from_the_state_of_another(server: Running, layer: str) -> None:
    for k in range(5):
        post(server, f"{layer}/predictions", {"id": k, "prediction": 1.0, **NORTH})
        post(server, f"{layer}/labels", {"id": k, "label": 2.0})
    post(server, f"{layer}/predictions", {"id": "waits", "prediction": 1.0, **NORTH})
    state = server.client.get(f"{layer}/state").json()
    made = server.client.put("/v1/layers/heir", json={"state": state})
    assert made.status_code == 201, made.text
    assert server.client.put("/v1/layers/heir", json={"state": state}).status_code == 200
    for path in (layer, "/v1/layers/heir"):
        assert post(server, f"{path}/labels", {"id": "waits", "label": 3.0})[1]["status"] == "applied"
        assert post(server, f"{path}/labels", {"id": 2, "label": 2.0})[1]["status"] == "duplicate"
    same = [
        post(server, f"{path}/predictions", {"prediction": 7.0, **NORTH})[1]["adjusted"]
        for path in (layer, "/v1/layers/heir")
    ]
    assert same[0] == same[1] != 7.0
    assert server.client.get("/v1/layers/heir").json()["kind"] == "debias"
    for broken in (state | {"sha256": "0" * 64}, state | {"kind": "elo"}, {}, "x", 7, []):
        refused = server.client.put("/v1/layers/heir2", json={"state": broken})
        assert (refused.status_code, refused.json()["code"]) == (422, "refused"), broken
    other = server.client.put("/v1/layers/heir3", json={"state": state, "eta": 0.5})
    assert other.status_code in (409, 422) and "eta" in other.json()["detail"]


def test_a_head_is_the_head_of_what_a_get_gives(server: Running, layer: str) -> None:
    for path in ("/healthz", "/v1/layers", layer, f"{layer}/events", "/nowhere", f"{layer}/labels"):
        answer = server.client.head(path, timeout=5)
        assert answer.content == b""
        if not path.endswith("/events"):
            own = server.client.get(path)
            assert answer.status_code == own.status_code
            assert answer.headers["content-type"] == own.headers["content-type"]


def test_a_stream_ends_with_the_server(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server:
        layer = server.layer("watched")
        client = server.as_key(server.key)
        with client.stream("GET", f"{layer}/events") as events:
            lines = events.iter_lines()
            assert next(lines)
            began = time.monotonic()
            server.service.begin_shutdown()
            for _ in lines:
                pass
    assert time.monotonic() - began < 5
