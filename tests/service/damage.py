"""Flipped bits and truncated files: each is found, or changes nothing that matters."""

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from gradeq.errors import GradeqError
from gradeq.service.audit import audit_store
from gradeq.service.desk import Desk
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store import open_store
from gradeq.service.witness import Witness, missing_in_file

TABLES = {
    "meta": "*",
    "layers": "number, tenant, name, spec, seq, entries, hash, stopped, removed",
    "journal": "*",
    "sums": "*",
    "folds": "*",
    "snapshots": "layer, seq, body",
}  # what else is in a store is for people to read


Faults = Iterator[tuple[str, Callable[[bytes], bytes]]]


class Sample(NamedTuple):
    """A store that was closed, one whose log was not yet in its file, what they hold, and the witness."""

    closed: Path
    open: Path
    content: list[Any]
    witness: Path


def sample(folder: Path, rows: int = 30, seed: int = 0) -> Sample:
    """A small store with two layers, labels, corrections and snapshots."""
    rng = random.Random(seed)
    path = folder / "store.db"
    store = open_store(str(path))
    witness = Witness(str(folder / "witness"), store)
    desk = Desk(store, witness=witness)
    desk.start()
    for name in ("one", "two"):
        desk.create("t", name, {"kind": "debias", "eta": 0.1, "groups": ["g"]})
    for k in range(rows):
        for name in ("one", "two"):
            item = Prediction(id=k, prediction=rng.gauss(0.0, 9.0), groups={"g": rng.choice("ab")})
            desk.predict("t", name, [item]).result()
            label = Label(id=rng.randint(0, k), label=rng.gauss(0.0, 9.0), correct=True)
            desk.label("t", name, [label]).result()
        if k == rows // 2:
            with store.write() as tx:
                for live in (desk.runtime("t", "one"), desk.runtime("t", "two")):
                    tx.save_snapshot(live.number, live.head.seq, live.layer.to_json(), 0.0)
    (folder / "open").mkdir()
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", folder / "open")
    content = list(content_of(str(path)))
    store.close()  # not the desk: what follows would change the store
    witness.close()
    return Sample(path, folder / "open" / path.name, content, folder / "witness")


def content_of(path: str) -> Iterator[Any]:
    """All that matters in a store."""
    with closing(open_store(path, read_only=True)) as store, store.driver.reading() as own:
        for table, columns in TABLES.items():
            yield [tuple(row) for row in own.execute(f"SELECT {columns} FROM {table}")]


class Outcome(NamedTuple):
    """How many faults were tried, found, and without effect; and those that were neither."""

    tried: int
    found: int
    harmless: int
    silent: list[str]


def outcome(own: Sample, damaged: Path, what: str) -> tuple[str, str]:
    """What became of one fault: found, harmless or silent, and its name."""
    try:
        with closing(open_store(str(damaged), read_only=True)) as store:
            said = [fault for layer in audit_store(store) for fault in layer.faults]
            said += store.driver.check()
            said += missing_in_file(str(own.witness), store).values()
    except GradeqError:
        return "found", what
    if said:
        return "found", what
    return ("harmless" if list(content_of(str(damaged))) == own.content else "silent"), what


def try_all(
    own: Sample, source: Path, ending: str, faults: Iterator[tuple[str, Callable[[bytes], bytes]]]
) -> Outcome:
    """Put each fault into a copy of the store and see what comes of it."""
    place = source.parent / "damaged"
    results = []
    for what, fault in faults:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for part in ("", "-wal"):
            if Path(f"{source}{part}").exists():
                whole = Path(f"{source}{part}").read_bytes()
                changed = fault(whole) if part == ending else whole
                (place / f"{source.name}{part}").write_bytes(changed)
        results.append(outcome(own, place / source.name, what))
    kinds = [kind for kind, _ in results]
    silent = [what for kind, what in results if kind == "silent"]
    return Outcome(len(results), kinds.count("found"), kinds.count("harmless"), silent)


def flips(count: int, size: int, seed: int) -> Faults:
    """Single bits, anywhere."""
    rng = random.Random(seed)
    for _ in range(count):
        place, bit = rng.randrange(size), rng.randrange(8)

        def flipped(whole: bytes, place: int = place, bit: int = bit) -> bytes:
            return whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :]

        yield f"bit {bit} of byte {place}", flipped


def cuts(count: int, size: int, seed: int) -> Faults:
    """Files that end too early."""
    rng = random.Random(seed)
    for _ in range(count):
        stop = rng.randrange(size)
        yield f"cut at {stop} of {size}", lambda whole, stop=stop: whole[:stop]
