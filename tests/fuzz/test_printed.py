"""Lives under an adversary: nothing that is printed may be contradicted. ``make fuzz`` runs as many as you like."""

import numpy as np
import pytest

import gradeq as gq
from fuzz.__main__ import life
from fuzz.life import lived
from fuzz.settings import case, lively
from fuzz.table import AXES, SUPPORTED, options_of, picked
from gradeq.layers.options import TABLE

pytestmark = pytest.mark.filterwarnings("ignore:the weight .* outweighs all others")

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


@pytest.mark.filterwarnings("ignore:labels are held back")
def test_the_lives_reach_every_kind_of_event():
    """Weights of any size, clips, backups, predictions that are replaced, penalties, maturity: all are drawn."""
    reached, weights = set(), set()
    for seed in (*range(1, 400, 2), *range(691, 695, 2), *range(817, 821, 2)):  # rare ones among the last
        rng = np.random.default_rng(seed)
        made = lively(rng, case(rng, seed))
        one = lived(made, rng, 60)
        weights |= {row.given for row in one.rows}
        reached |= {name for name in ("clip", "support", "missing_is") if name in made.told}
        reached |= {"maturity"} if one.maturity else set()
        reached |= {made.combination.penalty, "late" if any(one.waited) else "at once"}
        reached |= {
            name
            for name in ("corrected", "merged", "restored", "replaced", "queue", "single", "held_back")
            if getattr(one, name)
        }
        reached |= {("queue", made.kind), ("keyed", made.keyed)} if one.queue else set()
        reached |= {("maturity", made.kind)} if one.maturity else set()
        reached |= {("restored", "maturity")} if one.restored and one.maturity else set()
        reached |= {"skipped" if row.time is None else "expired" for row in one.rows if row.lapsed}
        schedule = made.told.get("schedule")
        reached |= {"decay"} if isinstance(schedule, gq.Power) and schedule.alpha > 0.0 else set()
    assert reached >= {
        "clip", "support", "maturity", "missing_is", "ridge", "lasso", "proximal", "late", "at once",
        "corrected", "merged", "restored", "replaced", "queue", "single", "skipped", "expired", "decay",
        "held_back", ("queue", "debias"), ("queue", "quantile"), ("queue", "elo"), ("keyed", True),
        ("maturity", "debias"), ("maturity", "quantile"), ("maturity", "risk"), ("restored", "maturity"),
    }  # fmt: skip
    assert min(w for w in weights if w > 0.0) < 1e-5 and max(weights) > 1e5
