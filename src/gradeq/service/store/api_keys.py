"""The keys in a store. They are read whole: a store has a handful of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradeq.service.keys import Key
from gradeq.service.store.driver import first

if TYPE_CHECKING:
    from gradeq.service.store.store import Store

COLUMNS = "number, tenant, name, prefix, hash, scopes, created, revoked"


def keys_of(store: Store) -> list[Key]:
    """All keys, also those that are no good any more, in the order in which they were made."""
    with store.driver.reading() as own:
        rows = own.execute(f"SELECT {COLUMNS} FROM api_keys ORDER BY number")
        return [
            Key(
                int(number), tenant, name, prefix, hash, frozenset(scopes.split()), created, revoked
            )
            for number, tenant, name, prefix, hash, scopes, created, revoked in rows
        ]


def add_key(store: Store, key: Key) -> Key:
    """Store a new key: the same with its number."""
    with store.driver.writing() as own:
        row = first(own.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM api_keys"))
        made = key._replace(number=int(row[0]))
        scopes = " ".join(sorted(made.scopes))
        own.execute(
            f"INSERT INTO api_keys ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*made[:5], scopes, made.created, made.revoked),
        )
    return made


def end_key(store: Store, number: int, at: float) -> None:
    """From this time on the key is no good; a time that was set before is not put off."""
    with store.driver.writing() as own:
        own.execute(
            "UPDATE api_keys SET revoked = ? WHERE number = ? AND (revoked IS NULL OR revoked > ?)",
            (at, number, at),
        )
