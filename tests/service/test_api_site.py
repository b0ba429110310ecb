"""Health, metrics, the OpenAPI document, logs and the command line of the service."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gradeq.service.app import ENDPOINTS
from gradeq.service.audit import AuditResult
from gradeq.service.maintenance import AuditWatch
from service.running import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("site") / "store.db") as made:
        yield made


def test_health_is_told_without_a_key(server: Running) -> None:
    assert httpx.get(f"{server.address}/healthz").json()["status"] == "ok"
    ready = httpx.get(f"{server.address}/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)


def test_a_server_is_ready_while_it_names_the_layers_that_were_stopped(tmp_path: Path) -> None:
    with running(tmp_path / "store.db") as made:
        path, other = made.layer("halted"), made.as_key(made.new_key("elsewhere"))
        other.put("/v1/layers/theirs", json={"kind": "debias"})
        made.layer("sound")
        assert made.client.get("/readyz").json()["stopped_layers"] == []
        desk = made.service.desk
        watch = AuditWatch(desk)
        for row in desk.store.layers():
            if row.name != "sound":
                watch._record(row, AuditResult(row.tenant, row.name, faults=["sums differ"]))
        desk.copy("default", "sound").result()  # the desk has done all that came before
        label = made.client.post(f"{path}/labels", json={"id": 1, "label": 1.0})
        public = httpx.get(f"{made.address}/readyz")
        assert (label.status_code, public.status_code) == (409, 200)
        assert public.json() | {"waiting": 0} == {
            "ready": True, "why": "", "waiting": 0, "layers": 3, "stopped": 2,
        }  # fmt: skip
        assert made.client.get("/readyz").json()["stopped_layers"] == ["halted"]
        assert other.get("/readyz").json()["stopped_layers"] == ["theirs"]


def test_a_body_is_json_whatever_its_type_and_the_document_says_so(server: Running) -> None:
    path = server.layer("typed")
    send = {"content": b'{"id": 1, "prediction": 1.0}', "headers": {"Content-Type": "text/plain"}}
    assert server.client.post(f"{path}/predictions", **send).json()["status"] == "served"
    document = server.client.get("/openapi.json").json()
    refused = document["paths"]["/v1/layers/{name}/predictions"]["post"]["responses"]["415"]
    assert "Content-Type is ignored" in refused["description"]


def test_ends_in_another_order_are_sorted(server: Running) -> None:
    for name, settings in (
        ("ends", {"kind": "interval", "coverage": 0.8}),
        ("levels", {"kind": "quantiles", "levels": [0.1, 0.9]}),
    ):
        path = server.layer(name, **settings)
        served = server.client.post(f"{path}/predictions", json={"prediction": [5.0, 1.0]}).json()
        assert served["adjusted"] == [1.0, 5.0]


def test_metrics_are_well_formed_and_hold_layers_only_with_a_key(server: Running) -> None:
    layer = server.layer("metered", groups=["g"])
    text = "=\u2028=\n<b>"
    item = {"id": text, "prediction": 1.0, "groups": {"g": text}}
    server.client.post(f"{layer}/predictions", json=item)
    server.client.post(f"{layer}/labels", json=[{"id": text, "label": 2.0}, {"id": 5, "label": 1}])
    line = re.compile(r'[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? ([0-9.e+-]+|\+Inf|NaN)')
    public = httpx.get(f"{server.address}/metrics").text
    own = server.client.get("/metrics").text
    for page in (public, own):
        for one in page.splitlines():
            assert one.startswith("# ") or line.fullmatch(one), one
        assert "<b>" not in page and "\u2028" not in page
    assert "metered" not in public
    assert 'gradeq_layer_served_total{layer="metered"} 1' in own
    assert 'gradeq_items_total{kind="label",status="applied"} 1' in own
    assert 'gradeq_items_total{kind="label",status="unknown"} 1' in own
    counts = re.findall(r'_bucket{route="/healthz",le="[^"]+"} (\d+)', own)
    assert counts == sorted(counts, key=int)


def test_every_endpoint_is_in_the_document_with_its_answers(server: Running) -> None:
    document = httpx.get(f"{server.address}/openapi.json").json()
    for endpoint in ENDPOINTS:
        if endpoint.documented:
            own = document["paths"][endpoint.path][endpoint.method.lower()]
            stated = {int(status) for status in own["responses"]}
            assert stated == {405, *endpoint.responses, *endpoint.problems}
            assert (endpoint.scope is not None) == ("security" in own)
    item = document["components"]["schemas"]["Prediction"]
    assert item["additionalProperties"] is False and "prediction" in item["properties"]


def test_logs_are_json_lines_that_hold_no_key_and_no_control_character(server: Running) -> None:
    server.client.get(f"/v1/layers/{server.key}")
    server.client.get("/v1/layers/a%0Ab%1B%5B31mred%7F%00")
    httpx.get(f"{server.address}/v1/layers?key={server.key}", headers={"X-Key": server.key})
    httpx.get(f"{server.address}/v1/layers", headers={"Authorization": f"Basic {server.key}"})
    text = server.log_text
    assert server.key not in text and server.key[12:] not in text
    assert all(character.isprintable() or character == "\n" for character in text)
    paths = [one["path"] for one in server.logged if one["event"] == "request"]
    assert "/v1/layers/a\nb\x1b[31mred\x7f\x00" in paths


def test_a_browser_signs_in_with_a_cookie_that_only_looks(server: Running) -> None:
    server.layer("seen")
    with httpx.Client(base_url=server.address, trust_env=False) as browser:
        assert browser.get("/v1/layers").status_code == 401
        assert browser.post("/session", json={"key": "gq_aaaaaaaa_" + "a" * 43}).status_code == 401
        other = {"Sec-Fetch-Site": "cross-site"}
        assert browser.post("/session", json={"key": server.key}, headers=other).status_code == 403
        made = browser.post("/session", json={"key": server.key})
        assert made.status_code == 200
        cookie = made.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and server.key[12:] not in cookie
        assert browser.get("/v1/layers/seen").status_code == 200
        assert browser.put("/v1/layers/x", json={"kind": "debias"}).status_code == 401
        assert browser.delete("/v1/layers/seen").status_code == 401
        assert browser.get("/v1/layers/seen/state").status_code == 401
        name, value = next(iter(browser.cookies.items()))
        number, end, sign = value.split(".")
        for forged in (f"{number}.{int(end) + 1}.{sign}", f"2.{end}.{sign}", "", "x", f"..{sign}"):
            browser.cookies.set(name, forged, domain="127.0.0.1")
            answer = httpx.get(f"{server.address}/v1/layers", headers={"Cookie": f"{name}={forged}"})
            assert answer.status_code == 401


def test_serve_prints_address_key_and_a_line_and_ends_well(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gradeq", "serve", "--port", str(port)]
    place = tmp_path / "gradeq.db"
    process = subprocess.Popen(
        [*command, "--store", str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert process.poll() is None
        told = "".join(lines)
        key = re.search(r"GRADEQ_KEY=(gq_\S+)", told)
        address = f"http://127.0.0.1:{port}"
        assert key and f"gradeq serves {address}" in told and f"curl -X PUT {address}/v1/layers/demand" in told
        body = re.search(r"--json '(.*)'", told)
        headers = {"Authorization": f"Bearer {key[1]}"}
        assert body
        for _ in range(100):
            try:
                made = httpx.put(f"{address}/v1/layers/demand", json=json.loads(body[1]), headers=headers)
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        assert made.json() == {"layer": "demand", "created": True}
        other = keys(place, "create", "--scope", "predict").strip()
        time.sleep(2.1)
        item = {"id": 1, "prediction": 1.0, "groups": {"region": "n"}}
        sent = {"headers": {"Authorization": f"Bearer {other}"}}
        path = f"{address}/v1/layers/demand"
        assert httpx.post(f"{path}/predictions", json=item, **sent).status_code == 200
        assert httpx.post(f"{path}/labels", json={"id": 1, "label": 2}, **sent).status_code == 403
        second = subprocess.run(
            [*command[:-1], "0", "--store", str(place)], capture_output=True, text=True, timeout=60
        )
        assert second.returncode == 2 and second.stderr.count("\n") == 1 and "server" in second.stderr
        third = subprocess.run(
            [*command, "--store", str(tmp_path / "other.db")], capture_output=True, text=True, timeout=60
        )
        assert third.returncode == 2 and "--port" in third.stderr and third.stderr.count("\n") == 1
        assert not (tmp_path / "other.db").exists()
    finally:
        process.terminate()
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert key[1] not in log
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events[0] == "started" and events[-1] == "stopped"


def test_no_key_no_listening_elsewhere(tmp_path: Path) -> None:
    place = str(tmp_path / "gradeq.db")
    command = [sys.executable, "-m", "gradeq", "serve", "--host", "0.0.0.0", "--port", "0", "--store", place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "gradeq keys create" in done.stderr


def test_keys_are_made_listed_rotated_and_revoked(tmp_path: Path) -> None:
    place = tmp_path / "store.db"
    first = keys(place, "create", "--name", "scoring", "--scope", "predict", "--tenant", "acme").strip()
    prefix = first.split("_")[1]
    assert re.fullmatch(r"gq_[a-z2-7]{8}_[A-Za-z0-9_-]{43}", first)
    listed = keys(place, "list")
    assert "scoring" in listed and prefix in listed and first not in listed and first[12:] not in listed
    assert first.encode() not in place.read_bytes() and first[12:].encode() not in place.read_bytes()
    second = keys(place, "rotate", prefix, "--overlap", "1h").strip()
    listed = keys(place, "list").splitlines()
    assert "active until" in listed[0] and "active" in listed[1] and "acme  predict" in listed[1]
    assert "is revoked" in keys(place, "revoke", second.split("_")[1])
    assert "revoked" in keys(place, "list").splitlines()[1]
    bad = subprocess.run(
        [sys.executable, "-m", "gradeq", "keys", "revoke", "zzzzzzzz", "--store", str(place)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert bad.returncode == 2 and "gradeq keys list" in bad.stderr and bad.stderr.count("\n") == 1


def keys(place: Path, *words: str) -> str:
    """What a command about keys prints."""
    command = [sys.executable, "-m", "gradeq", "keys", *words, "--store", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
