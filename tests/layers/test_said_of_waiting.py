"""Rows that wait are told from rows without a label; spans and counts are written as people read them."""

import gradeq as gq
from gradeq.report.of_layer import story_of


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
    found = layer.in_flight
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
    assert (
        "10 rows wait for their label, 10 more will have none: nothing is claimed about them yet."
        in claims
    )
