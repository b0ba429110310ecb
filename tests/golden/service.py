"""Every call of the service, to a server of its own: statuses, figures and the tables of the commands on its store.

What is of the moment is left out: times, random marks, signatures, versions. Text is wording: its numbers are kept.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

import gradeq as gq
from golden.commands import called
from golden.lives import certificate
from golden.streams import PLAYERS, Chance
from golden.trees import numbers, plain

FAMILY = "service"
OF_THE_MOMENT = {
    "at", "created", "now", "oldest", "last_label", "audited", "about", "ticket", "version", "versions", "command",
    "delays", "ready_at", "began", "behind", "made", "flight", "sha256", "store",
}  # fmt: skip
LAYERS = {
    "one": {"kind": "debias", "eta": 0.1},
    "auto": {"kind": "debias"},
    "groups": {"kind": "debias", "eta": 0.1, "groups": ["g", "h"]},
    "auto groups": {"kind": "debias", "groups": ["g"]},
    "features": {"kind": "debias", "eta": 0.05, "features": ["x"]},
    "binary": {"kind": "debias", "outcome": "binary", "groups": ["g"]},
    "binary eta": {"kind": "debias", "outcome": "binary", "eta": 0.2, "clip": 0.05, "maturity": 0},
    "shift": {"kind": "debias", "outcome": "binary", "link": "shift", "eta": 0.05},
    "exp": {"kind": "debias", "link": "exp", "eta": 0.05},
    "bins": {"kind": "debias", "eta": 0.1, "bins": [9, 12], "shadow": True},
    "decay": {"kind": "debias", "eta": 0.5, "decay": 0.6},
    "ridge": {"kind": "debias", "eta": 0.1, "groups": ["g"], "penalty": "ridge", "strength": 0.01},
    "limits": {"kind": "debias", "eta": 0.3, "support": [0, 14], "in_flight": 3, "late_cap": 0.05},
    "signed": {"kind": "debias", "eta": 0.2, "tickets": "signed"},
    "quantile": {"kind": "quantile", "level": 0.9},
    "linear": {"kind": "quantile", "level": 0.9, "eta": 0.2, "link": "linear", "groups": ["g"]},
    "levels": {"kind": "quantiles", "levels": [0.1, 0.5, 0.9], "eta": 0.1},
    "interval": {"kind": "interval", "coverage": 0.8},
    "conformal": {"kind": "conformal", "score": "absolute", "coverage": 0.8, "eta": 0.1},
    "ensemble": {"kind": "ensemble", "level": 0.9, "etas": [0.05, 0.2], "ensemble_eta": 0.1},
    "keyed": {"kind": "debias", "eta": 0.1, "keyed": True},
    "pooled": {"kind": "interval", "coverage": 0.8, "keyed": True, "pool": True},
    "elo": {"kind": "elo", "home_advantage": True},
    "elo k": {"kind": "elo", "k": 16, "ties": "drop"},
}


def of_any_time(tree):
    """A tree without what is of the moment."""
    if isinstance(tree, dict):
        return {name: of_any_time(own) for name, own in tree.items() if name not in OF_THE_MOMENT}
    if isinstance(tree, list):
        return [of_any_time(own) for own in tree]
    if isinstance(tree, str):
        tree = re.sub(r"gq-[0-9a-f]{16}", "(made)", tree)
        return re.sub(r"\d{1,2} [A-Z][a-z]+ 20\d\d|http://127\S*|k?gq_\w+", "", tree)
    return tree


class Server:
    """``gradeq serve`` in a process of its own, and a client with its first key."""

    def __init__(self, folder):
        words = [sys.executable, "-m", "gradeq", "serve", "--store", str(folder / "store.db"), "--port", "0"]
        self.errors = open(folder / "log.jsonl", "w")  # noqa: SIM115
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=self.errors, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        address = key = ""
        for line in self.process.stdout:
            address = address or "".join(re.findall(r"http://127\.0\.0\.1:\d+", line)[:1])
            key = key or "".join(re.findall(r"gq_\w[\w-]+", line)[:1])
            if line.startswith("Open "):
                break
        headers = {"Authorization": f"Bearer {key}"}
        self.client = httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60)

    def call(self, method, path, body=None, **given):
        """Status and values of an answer."""
        answer = self.client.request(method, path, json=body, **given)
        kind = answer.headers.get("content-type", "")
        found = {"status": answer.status_code}
        if "json" in kind:
            found["body"] = plain(of_any_time(answer.json()))
        return found, answer

    def end(self):
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stdout.close()
        self.errors.close()


def item(chance, spec, id):
    """A prediction for a layer."""
    if spec["kind"] == "elo":
        a = chance.pick(PLAYERS)
        return {"id": id, "a": a, "b": chance.pick([own for own in PLAYERS if own != a]), "home": chance.pick([1, 0])}
    f = chance.random() if spec.get("outcome") == "binary" else 10.0 + 2.0 * chance.normal()
    f = abs(f) + 0.1 if spec.get("link") == "exp" or spec.get("support") else f
    found = {"id": id, "prediction": f}
    if spec["kind"] == "interval":
        found["prediction"] = [f - 1.0, f + 1.0]
    elif spec["kind"] == "quantiles":
        found["prediction"] = [f - 1.0, f, f + 1.0]
    if "groups" in spec:
        found["groups"] = {g: chance.pick(["a", 7, None, True]) for g in spec["groups"]}
    if "features" in spec:
        found["features"] = {"x": chance.normal()}
    if spec.get("keyed"):
        found["key"] = chance.pick(["u", "v"])
    if chance.random() < 0.3 and spec["kind"] != "elo":
        found["weight"] = 2.0
    return found


def label(chance, spec):
    if spec["kind"] == "elo":
        return chance.pick([0.0, 0.5, 1.0])
    if spec.get("outcome") == "binary":
        return float(chance.random() < 0.6)
    return min(14.0, max(0.5, 11.0 + 2.0 * chance.normal()))


def lived(server, name):
    """A layer through a stream of batches; labels late, in another order, twice, corrected, never."""
    spec, chance, told = LAYERS[name], Chance(name), {}
    path = f"/v1/layers/{name.replace(' ', '-')}"
    told["made"] = server.call("PUT", path, spec)[0]
    waiting, k = [], 0
    for batch, count in enumerate((1, 8, 20, 5, 12)):
        items = [item(chance, spec, f"row {k + j}") for j in range(count)]
        k += count
        told[f"predictions {batch}"], answer = server.call("POST", f"{path}/predictions", items)
        tickets = {own["id"]: own.get("ticket") for own in answer.json()}
        waiting += [(own["id"], label(chance, spec), tickets[own["id"]]) for own in items]
        chance.shuffle(waiting)
        due, waiting = waiting[: len(waiting) * 2 // 3], waiting[len(waiting) * 2 // 3 :]
        labels = [{"label": y, **({"ticket": ticket} if ticket else {"id": id})} for id, y, ticket in due]
        if labels:
            told[f"labels {batch}"] = server.call("POST", f"{path}/labels", labels + labels[:1])[0]
    again = {**labels[0], "label": label(chance, spec)}
    told["conflict"] = server.call("POST", f"{path}/labels", again)[0]
    told["corrected"] = server.call("POST", f"{path}/labels", {**again, "correct": True})[0]
    if "eta" in spec and name != "decay":
        told["set_step"] = server.call("POST", f"{path}/control", {"do": "set_step", "eta": 0.07})[0]
    for what in ("", "/equilibrium", "/overview"):
        told[what or "layer"] = server.call("GET", path + what)[0]
    for of_time in ("notices", "light"):  # some are about labels that are overdue
        told["/overview"]["body"].pop(of_time)
    told["journal"] = server.call("GET", f"{path}/journal?after=60&limit=12")[0]
    state = server.call("GET", f"{path}/state")[1]
    told["state"] = certificate(gq.from_json(state.text))
    return told


def site(server):
    """The calls that are about no layer, or about the life of one."""
    told = {}
    layer = "/v1/layers/life"

    def call(name, method, path, body=None, **given):
        told[name], answer = server.call(method, path, body, **given)
        return answer

    for path in ("/healthz", "/readyz", "/", "/openapi.json", "/no/such/path"):
        answer = call(path, "GET", path)
        if path == "/openapi.json":
            told[path] = {where: sorted(own) for where, own in answer.json()["paths"].items()}
    call("none yet", "GET", layer)
    call("bad settings", "PUT", layer, {"kind": "debias", "eta": -1})
    call("made", "PUT", layer, {"kind": "debias", "eta": 0.5, "groups": ["region"], "ttl": 3600})
    call("made again", "PUT", layer, {"kind": "debias", "eta": 0.5, "groups": ["region"], "ttl": 3600})
    call("made otherwise", "PUT", layer, {"kind": "debias", "eta": 0.25})
    one = {"id": 17, "prediction": 42.0, "groups": {"region": "north"}}
    call("prediction", "POST", f"{layer}/predictions", one)
    call("prediction twice", "POST", f"{layer}/predictions", one)
    call("prediction otherwise", "POST", f"{layer}/predictions", {**one, "prediction": 43.0})
    call("no id", "POST", f"{layer}/predictions", {"prediction": 1.0, "groups": {"region": "south"}})
    call("bad item", "POST", f"{layer}/predictions", [{**one, "id": 18}, {"id": 19, "prediction": "x"}])
    call(
        "atomic", "POST", f"{layer}/predictions?atomic=true", [{**one, "id": 20}, {**one, "id": 17, "prediction": 1}]
    )
    call("label", "POST", f"{layer}/labels", {"id": 17, "label": 45.0})
    call("label unknown", "POST", f"{layer}/labels", {"id": "17", "label": 45.0})
    call("freeze", "POST", f"{layer}/control", {"do": "freeze"})
    call("frozen", "POST", f"{layer}/labels", {"id": 18, "label": 40.0})
    call("resume", "POST", f"{layer}/control", {"do": "resume"})
    call("reset", "POST", f"{layer}/control", {"do": "reset_in_flight"})
    call("bad control", "POST", f"{layer}/control", {"do": "dance"})
    call("audit", "POST", f"{layer}/audit", {"receipts": [["ticket", 17, 1], ["posting", 17, 99]]})
    call("equilibrium", "GET", f"{layer}/equilibrium")
    call("layers", "GET", "/v1/layers")
    with server.client.stream("GET", f"{layer}/events") as stream:
        event = next(line for line in stream.iter_lines() if line.startswith("data:"))
        said = json.loads(event[5:])
        told["event"] = plain(of_any_time({k: v for k, v in said.items() if k not in ("notices", "light")}))
    metrics = server.client.get("/metrics").text.splitlines()
    own = [line for line in metrics if line.startswith(("gradeq_layer_", "gradeq_items_total", "gradeq_layers"))]
    told["metrics"] = {
        line.rpartition(" ")[0]: numbers(line.rpartition(" ")[2]) for line in own if "seconds" not in line
    }
    state = server.client.get(f"{layer}/state").text
    call(
        "begun from a state",
        "PUT",
        "/v1/layers/heir",
        {"kind": "debias", "eta": 0.5, "groups": ["region"], "state": json.loads(state)},
    )
    call("heir", "POST", "/v1/layers/heir/predictions", {**one, "id": 99})
    prefix = server.client.headers["Authorization"].split("gq_")[1].split("_")[0]
    call("undo", "POST", f"{layer}/undo", {"key": prefix})
    del told["undo"]["body"]["key"]
    call("after undo", "GET", f"{layer}/equilibrium")
    call("no key", "GET", layer, headers={"Authorization": ""})
    call("wrong session", "POST", "/session", {"key": "wrong"})
    call("no session", "DELETE", "/session")
    call("removed", "DELETE", layer)
    call("gone", "GET", layer)
    return told


def without_marks(text):
    """Text without keys, their prefixes, and dates."""
    return re.sub(r"gq_\S+|\b(?=\w*[a-z])(?=\w*\d)\w{8}\b|20\d\d-\d\d-\d\d(T\S+)?( \d\d:\d\d)?", "", text)


def by_key(key):
    """Undo what a key sent, then make another key and take it away."""
    told = {}

    def call(name, *words):
        code, out, err = called(words)
        told[name] = {"code": code, "printed": numbers(without_marks(out)), "stderr": numbers(without_marks(err))}
        return out

    call("undo", "store", "undo", "copy.db", "--key", key)
    call("audit undone", "audit", "copy.db")
    made = call("made", "keys", "create", "--store", "copy.db", "--name", "labels", "--scope", "label")
    prefix = re.search(r"gq_([^_]+)_", made)[1]
    call("rotated", "keys", "rotate", prefix, "--store", "copy.db", "--overlap", "24h")
    call("revoked", "keys", "revoke", prefix, "--store", "copy.db")
    call("revoked again", "keys", "revoke", prefix, "--store", "copy.db")
    call("revoked unknown", "keys", "revoke", "nothing", "--store", "copy.db")
    return told


def stores(folder, key):
    """The commands on the store of a server that ended: what they print, in numbers."""
    db, told = str(folder / "store.db"), {}
    calls = {
        "audit": ["audit", db],
        "audit json": ["audit", db, "--json"],
        "backup": ["store", "backup", db, "copy.db"],
        "export": ["store", "export", "copy.db", "groups", "-o", "groups.json"],
        "audit state": ["audit", "groups.json", "--json"],
        "import": ["store", "import", "groups.json", "copy.db", "--name", "again"],
        "rebuild": ["store", "rebuild", "copy.db", "rebuilt.db"],
        "fold": ["store", "fold", "copy.db", "--keep", "1"],
        "audit rebuilt": ["audit", "rebuilt.db"],
        "no such layer": ["store", "export", "copy.db", "nothing", "-o", "x.json"],
        "migrate": ["store", "migrate", "copy.db", "migrated.db"],
        "accept": ["store", "accept", "copy.db", "groups"],
        "key": ["keys", "create", "--store", "copy.db", "--name", "scoring", "--scope", "predict"],
        "keys": ["keys", "list", "--store", "copy.db"],
    }
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, words in calls.items():
            code, out, err = called(words)
            own = plain(of_any_time(json.loads(out))) if "--json" in words else numbers(without_marks(out))
            told[name] = {"code": code, "printed": own, "stderr": numbers(err)}
        told["state"] = certificate(gq.load("groups.json"))
        told |= by_key(key)
        return told
    finally:
        os.chdir(before)


def cases():
    return {FAMILY: {**{name: None for name in LAYERS}, "site": None, "stores": None}}


def trees(family, names):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            found = {name: lived(server, name) for name in LAYERS if name in names or "stores" in names}
            if "site" in names:
                found["site"] = site(server)
            key = server.client.headers["Authorization"].split("gq_")[1].split("_")[0]
        finally:
            server.end()
        if "stores" in names:
            found["stores"] = stores(Path(folder), key)
    for name in names:
        yield name, found[name]
