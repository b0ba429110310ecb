"""Pages and figures from Python say what the layer itself says."""

import builtins
import re

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import BadInput, MissingExtra
from gradeq.report.layer_story import story_of
from report.test_equations import check_equations, text_of

N = 900
RNG = np.random.default_rng(4)
F = RNG.normal(100.0, 10.0, N)
G = RNG.choice(["north", "south"], N)
Y = F + np.where(G == "north", 4.0, -1.0) + RNG.normal(0.0, 5.0, N)
P = RNG.uniform(0.1, 0.9, N)
B = (RNG.uniform(size=N) < P**2).astype(float)
GROUPS = {"region": G}

LAYERS = {
    "debias": (gq.Debiaser(eta=0.05), F, Y, {}),
    "groups": (gq.Debiaser(eta=0.05, groups="region"), F, Y, {"groups": GROUPS}),
    "auto": (gq.Debiaser(groups="region"), F, Y, {"groups": GROUPS}),
    "binary": (gq.Debiaser(outcome="binary", groups="region"), P, B, {"groups": GROUPS}),
    "features": (gq.Debiaser(eta=0.01, features=["x"]), F, Y, {"features": {"x": P}}),
    "exp": (gq.Debiaser(link="exp"), F, Y, {}),
    "late": (gq.Debiaser(eta=0.1), F, Y, {"times": np.arange(N), "label_times": np.arange(N) + 40}),
    "quantile": (gq.QuantileTracker(0.9, groups="region"), F, Y, {"groups": GROUPS}),
    "interval": (gq.IntervalTracker(0.8, groups="region"), F, Y, {"groups": GROUPS}),
    "levels": (gq.MultiQuantileTracker([0.1, 0.5, 0.9]), F, Y, {}),
    "ensemble": (gq.QuantileEnsemble(0.9, [0.1, 1.0], 0.5), F, Y, {}),
    "keyed": (gq.Keyed(gq.Debiaser(eta=0.1)), F, Y, {"key": G}),
    "keyed quantile": (gq.Keyed(gq.QuantileTracker(0.9)), F, Y, {"key": G}),
    "keyed interval": (gq.Keyed(gq.IntervalTracker(0.8)), np.c_[F - 5, F + 5], Y, {"key": G}),
    "keyed levels": (gq.Keyed(gq.MultiQuantileTracker([0.1, 0.9])), F, Y, {"key": G}),
    "pooled": (gq.Keyed(gq.QuantileTracker(0.9), pool=True), F, Y, {"key": G}),
}


def ran(kind):
    layer, f, y, given = LAYERS[kind]
    layer = layer.copy()
    return layer, layer.run(f, y, **given)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_page_says_what_the_layer_says_and_a_run_adds_the_rows(kind, tmp_path):
    layer, run = ran(kind)
    before = layer.to_json()
    layer.report(tmp_path / "state.html")
    layer.report(tmp_path / "run.html", run)
    assert layer.to_json() == before
    alone, full = ((tmp_path / f"{name}.html").read_text() for name in ("state", "run"))
    assert "Over time" not in alone and "Over time" in full and "Served values" in full
    for page in (alone, full):
        check_equations(page)
        assert "nan" not in text_of(page).lower().split()
    story, reached = story_of(layer, run), layer.equilibrium()
    assert (story.verdict.loss.before, story.verdict.loss.after) == (
        reached.loss_before, reached.loss_after,
    )  # fmt: skip
    if story.verdict.bias is not None:
        assert story.verdict.bias.after == reached.bias_after


def test_the_groups_of_an_interval_have_the_coverage_of_their_rows():
    layer, run = ran("interval")
    inside = (run.served[:, 0] < Y) & (run.served[:, 1] >= Y)
    for group in story_of(layer).groups:
        assert group.after == pytest.approx(inside[group.name == G].mean(), abs=1e-9)
        assert group.target == 0.8


def test_the_bars_of_a_figure_are_the_errors_before_and_after():
    layer, run = ran("groups")
    figure = layer.plot(run)
    cells = sorted(layer.equilibrium().coordinates, key=lambda c: -c.rows)
    drawn = [bar.get_width() for bar in figure.axes[0].patches]
    assert drawn == [*(c.bias_before for c in cells), *(c.bias_after for c in cells)]
    assert len(figure.axes) == 2 and len(layer.plot().axes) == 1
    assert figure._repr_png_().startswith(b"\x89PNG"), "a notebook shows it without pyplot"


