"""The witness: a file outside the store that records where its journals stood when clients got their answers."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradeq.errors import BadInput
from gradeq.files.paths import write_text, writing
from gradeq.service.store.database import StoreDamaged
from gradeq.service.store.journal_store import Store, hash_before

if TYPE_CHECKING:
    from gradeq.service.runtime import LayerRuntime

MAX_LINE = 1024  # bytes; every line is shorter
MAX_WITNESS_BYTES = 1 << 24  # bytes; a larger file is rewritten with the last line of each layer


class AcknowledgedHead(NamedTuple):
    """Where a journal stood when clients got their answers."""

    seq: int
    hash: int


class Witness:
    """Records where journals stand after each commit."""

    def __init__(self, path: str, store: Store) -> None:
        self.path, self._header = path, witness_header(store)
        self.seen, self.damaged = read_witness(path, self._header)
        self.failed = ""  # why it cannot be written
        self._file = self._open()

    def _open(self) -> int:
        """Open the file; write its header if it is new, cut off a torn last line."""
        with writing(self.path):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            size = os.fstat(file).st_size
            if size == 0:
                os.write(file, f"{self._header}\n".encode())
            else:
                last = os.pread(file, MAX_LINE, max(0, size - MAX_LINE))
                os.ftruncate(file, size - len(last) + last.rfind(b"\n") + 1)
            return file

    def _rewrite(self) -> None:
        lines = [self._header, *(witness_line(number, head) for number, head in self.seen.items())]
        write_text(self.path, [f"{line}\n" for line in lines])
        os.close(self._file)
        self._file = self._open()

    def __call__(self, grown: Sequence[LayerRuntime]) -> None:
        for runtime in grown:
            self.seen[runtime.number] = AcknowledgedHead(runtime.head.seq, runtime.head.hash)
        text = "".join([f"{witness_line(runtime.number, self.seen[runtime.number])}\n" for runtime in grown])
        try:
            os.write(self._file, (f"\n{text}" if self.failed else text).encode())
            self.failed = ""
            if os.lseek(self._file, 0, os.SEEK_CUR) > MAX_WITNESS_BYTES:
                self._rewrite()
        except (OSError, BadInput) as error:  # the store has it: learning goes on
            self.failed = str(error)

    def check(self, store: Store) -> dict[int, str]:
        """Stop layers that lack acknowledged entries, until an operator accepts the loss; why, by layer number."""
        lost = missing_entries(self.seen, store)
        if lost and not store.read_only:
            with store.write() as tx:
                for number, why in lost.items():
                    tx.stop(number, f"{why}; run gradeq store accept if they cannot be recovered")
        return lost

    def accept(self, numbers: Iterable[int]) -> None:
        """Forget these layers: an operator accepted the loss."""
        for number in numbers:
            self.seen.pop(number, None)
        self._rewrite()

    def close(self) -> None:
        os.close(self._file)


def missing_entries(seen: dict[int, AcknowledgedHead], store: Store) -> dict[int, str]:
    """What a store lacks of what was acknowledged, by layer number; journals may have grown since."""
    reasons = {}
    for number, (seq, hash) in seen.items():
        try:
            head = store.head(number)
        except StoreDamaged:
            reasons[number] = f"layer {number} with {seq:,} entries is missing"
            continue
        if head.seq < seq:
            missing = f"{seq - head.seq:,} acknowledged entries are missing ({head.seq + 1:,} to {seq:,})"
            reasons[number] = f"{missing}: the disk lost them, or an old backup was restored"
        elif hash_before(store.secret, number, head, store.entries(number, seq, head.seq)) != hash:
            reasons[number] = f"the first {seq:,} entries are not those that were acknowledged"
    return reasons


def missing_in_file(path: str, store: Store) -> dict[int, str]:
    if not os.path.exists(path):
        raise BadInput(f"{path} does not exist; name the witness of the store")
    return missing_entries(read_witness(path, witness_header(store))[0], store)


def witness_header(store: Store) -> str:
    """The first line of a witness; it identifies the store and reveals nothing."""
    return f"gradeq witness {sha256(b'witness' + store.secret).hexdigest()[:16]}"


def witness_line(number: int, head: AcknowledgedHead) -> str:
    text = f"{number} {head.seq} {head.hash:x}"
    return f"{text} {zlib.crc32(text.encode()):08x}"


def read_witness(path: str, header: str) -> tuple[dict[int, AcknowledgedHead], int]:
    """The last head of each layer, and how many lines are damaged; a torn last line does not count."""
    seen: dict[int, AcknowledgedHead] = {}
    damaged, text = 0, b""
    with suppress(FileNotFoundError):
        text = Path(path).read_bytes()
    first, *lines = text.split(b"\n")
    if text and first.decode("ascii", "replace") != header:
        raise BadInput(f"{path} is not a witness of this store; give --witness another file")
    for line in filter(None, lines[:-1]):
        try:
            number, seq, hash, crc = line.decode("ascii").split(" ")
            head = AcknowledgedHead(int(seq), int(hash, 16))
            if not witness_line(int(number), head).endswith(f" {crc}"):
                raise ValueError("wrong checksum")
            seen[int(number)] = head
        except ValueError:
            damaged += 1
    return seen, damaged
