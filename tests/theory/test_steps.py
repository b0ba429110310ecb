"""Steps that are refused, with the limit in the message."""

import math

import pytest

from gradeq.errors import StepTooLarge
from gradeq.theory import fifo_step_limit, require_open_mass, require_step, step_limit


@pytest.mark.parametrize("size", [0.5, 1.0, 4.0])
def test_the_squared_error_oscillates_at_its_limit_and_explodes_beyond(size: float) -> None:
    def end(eta: float) -> float:
        theta, z = 1.0, math.sqrt(size)
        for _ in range(2000):
            theta -= eta * (z * theta) * z
            if abs(theta) > 1e50:
                break
        return abs(theta)

    limit = step_limit("mean", size=size)
    assert end(0.99 * limit) < 1e-6
    assert end(limit) == pytest.approx(1.0)
    assert end(1.05 * limit) > 1e50


@pytest.mark.parametrize(
    ("eta", "task", "options", "limit"),
    [
        (2.0, "mean", {}, "2"),
        (0.6, "mean", {"size": 4.0}, "0.5"),
        (1.0, "mean", {"weight": 2.0}, "1"),
        (1.0, "mean", {"ridge": 0.5}, "1"),
        (0.5, "mean", {"delay": 2}, "0.4"),
        (3.0, "quantile", {"ridge": 0.5}, "2"),
    ],
)
def test_a_step_at_the_limit_is_refused_with_the_limit(
    eta: float, task: str, options: dict[str, float], limit: str
) -> None:
    with pytest.raises(StepTooLarge, match=f"needs eta below {limit};"):
        require_step(eta, task, **options)  # type: ignore[arg-type]
    require_step(0.9 * step_limit(task, **options), task, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan, math.inf])
def test_a_step_must_be_positive_and_finite(eta: float) -> None:
    with pytest.raises(StepTooLarge, match="positive and finite"):
        require_step(eta, "quantile")


def test_bounded_errors_allow_every_step() -> None:
    for task in ("quantile", "probability_logit", "probability_shift", "elo"):
        require_step(1e6, task)


def test_an_open_mass_of_one_is_refused() -> None:
    require_open_mass(0.999)
    for mass in (1.0, 2.0, math.nan):
        with pytest.raises(StepTooLarge, match="below 1"):
            require_open_mass(mass)


def test_arbitrary_order_costs_a_factor_of_half_pi_at_most() -> None:
    limits = [(d + 1) * fifo_step_limit(d) for d in (1, 2, 5, 10, 50, 409)]
    assert limits == pytest.approx([2.0, 1.85, 1.71, 1.64, 1.59, 1.57], abs=0.01)
    assert min(limits) > math.pi / 2


def test_no_step_is_promised_for_a_ridge_with_late_labels():
    for task in ("mean", "quantile", "probability_logit"):
        assert step_limit(task, ridge=0.1, delay=3) == 0.0 < step_limit(task, ridge=0.1)
