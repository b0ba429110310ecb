"""Which steps are stable, and the refusal of those that are not."""

from __future__ import annotations

import math

from gradeq.errors import StepTooLarge


def step_limit(
    task: str,
    *,
    size: float = 1.0,
    weight: float = 1.0,
    ridge: float = 0.0,
    delay: int = 0,
) -> float:
    """The step that must not be reached: 2/(c^2 w) for the squared error, infinite for bounded errors.

    ``size`` is the largest squared norm c^2 of a feature row, ``weight`` the largest weight, ``ridge`` the
    strength lambda of a penalty (lambda/2)||theta||^2, ``delay`` the most tickets served while one is open
    (results 3.2, 5.2, 6.2, D3, and the features line of A1: c^2 eta (2 D + 1) < 2). With a ridge and late labels
    no step is proven: 0.

    >>> step_limit("mean"), step_limit("mean", size=4.0), step_limit("quantile")
    (2.0, 0.5, inf)
    """
    if ridge > 0.0 and delay > 0:
        return 0.0
    if task != "mean":
        return 1.0 / ridge if ridge > 0.0 else math.inf
    effective = size * weight
    if ridge > 0.0:
        return 1.0 / (ridge + effective / 2.0)
    return 2.0 / (effective * (2 * delay + 1)) if effective > 0.0 else math.inf


def require_step(
    eta: float,
    task: str,
    *,
    size: float = 1.0,
    weight: float = 1.0,
    ridge: float = 0.0,
    delay: int = 0,
) -> None:
    """Refuse a step that is not positive and finite, or not below :func:`step_limit`.

    >>> require_step(2.0, "mean")
    Traceback (most recent call last):
    gradeq.errors.StepTooLarge: eta = 2: the squared error needs eta below 2; take a smaller step
    """
    if not (math.isfinite(eta) and eta > 0.0):
        raise StepTooLarge(
            f"eta = {eta:g}: a step must be positive and finite; 0.01 is a safe start"
        )
    limit = step_limit(task, size=size, weight=weight, ridge=ridge, delay=delay)
    if eta >= limit:
        kind = "the squared error" if task == "mean" else "a ridge penalty"
        raise StepTooLarge(f"eta = {eta:g}: {kind} needs eta below {limit:g}; take a smaller step")


def require_open_mass(mass: float) -> None:
    """Refuse an open step mass of 1 or more for the squared error with late labels (result A1).

    Below 1 every schedule of labels is safe; above 1 a hold-and-release schedule diverges.

    >>> require_open_mass(1.5)
    Traceback (most recent call last):
    gradeq.errors.StepTooLarge: open step mass 1.5: late labels need it below 1; take a smaller step
    """
    if not mass < 1.0:
        raise StepTooLarge(
            f"open step mass {mass:g}: late labels need it below 1; take a smaller step"
        )


def fifo_step_limit(delay: int) -> float:
    """Exact limit for the squared error when every label comes ``delay`` rounds late (result 8.1).

        2 sin(pi / (2 (2 D + 1)))

    >>> fifo_step_limit(0), round(fifo_step_limit(1), 12)
    (2.0, 1.0)
    """
    return 2.0 * math.sin(math.pi / (2.0 * (2 * delay + 1)))
