"""What a layer advises can be done: settings that it takes, in the words of JSON."""

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import GradeqError
from gradeq.report.charts import ChartSheet
from gradeq.service.dashboard.layer_page import layer_page
from gradeq.service.dashboard.overview import ServiceFacts, overview_of
from gradeq.service.layer_endpoints import equilibrium_answer
from gradeq.service.layer_spec import layer_of
from service.running import running
from service.test_overview import KINDS, known

SPECS = {
    "plain": {"kind": "debias", "eta": 1.9},
    "keyed": {"kind": "debias", "eta": 1.9, "keyed": True},
    "features": {"kind": "debias", "eta": 1.9, "features": ["x"]},
    "penalty": {"kind": "debias", "eta": 1.9, "penalty": "ridge", "strength": 0.1},
    "exp": {"kind": "debias", "eta": 0.9, "link": "exp"},
    "quantile": {"kind": "quantile", "level": 0.5, "eta": 5.0},
    "linear": {"kind": "quantile", "level": 0.5, "eta": 5.0, "link": "linear"},
    "conformal": {"kind": "conformal", "score": "absolute", "coverage": 0.5, "eta": 5.0},
}  # fmt: skip
RNG = np.random.default_rng(3)


def item_of(name):
    own = {"key": {"key": "a"}, "features": {"features": {"x": 1.0}}}
    return own["key"] if name == "keyed" else own["features"] if name == "features" else {}


def fed(name, late):
    layer, waiting = layer_of(SPECS[name]), []
    for y in RNG.normal(10.0, 2.0, 300):
        waiting.append((layer.open(10.0, **item_of(name)), float(y)))
        if len(waiting) > late:
            layer.post(*waiting.pop(0))
    return layer


@pytest.mark.parametrize("late", [0, 30])
@pytest.mark.parametrize("name", SPECS)
def test_auto_is_advised_only_where_it_is_taken(name, late):
    layer = fed(name, late)
    try:
        taken = bool(layer_of(SPECS[name] | {"eta": "auto"}))
    except GradeqError:
        taken = False
    notices = overview_of(layer, ServiceFacts("demand", 0.0, 9.0)).notices
    remedies = [n.remedy for n in notices if "apped" in n.claim or "got worse" in n.claim]
    assert remedies
    assert all(('"eta": "auto"' in remedy) == taken for remedy in remedies)
    assert all('"eta"' in remedy for remedy in remedies)


def test_warnings_over_http_have_no_options_of_the_command_line(tmp_path):
    with running(tmp_path / "store.db") as server:
        path = server.layer(eta=1.9)
        for k, y in enumerate(RNG.normal(0.0, 1.0, 60)):
            server.client.post(f"{path}/predictions", json={"id": k, "prediction": 0.0})
            server.client.post(f"{path}/labels", json={"id": k, "label": y})
        with server.service.desk.reading("default", "demand") as live:
            (warning,) = equilibrium_answer(live).warnings
    assert "--" not in warning["remedy"] and '`"eta": "auto"`' in warning["remedy"]


def test_a_late_score_of_a_proximal_elo_is_told_the_setting_to_use(tmp_path):
    with running(tmp_path / "store.db") as server:
        path = server.layer("league", kind="elo", eta=0.1, proximal=0.01)
        games = [{"id": k, "a": "ann", "b": "bob"} for k in range(3)]
        server.client.post(f"{path}/predictions", json=games)
        labels = [{"id": k, "label": 1.0} for k in range(3)]
        told = server.client.post(f"{path}/labels", json=labels).json()
    assert [one["status"] for one in told] == ["applied", "rejected", "rejected"]
    assert told[1]["remedy"] == 'use the setting "penalty": "lasso" with a "strength" for late ones'


@pytest.mark.parametrize(("kind", "word"), [("step", "Bias"), ("quantile", "Coverage")])
def test_a_capped_step_slows_what_the_layer_is_about(kind, word):
    make, base, labels, more = KINDS[kind]
    layer = gq.QuantileTracker(0.9, eta=0.5) if kind == "quantile" else make()
    tickets = [layer.open(f, **(more[k] if more else {})) for k, f in enumerate(base)]
    for ticket, y in zip(tickets, labels, strict=True):
        layer.post(ticket, y)
    (found,) = [n for n in overview_of(layer, known(layer, [])).notices if "capped" in n.claim]
    assert f"together. {word} " in found.evidence and "more slowly, but safely." in found.evidence


def test_one_label_is_not_called_labels():
    layer = gq.Debiaser(eta=0.05)
    layer.post(layer.open(1.0), 2.0)
    page = str(layer_page(overview_of(layer, known(layer, [])), ChartSheet(), False))
    assert "1 prediction, 1 label learned from" in page and "1 labels" not in page
