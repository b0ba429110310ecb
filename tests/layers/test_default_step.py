"""A step left out is auto where auto applies, else the task's own constant; both have a name."""

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import BadInput

TRACKERS = [
    (lambda **more: gq.Debiaser(**more), 0.01),
    (lambda **more: gq.Debiaser(outcome="binary", **more), 0.03),
    (lambda **more: gq.Debiaser(groups=["g", "h"], **more), 0.005),
    (lambda **more: gq.QuantileTracker(0.9, **more), 0.1),
    (lambda **more: gq.MultiQuantileTracker([0.1, 0.9], **more), 0.1),
    (lambda **more: gq.IntervalTracker(0.8, groups=["g"], **more), 0.1),
]


@pytest.mark.parametrize(("make", "eta"), TRACKERS)
def test_left_out_is_auto_alone_and_plain_inside_keyed(make, eta):
    assert make().settings == make(eta="auto").settings
    assert make(eta="plain").settings == make(eta=eta).settings
    assert gq.Keyed(make()).settings == gq.Keyed(make(eta=eta)).settings
    with pytest.raises(BadInput, match="cannot be keyed"):
        gq.Keyed(make(eta="auto"))
    assert gq.from_json(make().to_json()).eta == "auto"


@pytest.mark.parametrize(
    ("more", "eta"),
    [({"link": "exp"}, 0.01), ({"outcome": "binary", "link": "shift"}, 0.03), ({"penalty": gq.Ridge(0.1)}, 0.01)],
)
def test_left_out_is_plain_where_auto_does_not_apply(more, eta):
    assert gq.Debiaser(**more).eta == eta == gq.Debiaser("plain", **more).eta


def test_plain_is_no_step_where_one_is_required():
    for eta in (None, "plain"):
        with pytest.raises(BadInput, match="eta is required with features"):
            gq.Debiaser(eta, features=["x"])
        with pytest.raises(BadInput, match="eta is required with link='linear'"):
            gq.QuantileTracker(0.9, eta, link="linear")
    with pytest.raises(BadInput, match="not both"):
        gq.Debiaser("plain", schedule=gq.Power(0.1, 0.5))


def test_the_equilibrium_tells_how_the_layer_learns():
    rng, n = np.random.default_rng(3), 3000
    f, served_at = rng.normal(size=n), np.arange(n)
    y = np.where(rng.random(n) < 0.1, np.nan, f + 1.0 + rng.normal(size=n))
    layer = gq.Debiaser()
    layer.run(f, y, times=served_at, label_times=served_at + 40)
    found = layer.equilibrium().learning
    assert found.method == "auto" and found.eta == 0.01 and found.step == 0.1 / 40
    assert found.late == pytest.approx(39.0, abs=1.0) and found.latest == 39
    assert 300.0 < found.memory < 3000.0 and 0.0 <= found.raw < 0.05
    assert found.unlabelled == pytest.approx(0.11, abs=0.03)
    plain = gq.Debiaser(0.05)
    plain.run(f, y)
    told = plain.equilibrium().learning
    assert (told.method, told.step, told.memory, told.raw, told.latest) == ("plain", 0.05, None, None, 0)
    assert layer.equilibrium().as_dict()["learning"]["step"] == found.step


def test_a_loss_well_above_the_raw_one_is_told():
    y = np.where(np.arange(2000) // 40 % 2, 2.0, -2.0)
    layer, when = gq.Debiaser(), np.arange(2000)
    layer.run(np.zeros(2000), y, times=when, label_times=when + 40)
    assert "eta='plain' moves less" in layer.equilibrium().verdict()
