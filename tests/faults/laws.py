"""What must hold after a fault: files old or whole, the state last, no row learned from twice or lost."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import gradeq as gq
from faults.child import Ended, run_in_child

INPUTS = ("s.csv", "s2.csv", "p.csv", "g.csv", "labels.csv")
MINUTE = re.compile(rb"\d+ \w+ \d{4}, \d\d:\d\d UTC")
STOPPED = b"was stopped while it wrote its files"
SEEN = ("has seen these", "is in the state already", "the last one that the state has seen")


class Broken(AssertionError):
    """A law that did not hold."""


def files(folder: Path) -> dict[str, bytes]:
    """The outputs and states in a folder; what is hidden apart."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in INPUTS and not path.name.startswith(".gradeq-")
    }


def learned(folder: Path, job: Any) -> Any:
    """What the state of a job has learned; None without a state."""
    if "--state" not in job:
        return None
    layer = gq.load(folder / job[job.index("--state") + 1])
    return layer.internals.state.saved(), layer.ids, layer.traffic["served"]


def same(content: bytes, other: bytes) -> bool:
    """Whether two outputs are equal; a page has the minute when it was made, and may tell of a stopped run."""
    return MINUTE.sub(b"", content) == MINUTE.sub(b"", other) or STOPPED in content


class Trial:
    """One job: what it starts from, and what it leaves when nothing happens."""

    def __init__(self, name: str, job: Any, start: Path, work: Path) -> None:
        self.name, self.job, self.start = name, job, start
        self.work = work
        self.state = job[job.index("--state") + 1] if "--state" in job else None
        self.whole = self._copy("whole")
        done = run_in_child(self.whole, job)
        self.check(done.code == 0, done, "does not run")
        self.changes = done.changes
        self.before, self.after = files(start), files(self.whole)

    def _copy(self, name: str) -> Path:
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.start, folder)
        return folder

    def check(self, held: bool, done: Any, what: str) -> None:
        if not held:
            raise Broken(f"{self.name}: {what}: {done}")

    def killed(self, at: int) -> None:
        """A kill before a change of a file; the same call then finishes what is left to do."""
        folder = self._copy("killed")
        done = run_in_child(folder, self.job, kill=at)
        self.check(done.code is None, done, f"was not killed at {at}")
        left = files(folder)
        for name, content in left.items():
            old = content == self.before.get(name)
            if name == self.state and not old:  # it holds the mark of a page, which has its minute
                ours = learned(folder, self.job) == learned(self.whole, self.job)
                self.check(ours, name, f"killed at {at}, is neither old nor whole")
                continue
            self.check(old or same(content, self.after[name]), name, f"killed at {at}, is neither old nor whole")
        if self.finished(left):
            self.check(self.whole_in(left), list(left), f"killed at {at}, the state is ahead")
        self.again(folder, f"killed at {at}, then run again", left)

    def short(self, room: int) -> None:
        """No room for longer files: one line and nothing has changed, or all is there."""
        folder = self._copy("short")
        done = run_in_child(folder, self.job, room=room)
        left = files(folder)
        hidden = [name for name in os.listdir(folder) if name.startswith(".gradeq-")]
        self.check(not hidden, hidden, f"with room for {room} bytes, left behind")
        if done.code == 0:
            self.check(self.whole_in(left), list(left), f"with room for {room} bytes, is not whole")
            return
        self.refused(done, f"with room for {room} bytes")
        new = [name for name in left if left[name] != self.before.get(name)]
        if self.job[0] == "reproduce":  # figures come one after the other, and the line names those that came
            ours = all(name in done.err and same(left[name], self.after[name]) for name in new)
            self.check(ours, (new, done), f"with room for {room} bytes, is not told truly")
        else:
            self.check(not new, new, f"with room for {room} bytes, has changed")
        self.again(folder, f"after room for {room} bytes, run again", left)

    def finished(self, left: dict[str, bytes]) -> bool:
        """Whether the state has moved on."""
        return self.state is not None and left.get(self.state) != self.before.get(self.state)

    def whole_in(self, left: dict[str, bytes]) -> bool:
        """Whether all files of the run are there, and are its."""
        return left.keys() == self.after.keys() and all(
            name == self.state or same(left[name], self.after[name]) for name in left
        )

    def refused(self, done: Ended, when: str) -> None:
        one = done.err.startswith("gradeq: error: ") and done.err.count("\n") == 1
        self.check(done.code == 2 and one and not done.out, done, f"{when}, is no refusal")
        self.check("internal" not in done.err, done, f"{when}, is called a fault of gradeq's own")

    def again(self, folder: Path, when: str, left: dict[str, bytes]) -> None:
        """The same call without a fault."""
        done = run_in_child(folder, self.job)
        if self.finished(left) and self.job[0] != "label":  # labels that were learned from are duplicates
            self.refused(done, when)
            self.check(any(word in done.err for word in SEEN), done, f"{when}, is refused for")
        else:
            self.check((done.code, done.err) == (0, ""), done, f"{when}, fails")
        now = files(folder)
        self.check(now.keys() == self.after.keys(), list(now), f"{when}, leaves other files")
        other = [
            name for name in now
            if name != self.state and not same(now[name], self.after[name])
        ]  # fmt: skip
        self.check(not other, other, f"{when}, writes other outputs")
        self.check(
            learned(folder, self.job) == learned(self.whole, self.job), folder, f"{when}, has learned something else"
        )
