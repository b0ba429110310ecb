"""Counts what a run passes through: the functions and files of gradeq on five walks (see CONTRIBUTING.md).

    cd tests && python -m walks [--list] [WALK ...]

Every walk runs twice. Only the second run is counted, so that imports and caches are left out.
"""

import argparse
import csv
import inspect
import io
import os
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import gradeq as gq

ROOT = Path(gq.__file__).parent


class Function(NamedTuple):
    """A function of gradeq that a run passed."""

    file: str
    name: str


class Recorder:
    """Collects the functions that all threads enter while a block runs."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.active = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.active and event == "call":
            self.codes.add(frame.f_code)

    @contextmanager
    def recording(self) -> Iterator[None]:
        sys.setprofile(self)
        self.active = True
        try:
            yield
        finally:
            self.active = False
            sys.setprofile(None)

    def functions(self) -> list[Function]:
        """Named functions only: no lambdas, comprehensions, class bodies or generated methods."""
        return sorted(
            {
                Function(Path(code.co_filename).relative_to(ROOT).as_posix(), code.co_qualname)
                for code in self.codes
                if code.co_filename.startswith(f"{ROOT}/")
                and code.co_flags & inspect.CO_OPTIMIZED
                and not code.co_name.startswith("<")
            }
        )


Walk = Callable[[Recorder, Path], None]


def event(recorder: Recorder, _: Path) -> None:
    """predict with an id and a group, then update"""
    layer = gq.Debiaser(groups=["store"])
    for number in range(2):
        recorder.codes.clear()
        with recorder.recording():
            layer.predict(0.3, id=number, groups={"store": "a"})
            layer.update(0.5, id=number)


def columns(recorder: Recorder, _: Path) -> None:
    """Debiaser.run over arrays with groups"""
    rng = np.random.default_rng(0)
    predictions, stores = rng.random(1000), rng.choice(["a", "b"], 1000)
    labels = predictions + 0.3
    for _ in range(2):
        recorder.codes.clear()
        with recorder.recording():
            gq.Debiaser(groups=["store"]).run(predictions, labels, groups={"store": stores})


def file_with_report(recorder: Recorder, folder: Path) -> None:
    """gradeq debias --by --report on a CSV"""
    from gradeq.cli import run

    rng = random.Random(0)
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["forecast", "actual", "store"])
        for _ in range(2000):
            forecast = rng.random()
            out.writerow([forecast, forecast + rng.gauss(0.3, 0.1), rng.choice("ab")])
    for number in range(2):
        recorder.codes.clear()
        words = ["debias", f"{folder}/rows.csv", "--prediction", "forecast", "--label", "actual"]
        words += ["--by", "store", "--report", f"{folder}/report{number}.html"]
        with redirect_stdout(io.StringIO()), recorder.recording():
            assert run(words) == 0


def http_label(recorder: Recorder, folder: Path) -> None:
    """a label, posted over HTTP"""
    from service.running import running

    threading.setprofile(recorder)
    try:
        with running(str(folder / "walk.db")) as server:
            layer = server.layer()
            for number in range(2):
                item = {"id": str(number), "prediction": 0.3}
                server.client.post(f"{layer}/predictions", json=item).raise_for_status()
                recorder.codes.clear()
                with recorder.recording():
                    item = {"id": str(number), "label": 0.5}
                    server.client.post(f"{layer}/labels", json=item).raise_for_status()
    finally:
        threading.setprofile(None)


def elo(recorder: Recorder, _: Path) -> None:
    """games, then the leaderboard"""
    for _ in range(2):
        layer = gq.Elo()
        recorder.codes.clear()
        with recorder.recording():
            layer.play("ann", "bob", 1.0)
            layer.play("bob", "cid", 0.5)
            layer.leaderboard()


WALKS: dict[str, Walk] = {
    "event": event,
    "columns": columns,
    "file": file_with_report,
    "http": http_label,
    "elo": elo,
}


def walked(name: str) -> list[Function]:
    """The functions of gradeq that the named walk passes; loops are interpreted, so that no timing decides."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, GRADEQ_COMPILE="0"):
        WALKS[name](recorder, Path(folder))
    return recorder.functions()


def main() -> None:
    """Print the counts, and with --list the functions of each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("walks", nargs="*", metavar="WALK", help=", ".join(WALKS))
    parser.add_argument("--list", action="store_true", help="name the functions of each file")
    arguments = parser.parse_args()
    for name in arguments.walks or WALKS:
        functions = walked(name)
        files = Counter(function.file for function in functions)
        title = WALKS[name].__doc__
        print(f"{name:8} {len(functions):4} functions in {len(files):3} files: {title}")
        if arguments.list:
            for file, count in files.most_common():
                names = ", ".join(each.name for each in functions if each.file == file)
                print(f"    {count:3} {file}: {names}")


if __name__ == "__main__":
    main()
