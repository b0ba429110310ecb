"""A layer in shadow serves raw values: nothing that is said of it says that its own were served."""

import re

import numpy as np
import pytest

import gradeq as gq
from gradeq.report.charts import ChartSheet
from gradeq.report.layer_story import page_of
from gradeq.report.sentences import text
from gradeq.report.state_facts import state_sentence, worse_in_state
from gradeq.service.dashboard.layer_page import layer_page, verdict_sentence
from gradeq.service.dashboard.overview import ServiceFacts, overview_of
from gradeq.service.dashboard.pages import summarize
from service.running import running

Y = np.random.default_rng(11).normal(10.0, 2.0, 200).tolist()
KINDS = {
    "debias": (lambda **own: gq.Debiaser(eta=0.05, **own), lambda y: y - 3.0),
    "quantile": (lambda **own: gq.QuantileTracker(0.9, **own), lambda y: 10.0),
    "levels": (lambda **own: gq.MultiQuantileTracker([0.1, 0.9], **own), lambda y: (9.0, 11.0)),
    "interval": (lambda **own: gq.IntervalTracker(0.8, **own), lambda y: (9.0, 11.0)),
}  # fmt: skip
CLAIMS = re.compile(r"what was served is|Bias (?:removed|reduced)\.|covers|levels cover|fell from")


def fed(kind, **own):
    make, base = KINDS[kind]
    layer = make(**own)
    for y in Y:
        layer.post(layer.open(base(y)), y)
    return layer


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_in_shadow_says_what_would_have_been_served(kind):
    for shadow in (False, True):
        view = overview_of(fed(kind, shadow=shadow), ServiceFacts("demand", 0.0, 9.0))
        said = text(verdict_sentence(view))
        page = str(layer_page(view, ChartSheet(), False))
        assert said.startswith("In shadow, raw values are served. ") == shadow
        assert bool(CLAIMS.search(said)) != shadow
        assert ("before, then served" in page) != shadow
        assert summarize(view).what.endswith(", in shadow") == shadow
        assert ("In shadow, raw values are served." in page_of(fed(kind, shadow=shadow))) == shadow


def test_the_numbers_of_shadow_are_those_of_serving():
    live, shadow = (state_sentence(layer, layer.equilibrium()) for layer in (
        fed("debias"), fed("debias", shadow=True)
    ))  # fmt: skip
    assert shadow == f"in shadow raw predictions are served; adjusted ones would have given: {live}"


def test_what_would_be_worse_in_shadow_was_served_to_nobody():
    rng = np.random.default_rng(2)
    layer = gq.Debiaser(eta=0.9, shadow=True)
    for y in rng.normal(0.0, 1.0, 200):
        layer.post(layer.open(0.0), float(y))
    (found,) = worse_in_state(layer, layer.equilibrium())
    assert found.evidence.startswith("In shadow: none of it was served. ")


def test_equilibrium_over_http_says_that_a_layer_is_in_shadow(tmp_path):
    with running(tmp_path / "store.db") as server:
        path = server.layer(eta=0.5, shadow=True)
        empty = server.client.get(f"{path}/equilibrium").json()
        assert empty["shadow"] and empty["verdict"].startswith("no labels yet")
        served = server.client.post(f"{path}/predictions", json={"id": 1, "prediction": 1.0}).json()
        server.client.post(f"{path}/labels", json={"id": 1, "label": 3.0})
        reached = server.client.get(f"{path}/equilibrium").json()
    assert served["adjusted"] == 1.0
    assert reached["shadow"]
    assert reached["verdict"].startswith(
        "in shadow raw predictions are served; adjusted ones would have given: bias "
    )
