"""Servers as processes of their own, to be killed and started again on the same port and store."""

import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradeq.service.auth import SCOPES, add_key, new_key
from gradeq.service.store import open_store

TESTS = Path(__file__).parents[1]


def free_port() -> int:
    """A port that nobody has now, below those that the system gives to clients."""
    while True:
        with socket.socket() as own, suppress(OSError):
            own.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
            return int(own.getsockname()[1])


class Nursery:
    """Where servers are started (see ``service.nursery``), each a process that runs `gradeq serve`."""

    def __enter__(self) -> "Nursery":
        self.folder = Path(tempfile.mkdtemp())
        self.parent = subprocess.Popen(
            [sys.executable, "-m", "service.nursery"],
            cwd=TESTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.parent.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        self.parent.communicate()
        shutil.rmtree(self.folder)

    def start(self, fault: str, words: list[str], errors: str) -> int:
        """Run a command in a new process; its id."""
        return self._asked([fault, words, errors])

    def kill(self, pid: int) -> None:
        """End a process without a word (SIGKILL), and wait until it is gone."""
        self._asked(pid)

    def _asked(self, told: Any) -> int:
        self.parent.stdin.write(json.dumps(told) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())


class Server:
    """`gradeq serve` on a store, perhaps with a fault of ``bad_servers``."""

    def __init__(self, nursery: Nursery, address: str, fault: str = "") -> None:
        self.nursery, self.address, self.fault = nursery, address, fault
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.key = key_for(address)
        self.errors = nursery.folder / f"{self.port}.log"
        self.pid = 0

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        words = ["serve", "--store", self.address, "--port", str(self.port)]
        self.pid = self.nursery.start(self.fault, words, str(self.errors))
        until = time.monotonic() + 30
        while not self.ready():
            if time.monotonic() > until:
                self.kill()
                said = self.errors.read_text()
                raise RuntimeError(f"the server is not ready: {said[-2000:]}")
            time.sleep(0.005)

    def ready(self) -> bool:
        """Whether it says so."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """End it without a word."""
        if self.pid:
            self.nursery.kill(self.pid)
            self.pid = 0


def key_for(address: str) -> str:
    """A new key of a store, good for everything."""
    store = open_store(address)
    text, key = new_key("default", "test", SCOPES)
    add_key(store, key)
    store.close()
    return text
