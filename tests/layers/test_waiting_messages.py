"""Rows that wait are told from rows without a label; spans and counts are written as people read them."""

import numpy as np
import pytest

import gradeq as gq
from gradeq.report.layer_story import story_of
from gradeq.report.state_facts import state_sentence


def test_a_time_to_live_is_written_as_it_was_typed():
    assert "ttl='40d'" in repr(gq.Debiaser(0.1, ttl="40d"))
    assert "ttl='90m'" in repr(gq.Debiaser(0.1, ttl="90m"))
    assert "ttl=30" in repr(gq.Debiaser(0.1, ttl=30))


def test_as_many_as_are_open_are_in_flight():
    layer = gq.Debiaser(0.1)
    for id in range(110):
        layer.predict(1.0, id=id)
        if id >= 98:
            layer.update(2.0, id=id)
    found = layer.traffic
    assert found["peak"] >= found["open"] == 98
    assert found["peak_lateness"] == 1


def test_rows_that_wait_are_not_said_to_have_no_label():
    layer = gq.Debiaser(0.1)
    for id in range(60):
        layer.predict(1.0, id=id)
        if id < 40:
            layer.update(2.0, id=id)
    claims = [notice.claim for notice in story_of(layer).notices]
    assert "20 rows wait for their label: nothing is claimed about them yet." in claims
    for id in range(50, 60):
        layer.forget(id)
    claims = [notice.claim for notice in story_of(layer).notices]
    assert "10 rows wait for their label, 10 more will have none: nothing is claimed about them yet." in claims


def test_a_page_of_a_run_draws_the_correction_as_it_was_served():
    rng = np.random.default_rng(2)
    for layer, y in (
        (gq.Debiaser(), rng.normal(8.0, 1.0, 2000)),
        (gq.Debiaser(outcome="binary"), (rng.random(2000) < 0.7).astype(float)),
        (gq.IntervalTracker(0.8), rng.normal(8.0, 1.0, 2000)),
    ):
        f = np.full(2000, 0.5 if layer.kind == "debias" and layer.outcome == "binary" else 5.0)
        run = layer.run(f, y)
        lines = story_of(layer, run).theta[0].lines
        assert len(lines) == (2 if layer.kind == "interval" else 1)
        last = np.atleast_2d(np.asarray(run.served).T)[-1][-50:].mean()
        moved = last - 5.0 if f[0] == 5.0 else np.log(last / (1.0 - last))
        assert abs(lines[-1].values[-1] - moved) < 0.25


def test_a_verdict_names_labels_that_are_held_back_and_does_not_call_them_not_due():
    layer = gq.Debiaser(outcome="binary")
    for id in range(60):
        layer.predict(0.02, id=id)
    with pytest.warns(gq.GradeqWarning, match="held back"):
        outcomes = [layer.update(1.0, id=id) for id in range(50, 56)]
    held = outcomes.count("waiting")
    found = layer.equilibrium()
    assert held > 1 and found.learning.held_back == held and found.learning.not_due == 0
    assert f"{held} labels are held back, not in these averages" in state_sentence(layer, found)
    assert f"{held} labels held back" in str(found.learning)
