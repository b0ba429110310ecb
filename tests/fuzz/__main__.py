"""make fuzz: python -m fuzz [--runs N] [--seed S] [--jobs J]; failures are printed with the seed that finds them."""

import argparse
import sys
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext

import numpy as np

from fuzz.check import check
from fuzz.life import Life, lived
from fuzz.paths import check_paths
from fuzz.service_life import service_life
from fuzz.settings import case, lively, of_late_groups
from fuzz.telling import Broken
from fuzz.trees import tree


def life(seed, sizes=(60, 150)):
    """One life under an adversary, everything printed checked now and then: what it ended in."""
    rng = np.random.default_rng(seed)
    made = lively(rng, case(rng, seed))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "labels are held back")
            warnings.filterwarnings("ignore", "the weight .* outweighs all others")
            rows = int(rng.choice(sizes))
            return check(lived(made, rng, rows, lambda own: check(own, whole=False)))
    except Exception as error:
        raise told(error, made) from error


def late_groups(seed, sizes=(60, 150, 400)):
    """One life of a layer whose rows share parameters and whose labels come late: what it ended in."""
    rng = np.random.default_rng(3 * 10**9 + seed)
    made = of_late_groups(rng)
    late = float(rng.choice([0.3, 0.9, 1.0]))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the weight .* outweighs all others")
            rows = int(rng.choice(sizes))
            return check(Life(made, rng, rows, lambda own: check(own, whole=False), late=late))
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


def one_run(seed):
    """Whether a bound was held to, the failure in words and its trace: empty where nothing broke.

    Every third run looks not at what is printed, but whether every path gives the same, and merges; every sixth is of
    late labels and groups that overlap, one in sixty is a life of the service.
    """
    try:
        if seed % 60 == 20:
            service_life(seed // 60)
        if seed % 3 == 2:
            paths(seed // 3)
            return partitions(seed // 3) > 0, "", ""
        if seed % 6 == 4:
            return late_groups(seed // 6).bound is not None, "", ""
        return life(seed - seed // 3, (60, 150, 300)).bound is not None, "", ""
    except Broken as error:
        return False, str(error), "".join(traceback.format_exception(error.__cause__))
    except Exception as error:  # of the fuzzer itself: the other runs go on
        return False, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes share the runs")
    parser.add_argument("--trace", action="store_true", help="print where a failure came from")
    given = parser.parse_args()
    bounded = failed = 0
    began = time.monotonic()
    seeds = range(given.seed, given.seed + given.runs)
    with ProcessPoolExecutor(given.jobs) if given.jobs > 1 else nullcontext() as pool:
        outcomes = pool.map(one_run, seeds, chunksize=10) if pool else map(one_run, seeds)
        for seed, (found, told, trace) in zip(seeds, outcomes, strict=True):
            bounded += found
            if told:
                failed += 1
                print(f"seed {seed}: {told}", flush=True)
                if given.trace:
                    print(trace)
    seconds = time.monotonic() - began
    print(f"{given.runs} runs, {bounded} with a bound, {failed} broken, {seconds:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
