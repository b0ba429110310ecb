"""A run on a state file: locked, never the same rows twice, published as a whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Literal, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from gradeq.cli.options import CommonOptions
from gradeq.cli.row_reader import Piece, RowReader
from gradeq.errors import BadInput, StateError
from gradeq.files import MISSING_NAME, Codebook, OutputFiles, check_output
from gradeq.files.cells import integers, show_cell
from gradeq.files.paths import lock, open_input, refuse_address, sibling_path, system_errors, writing
from gradeq.files.times import Moments
from gradeq.inputs.durations import comparable, shown_time
from gradeq.layers.serialization import layer_json
from gradeq.report.notices import clocks_changed, rows_repeated
from gradeq.report.story import Notice
from gradeq.tables import some

if TYPE_CHECKING:
    import pyarrow as pa

    from gradeq.layers.layer import Layer


class ContentHash:
    """A hash of the rows of a run, column by column."""

    def __init__(self) -> None:
        self._columns: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)

    def numbers(self, **columns: NDArray[np.generic] | None) -> None:
        for name, column in columns.items():
            if column is not None:
                values = np.ascontiguousarray(column)
                if values.dtype.kind == "f":
                    values = np.where(np.isnan(values), np.nan, values)
                self._columns[name].update(values.view(np.uint8).data)

    def cells(self, name: str, column: pa.Array) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.cast(column, pa.large_string())
        lengths = integers(pc.binary_length(text), -1)
        filled = pc.fill_null(text, "")
        _, ends, letters = filled.buffers()
        bounds = np.frombuffer(ends, np.int64)[filled.offset : filled.offset + len(filled) + 1]
        self._columns[f"{name} lengths"].update(np.ascontiguousarray(lengths, np.int64).data)
        if letters is not None and len(bounds):
            self._columns[name].update(memoryview(letters)[int(bounds[0]) : int(bounds[-1])])

    def digest(self, command: str) -> str:
        whole = hashlib.sha256(command.encode())
        for name in sorted(self._columns):
            whole.update(name.encode() + self._columns[name].digest())
        return whole.hexdigest()


def read_state(path: str) -> Layer | None:
    text = read_state_bytes(path)
    return None if text is None else parse_state(path, text)


def parse_state(path: str, text: bytes) -> Layer:
    from gradeq.layers.internals import silenced
    from gradeq.layers.registry import from_json

    try:
        return silenced(from_json(text))
    except StateError as error:
        raise type(error)(f"{path}: {error}") from None


def existing_state(path: str) -> tuple[bytes, Layer]:
    """The bytes and the layer of a state that must exist."""
    text = read_state_bytes(path)
    if text is None:
        raise BadInput(f"{path} does not exist; name a state file")
    return text, parse_state(path, text)


def read_state_bytes(path: str) -> bytes | None:
    """The bytes of a state file or pipe; None if it does not exist."""
    if not path:
        raise BadInput("the name of a state is empty; name a state file")
    if not os.path.exists(path):
        refuse_address(path, "read", "download it first")
    with system_errors(f"{path} cannot be read", "name a state file"):
        try:
            kind = os.stat(path).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
            raise BadInput(f"{path} is a device; name a state file")
        with open_input(path) as file:
            return file.read()


WAIT = 5.0  # seconds that a second run waits for the first
PAUSE = 0.05


class InterruptedRun(TypedDict):
    """What a lock file says of a run while it publishes its files."""

    run: int
    content: str
    outputs: list[str]
    inputs: list[str]


class StateLock:
    """A locked state file. ``interrupted``: an earlier run that was killed while publishing."""

    def __init__(self, descriptor: int, path: str, state: str) -> None:
        self._descriptor, self._path, self.state = descriptor, path, state
        self.promised = False
        self.interrupted: InterruptedRun | None = None
        with contextlib.suppress(ValueError, TypeError, KeyError, OSError):
            left = json.loads(os.pread(descriptor, 1 << 20, 0))
            outputs, inputs = ([str(path) for path in left[name]] for name in ("outputs", "inputs"))
            self.interrupted = {
                "run": int(left["run"]), "content": str(left["content"]), "outputs": outputs, "inputs": inputs
            }  # fmt: skip

    def promise(self, run: InterruptedRun) -> None:
        with writing(self._path):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(run).encode(), 0)
            os.fsync(self._descriptor)
        self.promised = True

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)


@contextmanager
def locked_state(state: str | None) -> Iterator[StateLock | None]:
    """Check the path of a state and lock it until the block ends; another run waits a little, then fails."""
    if state is None:
        yield None
        return
    check_output(state)
    folder = os.path.dirname(os.path.realpath(state))
    if not os.access(folder, os.W_OK):
        raise BadInput(f"{state} cannot be written: no permission in {folder}; choose another place")
    path = sibling_path(os.path.realpath(state), ".lock")
    descriptor = _lock_file(path, state)
    try:
        lock = StateLock(descriptor, path, state)
        earlier = lock.interrupted is not None
        yield lock
        lock.release()
    except BaseException:
        if not (lock.promised or earlier):
            lock.release()
        raise
    finally:
        os.close(descriptor)


def _lock_file(path: str, state: str) -> int:
    deadline = time.monotonic() + WAIT
    while True:
        with writing(state):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        # The locked file must still have that name: its last owner may have removed it.
        with contextlib.suppress(OSError):
            if lock(descriptor) is not False and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise BadInput(
                f"another run is using {state}; wait until it is done, or give this one a state of its own"
            )
        time.sleep(PAUSE)


RUNS = 100  # remembered; the content of an older one is not recognised
AGAIN = "give --again if that is meant"


class SeenTimes(TypedDict, total=False):
    kind: str | None
    row: float
    label: float


@dataclass
class RunHistory:
    """The runs on a state.

    ``again``: rows seen before are allowed, and noted in the state. ``runs``: number, content, rows and outputs (path
    and SHA-256) of the last runs. ``times``: the last time of a row and of a label, and the kind of time.
    """

    layer: Layer
    again: bool = False
    runs: list[tuple[int, str, int, list[tuple[str, str]]]] = field(default_factory=list)
    times: SeenTimes = field(default_factory=SeenTimes)
    overridden: list[str] = field(default_factory=list)
    looked_ahead: str = ""
    columns: dict[str, str | list[str] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, layer: Layer, again: bool = False) -> RunHistory:
        desk = layer.internals.tickets.desk
        runs = [
            (n, content, rows, [(path, mark) for path, mark in own]) for n, content, rows, own in desk.get("runs", [])
        ]
        return cls(layer, again, runs, cast(SeenTimes, dict(desk.get("times", {}))))

    @property
    def number(self) -> int:
        return self.runs[-1][0] if self.runs else 0

    def refuse_repeat(self, what: str, remedy: str = AGAIN) -> None:
        if not self.again:
            raise BadInput(f"{what}; {remedy}")
        self.overridden.append(what)

    def check_kind(self, option: str, kind: str | None) -> None:
        """Raise if times are of another kind than before: numbers or dates, with or without a zone."""
        before = self.times.get("kind")
        if not comparable(before, kind):
            raise BadInput(
                f"{option} holds {kind} here, and times were {before} before; "
                "write them in one way, or use another state"
            )

    def check_content(self, content: str) -> None:
        for number, known, rows, outputs in reversed(self.runs):
            if known == content:
                wrote = f" and wrote {', '.join(path for path, _ in outputs)}" if outputs else ""
                these, them = ("this row", "it") if rows == 1 else (f"these {rows:,} rows", "them")
                self.refuse_repeat(f"the state has seen {these}: run {number} served {them}{wrote}")
                return

    def note_time(self, name: Literal["row", "label"], value: float | np.number, kind: str | None) -> None:
        number = cast(float, value.item()) if isinstance(value, np.number) else value
        self.times = {**self.times, "kind": kind}
        self.times[name] = max(number, self.times.get(name, number))

    def check_columns(self, columns: dict[str, str | list[str] | None], timed: bool) -> None:
        known = self.layer.internals.tickets.desk.get("columns", {})
        for option, name in columns.items():
            if option in known and known[option] != name:
                both = ([names] if isinstance(names, str) else names or ["(none)"] for names in (known[option], name))
                before, now = (", ".join(map(str, names)) for names in both)
                self.refuse_repeat(
                    f"the state was made with {option} {before}, this run has {now}",
                    "use the same column or another state file, or give --again if it was renamed",
                )
        if "row" in self.times and not timed:
            self.refuse_repeat(
                "the rows of this state have times", "give --time as before, or --again to go on without"
            )
        self.columns = columns

    def record(self, content: str, rows: int, outputs: list[tuple[str, str]]) -> None:
        served = [run for run in self.runs if run[1]]  # labels have no content: twice the same are duplicates
        self.runs = [*served[1 - RUNS :], (self.number + 1, content, rows, outputs)]
        desk = self.layer.internals.tickets.desk
        desk["runs"] = [list(run) for run in self.runs]
        if self.times:
            desk["times"] = self.times
        if self.columns:
            desk["columns"] = self.columns
        for what in self.overridden:
            self.layer.internals.note(f"again: {what}")


class Session:
    """Checks ids, times and content of a run, and publishes its files; without a state only ids."""

    def __init__(
        self, command: str, options: CommonOptions, reading: RowReader, layer: Layer, lock: StateLock | None
    ) -> None:
        self.command, self.options, self.reading = command, options, reading
        self.layer, self.lock = layer, lock
        self.history = None if lock is None else RunHistory.of(layer, options.again)
        self.content = None if lock is None else ContentHash()
        self._ids: set[str] = set()
        self._served_again = 0
        self._refusal: BadInput | None = None  # raised after the last row, unless all rows were seen before
        self._digest = ""
        self.notices: list[Notice] = [] if reading.clock_change is None else [clocks_changed(reading.clock_change)]

    def admit(self, piece: Piece) -> list[str] | None:
        """Check times and ids of a piece; returns the ids if the state keeps them."""
        if self.history is not None and piece.times is not None:
            self._check_times(self.history, piece, piece.times)
        column = self.options.id
        if column is None:
            return None
        cells = piece.cells(column)
        if self.content is not None:
            self.content.cells("id", cells)
        codes = Codebook()
        places = codes.codes(cells)
        ids = codes.names
        if len(ids) < len(places) or MISSING_NAME in ids:
            ids = [ids[place] for place in places.tolist()]
        book = self.layer.internals.tickets if self.history is not None else None
        for i, id in enumerate(ids):
            if id == MISSING_NAME:
                raise BadInput(f"{piece.row(i)}: column {column!r} has no id; give every row one")
            if id in self._ids:
                raise BadInput(f"{piece.row(i)}: id {show_cell(id)} appears twice; every row needs an id of its own")
            self._ids.add(id)
            if book is not None and book.knows(id):
                if not self.options.again:
                    became = {"open": "waits for its label"}.get(self.layer.ids[id], "has its label")
                    known = f"id {show_cell(id)} is in the state already and {became}"
                    self._refusal = self._refusal or BadInput(f"{piece.row(i)}: {known}; {AGAIN}")
                book.drop(id)
                self._served_again += 1
        return None if self.history is None else ids

    def _check_times(self, history: RunHistory, piece: Piece, times: Moments) -> None:
        assert self.content is not None
        if not piece.start:
            history.check_kind("--time", piece.kind)
            first, last, label = (times[0], history.times.get("row"), history.times.get("label"))

            def spelled(moment: float) -> str:
                return shown_time(moment, self.reading.dated)

            if last is not None and first < last:
                try:
                    history.refuse_repeat(
                        f"the first time here is {spelled(first)}, before {spelled(last)}, the last one that the "
                        "state has seen"
                    )
                except BadInput as refusal:
                    self._refusal = refusal
            elif label is not None and first < label:
                history.looked_ahead = f"{spelled(first)}, labels known at {spelled(label)}"
        history.note_time("row", times[-1], piece.kind)
        self.content.numbers(time=times, due=piece.due)

    def check(self) -> None:
        """Once all rows are read: raise if the state has seen them, unless --again."""
        history = self.history
        if history is None or self.content is None or self.lock is None:
            return
        self._digest = self.content.digest(self.command)
        if self._refusal is not None:
            history.check_content(self._digest)
            raise self._refusal
        if self._served_again:
            history.overridden.append(f"{some(self._served_again, 'id', 'was', 'were')} served before")
        history.check_content(self._digest)
        left = self.lock.interrupted
        if left is not None and left["run"] > history.number:
            self.notices.append(unfinished_notice(left, left["content"] == self._digest))
        if history.overridden:
            self.notices.append(rows_repeated("; ".join(history.overridden)))
        if history.looked_ahead:
            self.notices.append(
                Notice(
                    "amber",
                    "Rows were served with labels from their future.",
                    f"The first row is of {history.looked_ahead} had been learned from.",
                    "Post labels after the rows of their time were served.",
                )
            )

    def open_files(self, files: OutputFiles) -> None:
        report, state = self.options.report, self.options.state
        self.files = files
        self.page = None if report is None else files.open(report)
        self.state = None if state is None else files.open(state, last=True)

    def publish(self, rows: int, page: str | None) -> None:
        if self.page is not None and page is not None:
            with writing(str(self.options.report)):
                self.page.write(page.encode())
        if self.state is None or self.history is None or self.lock is None:
            self.files.publish()
        else:
            publish_run(self.files, self.state, self.history, self.lock, self._digest, rows)


def publish_run(
    files: OutputFiles, place: BinaryIO, history: RunHistory, lock: StateLock, content: str, rows: int
) -> None:
    """Publish outputs and state; until the state is there, the lock file records outputs. Labels: no content."""
    outputs = files.checksums()
    history.record(content, rows, outputs)
    with writing(lock.state):
        place.writelines(piece.encode() for piece in layer_json(history.layer))
    files.seal()
    if outputs:
        named = [path for path, _ in outputs]
        lock.promise({"run": history.number, "content": content, "outputs": named, "inputs": files.inputs})
    try:
        files.publish()
    finally:
        lock.promised = files.halfway


def unfinished_notice(left: InterruptedRun, same: bool) -> Notice:
    """An earlier run was killed after publishing an output and before its state."""
    outputs, inputs = ", ".join(left["outputs"]), ", ".join(left["inputs"])
    claim = f"Run {left['run']} ({inputs}) was stopped while it wrote its files."
    if same:
        return Notice("note", claim, "Its rows were not in the state; this run had the same ones and took its place.")
    return Notice(
        "amber",
        claim,
        f"Its rows are not in the state, though {outputs} may be there.",
        f"Run {inputs} again (with `--again` if its times lie before those seen since), or drop {outputs}.",
    )
