"""check_loss: a user's own loss, the whole story, and every way to get it wrong."""

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest

from every_part import LOSSES
from gradeq.checks import check_loss
from gradeq.engine.learner import Learner
from gradeq.errors import BadInput
from gradeq.losses import Absolute, Huber, Linear, Logistic, Poisson, Quantile, Squared
from gradeq.losses import Expectile as OwnExpectile
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
class Leaves:
    """Pushes away from the label within ``width``; beyond it the slope is 0, or points back."""

    width: float
    back: bool

    def value(self, u: float, y: float) -> float:
        r = u - y
        if abs(r) < self.width:
            return -0.5 * r * r
        return (abs(r) - self.width if self.back else 0.0) - 0.5 * self.width * self.width

    def slope(self, u: float, y: float) -> float:
        r = u - y
        if abs(r) < self.width:
            return -r
        return math.copysign(1.0, r) if self.back else 0.0


@dataclass(frozen=True)
class Downhill:
    """Falls all the way, within ``width`` of the label."""

    width: float

    def value(self, u: float, y: float) -> float:
        return -min(self.width, max(-self.width, u - y))

    def slope(self, u: float, y: float) -> float:
        return -1.0 if abs(u - y) < self.width else 0.0


@dataclass(frozen=True)
class Counts:
    """Poisson as one writes it down: exp of a large count overflows."""

    def value(self, u: float, y: float) -> float:
        return math.exp(u) - y * u

    def slope(self, u: float, y: float) -> float:
        return math.exp(u) - y


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
        own.run(own.start(), None, labels).served, ours.run(ours.start(), None, labels).served, atol=1e-12
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_our_own_losses_pass(loss):
    labels = (0.0, 1.0, 2.0) if isinstance(loss, Poisson) else (-0.5, 0.0, 0.5, 1.0)
    report = check_loss(loss, labels, quiet=True, raise_error=True)
    steep = {"several parameters"} if isinstance(loss, Poisson) else set()
    assert {found.what for found in report.findings if not found.passed} == steep, str(report)


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


UNITS = (1e-6, 1.0, 1e9)
LABELS = (-2.0, 0.0, 0.5, 1.0, 3.0)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("around", [0.0, 100.0])
def test_a_loss_points_back_in_any_unit(unit, around):
    labels = [unit * (around + y) for y in LABELS]
    own = (Squared(), Absolute(), Quantile(0.9), Huber(0.4 * unit), Expectile(0.7), Linear())
    for some in (labels, labels[:1]):
        for loss in own:
            report = check_loss(loss, some, quiet=True)
            assert all(found.passed for found in report.findings), str(report)
            assert "beyond the labels" in finding(report, "restorative").seen


@pytest.mark.parametrize("unit", UNITS)
def test_losses_of_a_margin_point_back_at_margins(unit):
    """u is a log or a logit there, whatever the unit of the labels; at the ends of their range the slope fades."""
    counts = [unit * y for y in (0.0, 0.5, 1.0, 3.0)]
    for loss in (Poisson(), Counts(), Logistic(0.0, 3.0 * unit), Logistic(-unit, 4.0 * unit)):
        for some in (counts, counts[:1], counts[-1:]):
            report = check_loss(loss, some, quiet=True)
            steep = isinstance(loss, (Poisson, Counts))
            assert all(found.passed for found in report.findings[:-1]), str(report)
            assert report.findings[-1].passed is not steep
    told = finding(check_loss(Poisson(), (0.0, 0.5, 1.0, 3.0), quiet=True), "restorative")
    assert told.seen == "at margins of 50 and more the slope points back, or fades"


@pytest.mark.parametrize("unit", UNITS)
def test_a_loss_that_points_away_is_told_in_any_unit(unit):
    for around in (0.0, 100.0, 1e4):
        labels = [unit * (around + y) for y in LABELS]
        leaving = (Leaves(1e3 * unit, back) for back in (False, True))
        for loss in (Away(), Downhill(1e3 * unit), *leaving):
            report = check_loss(loss, labels, quiet=True)
            assert report.passed, str(report)
            told = finding(report, "restorative")
            assert not told.passed
            assert told.seen.startswith("slope(")
            assert told.seen.endswith("points away from the labels: no bound holds")


def test_a_class_that_is_no_dataclass_is_interpreted():
    pytest.importorskip("numba")
    report = check_loss(Mutable(), quiet=True)
    assert report.passed
    assert "interpreted" in finding(report, "compiles").seen


def test_labels_that_fit_are_needed():
    with pytest.raises(BadInput, match="no label"):
        check_loss(Squared(), labels=(), quiet=True)


@dataclass(frozen=True)
class Boosting:
    """exp(-y u): with the default labels its slope overflows along a run, for labels of -1 and 1 it does not."""

    def value(self, u: float, y: float) -> float:
        return math.exp(-y * u)

    def slope(self, u: float, y: float) -> float:
        return -y * math.exp(-y * u)


def test_a_slope_that_overflows_is_reported_and_never_crashes():
    report = check_loss(Boosting(), quiet=True)
    assert [f.what for f in report.findings][-1] == "several parameters"
    assert check_loss(Boosting(), labels=(-1.0, 1.0), quiet=True).passed
    for steep in (2.0, 5.0, 30.0):
        found = check_loss(Boosting(), labels=(-steep, steep), quiet=True)
        assert all("\n" not in str(f) for f in found.findings)


SEVERAL = {
    "quantile": (Quantile(0.9), True, "lipschitz=0.9 and kappa=2.7"),
    "absolute": (Absolute(), True, "lipschitz=1 and kappa=3"),
    "huber": (Huber(1.0), True, "lipschitz=1 and kappa=2"),
    "logistic": (Logistic(), True, "lipschitz=1 and kappa=0.279"),
    "squared": (Squared(), True, "step x ||z||^2 below 2"),
    "expectile": (OwnExpectile(0.8), True, "step x ||z||^2 below 1.25"),
    "poisson": (Poisson(), False, "can diverge"),
    "boosting": (Boosting(), False, "can diverge"),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_what_holds_with_several_parameters_is_said(case):
    loss, passed, told = SEVERAL[case]
    finding = check_loss(loss, quiet=True).findings[-1]
    assert (finding.what, finding.passed) == ("several parameters", passed)
    assert told in finding.seen


@pytest.mark.parametrize("loss", [Quantile(0.9), Absolute(), Huber(1.0), Logistic()], ids=repr)
def test_the_promise_that_is_said_holds_in_a_bound(loss):
    """What check_loss says of a loss is what certificate asks for."""
    from gradeq.equilibrium import certificate

    labels = np.random.default_rng(3).choice([0.0, 0.5, 1.0], 400)
    seen = check_loss(loss, labels=labels[:20], quiet=True).findings[-1].seen
    lipschitz, kappa = (float(seen.split(name)[1].split(" ")[0].rstrip(",")) for name in ("lipschitz=", "kappa="))
    learner = Learner(loss, 0.2)
    rows = np.random.default_rng(4).uniform(-1.0, 1.0, (400, 3))
    state = learner.run(learner.start(3), rows, labels).state
    given = certificate(learner, state, lipschitz=lipschitz, kappa=kappa)
    assert given.bound == pytest.approx(certificate(learner, state).bound, rel=0.01)
