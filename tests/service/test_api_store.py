"""A store that cannot write: predictions are served and flagged, labels are refused, nothing is claimed or lost."""

import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import gradeq as gq
from service.running import Running, running


@contextmanager
def unwritable(server: Running) -> Iterator[None]:
    """SQLite itself refuses to write, as on a disk that was mounted read-only."""
    driver: Any = server.service.store.driver
    driver._writer.execute("PRAGMA query_only=ON")
    try:
        yield
    finally:
        driver._writer.execute("PRAGMA query_only=OFF")


def test_an_unwritable_store_still_serves_and_says_so(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as server:
        layer = server.layer("demand", eta=0.5)
        post = server.client.post
        post(f"{layer}/predictions", json={"id": 1, "prediction": 10.0})
        post(f"{layer}/labels", json={"id": 1, "label": 12.0})
        with unwritable(server):
            for id in (2, 3):
                served = post(f"{layer}/predictions", json={"id": id, "prediction": 10.0}).json()
                assert (served["adjusted"], served["stored"]) == (11.0, False)
                assert "seq" not in served
            refused = post(f"{layer}/labels", json={"id": 1, "label": 13.0, "correct": True})
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            assert int(refused.headers["retry-after"]) >= 1
            made = server.client.put("/v1/layers/other", json={"kind": "debias"})
            assert made.status_code == 503
            ready = httpx.get(f"{server.address}/readyz")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert ready.json()["why"]
            assert httpx.get(f"{server.address}/healthz").status_code == 200
            assert server.client.get(f"{layer}/equilibrium").json()["rows"] == 1
        late = post(f"{layer}/labels", json={"id": 2, "label": 12.0})
        assert (late.status_code, late.json()["status"]) == (404, "unknown")
        served = post(f"{layer}/predictions", json={"id": 2, "prediction": 10.0}).json()
        assert served["status"] == "served" and served["seq"] == 3 and "stored" not in served
        assert httpx.get(f"{server.address}/readyz").status_code == 200
        assert server.client.get(layer).json()["served"] == 2


def test_a_server_that_only_reads_serves_and_learns_nothing(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    with running(place) as server:
        layer = server.layer("demand", eta=0.5)
        server.client.post(f"{layer}/predictions", json={"id": 1, "prediction": 10.0})
        server.client.post(f"{layer}/labels", json={"id": 1, "label": 12.0})
        key = server.key
        with running(place, read_only=True) as reader:
            client = reader.as_key(key)
            served = client.post(f"{layer}/predictions", json={"id": 9, "prediction": 10.0}).json()
            assert (served["adjusted"], served["stored"]) == (11.0, False)
            label = client.post(f"{layer}/labels", json={"id": 1, "label": 12.0})
            assert (label.status_code, label.json()["code"]) == (503, "store_unavailable")
            for method, path, body in (
                ("PUT", "/v1/layers/new", {"kind": "debias"}),
                ("DELETE", layer, None),
                ("POST", f"{layer}/control", {"do": "freeze"}),
            ):
                refused = client.request(method, path, json=body)
                assert refused.status_code == 503
                assert refused.json()["remedy"] == "send it to a server that writes"
            assert client.get("/readyz").status_code == 503
        assert server.client.get(layer).json()["served"] == 1


def test_what_was_begun_is_answered_and_committed_at_the_end(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    with running(tmp_path / "store.db") as server:
        layer = server.layer("demand", eta=0.5)
        clients = [server.as_key(server.key) for _ in range(8)]

        def send(client: httpx.Client, k: int) -> None:
            items = [{"id": f"{k}-{j}", "prediction": 1.0} for j in range(200)]
            answers.append(client.post(f"{layer}/predictions", json=items))

        threads = [threading.Thread(target=send, args=pair) for pair in zip(clients, range(8), strict=True)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 10
        while not server.service.desk.health.commits and time.monotonic() < until:
            time.sleep(0.001)
        server.service.begin_shutdown()
    for thread in threads:
        thread.join()
    stored = [one for answer in answers for one in answer.json() if answer.status_code == 200]
    assert stored and all(one["status"] == "served" for one in stored)
    with running(tmp_path / "store.db") as server:
        shown = server.client.get(layer).json()
        assert shown["served"] == len(stored) == len({one["id"] for one in stored})


def test_what_waits_when_the_server_ends_is_committed_though_nobody_listens(tmp_path: Path) -> None:
    items = json.dumps([{"id": k, "prediction": 1.0} for k in range(50)])
    with running(tmp_path / "store.db") as server:
        layer = server.layer("demand", eta=0.5)
        driver: Any = server.service.store.driver
        slow = threading.Event()

        def hold() -> None:  # a disk that takes its time
            with driver._turn:
                slow.set()
                time.sleep(0.6)

        holding = threading.Thread(target=hold)
        holding.start()
        slow.wait()
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as caller:  # who leaves at once
            key, size = f"Authorization: Bearer {server.key}", f"Content-Length: {len(items)}"
            head = f"POST {layer}/predictions HTTP/1.1\r\nHost: x\r\n{key}\r\n{size}\r\n\r\n"
            caller.sendall((head + items).encode())
            time.sleep(0.2)
    holding.join()
    with running(tmp_path / "store.db") as server:
        assert server.client.get(layer).json()["served"] == 50
        row = server.service.store.layers()[0]
        assert server.service.store.snapshot(row.number)[0] == row.head.seq == 50


def test_more_than_the_queue_holds_is_sent_away_and_comes_back(tmp_path: Path) -> None:
    with running(tmp_path / "store.db", queue=100) as server:
        layer = server.layer("demand", eta=0.5)
        driver: Any = server.service.store.driver
        answers: list[httpx.Response] = []

        def send(k: int) -> None:
            items = [{"id": f"{k}-{j}", "prediction": 1.0} for j in range(80)]
            answers.append(clients[k].post(f"{layer}/predictions", json=items))

        clients = [server.as_key(server.key) for _ in range(4)]
        threads = [threading.Thread(target=send, args=(k,)) for k in range(4)]
        with driver._turn:  # a disk that takes its time
            for thread in threads:
                thread.start()
            until = time.monotonic() + 10
            while not answers and time.monotonic() < until:
                time.sleep(0.01)
        for thread in threads:
            thread.join()
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses[0] == 200 and statuses[-1] == 429 and set(statuses) == {200, 429}
        busy = next(answer for answer in answers if answer.status_code == 429)
        assert busy.json()["code"] == "busy" and int(busy.headers["retry-after"]) >= 1
        assert server.client.get(layer).json()["served"] == 80 * statuses.count(200)
        for k in range(4):
            send(k)
        assert [answer.status_code for answer in answers[4:]] == [200] * 4
        assert server.client.get(layer).json()["served"] == 320


@pytest.mark.parametrize("atomic", ["maybe", "True", "1"])
def test_a_parameter_that_is_not_known_is_refused(tmp_path: Path, atomic: str) -> None:
    with running(tmp_path / "store.db") as server:
        layer = server.layer("demand")
        for query in ({"atomic": atomic}, {"atom": "true"}):
            answer = server.client.post(f"{layer}/labels", json=[], params=query)
            assert answer.status_code == 400 and answer.json()["remedy"]
        for query in ({"after": "-1"}, {"limit": "x"}, {"limit": "9" * 30}, {"limt": "1"}):
            assert server.client.get(f"{layer}/journal", params=query).status_code == 400


def test_two_servers_on_one_postgresql_are_one_library_layer(postgres: Any) -> None:
    """Calls go to either server; both serve what one layer of the library serves for the same events."""
    url, rng, layer = postgres.address(), random.Random(3), gq.Debiaser(eta=0.2, groups=["g"])
    with running(url) as one, running(url) as two:
        path = one.layer("shared", eta=0.2, groups=["g"])
        clients = [one.client, two.as_key(one.key)]
        two.service.ring.reload()
        waiting: list[int] = []
        for id in range(40):
            f, g = rng.gauss(0.0, 3.0), rng.choice("ab")
            item = {"id": id, "prediction": f, "groups": {"g": g}}
            answer = rng.choice(clients).post(f"{path}/predictions", json=item).json()
            assert answer["adjusted"] == layer.predict(f, groups={"g": g}, id=id)
            waiting.append(id)
            while waiting and rng.random() < 0.6:
                due, y = waiting.pop(rng.randrange(len(waiting))), rng.gauss(1.0, 3.0)
                for client, status in zip(rng.sample(clients, 2), ("applied", "duplicate"), strict=True):
                    told = client.post(f"{path}/labels", json={"id": due, "label": y})
                    assert told.json()["status"] == status
                assert layer.update(y, id=due) == "applied"
        for client in clients:
            assert gq.from_json(client.get(f"{path}/state").text).theta == layer.theta
