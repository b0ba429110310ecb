"""Lives under an adversary: nothing that is printed may be contradicted. ``make fuzz`` runs as many as you like."""

import numpy as np
import pytest

from fuzz.__main__ import life
from fuzz.life import lived
from fuzz.settings import case, matured
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


def test_the_lives_reach_every_kind_of_event():
    """Weights of any size, clips, backups, predictions that are replaced, penalties, maturity: all are drawn."""
    reached, weights = set(), set()
    for seed in range(1, 400, 2):
        rng = np.random.default_rng(seed)
        made = case(rng, seed)
        made = matured(rng, made) if rng.random() < 0.1 else made
        one = lived(made, rng, 60)
        weights |= {row.given for row in one.rows}
        reached |= {name for name in ("clip", "support", "missing_is") if name in made.told}
        reached |= {"maturity"} if one.maturity else set()
        reached |= {made.combination.penalty, "late" if any(one.waited) else "at once"}
        reached |= {
            name for name in ("corrected", "merged", "restored", "replaced") if getattr(one, name)
        }
    assert reached >= {
        "clip", "support", "maturity", "missing_is", "ridge", "lasso", "proximal", "late", "at once",
        "corrected", "merged", "restored", "replaced",
    }  # fmt: skip
    assert min(w for w in weights if w > 0.0) < 1e-5 and max(weights) > 1e5
