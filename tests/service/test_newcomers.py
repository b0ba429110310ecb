"""What people who used the service for the first time ran into, once each."""

import numpy as np
import pytest

import gradeq as gq
from gradeq.service.audit import audit_store
from gradeq.service.dashboard.pages import PageCache, Viewer
from gradeq.service.desk import Desk
from gradeq.service.layer_endpoints import equilibrium_answer
from gradeq.service.schemas import Label, Prediction

VIEWER = Viewer("t", True, "127.0.0.1")


def live(desk, spec, rows, rng, label=None):
    """A layer that has served and heard some rows: what was shown, and the labels."""
    desk.create("t", "own", spec)
    shown, labels = [], []
    for k in range(rows):
        f = float(rng.normal(100, 10))
        where = {"key": str(k % 3)} if spec.get("keyed") else {}
        where |= {"groups": dict.fromkeys(spec["groups"], "a")} if spec.get("groups") else {}
        (told,) = desk.predict("t", "own", [Prediction(id=k, prediction=f, **where)]).result()
        y = f + float(rng.normal()) if label is None else label(rng)
        (heard,) = desk.label("t", "own", [Label(id=k, label=y)]).result()
        assert (told.status, heard.status) == ("served", "applied")
        shown.append(told.adjusted)
        labels.append(y)
    return np.array(shown), np.array(labels)


BINS = [
    {"bins": [90, 100, 110]},
    {"bins": [100]},
    {"bins": [90, 100, 110], "groups": ["g"]},
    {"bins": [90, 110], "eta": "auto"},
    {"bins": [90, 110], "keyed": True},
]


@pytest.mark.parametrize("more", BINS, ids=str)
def test_a_layer_with_bins_has_its_figures_and_its_page(desk, more):
    live(desk, {"kind": "debias", "eta": 0.05, **more}, 60, np.random.default_rng(1))
    assert equilibrium_answer(desk.runtime("t", "own")).rows == 60
    pages = PageCache(desk, {})
    assert pages.layer(VIEWER, "own") and pages.home(VIEWER)


def test_a_layer_that_cannot_be_shown_hides_no_other(desk, monkeypatch):
    rng = np.random.default_rng(2)
    live(desk, {"kind": "debias", "eta": 0.05}, 5, rng)
    desk.create("t", "broken", {"kind": "debias", "eta": 0.05})
    pages, whole = PageCache(desk, {}), PageCache.overview

    def overview(self, tenant, name, within=1.0):
        if name == "broken":
            raise ValueError("a bug")
        return whole(self, tenant, name, within)

    monkeypatch.setattr(PageCache, "overview", overview)
    assert {one.name for one in pages.summaries("t")} == {"broken", "own"}
    assert pages.home(VIEWER)


@pytest.mark.parametrize("final", [None, 0.03])
def test_an_ensemble_with_and_without_a_final_tracker_is_audited_as_sound(desk, final):
    spec = {"kind": "ensemble", "level": 0.9, "etas": [0.1, 1], "ensemble_eta": 0.1, "final_eta": final}
    live(desk, spec, 20, np.random.default_rng(3))
    assert [own.faults for own in audit_store(desk.store)] == [[]]


def test_the_last_label_is_known_also_after_a_restart(desk):
    live(desk, {"kind": "debias", "eta": 0.05}, 3, np.random.default_rng(4))
    before = PageCache(desk, {}).overview("t", "own").last_label
    assert before is not None
    again = Desk(desk.store)
    again.layers.load_all()
    assert again.runtime("t", "own").last_label == before


def test_coverage_of_what_was_served_stands_beside_that_which_is_judged(desk):
    spec = {"kind": "quantile", "level": 0.2, "support": [0, 3], "eta": 0.5}
    shown, labels = live(desk, spec, 80, np.random.default_rng(5), lambda rng: float(max(0.0, rng.normal())))
    found = equilibrium_answer(desk.runtime("t", "own"))
    served = float(np.mean(labels <= shown))
    assert found.coverage["inside_limits"] == pytest.approx(served) != found.coverage["after"]
    assert f"inside them, {served:.3g})" in found.verdict
    page = PageCache(desk, {}).overview("t", "own")
    assert any("before the limits" in notice.claim for notice in page.notices)


KINDS = {
    "debias": lambda: gq.Debiaser(0.05),
    "quantile": lambda: gq.QuantileTracker(0.9),
    "plain quantile": lambda: gq.QuantileTracker(0.9, 0.1),
    "interval": lambda: gq.IntervalTracker(0.9),
    "levels": lambda: gq.MultiQuantileTracker([0.1, 0.9], 0.1),
    "conformal": lambda: gq.Conformal("absolute", 0.9),
    "ensemble": lambda: gq.QuantileEnsemble(0.9, [0.1, 1.0], 0.1),
    "keyed": lambda: gq.Keyed(gq.QuantileTracker(0.9, 0.1)),
}


@pytest.mark.parametrize("after", [19, 400])
@pytest.mark.parametrize("first", [0, 7], ids=["first", "eighth"])
@pytest.mark.parametrize("size", [1e12, 1e16, 1e30, 1e100])
@pytest.mark.parametrize("name", KINDS)
def test_a_loss_is_right_or_called_unknown_after_a_huge_label_is_corrected(name, size, first, after):
    layer, rng, losses, bad = KINDS[name](), np.random.default_rng(6), [], ""
    where = {"key": "a"} if name == "keyed" else {}
    served = {}
    for k in range(first + 1 + after):
        served[k] = layer.predict(100.0, id=k, **where)
        y = float(100 + rng.integers(0, 7))
        if k == first:
            bad, y = k, size
        layer.update(y, id=k)
        if k != first:
            losses.append(y)
    layer.correct(bad, 103.0)
    found = layer.equilibrium()
    reached_by_hand = np.mean([max(0.9 * (y - 100), 0.1 * (100 - y)) for y in [*losses, 103.0]])
    if found.loss_before is None:
        assert "not known" in found.verdict()
    elif name in ("quantile", "plain quantile", "keyed", "ensemble"):
        assert found.loss_before == pytest.approx(reached_by_hand, rel=2e-3)
    elif name == "debias":
        assert found.loss_before == pytest.approx(np.mean([(y - 100) ** 2 for y in [*losses, 103.0]]), rel=2e-3)


@pytest.mark.parametrize("kind", [{"kind": "debias", "eta": 0.05}, {"kind": "quantile", "level": 0.9}])
def test_an_absurd_first_label_is_refused(desk, kind):
    desk.create("t", "own", kind)
    desk.predict("t", "own", [Prediction(id=1, prediction=5.0)]).result()
    (told,) = desk.label("t", "own", [Label(id=1, label=1e150)]).result()
    assert told.status == "rejected" and "check both" in told.detail
    (told,) = desk.label("t", "own", [Label(id=1, label=7.0)]).result()
    assert told.status == "applied"
