"""``python -m golden record PATTERN`` keeps what cases give today; ``compare``, ``show`` and ``list`` change nothing.

From the folder of the tests. A pattern is a name such as ``debias/option logit queue``, its beginning, or has * in
it; several are parted by ``;``. States are kept once and never replaced, unless ``--states`` asks for it.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from golden import families, trees


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m golden")
    parser.add_argument("do", choices=["record", "compare", "show", "list"])
    parser.add_argument("pattern", nargs="?", default="*")
    parser.add_argument("--states", action="store_true", help="replace the states too")
    given = parser.parse_args()
    every = [f"{family}/{name}" for family in families.MODULES for name in families.names(family)]
    chosen = trees.matching(every, given.pattern)
    if not chosen:
        print(f"no case is named {given.pattern}; see python -m golden list", file=sys.stderr)
        return 2
    if given.do == "list":
        print("\n".join(chosen))
        return 0
    asked: dict[str, list[str]] = {}
    for name in chosen:
        asked.setdefault(name.partition("/")[0], []).append(name.partition("/")[2])
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        # The longest first: Spark is started, and waits most of the time.
        order = sorted(asked, key=lambda family: (family != "spark", family != "debias"))
        jobs = [pool.submit(families.done, given.do, family, asked[family], given.states) for family in order]
        for job in jobs:
            print(job.result(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
