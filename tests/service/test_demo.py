"""gradeq serve --demo: flights through the server itself, with labels as late as they were."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np

from gradeq.datasets import flights
from gradeq.service.demo import SECONDS, TICKS, Demo, ticks
from service.running import running


def test_every_flight_is_announced_in_order_and_lands_as_late_as_it_did() -> None:
    data, count = flights.sample(), round(SECONDS * TICKS)
    announced, landed = zip(*ticks(data, count), strict=True)
    assert np.array_equal(np.concatenate(announced), np.arange(len(data.delay)))
    assert np.array_equal(np.sort(np.concatenate(landed)), np.arange(len(data.delay)))
    waited = np.zeros(len(data.delay))
    for number, (start, end) in enumerate(zip(announced, landed, strict=True)):
        waited[start] -= number
        waited[end] += number
    span = (data.landed.max() - data.served.min()) / count
    assert np.all(np.abs(waited - (data.landed - data.served) / span) <= 1.0 + 1e-6)
    assert waited.min() >= 0.0


def test_the_demo_streams_all_flights_through_a_server(tmp_path: Path) -> None:
    rows = len(flights.sample().delay)
    with running(str(tmp_path / "store.db")) as server, Demo(seconds=1.0) as demo:
        demo.begin(server.service, server.address)
        demo._thread.join(60.0)
        shown = server.client.get("/v1/layers/flights").json()
        assert (shown["served"], shown["labelled"], shown["open"]) == (rows, rows, 0)
        assert [line["labels"] for line in server.logged if line["event"] == "demo"] == [rows]


def labels(client: httpx.Client) -> int:
    """How many labels the demo has sent; none before the server listens."""
    try:
        layers = client.get("/v1/layers").json()
    except httpx.ConnectError:
        return 0
    return layers[0]["labelled"] if layers else 0


def test_the_command_prints_a_key_and_moves_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gradeq", "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            said = [child.stdout.readline() for _ in range(9)]
            place = re.search(r"from sqlite:///(.*) \(no layers", said[0])[1]
            address, key = re.search(r"Open (\S+)/#(gq_\S+)", said[-1]).groups()
            headers, until = {"Authorization": f"Bearer {key}"}, time.monotonic() + 50.0
            with httpx.Client(base_url=address, headers=headers, trust_env=False) as client:
                while not labels(client):
                    assert time.monotonic() < until
                    time.sleep(0.1)
        finally:
            child.send_signal(signal.SIGINT)
            errors = child.communicate(timeout=30)[1]
    assert child.returncode == 0 and "Traceback" not in errors
    assert Path(place).name == "demo.db" and not Path(place).parent.exists()


def test_a_demo_that_may_not_write_is_refused() -> None:
    command = [sys.executable, "-m", "gradeq", "serve", "--demo", "--read-only"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--read-only forbids; leave one of them out" in done.stderr
