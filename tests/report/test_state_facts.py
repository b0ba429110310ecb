"""What a state says of coverage: shares of rows, and why no bound stands beside them."""

import numpy as np
import pytest

import gradeq as gq
from gradeq.report.state_facts import NO_JOINT_BOUND, coverages_of, groups_of, state_sentence, with_coverage_bound

LEVELS = np.round(np.arange(0.05, 1.0, 0.05), 2).tolist()


def fed(layer, base, rows=37, **where):
    """Labels that all lie on one side of the base forecast."""
    for k in range(rows):
        layer.post(layer.open(base, **where), float(k % 5))
    return layer


@pytest.mark.parametrize(("base", "covered"), [(-100.0, 0.0), (100.0, 1.0)])
def test_a_share_of_rows_is_never_below_none_or_above_all(base, covered):
    for level in LEVELS:
        one = lambda **own: gq.QuantileTracker(level, eta=0.1, **own)  # noqa: B023, E731
        for layer, where in (
            (one(), {}),
            (gq.Keyed(one()), {"key": "a"}),
            (one(groups=["g"]), {"groups": {"g": "a"}}),
        ):
            reached = fed(layer, base, **where).equilibrium()
            assert [c.before for c in coverages_of(layer, reached)] == [covered]
            assert all(group.before == covered for group in groups_of(layer, reached))
            assert f"coverage {covered:.3g} -> " in state_sentence(layer, reached)


@pytest.mark.parametrize("make", [
    lambda **own: (gq.QuantileTracker(0.9, eta=0.1, **own), 0.0),
    lambda **own: (gq.IntervalTracker(0.8, eta=0.1, **own), (0.0, 1.0)),
])  # fmt: skip
def test_where_no_bound_on_the_coverage_is_proven_the_reason_stands_there(make):
    layer, base = make(features=["x"])
    for k in range(60):
        layer.post(layer.open(base, features={"x": float(k % 3 - 1)}), float(k % 7))
    reached = layer.equilibrium()
    assert reached.bound is not None  # on each parameter
    assert with_coverage_bound(reached, coverages_of(layer, reached)).bound is None
    said = state_sentence(layer, reached)
    assert f"; no bound applies to coverage: {NO_JOINT_BOUND}; largest average gradient " in said
    layer, base = make()
    assert NO_JOINT_BOUND not in state_sentence(fed(layer, base), layer.equilibrium())
