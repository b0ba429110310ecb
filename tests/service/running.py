"""A service that really listens, in a thread of the test; its clients are plain httpx."""

import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from gradeq.service.app import Service
from gradeq.service.auth import SCOPES, add_key, new_key
from gradeq.service.desk import Desk
from gradeq.service.server import Server, bind_socket, config_of
from gradeq.service.store import open_store
from gradeq.service.telemetry import Limits, Log


class Running:
    """A server at work, and a client with the key of its first tenant."""

    def __init__(self, service: Service, address: str, log: io.StringIO) -> None:
        self.service, self.address, self._log = service, address, log
        self.clients: list[httpx.Client] = []
        self.key = "" if service.store.read_only else self.new_key()
        self.client = self.as_key(self.key)

    def new_key(self, tenant: str = "default", scopes: Any = SCOPES) -> str:
        """A key that the server knows at once."""
        text, key = new_key(tenant, "test", scopes)
        add_key(self.service.store, key)
        self.service.ring.reload()
        return text

    def as_key(self, text: str) -> httpx.Client:
        """A client that sends this key."""
        headers = {"Authorization": f"Bearer {text}"}
        made = httpx.Client(base_url=self.address, headers=headers, trust_env=False, timeout=30)
        self.clients.append(made)
        return made

    def layer(self, name: str = "demand", **settings: Any) -> str:
        """Make a layer: its path."""
        answer = self.client.put(f"/v1/layers/{name}", json={"kind": "debias", **settings})
        assert answer.status_code in (200, 201), answer.text
        return f"/v1/layers/{name}"

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    @property
    def log_text(self) -> str:
        """The log as it is written."""
        return self._log.getvalue()


@contextmanager
def running(url: str, read_only: bool = False, **limits: Any) -> Iterator[Running]:
    """Serve a store on a free port of this machine until the block ends."""
    store = open_store(str(url), read_only)
    most = Limits(**limits)
    desk = Desk(store, waiting=most.queue)
    desk.start()
    text = io.StringIO()
    service = Service(store, desk, most, Log(text, requests=True))
    listening = bind_socket("127.0.0.1", 0)
    server = Server(config_of(service))
    server.service = service
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    made = None
    try:
        made = Running(service, f"http://127.0.0.1:{listening.getsockname()[1]}", text)
        yield made
    finally:
        service.begin_shutdown()
        server.should_exit = True
        thread.join()
        store.close()
        for client in made.clients if made is not None else ():
            client.close()
