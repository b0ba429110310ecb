"""Partitions under adversaries, merged in random trees: nothing that is printed on the way may be contradicted."""

import contextlib

import gradeq as gq
from fuzz.check import check
from fuzz.life import Life


def partition(case, rng, k, rows, push):
    """One partition of so many rows, about names of its own or about those of others, and some open tickets.

    ``push``: all partitions are driven to the same end, so that what they learned adds up.
    """
    part = str(rng.choice(["", "", f"-{k}"]))
    life = Life(case, rng, 0, part=part, first=k * 10**6, alone=False)
    life.wild = False  # after a correction there is no bound to be held to
    if push:
        life.style, life.side, life.lost = "constant", 2, 0.0
        life.late *= float(rng.random() < 0.3)
    for t in range(rows):
        life.step(t)
    if not case.at_once and rng.random() < 0.7:  # served, and the labels are still to come
        usual, life.late, life.quiet = life.late, 1.0, 0
        for t in range(int(rng.integers(1, 4))):
            life.step(rows + t)
        life.late = usual
    return life


def tree(case, rng):
    """Partitions joined two at a time, whichever; between merges life goes on: how many bounds were printed.

    In every second tree one partition learns much, and the others have served a few rows at most.
    """
    bounds, push, alone = 0, rng.random() < 0.8, rng.random() < 0.5
    sizes = [0, 0, 1] if alone else [0, 1, 30, 90]
    rows = [120 if alone else 60, *rng.choice(sizes, int(rng.integers(1, 5))).tolist()]
    lives = [partition(case, rng, k, n, push) for k, n in enumerate(rows)]
    while len(lives) > 1:
        one, other = (lives.pop(int(rng.integers(len(lives)))) for _ in range(2))
        one.join(other, int(rng.choice([0, 0, 0, 3, 25])))
        if rng.random() < 0.7:
            with contextlib.suppress(gq.Diverging):
                one.release(100)
        bounds += check(one).bound is not None
        lives.append(one)
    return bounds
