"""make bench-service: the service over loopback beside a bare endpoint and raw transactions, in one run.

python -m benchmarks.service

This process sends the load, from requests that are made beforehand; each server is a process of its own. Both write
to the same disk with the same durability, in turns; the best of some rounds counts. Times depend on the machine
and on what else it does; ratios less so, and the CPU time of the server least.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.service_bare import commits, raw_batches
from benchmarks.service_load import Load, ask, cpu, free_port, load, megabytes, request, server

ROUNDS, CALLERS = 3, 32
SINGLES, BATCH, BATCHES = 2_000, 1_000, 30
GROUPS, EARLY, MEMORY_SECONDS = 1_000_000, 200_000, 180.0  # caches and rings are full by EARLY
WIDTH = 54


class Line(NamedTuple):
    """One line of the table: what was measured, and the goal for it."""

    name: str
    value: str
    goal: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = "" if self.met is None else f"  goal {self.goal}: {'met' if self.met else 'MISSED'}"
        return f"{self.name:<{WIDTH}}{self.value}{verdict}"


class Service:
    """A running `gradeq serve`, and requests for it; every prediction has an id of its own."""

    def __init__(self, port: int, key: str, pid: int) -> None:
        self.port, self.key, self.pid = port, key, pid
        self.made = 0

    def layer(self, name: str, **settings: object) -> None:
        """Make a layer."""
        body = json.dumps({"kind": "debias", "eta": 0.05, "groups": ["g"], **settings})
        ask(self.port, request(f"/v1/layers/{name}", body.encode(), self.key, "PUT"))

    def events(self, count: int, groups: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """New predictions, and their labels."""
        numbers = range(self.made, self.made + count)
        self.made += count
        predictions = [
            {"id": f"order-{k}", "prediction": k % 97 / 8, "groups": {"g": f"g{k % groups}"}} for k in numbers
        ]
        return predictions, [{"id": f"order-{k}", "label": k % 89 / 8} for k in numbers]

    def audited(self, layer: str) -> bool:
        """Whether the server has audited a layer by itself."""
        told = ask(self.port, request(f"/v1/layers/{layer}/audit", b"{}", self.key))
        return json.loads(told)["audited"] is not None

    def post(self, layer: str, what: str, items: Sequence[object], size: int = 1) -> list[bytes]:
        """Requests with so many items each; alone, an item is an object."""
        bodies = items if size == 1 else [items[k : k + size] for k in range(0, len(items), size)]
        path = f"/v1/layers/{layer}/{what}"
        return [request(path, json.dumps(body).encode(), self.key) for body in bodies]


def singles(service: Service, bare: int) -> Iterator[Line]:
    """One event a request, from many callers at a time."""
    rates: dict[str, list[float]] = {"bare": [], "predictions": [], "labels": [], "signed": []}
    for _ in range(ROUNDS):
        items, labels = service.events(SINGLES, 100)
        plain = [request("/predictions", json.dumps(item).encode()) for item in items]
        rates["bare"].append(load(bare, plain, CALLERS).rate)
        for name, what, own in (("predictions", "predictions", items), ("labels", "labels", labels)):
            rates[name].append(load(service.port, service.post("stored", what, own), CALLERS).rate)
        rates["signed"].append(load(service.port, service.post("signed", "predictions", items), CALLERS).rate)
    best = {name: max(own) for name, own in rates.items()}
    yield Line(f"a bare endpoint, one commit a request, {CALLERS} callers", f"{best['bare']:8,.0f}/s")
    for name in ("predictions", "labels"):
        ratio = best[name] / best["bare"]
        yield Line(f"durable single {name}", f"{best[name]:8,.0f}/s  {ratio:.2f}x", ">= 0.6x", ratio >= 0.6)
    ratio = best["signed"] / best["predictions"]
    yield Line("single predictions with signed tickets", f"{best['signed']:8,.0f}/s  {ratio:.2f}x of stored")


def waits(service: Service, folder: Path) -> Iterator[Line]:
    """How long one prediction takes when it is alone, beside one raw commit."""
    items, _ = service.events(ROUNDS * SINGLES // 4, 100)
    rows = [(str(item["id"]), json.dumps(item).encode()) for item in items]
    sent = service.post("stored", "predictions", items)
    ours: list[float] = []
    raw: list[float] = []
    for start in range(0, len(items), SINGLES // 4):
        part = slice(start, start + SINGLES // 4)
        raw += commits(str(folder / "alone.db"), rows[part], 1)
        ours += load(service.port, sent[part], 1).times
    own, other = (Load(0.0, times).percentile(0.99) * 1e3 for times in (ours, raw))
    yield Line("p99 of one raw commit", f"{other:8.2f} ms")
    yield Line(
        "p99 of one durable prediction, alone", f"{own:8.2f} ms  {own / other:.2f}x", "<= 3x", own <= 3 * other
    )


def batches(service: Service, store: Path, folder: Path) -> Iterator[Line]:
    """Many events a request, beside raw transactions of the very rows that the service wrote."""
    rates: dict[str, list[float]] = {"predictions": [], "labels": [], "signed": [], "raw": []}
    spent: dict[str, list[float]] = {"predictions": [], "labels": []}
    for number in range(ROUNDS):
        items, labels = service.events(BATCH * BATCHES, 100)
        layer = f"batches{number}"
        service.layer(layer)
        for what, own in (("predictions", items), ("labels", labels)):
            sent, before = service.post(layer, what, own, BATCH), cpu(service.pid)
            done = load(service.port, sent, 2, BATCH)
            spent[what].append((cpu(service.pid) - before) / len(own))
            rates[what].append(done.rate * BATCH)
        done = load(service.port, service.post("signed", "predictions", items, BATCH), 2, BATCH)
        rates["signed"].append(done.rate * BATCH)
        rates["raw"].append(raw_batches(store, layer, str(folder / f"raw{number}.db"), BATCH))
    best = {name: max(own) for name, own in rates.items()}
    yield Line("raw transactions of the same 1,000 rows", f"{best['raw']:8,.0f} rows/s")
    for name in ("predictions", "labels"):
        ratio = best[name] / best["raw"]
        met = ratio >= 0.5 and best[name] >= 50_000
        yield Line(
            f"durable {name}, 1,000 a call",
            f"{best[name]:8,.0f}/s  {ratio:.2f}x, {min(spent[name]) * 1e6:.1f} us of CPU each",
            ">= 0.5x and >= 50,000/s",
            met,
        )
    ratio = best["signed"] / best["predictions"]
    yield Line("predictions with signed tickets, 1,000 a call", f"{best['signed']:8,.0f}/s  {ratio:.2f}x of stored")


def memory(service: Service) -> Iterator[Line]:
    """The memory of the server while every event brings a new group; what its audits need comes early as well."""
    service.layer("many")
    began, sent, early, first = time.monotonic(), 0, 0, 0.0
    while sent < GROUPS and time.monotonic() - began < MEMORY_SECONDS:
        items, labels = service.events(10 * BATCH, 10**9)
        for what, own in (("predictions", items), ("labels", labels)):
            load(service.port, service.post("many", what, own, BATCH), 2, BATCH)
        sent += len(items)
        if not early and sent >= EARLY and service.audited("many"):
            early, first = sent, megabytes(service.pid)
    last = megabytes(service.pid)
    yield Line(
        f"memory after {sent:,} groups (max_names 10,000)",
        f"{last:8.0f} MB  {first:.0f} MB after {early:,}",
        "flat (<= 1.1x)",
        last <= 1.1 * first if first else None,
    )


def main() -> None:
    """Measure, and print a line as soon as it is known."""
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    began = time.monotonic()
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        store, bare, port = folder / "store.db", free_port(), free_port()
        command = [sys.executable, "-m", "benchmarks.service_bare", str(folder / "bare.db"), str(bare)]
        held.enter_context(server(command, bare))
        made = [sys.executable, "-m", "gradeq", "keys", "create", "--store", str(store)]
        told = subprocess.run(made, capture_output=True, text=True, check=True).stdout
        key = re.search(r"gq_\S+", told)
        assert key is not None, told
        command = [sys.executable, "-m", "gradeq", "serve", "--store", str(store), "--port", str(port)]
        child = held.enter_context(server([*command, "--rate", "1e9"], port))
        service = Service(port, key[0], child.pid)
        service.layer("stored")
        service.layer("signed", tickets="signed")
        for lines in (
            singles(service, bare), waits(service, folder), batches(service, store, folder), memory(service),
        ):  # fmt: skip
            for line in lines:
                print(line, flush=True)
    took = time.monotonic() - began
    print(f"{took:.0f} s; SQLite {sqlite3.sqlite_version}; load at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
