"""Starts `gradeq serve` in a moment: a process that has imported everything and forks itself for each server.

    python -m service.nursery

Each line of stdin is JSON: a fault, the words of a command, a file for its stderr; or the id of a process to kill.
The answer is the id of the process.
"""

import gc
import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

from service.bad_servers import FAULTS

# What a server imports, so that children need not; none of these starts a thread.
FIRST = ("gradeq.cli.serve", "gradeq.service.server", "gradeq.layers.debiaser", "psycopg")
FIRST += ("uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.http.auto")


def main() -> None:
    from gradeq.cli import run

    for name in FIRST:
        import_module(name)
    gc.freeze()
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        print(_killed(told) if isinstance(told, int) else _started(run, *told), flush=True)


def _started(run: Any, fault: str, words: list[str], errors: str) -> int:
    child = os.fork()
    if child:
        return child
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    told = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for own, other in ((0, nothing), (1, nothing), (2, told)):
        os.dup2(other, own)
    FAULTS[fault]()
    os._exit(run(words))


def _killed(child: int) -> int:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)  # until its last thread is gone, and its socket with it
    return child


if __name__ == "__main__":
    main()
