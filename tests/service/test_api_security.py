"""What a hostile or broken caller can send: each is refused with one clear answer, and nothing else happens."""

import gzip
import json
import random
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from gradeq.service.auth import ApiKey, KeyRing, hash_key, new_key, read_keys, revoke_key
from gradeq.service.telemetry import TokenBucket
from service.running import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("security")
    with running(folder / "store.db", headers_within=0.5, body_within=0.5) as made:
        made.layer("demand", eta=0.1)
        yield made


PREDICTIONS = "/v1/layers/demand/predictions"
HOSTILE: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "not_json"),
    "no JSON": (b"hello", 400, "not_json"),
    "cut": (b'{"id": 1, "predict', 400, "not_json"),
    "trailing": (b'{"id": 1, "prediction": 1} x', 400, "not_json"),
    "deep list": (b"[" * 100_000, 400, "nested_too_deeply"),
    "deep item": (b'{"prediction": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "nested_too_deeply"),
    "deep enough": (b'{"prediction": ' + b"[" * 40 + b"]" * 40 + b"}", 400, "nested_too_deeply"),
    "long integer": (b'{"id": ' + b"9" * 5_000 + b', "prediction": 1}', 400, "number_too_long"),
    "name twice": (b'{"id": 1, "id": 2, "prediction": 1}', 400, "duplicate_name"),
    "name twice inside": (b'[{"prediction": 1, "groups": {"a": 1, "a": 2}}]', 400, "duplicate_name"),
    "name twice, escaped": (b'{"id": 1, "\\u0069d": 2, "prediction": 1}', 400, "duplicate_name"),
    "lone surrogate": (b'{"id": "\\ud800", "prediction": 1}', 400, "not_text"),
    "lone surrogate later": (b'{"id": "x\\udc00y", "prediction": 1}', 400, "not_text"),
    "not UTF-8": (b'{"id": "\xff", "prediction": 1}', 400, "not_text"),
    "UTF-16": ('{"id": 1}'.encode("utf-16"), 422, ""),
    "a number": (b"7", 400, "not_items"),
    "null": (b"null", 400, "not_items"),
    "too many": (b"[" + b"{}," * 10_000 + b"{}]", 413, "too_many_items"),
    "infinite": (b'{"id": 1, "prediction": 1e400}', 422, ""),
    "not a number": (b'{"id": 1, "prediction": NaN}', 422, ""),
    "long name": (b'{"prediction": 1, "groups": {"' + b"a" * 70_000 + b'": 1}}', 422, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_refused_and_nothing_is_served(server: Running, name: str) -> None:
    body, status, code = HOSTILE[name]
    answer = server.client.post(PREDICTIONS, content=body)
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert told.get("code", "") == code
    assert told["detail"] and told["remedy"] and len(answer.content) < 1_000
    assert server.client.get("/v1/layers/demand").json()["served"] == 0


def test_random_bytes_are_never_our_fault(server: Running) -> None:
    rng, path = random.Random(13), server.layer("fuzzed", tickets="signed") + "/predictions"
    good = json.dumps([{"id": "a:b", "prediction": 1.5, "groups": {"g": None}}] * 3).encode()
    for _ in range(200):
        body = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(body))
            body[place : place + rng.randrange(3)] = rng.choice(
                [b"", b'"', b"{", b"\\", b"\x00", b"\xf0", b"9" * 30, b"-", b"e9", b":", b"\\ud83d"]
            )
        answer = server.client.post(path, content=bytes(body))
        assert answer.status_code < 500, (bytes(body), answer.text)


def test_a_large_body_is_refused_and_never_kept(server: Running) -> None:
    headers = {"Content-Length": str(10**12)}
    answer = spoken(server, "POST", PREDICTIONS, headers, b"")
    assert b" 413 " in answer and b"body_too_large" in answer

    def endless() -> Iterator[bytes]:
        for _ in range(300):
            yield b" " * 10_000

    told = server.client.post(PREDICTIONS, content=endless())
    assert (told.status_code, told.json()["code"]) == (413, "body_too_large")
    packed = server.client.post(
        PREDICTIONS, content=gzip.compress(b" " * 10**7), headers={"Content-Encoding": "gzip"}
    )
    assert (packed.status_code, packed.json()["code"]) == (415, "compressed")


def test_a_thousand_items_fit(server: Running) -> None:
    layer = server.layer("wide", groups=["region", "product"])
    names = {"region": "n" * 100, "product": "p" * 100}
    items = [{"id": f"{k:0>200}", "prediction": 1.23456789, "groups": names} for k in range(1_000)]
    answers = server.client.post(f"{layer}/predictions", json=items).json()
    assert [one["status"] for one in answers] == ["served"] * 1_000


def test_callers_that_dribble_are_closed(server: Running) -> None:
    host, port = server.address.removeprefix("http://").split(":")
    began = time.monotonic()
    with socket.create_connection((host, int(port))) as silent, socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        for one in (silent, slow):
            one.settimeout(10)
            assert one.recv(100) == b""
    assert time.monotonic() - began < 5
    head = {"Content-Length": "100"}
    assert b"too_slow" in spoken(server, "POST", PREDICTIONS, head, b"[")
    with socket.create_connection((host, int(port))) as endless:
        endless.settimeout(10)
        endless.sendall(b"GET /healthz HTTP/1.1\r\n")
        with pytest.raises(OSError):
            for k in range(100_000):
                endless.sendall(b"X-%d: %s\r\n" % (k, b"a" * 1_000))
    with socket.create_connection((host, int(port))) as again:  # a second request on one connection
        again.settimeout(10)
        again.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in again.recv(4_000)
        again.sendall(b"GET /heal")
        assert again.recv(4_000) == b""
    assert server.client.get("/healthz").status_code == 200


NAMES = [
    "../../etc/passwd",
    "..",
    "/etc/passwd",
    "a/../b",
    "C:\\x",
    "a\x00b",
    "\n",
    "x" * 101,
    "%2e%2e",
    "~root",
    "é",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_never_places(server: Running, name: str) -> None:
    from urllib.parse import quote

    before = sorted(Path(server.service.store.driver.path).parent.iterdir())
    answer = server.client.put(f"/v1/layers/{quote(name, safe='')}", json={"kind": "debias"})
    assert answer.status_code in (404, 422)
    assert answer.json()["code"] in ("bad_name", "no_such_path")
    assert sorted(Path(server.service.store.driver.path).parent.iterdir()) == before


def test_no_other_site_is_let_in(server: Running) -> None:
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (
        httpx.options(f"{server.address}{PREDICTIONS}", headers=origin),
        server.client.get("/v1/layers", headers=origin),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers and answer.headers["cache-control"] == "no-store"


# Keys


def test_only_the_whole_key_opens(server: Running) -> None:
    text = server.key
    for bad in ("x", text[:-1], text + "a", text[:-1] + ("a" if text[-1] != "a" else "b"), text.upper(),
                "gq_" + "a" * 8 + text[11:], "é" * 55, "Bearer " + text):  # fmt: skip
        answer = httpx.get(f"{server.address}/v1/layers", headers={"Authorization": f"Bearer {bad}".encode()})
        assert (answer.status_code, answer.json()["code"]) == (401, "no_key")
        assert answer.headers["www-authenticate"] == "Bearer"
    for way in (f"/v1/layers?key={text}", f"/v1/layers?access_token={text}"):
        assert httpx.get(server.address + way).status_code == 401
    basic = {"Authorization": f"Basic {text}"}
    assert httpx.get(f"{server.address}/v1/layers", headers=basic).status_code == 401
    assert server.as_key(text).get("/v1/layers").status_code == 200


CALLS = [
    ("PUT", "/v1/layers/scoped", {"kind": "debias"}, "admin"),
    ("POST", "/v1/layers/demand/predictions", [], "predict"),
    ("POST", "/v1/layers/demand/labels", [], "label"),
    ("POST", "/v1/layers/demand/control", {"do": "resume"}, "admin"),
    ("GET", "/v1/layers/demand/state", None, "admin"),
    ("GET", "/v1/layers/demand/journal", None, "admin"),
    ("GET", "/v1/layers/demand/equilibrium", None, None),
    ("GET", "/v1/layers/demand", None, None),
    ("GET", "/v1/layers", None, None),
    ("DELETE", "/v1/layers/scoped", None, "admin"),
]


def test_each_scope_opens_its_own_calls_and_no_others(server: Running) -> None:
    for scope in ("predict", "label", "admin"):
        client = server.as_key(server.new_key(scopes=[scope]))
        for method, path, body, needed in CALLS:
            answer = client.request(method, path, json=body)
            if needed is None or needed == scope:
                assert answer.status_code < 300, (scope, method, path, answer.text)
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, "wrong_scope")
    for method, path, body, _ in CALLS:
        assert httpx.request(method, server.address + path, json=body).status_code == 401


def test_a_key_that_was_replaced_works_until_its_end(server: Running) -> None:
    text = server.new_key()
    number = read_keys(server.service.store)[-1].number
    client = server.as_key(text)
    revoke_key(server.service.store, number, time.time() + 3600)
    server.service.ring.reload()
    assert client.get("/v1/layers").status_code == 200
    revoke_key(server.service.store, number, time.time())
    revoke_key(server.service.store, number, time.time() + 3600)  # an end is not put off
    server.service.ring.reload()
    assert client.get("/v1/layers").status_code == 401


def test_a_server_hears_of_a_revoked_key_by_itself(server: Running) -> None:
    client = server.as_key(server.new_key())
    assert client.get("/v1/layers").status_code == 200
    revoke_key(server.service.store, read_keys(server.service.store)[-1].number, time.time())
    until = time.monotonic() + 10
    while client.get("/v1/layers").status_code == 200:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_stored_key_does_not_open_anything() -> None:
    text, key = new_key("default", "", ["admin"])
    ring = KeyRing(lambda: [replace(key, number=1)])
    assert ring.find(text) is not None
    assert ring.find(key.hash) is None and ring.find(f"gq_{key.prefix}_{key.hash[:43]}") is None
    assert key.hash == hash_key(text) and text not in repr(key)
    twin = ApiKey(2, "other", "", key.prefix, hash_key("x"), key.scopes, 0.0, None)
    assert KeyRing(lambda: [twin]).find(text) is None


def test_a_bucket_gives_its_rate_and_no_more() -> None:
    now = [0.0]
    rng, bucket, given = random.Random(5), TokenBucket(10.0, 20.0, lambda: now[0]), 0
    for _ in range(10_000):
        now[0] += rng.expovariate(50.0)
        tokens = rng.choice([1, 3, 50])
        wait = bucket.take(tokens)
        given += min(tokens, 20) if not wait else 0
        if wait:
            now[0] += wait
            assert bucket.take(tokens) == 0.0
            given += min(tokens, 20)
        assert given <= 20.0 + 10.0 * now[0] + 0.02
    assert given > 9.0 * now[0]


def test_the_rate_of_one_key_is_not_that_of_another(tmp_path: Path) -> None:
    with running(tmp_path / "store.db", rate=0.001, burst=12) as server:
        layer = server.layer("demand")
        items = [{"prediction": 1.0}] * 10
        assert server.client.post(f"{layer}/predictions", json=items).status_code == 200
        refused = server.client.post(f"{layer}/predictions", json=items)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_calls")
        assert int(refused.headers["retry-after"]) >= 1
        other = server.as_key(server.new_key())
        assert other.post(f"{layer}/predictions", json=items).status_code == 200
        assert other.get(layer).json()["served"] == 20


# Tenants


def test_tenants_share_nothing(tmp_path: Path) -> None:
    """Two tenants with the same names and ids get what each would get alone."""
    rng = random.Random(7)
    made = [("PUT", f"/v1/layers/{name}", {"kind": "debias", "eta": 0.1, "groups": ["g"]}) for name in "ab"]
    calls = [*made, *made, *[random_call(rng) for _ in range(50)]]
    whose = ["acme"] * 2 + ["umbrella"] * 2 + [rng.choice(["acme", "umbrella"]) for _ in calls[4:]]
    with running(tmp_path / "both.db") as server:
        clients = {tenant: server.as_key(server.new_key(tenant)) for tenant in ("acme", "umbrella")}
        together = [said(clients[t], call) for t, call in zip(whose, calls, strict=True)]
        for word in ("served", "applied", "duplicate", "conflict"):
            assert len({t for t, (_, told) in zip(whose, together, strict=True) if word in str(told)}) == 2
        stranger = server.as_key(server.new_key("third"))
        assert stranger.get("/v1/layers").json() == []
        assert stranger.get("/v1/layers/a").status_code == 404
        assert "layer=" not in stranger.get("/metrics").text
    for tenant in ("acme", "umbrella"):
        with running(tmp_path / f"{tenant}.db") as server:
            client = server.as_key(server.new_key(tenant))
            own = [k for k, t in enumerate(whose) if t == tenant]
            assert [said(client, calls[k]) for k in own] == [together[k] for k in own]


def random_call(rng: random.Random) -> tuple[str, str, Any]:
    name, ids = rng.choice("ab"), [rng.randrange(12) for _ in range(rng.randrange(1, 8))]
    what = rng.random()
    if what < 0.1:
        return "PUT", f"/v1/layers/{name}", {"kind": "debias", "eta": 0.1, "groups": ["g"]}
    if what < 0.13:
        return "DELETE", f"/v1/layers/{name}", None
    if what < 0.6:
        items: Any = [
            {"id": id, "prediction": float(rng.randrange(3)), "groups": {"g": rng.choice("xy")}} for id in ids
        ]
        return "POST", f"/v1/layers/{name}/predictions", items
    labels = [{"id": id, "label": float(rng.randrange(3)), "correct": rng.random() < 0.3} for id in ids]
    return "POST", f"/v1/layers/{name}/labels", labels


def said(client: httpx.Client, call: tuple[str, str, Any]) -> tuple[int, Any]:
    method, path, body = call
    answer = client.request(method, path, json=body)
    assert answer.status_code < 500
    return answer.status_code, answer.json()


# Names, tickets


def test_groups_beyond_the_limit_are_joined_and_keys_refused(server: Running) -> None:
    layer = server.layer("few", groups=["g"], eta=0.1, max_names=3)
    items = [{"id": k, "prediction": 1.0, "groups": {"g": f"g{k}"}} for k in range(50)]
    answers = server.client.post(f"{layer}/predictions", json=items).json()
    assert {one["status"] for one in answers} == {"served"}
    server.client.post(f"{layer}/labels", json=[{"id": k, "label": 2.0} for k in range(50)])
    assert len(server.client.get(f"{layer}/equilibrium").json()["theta"]) <= 5
    keyed = server.layer("few-keys", keyed=True, eta=0.1, max_names=3)
    items = [{"id": k, "prediction": 1.0, "key": k} for k in range(50)]
    answers = server.client.post(f"{keyed}/predictions", json=items).json()
    assert [one["status"] for one in answers].count("rejected") >= 44
    assert "max_names" in answers[-1]["detail"] + answers[-1]["remedy"]


def test_a_ticket_that_was_changed_is_refused(server: Running) -> None:
    layer = server.layer("signed", tickets="signed", eta=0.1)
    ticket = server.client.post(f"{layer}/predictions", json={"id": 1, "prediction": 1.0}).json()["ticket"]
    other = server.layer("signed-too", tickets="signed", eta=0.1)
    for path, sent in [
        (layer, ticket[:40] + ("A" if ticket[40] != "A" else "B") + ticket[41:]),
        (layer, ticket[:-4]), (layer, ""), (layer, "x"), (layer, "é"), (layer, "A" * 1_000), (other, ticket),
    ]:  # fmt: skip
        answer = server.client.post(f"{path}/labels", json={"id": 1, "ticket": sent, "label": 2.0})
        assert (answer.status_code, answer.json()["status"]) == (422, "rejected"), sent
    wrong = server.client.post(f"{layer}/labels", json={"id": 2, "ticket": ticket, "label": 2.0})
    assert wrong.status_code == 422
    good = server.client.post(f"{layer}/labels", json={"id": 1, "ticket": ticket, "label": 2.0})
    assert good.json()["status"] == "applied"
    assert server.client.get(layer).json()["labelled"] == 1


def spoken(server: Running, method: str, path: str, headers: Any, body: bytes) -> bytes:
    """A request as raw bytes, and what comes back."""
    host, port = server.address.removeprefix("http://").split(":")
    lines = {"Host": host, "Authorization": f"Bearer {server.key}", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    with socket.create_connection((host, int(port))) as connection:
        connection.settimeout(10)
        connection.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        found = b""
        while piece := connection.recv(65_536):
            found += piece
        return found
