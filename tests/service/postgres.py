"""A private PostgreSQL cluster in a temporary folder, reached through a socket in it; for tests of the service."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

USERS = ("postgres", "nobody")  # the server refuses to run as root


def binaries() -> Path | None:
    """The folder of the newest server on this machine, or None."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=_version)
    return versions[-1].parent if versions else None


def _version(path: Path) -> float:
    return float(path.parent.parent.name)


def missing() -> str:
    """Why no cluster can be made here, or "" where one can."""
    if binaries() is None:
        return "no PostgreSQL server is installed here"
    if os.getuid() == 0 and (_user() is None or shutil.which("runuser") is None):
        return "PostgreSQL does not run as root, and there is no other user to run it as"
    return ""


def _user() -> str | None:
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in USERS if name in known), None)


class Cluster:
    """A running cluster; ``address`` makes and names databases in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._as = ["runuser", "-u", str(_user()), "--"] if os.getuid() == 0 else []
        if self._as:
            shutil.chown(folder, user=_user())
        self._made = 0
        self._run("initdb", "-D", self._data, "-U", "gradeq", "-A", "trust", "--no-sync")
        self.start()

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as, str((binaries() or Path()) / name), *arguments],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"

    def start(self) -> None:
        """Start the server; it listens to its socket alone, so no port is taken."""
        options = f"-c listen_addresses='' -k {self.folder} -c max_connections=50"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", self._data, "-o", options, "-l", log, "-w", "-t", "300", "start")

    def stop(self, how: str = "immediate") -> None:
        """Stop the server; ``immediate`` is a crash that it recovers from."""
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    def address(self) -> str:
        """The address of a database that is new."""
        import psycopg

        self._made += 1
        name = f"store{self._made}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return self._url(name)

    def _url(self, name: str) -> str:
        return f"postgresql://gradeq@/{name}?host={self.folder}"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster for the length of a block; the folder is short, as the name of a socket must be."""
    folder = Path(tempfile.mkdtemp(prefix="gq-pg-", dir="/tmp"))
    made: Any = None
    try:
        made = Cluster(folder)
        yield made
    finally:
        if made is not None:
            made.stop()
        shutil.rmtree(folder, ignore_errors=True)
