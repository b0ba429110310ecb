"""Whatever is given for an argument: it is taken and works, or one line of the library's own names the argument."""

import inspect
import math

import numpy as np
import pytest

import gradeq as gq
from gradeq import GradeqError
from gradeq.inputs.arguments import as_shown
from laws.bad_values import ALSO, BESIDES, MAKERS, VALUES

NUMBERS = (
    "float", "float64", "longdouble", "int", "int64", "uint8", "Decimal", "Fraction", "ndarray",
)  # fmt: skip


def arguments():
    for maker in MAKERS:
        for name in inspect.signature(maker).parameters:
            yield pytest.param(maker, name, id=f"{maker.__name__} {name}")


def is_number(value):
    """A finite number; a flag or a text is none, and neither is a column."""
    if type(value).__name__ not in NUMBERS or getattr(value, "ndim", 0):
        return False
    try:
        return math.isfinite(float(value)) and getattr(value, "dtype", np.dtype(float)).kind in "iuf"
    except (ValueError, OverflowError, TypeError):
        return False


def taken_for(maker, name, value):
    """What is no finite number and yet sensible: words for steps, a schedule, no limit of a box."""
    if isinstance(value, str):
        return name == "eta" and value == "auto"
    return value is None or isinstance(value, gq.Power) or maker is gq.geometries.Box


def live(made):
    """Use what was made: a part at a few points, a layer for a few rows, saved and loaded."""
    if isinstance(made, gq.Called | gq.Constant | gq.Power | gq.Piecewise | gq.Listed):
        assert all(type(made.step(t)) is float and made.step(t) > 0 for t in (1, 2))
    elif isinstance(made, gq.Lasso | gq.Ridge):
        assert type(made.slope(2.0)) is float
    elif isinstance(made, gq.Conformal | gq.RiskControl):
        assert made.to_json()
    elif hasattr(made, "to_json"):
        again = gq.from_json(made.to_json())
        assert again.to_json() == made.to_json() and repr(again) == repr(made)
        for _ in range(3):
            if isinstance(made, gq.Elo):
                made.play("a", "b", 1.0) if hasattr(made, "play") else made.update("a", "b", 1.0)
                continue
            groups = {name: "u" for name in made.settings.get("groups", ()) if name != "prediction"}
            given = {"groups": groups} if groups else {}
            given |= {"time": 5.0} if made.settings.get("maturity") else {}
            given |= {"key": "k"} if isinstance(made, gq.Keyed) else {}
            made.predict(0.5, **given), made.update(1.0)
        assert gq.from_json(made.to_json()).equilibrium() == made.equilibrium()


@pytest.mark.filterwarnings("ignore::gradeq.GradeqWarning")
@pytest.mark.parametrize(("maker", "name"), list(arguments()))
def test_an_argument_is_taken_and_works_or_is_refused_by_name(maker, name):
    good = {**MAKERS[maker], **BESIDES.get((maker.__name__, name), {})}
    usual = inspect.signature(maker).parameters[name].default
    numeric = isinstance(good.get(name, usual), float)
    faults = []
    for value in VALUES:
        shown = as_shown(value)
        try:
            made = maker(**{**good, name: value})
        except GradeqError as refusal:
            words = (name, name.rstrip("s"), name.partition("_")[2] or name, *ALSO.get(name, ()))
            if "\n" in str(refusal) or not any(word in str(refusal) for word in words):
                faults.append(f"{shown}: {refusal}")
            elif len(str(refusal)) > 400:
                faults.append(f"{shown}: a line of {len(str(refusal))} letters")
            continue
        except Exception as error:
            faults.append(f"{shown}: {type(error).__name__}: {error}")
            continue
        if numeric and not is_number(value) and not taken_for(maker, name, value):
            faults.append(f"{shown}: taken as a number")
        try:
            if not callable(value):
                live(made)
        except GradeqError as refusal:
            if name != "features" and "past the last" not in str(refusal):
                faults.append(f"{shown}: taken, then {refusal}")
        except Exception as error:
            faults.append(f"{shown}: taken, then {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


def test_the_examples_of_the_report():
    for call, words in (
        (lambda: gq.Lasso(None), r"Lasso\(strength=None\)"),
        (lambda: gq.Lasso("x"), r"Lasso\(strength='x'\)"),
        (lambda: gq.Power(None, 0.5), r"Power\(eta=None\)"),
        (lambda: gq.Power(0.1, None), r"Power\(alpha=None\)"),
        (lambda: gq.Debiaser(link=[]), r"link=\[\]"),
        (lambda: gq.Debiaser(link=""), "link=''"),
        (lambda: gq.Learner(gq.Squared(), range(3)), "schedule=range"),
        (lambda: gq.Learner(gq.Squared(), 0.1, penalty="x"), "penalty='x'"),
        (lambda: gq.Learner(gq.Squared(), 0.1, lazy="no"), "lazy='no'"),
        (lambda: gq.check_loss(gq.Squared(), labels=5), "labels=5"),
        (lambda: gq.check_loss(gq.Squared(), quiet="no"), "quiet='no'"),
    ):
        with pytest.raises(gq.BadInput, match=words):
            call()
