"""Runs the command in children that are killed at one write after the other; a script of its own, run by the tests.

    python killing.py FOLDER ARGUMENTS...

FOLDER holds the files before the run. For every k a copy of it, FOLDER-k, is what a run leaves that SIGKILL ends
just before its k-th call of the system that changes a file; the last copy is that of a run that went through.
"""

import os
import shutil
import signal
import sys
from importlib import import_module

from gradeq.cli import run

# What a run imports, so that children need not; none of these starts a thread.
FIRST = (
    "pyarrow.compute",
    "pyarrow.csv",
    "numba",
    "gradeq.layers.debiaser",
    "gradeq.layers.registry",
    "gradeq.layers.run",
)
FIRST += tuple(f"gradeq.cli.{name}" for name in ("debias", "job", "label", "label_job", "run_notices", "summary"))
CHANGING = ("open", "replace", "unlink", "fsync", "ftruncate", "pwrite")


def killed_at(k: int, arguments: list[str]) -> int:
    """Run the command; the k-th change of a file is the end of the process."""
    left = [k]

    def counted(call):  # type: ignore[no-untyped-def]
        def changed(*args, **given):  # type: ignore[no-untyped-def]
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **given)

        return changed

    for name in CHANGING:
        setattr(os, name, counted(getattr(os, name)))
    return run(arguments)


def main(folder: str, *arguments: str) -> None:
    """Kill run after run, until one goes through."""
    for name in FIRST:
        import_module(name)
    for k in range(1000):
        copy = f"{folder}-{k}"
        shutil.copytree(folder, copy)
        child = os.fork()
        if child == 0:
            os.chdir(copy)
            os._exit(killed_at(k, list(arguments)))
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status))
    sys.exit("never done")


if __name__ == "__main__":
    main(*sys.argv[1:])
