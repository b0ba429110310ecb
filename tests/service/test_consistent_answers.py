"""What the JSON of a layer says is what its verdict says, and what its page says: exact, vacuous, bound."""

import re

import numpy as np
import pytest

from gradeq.report.charts import ChartSheet
from gradeq.service.dashboard.layer_page import layer_page
from gradeq.service.dashboard.overview import overview_of
from gradeq.service.desk import Desk
from gradeq.service.layer_endpoints import equilibrium_answer
from gradeq.service.schemas import Label
from gradeq.service.store import open_store
from service.test_desk import SPECS, item_of, label_of
from service.test_overview import known

KINDS = SPECS | {
    "interval groups": {"kind": "interval", "coverage": 0.8, "eta": 0.1, "groups": ["g"]},
    "keyed interval": {"kind": "interval", "coverage": 0.8, "keyed": True},
    "keyed quantile": {"kind": "quantile", "level": 0.9, "keyed": True},
    "keyed levels": {"kind": "quantiles", "levels": [0.1, 0.5, 0.9], "keyed": True},
    "keyed groups": {"kind": "debias", "groups": ["g"], "keyed": True},
    "linear": {"kind": "quantile", "level": 0.9, "link": "linear", "eta": 0.1},
    "ensemble alone": {
        "kind": "ensemble", "level": 0.9, "etas": [0.1], "ensemble_eta": 0.1, "final_eta": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_exact_vacuous_and_bound_are_the_same_in_json_verdict_and_page(name, late, tmp_path):
    store = open_store(str(tmp_path / "store.db"))
    desk, spec, rng = Desk(store), KINDS[name], np.random.default_rng(6)
    desk.start()
    try:
        desk.create("t", "demand", spec)
        agree(desk, 0)
        told = 0
        for labels in (3, 60, 400):
            items = [item_of(spec, rng, k) for k in range(told, labels)]
            sent = [Label(id=k, label=label_of(spec, rng)) for k in range(told, labels)]
            if late:
                desk.predict("t", "demand", items).result()
                desk.label("t", "demand", sent).result()
            else:
                for item, own in zip(items, sent, strict=True):
                    desk.predict("t", "demand", [item])
                    done = desk.label("t", "demand", [own])
                done.result()
            told = labels
            agree(desk, told)
    finally:
        desk.stop()
        store.close()


def agree(desk, told):
    live = desk.runtime("t", "demand")
    found = equilibrium_answer(live)
    verdict, held = found.verdict, found.certificate
    assert held["exact"] is (not told or "certificate exact" in verdict)
    assert not told or held["constant_step"] is ("by the stored sums" not in verdict)
    gradient = ""
    if held["bound_on"] == "coverage":  # both bounds are named, in the verdict and in JSON
        verdict, _, gradient = verdict.partition("; largest average gradient ")
        assert gradient and "gradient_bound" in held
    if re.search(r"proven limit ([0-9.e+-]+)", gradient):
        shown = float(re.search(r"proven limit ([0-9.e+-]+)", gradient)[1])
        assert shown == pytest.approx(held["gradient_bound"], rel=1e-3)
    assert bool(held["vacuous"]) is ("no worst-case guarantee" in verdict)
    number = re.search(r"proven limit ([0-9.e+-]+)", verdict)
    assert (number is not None) is (told > 0 and held["bound"] is not None and not held["vacuous"])
    if number is not None:
        assert float(number[1]) == pytest.approx(held["bound"], rel=1e-3)
    if live.is_elo or not told:
        return  # a leaderboard has bounds of players
    view = overview_of(live.layer, known(live.layer, list(live.recent_labels)))
    shown = view.story.verdict.certificate
    assert shown.bound == held["bound"] or held["bound"] is None
    assert shown.vacuous is bool(held["vacuous"]) or shown.bound is None
    assert shown.bound is None or shown.value <= shown.bound
    page = str(layer_page(view, ChartSheet(), False))
    tile = page.split(">Certificate<")[1][:700]
    assert ("no guarantee" in tile) is shown.vacuous
    assert "tag bad" not in page
