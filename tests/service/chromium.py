"""A real Chromium for the tests of the dashboard, and a server of its own that can be killed and started again."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


class Server:
    """``gradeq serve`` as a process, at one address through all its lives."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port, self.key = folder, 0, ""
        self.address = ""
        self._process: Any = None

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers."""
        said = self._folder / "said.txt"
        with said.open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gradeq", "serve", "--store", "store.db", "--port", str(self._port)],
                cwd=self._folder, stdout=out, stderr=subprocess.DEVNULL, env=os.environ,
            )  # fmt: skip
        for _ in range(400):
            text = said.read_text()
            if found := re.search(r"serves (http://[\w.]+:(\d+))", text):
                self.address, self._port = found[1], int(found[2])
                self.key = self.key or re.search(r"gq_[\w-]+", text)[0]
                if self._answers():
                    return
            time.sleep(0.05)
        raise AssertionError(f"the server did not start: {said.read_text()}")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.address}/healthz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """kill -9."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def client(self) -> httpx.Client:
        """A client with its key."""
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.address, headers=headers, trust_env=False, timeout=30)


class Look:
    """A page of a browser, what it said, and what it asked for elsewhere."""

    def __init__(self, browser: Any, home: str, width: int = 1280, theme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.home = home
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        # The browser itself says that a server which was killed does not answer.
        if message.type in ("error", "warning") and "net::ERR_" not in message.text:
            self.wrong.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.home + "/", "data:")):
            self.wrong.append(f"request: {request.url}")

    def enter(self, key: str, path: str = "/") -> Any:
        """Sign in by the address that the server prints, and open a page."""
        self.page.goto(f"{self.home}/#{key}")
        self.page.wait_for_selector("[data-live]")
        if path != "/":
            self.page.goto(self.home + path)
        return self.page

    def close(self) -> None:
        """Nothing went wrong while it was open."""
        self.context.close()
        assert not self.wrong, self.wrong
