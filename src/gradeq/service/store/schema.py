"""The tables of a store, the same in SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from gradeq.service.store.failures import StoreDamaged

VERSION = 1

TICKET, POSTING, REVERSAL, CORRECTION, CONTROL = 1, 2, 3, 4, 5
KINDS = {
    TICKET: "ticket",
    POSTING: "posting",
    REVERSAL: "reversal",
    CORRECTION: "correction",
    CONTROL: "control",
}

# {int}, {real}, {blob} and {table} are the dialect's. Sums and hashes are text: they have more than 64 bits.
TABLES = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL){table}
""",
    """
CREATE TABLE api_keys (
    number {int} PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, prefix TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL, scopes TEXT NOT NULL, created {real} NOT NULL, revoked {real}
){table}
""",
    # seq, entries, hash: the head of the journal; ``stopped``: why learning was stopped, "" while it goes on.
    """
CREATE TABLE layers (
    number {int} PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL,
    created {real} NOT NULL, removed {real}, stopped TEXT NOT NULL,
    seq {int} NOT NULL, entries {int} NOT NULL, hash TEXT NOT NULL
){table}
""",
    "CREATE UNIQUE INDEX layer_names ON layers (tenant, name) WHERE removed IS NULL",
    """
CREATE TABLE journal (
    layer {int} NOT NULL, seq {int} NOT NULL, kind {int} NOT NULL, id TEXT NOT NULL, at {real} NOT NULL,
    author {int} NOT NULL, payload {blob} NOT NULL, body {blob} NOT NULL, PRIMARY KEY (layer, seq)
){table}
""",
    # One ticket and one first label for each id: a second one cannot be written, whatever a server believes.
    "CREATE UNIQUE INDEX journal_ids ON journal (layer, id, kind) WHERE kind <= 2",
    # The corrections of a label.
    "CREATE INDEX journal_changes ON journal (layer, id, seq) WHERE kind > 2",
    """
CREATE TABLE sums (
    layer {int} NOT NULL, account TEXT NOT NULL, level {int} NOT NULL,
    labels {int} NOT NULL, gradient TEXT NOT NULL, moved TEXT NOT NULL, PRIMARY KEY (layer, account, level)
){table}
""",
    # What retention took out of the journal: up to which number, how much, and the sums of it.
    """
CREATE TABLE folds (
    layer {int} PRIMARY KEY, seq {int} NOT NULL, entries {int} NOT NULL, hash TEXT NOT NULL, sums {blob} NOT NULL
){table}
""",
    """
CREATE TABLE snapshots (
    layer {int} NOT NULL, seq {int} NOT NULL, at {real} NOT NULL, body {blob} NOT NULL, PRIMARY KEY (layer, seq)
){table}
""",
    """
CREATE TABLE rejections (
    layer {int} NOT NULL, number {int} NOT NULL, at {real} NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL,
    detail TEXT NOT NULL, PRIMARY KEY (layer, number)
){table}
""",
    """
CREATE TABLE server (
    number {int} PRIMARY KEY, token TEXT NOT NULL, started {real} NOT NULL
){table}
""",
)


def check_version(url: str, found: Any) -> None:
    """Refuse a store of another version; an older one can be made into one of this version."""
    if found == str(VERSION):
        return
    own = f"{url} is a store of version {found!r}, this gradeq has {VERSION}"
    if str(found).isdecimal() and int(found) < VERSION:
        raise StoreDamaged(f"{own}; gradeq store migrate makes a new one of it and keeps the old")
    raise StoreDamaged(f"{own}; use the gradeq that wrote it, or a newer one")
