"""Lives under an adversary: nothing that is printed may be contradicted. ``make fuzz`` runs as many as you like."""

import numpy as np
import pytest

from fuzz.check import check
from fuzz.life import Life
from fuzz.settings import case


@pytest.mark.parametrize("first", range(0, 1500, 100))
def test_no_life_contradicts_what_is_printed(first):
    bounded = 0
    for seed in range(first, first + 100):
        rng = np.random.default_rng(seed)
        life = Life(case(rng), rng, int(rng.choice([60, 150])))
        try:
            bounded += check(life).bound is not None
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}, {life.case.kind} {life.case.told}: {error}"
            ) from None
    assert bounded > 30  # most lives have a bound to be held to
