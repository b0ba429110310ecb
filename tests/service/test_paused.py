"""Labels that come while learning is frozen: heard, counted, in no average, and said to be so."""

import pytest

import gradeq as gq
from gradeq.report.charts import ChartSheet
from gradeq.report.sentences import text
from gradeq.report.state_facts import state_sentence
from gradeq.service.dashboard.layer_page import layer_page, verdict_sentence
from gradeq.service.dashboard.overview import ServiceFacts, overview_of
from gradeq.service.runtime import ArrivedLabel
from service.running import running
from service.test_overview import ROWS, fed, known

HEARD = "52 labels came while learning was paused: not learned from, not in these averages"


def paused(learned=0, heard=52):
    layer = gq.Debiaser(eta=0.1)
    for k in range(learned + heard):
        if k == learned:
            layer.freeze()
        layer.post(layer.open(1.0), 3.0)
    layer.resume()
    return layer


@pytest.mark.parametrize("learned", [0, 10, 40])
def test_verdict_and_page_name_the_labels_that_came_while_learning_was_paused(learned):
    layer = paused(learned)
    short = state_sentence(layer, layer.equilibrium())
    view = overview_of(layer, ServiceFacts("demand", 0.0, 9.0))
    page = str(layer_page(view, ChartSheet(), False))
    assert short.endswith(f"; {HEARD}")
    assert text(verdict_sentence(view)).endswith(f" {HEARD}.")
    assert view.light.reason == ("" if learned >= 30 else f"{learned} labels learned from")
    assert "no labels yet" not in (short + page).lower()
    assert ("52 labels received" in page) == (learned == 0)


def test_nothing_is_said_of_a_pause_in_which_no_label_came():
    layer = paused(40, 0)
    assert "paused" not in state_sentence(layer, layer.equilibrium())


def test_answers_say_whether_a_label_was_learned_from_when_it_is_sent_again_too(tmp_path):
    with running(tmp_path / "store.db") as server:
        path = server.layer(eta=0.5)

        def label(id, y, **more):
            answer = server.client.post(f"{path}/labels", json={"id": id, "label": y, **more})
            return answer.json()["status"], answer.json().get("learning", True)

        def control(do):
            assert server.client.post(f"{path}/control", json={"do": do}).status_code == 200

        items = [{"id": id, "prediction": 1.0} for id in ("a", "b")]
        server.client.post(f"{path}/predictions", json=items)
        assert label("a", 2.0) == ("applied", True)
        control("freeze")
        assert label("b", 2.0) == ("applied", False)
        assert label("b", 2.0) == ("duplicate", False)
        assert label("a", 2.0) == ("duplicate", True)
        control("resume")
        assert label("b", 2.0) == ("duplicate", False)
        assert label("b", 3.0, correct=True) == ("corrected", False)
        found = server.client.get(f"{path}/equilibrium").json()
    assert (found["rows"], found["labelled"], found["paused"]) == (1, 2, 1)
    assert "1 label came while learning was paused" in found["verdict"]


def test_labels_that_came_while_learning_was_paused_are_in_no_chart_of_errors():
    layer, heard, _ = fed("one", late=3)
    layer.freeze()
    for k in range(ROWS):
        heard.append(ArrivedLabel(float(ROWS + k), 2.0, layer.post(layer.open(0.0), 99.0)))
    layer.resume()
    view = overview_of(layer, known(layer, heard))
    before = overview_of(*(lambda own, came, _: (own, known(own, came)))(*fed("one", late=3)))
    assert view.moving == before.moving and view.spark == before.spark and view.last == before.last
    assert view.moving.x[0] >= view.moving.begin == 1.0
    assert sum(view.flight.delays.counts) == view.labels + ROWS
