"""What a store asks of a database: connections to read, one transaction at a time to write, and its dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Params = Sequence[Any]


class Connection(Protocol):
    """The part of a database connection that is used; SQL is written with question marks."""

    def execute(self, sql: str, params: Params = ()) -> Iterable[Any]:
        """Run one statement: its rows."""
        ...

    def executemany(self, sql: str, params: Iterable[Params]) -> Any:
        """Run one statement for many rows."""
        ...


class Driver(Protocol):
    """A database."""

    url: str
    read_only: bool
    shared: bool  # whether several servers may write to it at once
    types: Mapping[str, str]
    lock: str  # what a SELECT ends with that locks its row until the transaction ends

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection to read from."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """One transaction, on disk when the block ends; rolled back when it raises."""
        ...

    def among(self, values: Sequence[str]) -> tuple[str, Any]:
        """The beginning of a join with these values (``wanted.value``), and its parameter."""
        ...

    def exists(self) -> bool:
        """Whether there are tables in it."""
        ...

    def backup(self, path: str) -> None:
        """Copy the whole while it is in use."""
        ...

    def check(self) -> list[str]:
        """What the database itself finds wrong with it."""
        ...

    def hold(self) -> None:
        """Be the only server, where there can be but one; refused when there is another."""
        ...

    def close(self) -> None:
        """Let go of all connections."""
        ...


def first(rows: Iterable[Any]) -> Any:
    """The first row, or None."""
    found: Iterator[Any] = iter(rows)
    return next(found, None)
