"""check_loss: a user's own loss, the whole story, and every way to get it wrong."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from every_part import LOSSES
from gradeq.checks import check_loss
from gradeq.engine.learner import Learner
from gradeq.errors import BadInput
from gradeq.losses import Expectile as OwnExpectile
from gradeq.losses import Poisson, Squared
from gradeq.schedules import Constant


@dataclass(frozen=True)
class Expectile:
    tilt: float

    # fmt: off
    def value(self, u: float, y: float) -> float: return abs(self.tilt - (y <= u)) * (u - y) ** 2
    def slope(self, u: float, y: float) -> float: return 2 * abs(self.tilt - (y <= u)) * (u - y)
    # fmt: on


@dataclass(frozen=True)
class ValueOfAnother:
    def value(self, u: float, y: float) -> float:
        return abs(u - y)

    def slope(self, u: float, y: float) -> float:
        return u - y


@dataclass(frozen=True)
class Arrays:
    def value(self, u: float, y: float) -> float:
        return np.square(np.array([u - y]))

    def slope(self, u: float, y: float) -> float:
        return 2.0 * (u - y)


@dataclass(frozen=True)
class Explodes:
    def value(self, u: float, y: float) -> float:
        return (u - y) ** 2

    def slope(self, u: float, y: float) -> float:
        return 2.0 * (u - y) if u < 100.0 else float("inf")


@dataclass(frozen=True)
class Chance:
    def value(self, u: float, y: float) -> float:
        return random.random()

    def slope(self, u: float, y: float) -> float:
        return 0.0


@dataclass(frozen=True)
class Away:
    def value(self, u: float, y: float) -> float:
        return -((u - y) ** 2)

    def slope(self, u: float, y: float) -> float:
        return -2.0 * (u - y)


@dataclass(frozen=True)
class Missing:
    def slope(self, u: float, y: float) -> float:
        return 0.0


@dataclass(frozen=True)
class Raises:
    def value(self, u: float, y: float) -> float:
        return 1.0 / u

    def slope(self, u: float, y: float) -> float:
        return 0.0


class Mutable:
    """No dataclass: it may be used, but runs interpreted."""

    def __init__(self) -> None:
        self.width = 2.0

    def value(self, u: float, y: float) -> float:
        return self.width * abs(u - y)

    def slope(self, u: float, y: float) -> float:
        return self.width if y <= u else -self.width


def finding(report, what):
    return next(found for found in report.findings if found.what == what)


def test_the_whole_story_of_a_users_own_loss(capsys):
    report = check_loss(Expectile(0.8))
    assert report.passed
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Expectile(tilt=0.8)"
    assert len(printed) == 1 + len(report.findings)
    assert all(line.startswith("  ok") for line in printed[1:])
    own, ours = (Learner(loss(0.8), Constant(0.05)) for loss in (Expectile, OwnExpectile))
    labels = np.random.default_rng(0).normal(size=2000)  # long enough for the compiled loop
    np.testing.assert_allclose(
        own.run(own.start(), None, labels).served,
        ours.run(ours.start(), None, labels).served,
        atol=1e-12,
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_our_own_losses_pass(loss):
    labels = (0.0, 1.0, 2.0) if isinstance(loss, Poisson) else (-0.5, 0.0, 0.5, 1.0)
    report = check_loss(loss, labels, quiet=True, raise_error=True)
    assert all(found.passed for found in report.findings), str(report)


@pytest.mark.parametrize(
    ("loss", "what", "told"),
    [
        (ValueOfAnother(), "subgradient", "rises by"),
        (Arrays(), "plain scalar", "ndarray"),
        (Explodes(), "finite", "inf"),
        (Chance(), "plain scalar", "then"),
        (Raises(), "plain scalar", "ZeroDivisionError"),
        (Missing(), "a value with two methods", "value(u, y)"),
        (Squared, "a value with two methods", "instance"),
        (3.0, "a value with two methods", "value"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_each_way_to_be_wrong_is_told_in_one_line(loss, what, told):
    report = check_loss(loss, quiet=True)
    assert not report.passed
    assert not finding(report, what).passed
    assert told in finding(report, what).seen
    assert all("\n" not in found.seen for found in report.findings)
    with pytest.raises(BadInput, match=what):
        check_loss(loss, quiet=True, raise_error=True)


def test_a_loss_that_pulls_away_may_be_used_but_has_no_bound():
    report = check_loss(Away(), quiet=True)
    assert report.passed
    assert not finding(report, "restorative").passed
    assert "not convex" in finding(report, "subgradient").seen


def test_a_class_that_is_no_dataclass_is_interpreted():
    pytest.importorskip("numba")
    report = check_loss(Mutable(), quiet=True)
    assert report.passed
    assert "interpreted" in finding(report, "compiles").seen


def test_labels_that_fit_are_needed():
    with pytest.raises(BadInput, match="no label"):
        check_loss(Squared(), labels=(), quiet=True)
