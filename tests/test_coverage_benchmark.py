"""The rules that gradeq's intervals are compared with do what their papers say, so the comparison is fair."""

import math

import numpy as np
import pytest

from benchmarks.coverage import RULES, covered
from benchmarks.online.aci import GAMMA, aci
from benchmarks.online.sf_ogd import sf_ogd
from benchmarks.online.window import Window
from benchmarks.quality_streams import Stream

LEVEL = 0.9


def stream(scores):
    n = len(scores)
    when = np.arange(n, dtype=float)
    return Stream(
        "made", "", "real", np.zeros(n), scores, np.array(["a", "b"])[np.arange(n) % 2], when, when
    )


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_covers_what_it_should_where_nothing_drifts(rule):
    scores = np.random.default_rng(1).exponential(3.0, 8000)
    found = covered(stream(scores), *RULES[rule](stream(scores)))
    assert found.error < 0.03 and found.worst_group < 0.04 and found.width > 0.0


def test_a_threshold_knows_nothing_of_the_score_that_it_is_for():
    """Whatever comes at a row and after it, what is served before is the same."""
    rng = np.random.default_rng(2)
    scores = rng.exponential(1.0, 1500)
    other = np.concatenate([scores[:900], 7.0 * rng.exponential(1.0, 600)])
    for name, rule in RULES.items():
        one, two = (np.stack(rule(stream(own)))[:, :901] for own in (scores, other))
        assert (one == two).all(), name


def test_the_window_has_the_conformal_quantile():
    rng = np.random.default_rng(3)
    scores, window = rng.normal(size=300), Window(50)
    for t, score in enumerate(scores.tolist()):
        kept = np.sort(scores[max(0, t - 50) : t])
        for level in (0.05, 0.5, 0.9, 0.999):
            k = math.ceil((len(kept) + 1) * level)
            assert window.quantile(level) == (kept[k - 1] if k <= len(kept) else math.inf)
        assert window.share_at_least(score) == pytest.approx(
            np.mean(kept >= score) if len(kept) else 1.0
        )
        window.add(score)


def test_steps_are_those_of_the_papers():
    """ACI: a_t moves by gamma (alpha - missed), which bounds its coverage error; SF-OGD: by D / sqrt(3) at first."""
    scores = np.random.default_rng(4).exponential(1.0, 4000)
    served = np.array(aci(scores.tolist(), LEVEL, 500))
    assert abs(np.mean(scores <= served) - LEVEL) <= (LEVEL + GAMMA) / (GAMMA * len(scores))
    found = sf_ogd([2.0, 2.0, 2.0], LEVEL, 3)
    rate, slopes = 2.0 / math.sqrt(3.0), (-0.9, -0.9)
    second = -rate * slopes[0] / math.sqrt(slopes[0] ** 2)
    assert found[:2] == pytest.approx([0.0, second])
    assert found[2] == pytest.approx(second + rate * 0.9 / math.sqrt(2 * 0.81))