@pytest.mark.parametrize("kind", LAYERS)
def test_every_layer_that_has_a_page_has_a_figure(kind):
    layer, run = ran(kind)
    layer.plot(run).draw_without_rendering()


def test_elo_has_its_leaderboard(tmp_path):
    elo = gq.Elo()
    a, b = RNG.integers(0, 4, 600), RNG.integers(1, 4, 600)
    names = np.array(["ann", "bob", "cat", "$dan$"])
    elo.run(names[a], names[(a + b) % 4], (RNG.uniform(size=600) < 0.6).astype(float))
    elo.report(tmp_path / "elo.html")
    page = (tmp_path / "elo.html").read_text()
    check_equations(page, 1)
    assert all(name in page for name in names.tolist()) and "Leaderboard" in page
    elo.plot().draw_without_rendering()


def test_a_new_layer_has_a_page_that_claims_nothing(tmp_path):
    gq.Debiaser().report(tmp_path / "new.html")
    assert "No labels yet: nothing to judge." in (tmp_path / "new.html").read_text()


@pytest.mark.parametrize(
    "layer",
    [gq.RiskControl(lambda theta, y: y > theta, target=0.1, eta=0.1),
     gq.Conformal("absolute", 0.9), gq.Keyed(gq.QuantileTracker(0.9, eta=0.1, groups="g"))],
)  # fmt: skip
def test_a_layer_without_a_page_is_refused_and_leaves_no_file(layer, tmp_path):
    with pytest.raises(BadInput, match=r"(has|have) no page"):
        layer.report(tmp_path / "none.html")
    with pytest.raises(BadInput, match=r"(has|have) no page"):
        layer.plot()
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=re.escape('pip install "gradeq[report]"')):
        gq.Debiaser(eta=0.1).plot()


@pytest.mark.parametrize("kind", ["keyed quantile", "keyed interval", "keyed levels"])
def test_the_coverage_of_many_series_is_that_of_their_rows(kind):
    layer, run = ran(kind)
    story = story_of(layer)
    served = run.values.reshape(N, -1)
    below = Y[:, None] <= served
    inside = below if kind != "keyed interval" else (~below[:, :1] & below[:, 1:])
    for told, own in zip(story.verdict.coverage, inside.T, strict=True):
        assert told.after == pytest.approx(own.mean(), abs=1e-9)
    assert story.series.total == 2 and story.series.judged == 2
    for row in story.series.worst:
        key = row.name.partition(" at ")[0]
        level = 0 if len(inside.T) == 1 else [0.1, 0.9].index(row.target)
        assert row.after == pytest.approx(inside[key == G, level].mean(), abs=1e-9)
        assert row.bound is None or abs(row.after - row.target) <= row.bound


def test_groups_of_several_columns_stand_together(tmp_path):
    layer = gq.Debiaser(eta=0.01, groups=["region", "parity"])
    layer.run(F, Y, groups={"region": G, "parity": np.arange(N) % 3})
    assert [group.by for group in story_of(layer).groups] == 2 * ["region"] + 3 * ["parity"]
    layer.report(tmp_path / "groups.html")
    page = (tmp_path / "groups.html").read_text()
    assert len(re.findall(r'scope="colgroup"', page)) == 2


def test_a_page_says_what_the_limits_changed():
    counts = np.maximum(np.round(RNG.normal(0.5, 1.0, N)), 0.0)
    layer = gq.QuantileTracker(0.3, support=(0.0, None))
    run = layer.run(np.full(N, 0.4), counts)
    told = [n for n in story_of(layer).notices if "before the limits" in n.claim]
    covered = 100.0 * (counts <= run.served).mean()
    assert len(told) == 1 and f"covers {covered:.1f}" in told[0].evidence
    free = gq.QuantileTracker(0.3)
    free.run(np.full(N, 0.4), counts)
    assert not [n for n in story_of(free).notices if "before the limits" in n.claim]
