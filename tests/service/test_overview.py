"""What the dashboard shows of a layer, against the layer itself and against plain counting."""

import dataclasses
import json
import math

import numpy as np
import pytest

import gradeq as gq
from gradeq.certificates.figures import group_lateness
from gradeq.report.charts import ChartSheet
from gradeq.report.state_facts import coverages_of, groups_of
from gradeq.report.story import EloStory, as_json
from gradeq.service.dashboard.layer_page import layer_page
from gradeq.service.dashboard.overview import Check, ServiceFacts, overview_of
from gradeq.service.dashboard.pages import summarize
from gradeq.service.dashboard.trends import RecentLabels
from gradeq.service.runtime import ArrivedLabel

ROWS = 400
RNG = np.random.default_rng(5)
Y = RNG.normal(10.0, 2.0, ROWS).tolist()
NEAR = [y + e for y, e in zip(Y, RNG.normal(1.0, 1.0, ROWS).tolist(), strict=True)]
ENDS = [(f - 1.0, f + 1.0) for f in NEAR]
GROUPS = [{"groups": {"g": str(k % 3)}} for k in range(ROWS)]
KINDS = {
    "one": (lambda: gq.Debiaser(eta=0.05), NEAR, Y, None),
    "groups": (lambda: gq.Debiaser(groups=["g"]), NEAR, Y, GROUPS),
    "step": (lambda: gq.Debiaser(eta=0.05, groups=["g"]), NEAR, Y, GROUPS),
    "binary": (
        lambda: gq.Debiaser(outcome="binary"),
        RNG.uniform(0.1, 0.9, ROWS).tolist(),
        (RNG.uniform(size=ROWS) < 0.3).astype(float).tolist(),
        None,
    ),
    "exp": (lambda: gq.Debiaser(eta=0.01, link="exp"), [abs(f) + 1.0 for f in NEAR], Y, None),
    "quantile": (lambda: gq.QuantileTracker(0.9), NEAR, Y, None),
    "support": (lambda: gq.QuantileTracker(0.9, support=(5.0, 11.0)), NEAR, np.clip(Y, 5.0, 11.0).tolist(), None),
    "interval": (lambda: gq.IntervalTracker(0.8, groups=["g"]), ENDS, Y, GROUPS),
    "levels": (lambda: gq.MultiQuantileTracker([0.1, 0.9]), ENDS, Y, None),
    "conformal": (lambda: gq.Conformal("cqr", 0.9), ENDS, Y, None),
    "ensemble": (lambda: gq.QuantileEnsemble(0.9, [0.1, 0.5], 0.1), NEAR, Y, None),
    "weights": (
        lambda: gq.Debiaser(eta=0.05), NEAR, Y, [{"weight": float(k % 4)} for k in range(ROWS)]
    ),
}  # fmt: skip


def fed(kind, late=0):
    """A layer of a kind and its labels, each so many rows after its prediction, a second a row."""
    make, base, labels, more = KINDS[kind]
    layer, heard, waiting = make(), [], []
    for k, f in enumerate(base):
        waiting.append((float(k), layer.open(f, **(more[k] if more else {})), labels[k]))
        if len(waiting) > late:
            at, ticket, y = waiting.pop(0)
            heard.append(ArrivedLabel(k + 0.5, k + 0.5 - at, layer.post(ticket, y)))
    return layer, heard, [at for at, _, _ in waiting]


