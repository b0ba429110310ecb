"""Laws of losses, links, penalties and schedules."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_part import CLIPPED, HELD_AND_FREE, LINKS, LOSSES, PENALTIES, SCHEDULES
from gradeq.errors import GradeqError
from gradeq.links import Logit, Sigmoid, Sinh
from gradeq.losses import Expectile, Huber, Logistic, Poisson, Quantile
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Constant, Listed, Piecewise, Power, as_schedule

margins = st.floats(-40.0, 40.0)
labels = st.floats(-1.0, 3.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(u=margins, v=margins, y=labels)
def test_slope_is_a_subgradient_of_value(loss, u, v, y):
    y = min(max(y, getattr(loss, "low", -math.inf)), getattr(loss, "high", math.inf))
    y = max(0.0, y) if isinstance(loss, Poisson) else y
    line = loss.value(u, y) + loss.slope(u, y) * (v - u)
    scale = 1.0 + abs(loss.value(u, y)) + abs(loss.slope(u, y) * (v - u))
    assert loss.value(v, y) >= line - 1e-12 * scale


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(y=st.floats(0.0, 1.0))
def test_slope_at_the_label_is_still_a_subgradient(loss, y):
    """At the kink itself, from both sides."""
    for v in (y - 1e-3, y + 1e-3):
        assert loss.value(v, y) >= loss.value(y, y) + loss.slope(y, y) * (v - y) - 1e-15


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_loss_of_a_column_is_the_loss_of_each_element(loss):
    """numpy's floats and Python's give the same bits, so a column may hold either."""
    rng = np.random.default_rng(1)
    us, ys = rng.normal(size=50) * 3, np.round(rng.random(50), 1)
    for method in (loss.value, loss.slope):
        column = [float(method(u, y)) for u, y in zip(us, ys, strict=True)]
        assert column == [method(u, y) for u, y in zip(us.tolist(), ys.tolist(), strict=True)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_slope_increases_with_the_prediction(loss):
    grid = np.linspace(-5, 5, 101).tolist()
    slopes = [loss.slope(u, 0.5) for u in grid]
    assert slopes == sorted(slopes)


@pytest.mark.parametrize("link", LINKS, ids=repr)
@given(f=st.floats(0.01, 0.99), m=st.floats(-5, 5), step=st.floats(1e-3, 5))
def test_links_are_strictly_increasing_in_the_margin(link, f, m, step):
    assert link.serve(f, m + step) > link.serve(f, m)


@pytest.mark.parametrize("link", [k for k in LINKS if type(k).__name__ not in ("Sigmoid", "Exp")], ids=repr)
@given(f=st.floats(0.01, 0.99))
def test_links_serve_the_prediction_itself_at_margin_zero(link, f):
    assert link.serve(f, 0.0) == pytest.approx(f, rel=1e-12)
    assert Sinh().serve(f, 0.0, 3.0) == f


@pytest.mark.parametrize("held, free", HELD_AND_FREE, ids=repr)
@given(f=st.floats(0.0, 1.0), m=st.floats(-1e6, 1e6), y=st.floats(0.2, 0.8))
def test_limits_take_a_share_of_the_error_and_never_turn_it(held, free, f, m, y):
    """What every bound rests on: for a label inside, the error is a share in [0, 1] of that without limits."""
    inside, whole = held.serve(f, m) - y, free.serve(f, m) - y
    assert 0.2 <= held.serve(f, m) <= 0.8
    assert min(0.0, whole) <= inside <= max(0.0, whole)
    assert inside == whole or held.serve(f, m) in (0.2, 0.8)
    assert (held.reach(f), held.tracked(f, y)) == (free.reach(f), free.tracked(f, y))


@pytest.mark.parametrize("link", LINKS, ids=repr)
@given(f=st.floats(0.0, 1.0), m=st.floats(-1e6, 1e6))
def test_links_never_overflow(link, f, m):
    assert math.isfinite(link.serve(f, m))
    assert link.reach(f) >= 1.0


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
@given(a=margins, b=margins)
def test_penalty_slope_is_a_subgradient_of_its_value(penalty, a, b):
    assert penalty.value(b) >= penalty.value(a) + penalty.slope(a) * (b - a) - 1e-9


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_steps_are_positive_and_finite_from_one_on(schedule):
    assert all(0.0 < schedule.step(t) < math.inf for t in range(1, 200))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(0.0),
        lambda: Constant(-1.0),
        lambda: Constant(math.nan),
        lambda: Constant(math.inf),
        lambda: Power(0.1, 1.01),
        lambda: Power(0.1, -0.1),
        lambda: Power(0.1, math.nan),
        lambda: Piecewise((0.1, 0.2), ()),
        lambda: Piecewise((0.1, 0.2), (0,)),
        lambda: Listed((0.1, math.nan)),
        lambda: Listed((0.1,)).step(2),
        lambda: as_schedule("fast"),
        lambda: as_schedule(True),
        lambda: Quantile(0.0),
        lambda: Quantile(1.0),
        lambda: Quantile(math.nan),
        lambda: Quantile(1.5),
        lambda: Expectile(1.0),
        lambda: Huber(0.0),
        lambda: Huber(math.inf),
        lambda: Logistic(1.0, 1.0),
        lambda: Logistic(0.0, math.inf),
        lambda: Logit(0.5),
        lambda: Sigmoid(1.0, 0.0),
        lambda: Lasso(0.0),
        lambda: Ridge(math.nan),
    ],
)
def test_a_part_that_makes_no_sense_is_refused_in_one_line(make):
    with pytest.raises(GradeqError) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("part", [*LOSSES, *LINKS, *CLIPPED, *PENALTIES], ids=repr)
def test_parts_are_values(part):
    again = type(part)(*(getattr(part, name) for name in part.__dataclass_fields__))
    assert again == part
    assert hash(again) == hash(part)
    assert repr(part).startswith(type(part).__name__ + "(")
