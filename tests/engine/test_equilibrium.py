"""What an Equilibrium says, and how it prints."""

import json
import math

import numpy as np
import pytest

from every_part import columns
from gradeq import Debiaser
from gradeq.engine.learner import Learner
from gradeq.equilibrium import Coordinate, Equilibrium, certificate, window
from gradeq.errors import BadInput
from gradeq.geometries import EntropicSimplex, Simplex
from gradeq.losses import Quantile, Squared


def group(name, gradient, **more):
    return Coordinate(name, 100, gradient, from_state=gradient, **more)


def test_coverage_is_read_off_the_state():
    """For a quantile the average gradient is coverage less level."""
    rng = np.random.default_rng(1)
    labels = rng.normal(size=500)
    learner = Learner(Quantile(0.9), 0.1)
    run = learner.run(learner.start(), None, labels)
    found = certificate(learner, run.state)
    assert found.largest == pytest.approx(np.mean(labels <= run.served) - 0.9, abs=1e-12)
    assert found.coordinates[0].from_state == pytest.approx(found.largest, abs=1e-12)
    assert found.exact


def test_constrained_residual_vanishes_where_the_gradient_does_not():
    """Greedy descent on a set brings avg(g + n) to zero, not avg g (result 7.1)."""
    learner = Learner(Squared(), 0.1, Simplex())
    state = learner.start(3)
    for _ in range(2000):
        state = learner.descend(state, [1.0, 1.0, 2.0])
    found = certificate(learner, state)
    assert found.residual < 0.01
    assert found.largest == pytest.approx(2.0)
    assert found.gap < 1e-12


def test_a_floor_keeps_exponentiated_gradient_in_equilibrium():
    """Result 7.3: ||avg(g + n)|| <= D / (eta T) + ||g_T|| / T with a floor; without one it stays large."""
    g, eta, t, k = [0.0, 1.0, 1.0], 0.2, 3000, 3
    found = {}
    for floor in (0.01, 0.0):
        learner = Learner(Squared(), eta, EntropicSimplex(floor))
        state = learner.start(k)
        for _ in range(t):
            state = learner.descend(state, g)
        found[floor] = certificate(learner, state).residual
    eps = 0.01
    far = (k - 1) * math.log(k * eps) ** 2 + math.log(k * (1 - (k - 1) * eps)) ** 2
    assert found[0.01] <= math.sqrt(far) / (eta * t) + math.sqrt(2.0) / t
    assert found[0.0] > 0.5


def test_the_norm_is_that_of_the_averages():
    found = Equilibrium(200, (group("a", -0.3), group("b", 0.4, average_penalty=1.0)))
    assert found.norm == math.hypot(-0.3, 0.4)
    assert found.as_dict()["certificate"]["norm"] == found.norm
    assert Equilibrium(0, ()).norm == 0.0


def test_no_unit_combination_of_features_has_a_larger_average_error_than_the_norm():
    """Multiaccuracy: the largest |average of error times z'a| over unit vectors a is the norm, and is attained."""
    rows, labels, raw = columns(200)
    layer = Debiaser(features=["a", "b", "c"], eta=0.05)
    served = layer.run(raw, labels, features=dict(zip("abc", rows.T, strict=True))).served
    found, errors = layer.equilibrium(), served - labels
    average = rows.T @ errors / 200
    assert found.norm == pytest.approx(np.linalg.norm(average), rel=1e-12)
    units = np.random.default_rng(0).normal(size=(2000, 3))
    units /= np.linalg.norm(units, axis=1)[:, None]
    tried = np.abs((errors * (units @ rows.T)).mean(axis=1))
    assert 0.95 * found.norm < tried.max() <= found.norm * (1.0 + 1e-12)
    assert found.norm > abs(found.largest)


def test_verdict_never_tells_bias_without_loss():
    text = Equilibrium(
        rows=6787,
        coordinates=(group("(all)", -0.0075),),
        bias_before=-0.113,
        bias_after=-0.0075,
        loss_name="squared error",
        loss_before=0.251,
        loss_after=0.208,
        bound=0.05,
        bound_from="C1",
    ).verdict()
    assert text == (
        "bias -0.113 -> -0.0075 over 6,787 rows; squared error 0.251 -> 0.208; "
        "certificate exact (gap 0); proven limit 0.05 (result C1)"
    )


def test_verdict_says_when_the_loss_got_worse_and_when_a_bound_is_vacuous():
    text = Equilibrium(
        10, (group("a", 0.1),), 0.2, 0.1, "log loss", 0.5, 0.6, bound=3.0, vacuous=True, exact=False
    ).verdict()
    assert "(worse)" in text
    assert "no worst-case guarantee" in text and "bound" not in text
    assert "stored sums" in text
    assert Equilibrium(0, ()).verdict() == "no labels yet: nothing to certify"


def test_table_is_sorted_by_what_remains_and_shows_only_filled_columns():
    cells = [group("small", 0.001, bias_after=0.01), group("large", 0.002, bias_after=-0.4, bound=1.5, vacuous=True)]
    lines = str(Equilibrium(200, tuple(cells))).splitlines()
    assert lines[2].startswith("large")
    assert lines[3].startswith("small")
    assert "loss before" not in lines[1]
    assert lines[2].endswith(" no guarantee") and "1.5" not in lines[2]
    many = Equilibrium(9, tuple(group(f"g{k}", k / 100) for k in range(50)))
    assert str(many).splitlines()[-1] == "... and 30 with less"


def test_as_dict_is_json_without_infinities():
    found = Equilibrium(3, (group("a", 0.5, bound=math.inf),), bound=math.inf)
    saved = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert saved["certificate"]["bound"] is None
    assert saved["coordinates"][0]["bound"] is None
    assert saved["certificate"]["from_state"] == {"a": 0.5}
    assert saved["bias"] == {"before": None, "after": None}


def test_windows_of_unrelated_states_are_refused():
    rows, labels, _ = columns(20)
    learner = Learner(Squared(), 0.1)
    state = learner.run(learner.start(3), rows, labels).state
    with pytest.raises(BadInput, match="one run"):
        window(learner, state, learner.start(3))
    with pytest.raises(BadInput, match="one run"):
        window(learner, learner.start([1.0, 0.0, 0.0]), state)
    with pytest.raises(BadInput, match="names"):
        certificate(learner, state, ["one"])
    assert certificate(learner, learner.start(3)).verdict().startswith("no labels yet")