def known(layer, heard, opened=(), **more):
    return ServiceFacts("a layer", 0.0, float(ROWS), heard, opened, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_labels_all_of_them_average_to_what_the_certificate_says(kind):
    layer, heard, _ = fed(kind, late=3)
    reached = layer.equilibrium()
    covered = coverages_of(layer, reached)
    last = RecentLabels(heard, layer.kind, [c.target for c in covered]).last(ROWS)
    assert last.labels == reached.rows
    error = (covered[0].before, covered[0].after) if covered else (reached.bias_before, reached.bias_after)
    assert (last.error.before, last.error.after) == pytest.approx(error, rel=1e-9, abs=1e-9)
    assert (last.loss.before, last.loss.after) == pytest.approx((reached.loss_before, reached.loss_after))


@pytest.mark.parametrize("kind", KINDS)
def test_an_overview_is_plain_json_and_says_bias_or_coverage_with_the_loss(kind):
    layer, heard, opened = fed(kind, late=2)
    view = overview_of(layer, known(layer, heard, opened))
    told = json.loads(as_json(view))
    assert told["story"]["verdict"]["loss"]["before"] is not None
    assert view.moving is not None
    assert len(view.moving.x) == len(view.moving.after) == len(view.moving.loss_after)
    assert view.flight.open == 2
    brief = summarize(view)
    assert brief.loss
    assert brief.figure != "–"


def test_labels_in_flight_are_counted_as_they_were():
    rng = np.random.default_rng(3)
    layer = gq.Debiaser(eta=0.05)
    served = np.sort(rng.uniform(0.0, 1000.0, 300))
    labelled = served + rng.exponential(50.0, 300)
    labelled[rng.uniform(size=300) < 0.1] = math.inf  # these never come
    events = sorted(
        [(t, 0, k) for k, t in enumerate(served)] + [(t, 1, k) for k, t in enumerate(labelled) if t < 1000]
    )
    tickets, heard = {}, []
    for at, what, k in events:
        if what == 0:
            tickets[k] = layer.open(1.0)
        else:
            heard.append(ArrivedLabel(at, at - served[k], layer.post(tickets.pop(k), 2.0)))
    opened = [served[k] for k in sorted(tickets)]
    found = RecentLabels(heard[-150:], "debias", []).waiting(opened, 1000.0)
    truth = [sum((served <= x) & (labelled > x)) for x in found.x]
    assert list(found.open) == truth
    assert found.peak >= max(truth)


def test_the_step_now_of_a_group_is_that_of_its_next_label():
    layer, _, _ = fed("step", late=12)
    cells = group_lateness(layer, ["g=0", "g=1", "g=2", "g=3"])
    assert set(cells) == {"g=0", "g=1", "g=2"}
    for name, cell in cells.items():
        assert cell.peak > 1
        ticket = layer.open(1.0, groups={"g": name[2:]})
        assert layer.post(ticket, 1.0).eta == cell.step < layer.step


def test_fewer_groups_are_those_with_most_labels_and_claim_nothing_about_the_rest():
    layer = gq.IntervalTracker(0.8, groups=["g"])
    for k in range(300):
        layer.post(layer.open((0.0, 1.0), groups={"g": str(int(k**0.5))}), 0.5)
    reached = layer.equilibrium()
    every, few = groups_of(layer, reached), groups_of(layer, reached, 4)
    most = sorted(every, key=lambda g: -g.rows)[:4]
    assert [g for g in every if g in most] == list(few)


LIGHTS = {
    "healthy": ({}, "green", ""),
    "stopped": ({"stopped": "journal and ledger differ by 1 label"}, "red", "Learning stopped"),
    "unwritable": ({"unwritable": "disk full"}, "red", "Store not writable"),
    "failed check": ({"checks": [Check("Journal differs", False, "by 1")]}, "red", "Journal differs"),
}


@pytest.mark.parametrize("case", LIGHTS)
def test_lights_and_their_reasons(case):
    more, level, reason = LIGHTS[case]
    layer, heard, _ = fed("one")
    light = overview_of(layer, known(layer, heard, **more)).light
    assert (light.level, light.reason) == (level, reason)


def test_amber_lights_say_what_to_look_at():
    layer, heard, _ = fed("one", late=30)
    capped = overview_of(layer, known(layer, heard))
    assert (capped.light.level, capped.light.reason) == ("amber", "Step capped")
    assert "the layer's step is 0.05" in capped.notices[0].claim
    layer, heard, _ = fed("binary", late=3)
    late = overview_of(layer, known(layer, heard, [0.0]))
    assert (late.light.level, late.light.reason) == ("amber", "Labels overdue")
    layer.freeze()
    assert overview_of(layer, known(layer, heard)).light.reason == "Learning paused"
    layer = gq.Debiaser(eta=1.5)
    rng = np.random.default_rng(1)
    noise = [ArrivedLabel(float(k), 0.0, layer.post(layer.open(0.0), y)) for k, y in enumerate(rng.normal(size=200))]
    worse = overview_of(layer, known(layer, noise))
    assert (worse.light.level, worse.light.reason) == ("amber", "Squared error worse")
    assert "--" not in worse.notices[0].remedy  # settings of a layer, not options of the command line


def test_a_server_that_is_behind_others_says_by_how_much():
    layer, heard, _ = fed("one")
    for behind, said in ((None, False), ((3, 1204), True)):
        page = layer_page(overview_of(layer, known(layer, heard, behind=behind)), ChartSheet(), True)
        assert ("3 of their entries not read here yet, at most 1,204 so far" in page) is said


def test_a_leaderboard_has_an_overview_of_its_own():
    layer, rng = gq.Elo(), np.random.default_rng(2)
    heard = []
    for k in range(300):
        a, b = rng.choice(5, 2, replace=False)
        heard.append(
            ArrivedLabel(float(k), 0.0, layer.post(layer.open(f"p{a}", f"p{b}"), float(rng.uniform() < 0.6)))
        )
    view = overview_of(layer, known(layer, heard))
    assert isinstance(view.story, EloStory)
    loss = RecentLabels(heard, "elo", []).last(300).loss
    assert loss.after == pytest.approx(layer.equilibrium().loss_after)
    assert loss.before == pytest.approx(math.log(2.0))
    assert summarize(view).unit == "log loss"
    assert dataclasses.replace(view, name="b").name == "b"
