"""The witness: a file outside the store that says how far each journal had come when clients were told so.

Journal, sums and heads are in one transaction, so they agree with each other when the disk has lost the last of
them, or when an old backup was put in their place. The witness does not go back with them: one line a commit,
``layer seq hash crc``. It is not synced; what it lacks after a power cut it cannot tell, what it has is true.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

from gradeq.errors import BadInput
from gradeq.files.atomic import write_text
from gradeq.files.failures import writing
from gradeq.service.store.failures import StoreDamaged
from gradeq.service.store.rows import MODULUS, Head, hashed
from gradeq.service.store.store import Store

LINE = 1024  # bytes; no line is as long
LARGEST = 1 << 24  # bytes; a file of this size is written anew with the last line of each layer


class Seen(NamedTuple):
    """Where a journal stood when clients were told so."""

    seq: int
    hash: int


class Grown(Protocol):
    """A layer whose journal grew."""

    @property
    def number(self) -> int:
        """Its number in the store."""
        ...

    @property
    def head(self) -> Head:
        """Where its journal stands."""
        ...


class Witness:
    """The witness of one store; call it after each commit with the layers that grew."""

    def __init__(self, path: str, store: Store) -> None:
        self.path, self._first = path, first_of(store)
        self.seen, self.damaged = read(path, self._first)
        self.failed = ""  # why it cannot be written any more
        self._file = self._opened()

    def _opened(self) -> int:
        """The file, which begins with its name and ends with a whole line."""
        with writing(self.path):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            size = os.fstat(file).st_size
            if size == 0:
                os.write(file, f"{self._first}\n".encode())
            else:
                last = os.pread(file, LINE, max(0, size - LINE))
                os.ftruncate(file, size - len(last) + last.rfind(b"\n") + 1)
            return file

    def _anew(self) -> None:
        """Write the file anew with the last line of each layer."""
        kept = [self._first, *(line(number, own) for number, own in self.seen.items())]
        write_text(self.path, [f"{text}\n" for text in kept])
        os.close(self._file)
        self._file = self._opened()

    def __call__(self, grown: Sequence[Grown]) -> None:
        """Note where these journals stand."""
        for live in grown:
            self.seen[live.number] = Seen(live.head.seq, live.head.hash)
        text = "".join([f"{line(live.number, self.seen[live.number])}\n" for live in grown])
        try:
            os.write(self._file, (f"\n{text}" if self.failed else text).encode())
            self.failed = ""
            if os.lseek(self._file, 0, os.SEEK_CUR) > LARGEST:
                self._anew()
        except (
            OSError,
            BadInput,
        ) as error:  # the store has it: learning goes on, and somebody is told
            self.failed = str(error)

    def missing(self, store: Store) -> dict[int, str]:
        """What the store lacks of what was acknowledged, by the number of the layer."""
        return missing(self.seen, store)

    def check(self, store: Store) -> dict[int, str]:
        """Stop the learning of layers that lack what was acknowledged, until an operator has taken note: why."""
        found = self.missing(store)
        if found and not store.read_only:
            with store.write() as tx:
                for number, why in found.items():
                    tx.stop(number, f"{why}; run gradeq store accept when nothing more can be had")
        return found

    def accept(self, numbers: Iterable[int]) -> None:
        """Forget what was seen of these layers: an operator has taken note of the loss."""
        for number in numbers:
            self.seen.pop(number, None)
        self._anew()

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


def lost(store: Store, number: int, own: Seen) -> str:
    """Why a store is not the one that a witness saw; "" if it is, or has only grown since."""
    try:
        head = store.head(number)
    except StoreDamaged:
        return f"layer {number} is gone, which had {own.seq:,} entries"
    if head.seq < own.seq:
        return (
            f"{own.seq - head.seq:,} acknowledged entries are missing ({head.seq + 1:,} to {own.seq:,}): "
            "the disk lost them, or an old backup was restored"
        )
    since = hashed(store.secret, number, store.entries(number, own.seq, head.seq))
    if (head.hash - since) % MODULUS != own.hash:
        return f"the first {own.seq:,} entries are not those that were acknowledged"
    return ""


def missing(seen: dict[int, Seen], store: Store) -> dict[int, str]:
    """What a store lacks of what was seen, by the number of the layer."""
    told = {number: lost(store, number, own) for number, own in seen.items()}
    return {number: why for number, why in told.items() if why}


def missing_in(path: str, store: Store) -> dict[int, str]:
    """What a store lacks of what the witness in a file saw; the file must be there."""
    if not os.path.exists(path):
        raise BadInput(f"{path} does not exist; name the witness of the store")
    return missing(read(path, first_of(store))[0], store)


def first_of(store: Store) -> str:
    """The first line of a witness: it tells one store from another, and gives nothing away."""
    return f"gradeq witness {sha256(b'witness' + store.secret).hexdigest()[:16]}"


def line(number: int, own: Seen) -> str:
    """One line of a witness."""
    text = f"{number} {own.seq} {own.hash:x}"
    return f"{text} {zlib.crc32(text.encode()):08x}"


def read(path: str, first: str) -> tuple[dict[int, Seen], int]:
    """The last that a witness says of each layer, and how many lines are damaged; a torn last line is not."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return {}, 0
    if lines == [b""]:
        return {}, 0
    if lines[0].decode("ascii", "replace") != first:
        raise BadInput(f"{path} is no witness of this store; give --witness another file")
    seen: dict[int, Seen] = {}
    damaged = 0
    for text in filter(None, lines[1:-1]):
        own = parsed(text)
        if own is None:
            damaged += 1
        else:
            seen[own[0]] = own[1]
    return seen, damaged


def parsed(text: bytes) -> tuple[int, Seen] | None:
    """What a line says; None if it is damaged."""
    try:
        number, seq, hash, crc = text.decode("ascii").split(" ")
        own = int(number), Seen(int(seq), int(hash, 16))
        return own if line(*own).endswith(f" {crc}") else None
    except ValueError:
        return None
