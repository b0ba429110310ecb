"""What is no setting is refused in one line of gradeq's own, by every layer and for every argument."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest

import gradeq as gq
from gradeq.errors import BadInput, GradeqError

MADE: dict[type, dict[str, Any]] = {
    gq.Debiaser: {"eta": 0.1},
    gq.QuantileTracker: {"level": 0.9},
    gq.MultiQuantileTracker: {"levels": [0.1, 0.9]},
    gq.IntervalTracker: {"coverage": 0.9},
    gq.QuantileEnsemble: {"level": 0.9, "etas": [0.1, 0.2], "ensemble_eta": 0.1},
    gq.Conformal: {"score": "absolute", "coverage": 0.8},
    gq.RiskControl: {"error": lambda theta, y: y > theta, "target": 0.25, "eta": 0.5},
    gq.Elo: {},
    gq.Keyed: {"layer": gq.Debiaser(0.1)},
}
ARGUMENTS = [(layer, name) for layer in MADE for name in list(inspect.signature(layer.__init__).parameters)[1:]]
STEPS = {"eta", "k", "home_step", "ensemble_eta", "final_eta"}
FLAGS = {"shadow", "warm", "dates", "home_advantage", "pool"}


@pytest.mark.parametrize(("layer", "name"), ARGUMENTS, ids=lambda own: getattr(own, "__name__", own))
def test_a_setting_of_a_wrong_type_is_refused_by_gradeq(layer: type, name: str) -> None:
    for wrong in ([object()], {1: 2}, object(), math.nan, b"x", -1, "no", 1 + 2j):
        listed = name in ("groups", "features") and isinstance(wrong, str)
        if listed or (callable(wrong) and name in ("score", "error")):
            continue
        try:
            layer(**MADE[layer] | {name: wrong})
        except GradeqError as refusal:
            assert "\n" not in str(refusal)
        else:  # a number where any number will do
            assert (name, wrong) == ("start", -1), (name, wrong)
    if name in STEPS:
        with pytest.raises(BadInput, match="True"):
            layer(**MADE[layer] | {name: True})
    if name in FLAGS:
        with pytest.raises(BadInput, match="True or False"):
            layer(**MADE[layer] | {name: "no"})


@pytest.mark.parametrize("layer", [gq.Debiaser(0.1), gq.Elo(), gq.Keyed(gq.Debiaser(0.1)),
                                   gq.RiskControl(**MADE[gq.RiskControl], span=(0.0, 1.0))], ids=repr)  # fmt: skip
def test_bounds_and_paths_that_are_none_are_refused(layer: Any) -> None:
    for bound in (-1, 0.0, "x", math.nan, None):
        with pytest.raises(BadInput, match="bound"):
            layer.labels_until(bound)
    for wrong in (None, 1.5, ["x"]):
        with pytest.raises(BadInput, match="path"):
            layer.save(wrong)
        with pytest.raises(BadInput, match="path"):
            gq.load(wrong)
