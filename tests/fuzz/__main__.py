"""make fuzz: python -m fuzz [--runs N] [--seed S]; every failure is printed with the seed that finds it again."""

import argparse
import sys
import time
import traceback

import numpy as np

from fuzz.check import check
from fuzz.life import lived
from fuzz.paths import check_paths
from fuzz.settings import case
from fuzz.telling import Broken
from fuzz.trees import tree


def life(seed, sizes=(60, 150)):
    """One life under an adversary, everything printed checked now and then: what it ended in."""
    rng = np.random.default_rng(seed)
    made = case(rng, seed)
    try:
        return check(lived(made, rng, int(rng.choice(sizes)), lambda own: check(own, whole=False)))
    except Exception as error:
        raise told(error, made) from error


def paths(seed):
    """One stream by every path."""
    rng = np.random.default_rng(10**9 + seed)
    made = case(rng, seed)
    try:
        check_paths(made, rng)
    except Exception as error:
        raise told(error, made) from error


def partitions(seed):
    """Partitions merged in a random tree: how many bounds were printed on the way."""
    rng = np.random.default_rng(2 * 10**9 + seed)
    made = case(rng, seed)
    try:
        return tree(made, rng)
    except Exception as error:
        raise told(error, made) from error


def told(error, made):
    """A failure with what the layer was."""
    what = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
    return Broken(f"{what} in {tuple(made.combination)} {made.told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trace", action="store_true", help="print where a failure came from")
    given = parser.parse_args()
    bounded = failed = 0
    began = time.monotonic()
    for seed in range(given.seed, given.seed + given.runs):
        try:  # every third: not what is printed, but whether every path gives the same, and merges
            if seed % 3 == 2:
                paths(seed // 3)
                bounded += partitions(seed // 3) > 0
            else:
                result = life(seed - seed // 3, (60, 150, 300))
                bounded += result.bound is not None
        except Broken as error:
            failed += 1
            print(f"seed {seed}: {error}")
            if given.trace:
                traceback.print_exception(error.__cause__)
    seconds = time.monotonic() - began
    print(f"{given.runs} runs, {bounded} with a bound, {failed} broken, {seconds:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
