"""``python -m benchmarks.child CASE ROWS PEER``: seconds that a new process takes to import and run.

CPU, clock, and the mean of what was served.
"""

import sys
import time


def now() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def main(name: str, rows: int, peer: str) -> None:
    import numpy as np  # what both need

    before = now()
    if peer == "river":
        import river.linear_model  # noqa: F401
    else:
        import gradeq  # noqa: F401
    imported = now()
    from benchmarks.inputs import Data
    from benchmarks.peers.systems import entries

    job = entries(peer)[name].job(Data(rows))
    start = now()
    served = job()
    took = (i - b + e - s for b, i, s, e in zip(before, imported, start, now(), strict=True))
    print(*took, float(np.mean(np.asarray(served, dtype=float))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
