"""What a huge label leaves behind when it is corrected: no destroyed figure is shown, our own state is not broken."""

import math
import random

import pytest

import gradeq as gq
from gradeq.cli.audit import state_findings
from gradeq.errors import StateError

SETTINGS = (
    {"eta": "auto"}, {"eta": 0.05}, {"eta": "plain"}, {"eta": 0.05, "groups": "g"},
    {"eta": 0.05, "schedule": gq.schedules.Power(0.05, 0.3)},
)  # fmt: skip


def lived(settings, wrong, at=150, rows=200, corrected=True):
    """A layer that learned late from ``rows`` labels, one of them wrong and then corrected; the errors as served."""
    rng = random.Random(11)
    own = {k: v for k, v in settings.items() if k != "eta" or "schedule" not in settings}
    layer = gq.Debiaser(**own)
    served, labels = [], []
    for i in range(rows):
        f = rng.uniform(20, 60)
        given = {"groups": {"g": rng.choice("ab")}} if "groups" in own else {}
        served.append(layer.predict(f, id=i, **given))
        labels.append(f + rng.gauss(2.0, 5.0))
    for i, y in enumerate(labels):
        layer.update(wrong if i == at else y, id=i)
    if corrected:
        layer.correct(at, labels[at])
    return layer, [s - y for s, y in zip(served, labels, strict=True)]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("wrong", [41.0, 1e4, 1e6, 1e8, 1e12, -1e12, 1e18, 1e40])
def test_a_figure_that_is_shown_is_that_of_the_errors(settings, wrong):
    layer, errors = lived(settings, wrong)
    reached = layer.equilibrium()
    if reached.loss_after is not None:
        assert reached.loss_after == pytest.approx(math.fsum(e * e for e in errors) / len(errors), rel=2e-3)
    else:
        assert abs(wrong) >= 1e4 and "squared error not known" in reached.verdict()
        assert reached.as_dict()["loss"]["after"] is None
    if reached.bias_after is not None:
        spread = math.sqrt(math.fsum(e * e for e in errors) / len(errors))
        assert reached.bias_after == pytest.approx(math.fsum(errors) / len(errors), abs=2e-3 * spread)
    else:
        assert abs(wrong) >= 1e12 and "bias not known" in reached.verdict()
    assert (reached.loss_after is None) == ("squared error" in reached.hidden)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_ordinary_corrections_hide_nothing(settings):
    assert lived(settings, 90.0)[0].equilibrium().hidden == ()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("wrong", [41.0, 1e6, 1e12, 1e18])
@pytest.mark.parametrize("corrected", [True, False])
def test_a_state_of_our_own_is_never_called_damaged(settings, wrong, corrected, tmp_path):
    layer, _ = lived(settings, wrong, corrected=corrected)
    layer.save(tmp_path / "s.json")
    assert layer.equilibrium().balance != "broken"
    assert state_findings(str(tmp_path / "s.json"))["gap"] == layer.equilibrium().gap


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("wrong", [41.0, 1.7e9])
def test_a_lost_label_still_breaks_the_identity(settings, wrong, tmp_path):
    layer, errors = lived(settings, wrong)
    layer.internals.state.u[0] += layer.step * max(map(abs, errors))
    layer.save(tmp_path / "s.json")
    with pytest.raises(StateError, match="the identity is broken"):
        state_findings(str(tmp_path / "s.json"))
    assert "certificate broken" in layer.equilibrium().verdict()


def test_the_page_shows_no_destroyed_figure(tmp_path):
    layer, _ = lived({"eta": "auto"}, 1e12)
    layer.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Squared error since the state began: not known" in page
    assert "nan" not in page.partition("<script")[0].lower().replace("nanosecond", "")


@pytest.mark.parametrize("make", [lambda: gq.Debiaser(0.1), gq.Debiaser, lambda: gq.Debiaser(0.1, link="exp")])
def test_a_label_whose_loss_is_infinite_is_not_taken_back_and_the_state_can_be_read(make):
    layer = make()
    layer.predict(1.0, id="a")
    layer.update(1e200, id="a")
    before = layer.to_json()
    with pytest.raises(gq.BadInput, match="cannot be taken back"):
        layer.correct("a", 2.0)
    assert layer.to_json() == before == gq.from_json(before).to_json()
