"""A load over loopback that costs little: requests made beforehand, sent and answered on plain sockets."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

TAKEN = (b'"status":"served"', b'"status":"applied"')


class Load(NamedTuple):
    """What came of a load: requests a second, and how long each took, in seconds."""

    rate: float
    times: list[float]

    def percentile(self, share: float) -> float:
        """The time that this share of the requests stayed within."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request(path: str, body: bytes, key: str = "", method: str = "POST") -> bytes:
    """One request, whole."""
    sign = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{sign}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Caller:
    """A connection that sends a request when the last one is answered."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""
        self.began = 0.0

    def send(self, message: bytes) -> None:
        """Send a request; the answer is read later."""
        self.began, self.data = time.perf_counter(), b""
        self.socket.sendall(message)

    def answered(self) -> bytes | None:
        """Read what is there: the body once the answer is whole; anything but 200 or 201 is an error."""
        part = self.socket.recv(1 << 16)
        if not part:
            raise ConnectionError("the server closed the connection")
        self.data += part
        head, ends, body = self.data.partition(b"\r\n\r\n")
        if not ends:
            return None
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(self.data.decode(errors="replace")[:500])
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].split(b"\r\n", 1)[0])
        return body if len(body) >= length else None


def load(port: int, messages: Sequence[bytes], callers: int, size: int = 1) -> Load:
    """Send all messages over so many connections, each with one request at a time; every item must be taken."""
    waiting = iter(messages)
    times: list[float] = []
    with selectors.DefaultSelector() as selector:
        all = [Caller(port) for _ in range(callers)]
        began, active = time.perf_counter(), 0
        for caller in all:
            message = next(waiting, None)
            if message is not None:
                selector.register(caller.socket, selectors.EVENT_READ, caller)
                caller.send(message)
                active += 1
        while active:
            for chosen, _ in selector.select():
                caller = chosen.data
                body = caller.answered()
                if body is None:
                    continue
                times.append(time.perf_counter() - caller.began)
                if sum(map(body.count, TAKEN)) != size:
                    raise RuntimeError(f"not every item was taken: {body[:300]!r}")
                message = next(waiting, None)
                if message is None:
                    selector.unregister(caller.socket)
                    active -= 1
                else:
                    caller.send(message)
        took = time.perf_counter() - began
        for caller in all:
            caller.socket.close()
    return Load(len(messages) / took, times)


def ask(port: int, message: bytes) -> bytes:
    """The body of one answer."""
    caller = Caller(port)
    caller.send(message)
    while (body := caller.answered()) is None:
        pass
    caller.socket.close()
    return body


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        port: int = own.getsockname()[1]
        return port


@contextmanager
def server(command: Sequence[str], port: int, out: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """A server process for the length of a block, once it listens."""
    with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL) as child:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    if child.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f"{command} does not listen") from None
                    time.sleep(0.05)
            yield child
        finally:
            os.kill(child.pid, signal.SIGTERM)
            child.wait()


def megabytes(pid: int) -> float:
    """The memory that a process has now."""
    with open(f"/proc/{pid}/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu(pid: int) -> float:
    """The seconds that a process has computed so far, all threads together."""
    with open(f"/proc/{pid}/stat") as told:
        fields = told.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
