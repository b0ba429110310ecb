"""Lives under an adversary: nothing that is printed may be contradicted. ``make fuzz`` runs as many as you like."""

import pytest

from fuzz.__main__ import life
from fuzz.table import AXES, SUPPORTED, options_of, picked
from gradeq.layers.combinations import TABLE

LIVES, STEP = 1800, 100


@pytest.mark.parametrize("first", range(0, LIVES, STEP))
def test_no_life_contradicts_what_is_printed(first):
    bounded = sum(life(seed).bound is not None for seed in range(first, first + STEP))
    assert bounded > 20  # many lives have a bound to be held to


def test_the_lives_reach_every_combination_that_is_supported():
    """An even turn draws nothing by chance, so the generator of random numbers is not asked."""
    assert {picked(None, turn) for turn in range(0, LIVES, 2)} == set(SUPPORTED)
    for kind in ("debias", "quantile", "elo"):
        assert set().union(*(entry.options for entry in TABLE[kind])) <= options_of(kind)
    assert set(TABLE) <= set(AXES)
