"""Random layers and streams by every path: the same bits."""

import numpy as np
import pytest

from fuzz.paths import check_paths
from fuzz.settings import case


@pytest.mark.parametrize("first", range(0, 900, 100))
def test_every_path_gives_the_same_bits(first):
    for seed in range(first, first + 100):
        rng = np.random.default_rng(10**6 + seed)
        made = case(rng)
        try:
            check_paths(made, rng)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {made.kind} {made.told}: {error}") from None
