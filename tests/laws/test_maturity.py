"""With a maturity a label is learned when its row is that old, however early it came."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import BadInput, Diverging, LabelConflict

DAYS, EACH, SPAN = 14, 6, 5
KINDS = {
    "debias": lambda **own: gq.Debiaser(**own),
    "plain": lambda **own: gq.Debiaser(0.1, **own),
    "binary groups": lambda **own: gq.Debiaser(outcome="binary", groups="g", **own),
    "quantile": lambda **own: gq.QuantileTracker(0.7, **own),
    "quantiles": lambda **own: gq.MultiQuantileTracker([0.2, 0.8], **own),
    "interval": lambda **own: gq.IntervalTracker(0.8, **own),
    "ensemble": lambda **own: gq.QuantileEnsemble(0.7, [0.1, 0.5], 0.2, **own),
    "keyed": lambda **own: gq.Keyed(gq.Debiaser(0.1, **own)),
}


def rows_of(kind: str, seed: int = 0) -> list[tuple[int, str, float, float, dict[str, Any]]]:
    """Day, id, prediction, label and further arguments of every row."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(DAYS * EACH):
        more: dict[str, Any] = {"key": "ab"[k % 2]} if kind == "keyed" else {}
        if "groups" in kind:
            more["groups"] = {"g": "xy"[k % 2]}
        f, y = rng.uniform(0.1, 0.9) + 1.0 * ("binary" not in kind), float(rng.random() < 0.3)
        found.append((k // EACH, f"row {k}", float(f), y, more))
    return found


def lived(kind: str, arrivals: str, **own: Any) -> tuple[list[Any], str]:
    """What was served and the state after a life in which labels come in some order before their rows are mature."""
    layer: Any = KINDS[kind](maturity=SPAN, **own)
    rng, served = np.random.default_rng(7), []
    waiting: list[tuple[int, str, float]] = []
    for day in range(DAYS):
        for when, id, f, y, more in rows_of(kind):
            if when == day:
                served.append(layer.predict(f, id=id, time=day, **more))
                waiting.append((day, id, y))
        if arrivals == "backwards":
            waiting.reverse()
        elif arrivals == "shuffled":
            rng.shuffle(waiting)  # type: ignore[arg-type]
        late = []
        for when, id, y in waiting:
            now = arrivals != "shuffled" or day - when >= SPAN - 1 or rng.random() < 0.3
            if own and y == own["missing_is"] and arrivals != "at once":
                continue  # it never comes
            if now:
                assert layer.update(y, id=id, time=day) == "waiting"
            else:
                late.append((when, id, y))
        waiting = late
        layer = gq.from_json(layer.to_json()) if arrivals == "resumed" else layer
    for _, id, y in waiting:
        if not own or y != own["missing_is"]:
            assert layer.update(y, id=id) == "waiting"
    layer.advance(DAYS + 1)
    layer.internals.tickets.closed.clear()
    return served, layer.to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_and_time_of_arrival_before_maturity_do_not_matter(kind: str) -> None:
    first = lived(kind, "at once")
    for arrivals in ("backwards", "shuffled", "resumed"):
        assert lived(kind, arrivals) == first


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_label_counts_as_the_value_that_was_named(kind: str) -> None:
    served = lived(kind, "at once", missing_is=0.0)[0]
    assert lived(kind, "backwards", missing_is=0.0)[0] == served
    assert served == lived(kind, "at once")[0]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "keyed"])
@pytest.mark.parametrize("missing", [None, 0.0])
def test_columns_are_labels_that_come_at_maturity(kind: str, missing: float | None) -> None:
    rows = rows_of(kind)
    day, f, y = (np.array([row[k] for row in rows]) for k in (0, 2, 3))
    more = {"groups": {"g": [row[4]["groups"]["g"] for row in rows]}} if "groups" in kind else {}
    known = day + np.random.default_rng(3).integers(0, SPAN + 1, len(rows))
    mature: Any = KINDS[kind](maturity=SPAN, missing_is=missing)
    given = np.where((y == 0.0) & (missing is not None), np.nan, y)
    run = mature.run(f, given, times=day, label_times=known, **more)
    plain: Any = KINDS[kind](maturity=0)
    wanted = plain.run(f, y, times=day, label_times=day + SPAN, **more)
    assert np.array_equal(run.values, wanted.values)
    assert mature.internals.state.saved() == plain.internals.state.saved()
    pieces: Any = KINDS[kind](maturity=SPAN, missing_is=missing)
    for cut in (slice(0, 31), slice(31, 32), slice(32, None)):
        own = {"groups": {"g": more["groups"]["g"][cut]}} if more else {}
        pieces.run(f[cut], given[cut], times=day[cut], label_times=known[cut], **own)
    assert pieces.internals.state.saved() == plain.internals.state.saved()


def test_rows_of_a_run_with_ids_mature_in_later_runs_and_events() -> None:
    layer = gq.Debiaser(0.1, maturity="3d", missing_is=0.0)
    start = datetime(2024, 3, 1)
    layer.run([1.0, 1.0], [np.nan, np.nan], times=[start, start], ids=["a", "b"])
    assert layer.update(5.0, id="a") == "waiting"
    assert layer.update(5.0, id="a") == "duplicate"
    with pytest.raises(LabelConflict):
        layer.update(6.0, id="a")
    layer.run([1.0], times=[start + timedelta(days=3)], ids=["c"])
    assert layer.equilibrium().rows == 0  # labels that come on that day are learned with the others
    layer.run([1.0], times=[start + timedelta(days=4)], ids=["d"])
    assert layer.equilibrium().rows == 2
    assert layer.ids == {"a": "closed", "b": "closed", "c": "open", "d": "open"}
    assert layer.update(0.0, id="b") == "duplicate"
    with pytest.raises(LabelConflict):
        layer.update(1.0, id="b")
    assert layer.correct("b", 1.0) == "corrected"


def test_a_run_that_is_refused_leaves_missing_labels_open(monkeypatch: Any) -> None:
    def refuse(*_: Any) -> Any:
        raise Diverging("a step is too large")

    layer = gq.Debiaser(0.1, maturity=3, missing_is=0.0)
    for id in "abc":
        layer.predict(1.0, id=id, time=0)
    before = layer.to_json()
    monkeypatch.setattr("gradeq.layers.internals.run_columns", refuse)
    for verb, own in ((layer.run, {}), (layer.predict_many, {"ids": ["d", "e"]})):
        with pytest.raises(Diverging):
            verb([1.0, 1.0], times=[2, 30], **own)
        assert layer.to_json() == before


def test_advance_learns_what_is_mature_and_says_how_many() -> None:
    layer = gq.Debiaser(0.1, maturity=10)
    for k in range(3):
        layer.predict(1.0, id=k, time=k)
    assert [layer.update(2.0, id=k) for k in range(3)] == ["waiting"] * 3
    assert [layer.advance(time) for time in (9, 10, 11.5, 12, 13)] == [0, 1, 1, 1, 0]
    layer.predict(1.0, id="late", time=20)
    assert layer.update(2.0, id="late", time=31) == "applied"


def test_settings_that_make_no_sense_are_refused_in_one_line() -> None:
    for own, words in (
        ({"missing_is": 0.0}, "give maturity as well"),
        ({"maturity": "soon"}, "maturity='soon' is not a duration"),
        ({"maturity": -1}, "maturity=-1"),
        ({"maturity": 5, "ttl": 4}, "ttl 4 is not above maturity 5"),
        ({"maturity": 5, "ttl": 5}, "ttl 5 is not above maturity 5"),
        ({"maturity": 5, "ttl": 9, "missing_is": 0.0}, "leave out one of the two"),
        ({"maturity": 5, "missing_is": "no"}, "no"),
    ):
        with pytest.raises(BadInput, match=words):
            gq.Debiaser(**own)  # type: ignore[arg-type]
    layer = gq.Debiaser(maturity=5)
    with pytest.raises(BadInput, match="needs its time"):
        layer.predict(1.0, id="a")
    with pytest.raises(BadInput, match="needs times"):
        layer.run([1.0], [1.0])
    with pytest.raises(BadInput, match="needs times"):
        layer.predict_many([1.0])


def test_many_predictions_at_once_are_the_events_one_by_one() -> None:
    one, many = gq.Debiaser(maturity=2), gq.Debiaser(maturity=2)
    for day in range(6):
        ids = [f"{day} {k}" for k in range(4)]
        a = [one.predict(1.0, id=id, time=day) for id in ids]
        assert a == many.predict_many([1.0] * 4, ids=ids, times=[day] * 4)
        for layer in (one, many):
            assert layer.update_many([3.0] * 4, ids=ids, times=[day] * 4) == ["waiting"] * 4
    assert one.internals.state.saved() == many.internals.state.saved()


def test_a_label_at_the_very_age_of_maturity_waits_for_others_of_that_time() -> None:
    layer, after = gq.Debiaser(0.5, maturity=10, late_cap=None), np.nextafter(10.0, 11.0)
    for id in ("a", "b"):
        layer.predict(0.0, id=id, time=0)
    assert layer.predict(0.0, id="c", time=10) == 0.0
    assert layer.update(8.0, id="a", time=10) == "waiting"
    assert layer.predict(0.0, id="d", time=10) == 0.0 and layer.equilibrium().rows == 0
    assert layer.update(8.0, id="b") == "waiting"  # the clock stands at 10
    assert layer.predict(0.0, id="e", time=after) > 0.0 and layer.equilibrium().rows == 2
    for id in ("c", "d"):
        assert layer.update(8.0, id=id, time=20) == "waiting"
    assert layer.update(8.0, id="e", time=21) == "applied"  # later than its very age
    assert layer.equilibrium().rows == 5
    for times in ([10, 11], [10.0, 11.0]):  # whole numbers tell fewer moments apart
        layer = gq.Debiaser(0.5, maturity=10)
        layer.predict(0.0, id="a", time=0)
        assert layer.update(8.0, id="a") == "waiting"
        at, later = layer.run([0.0, 0.0], times=times).values
        assert at == 0.0 < later


@pytest.mark.parametrize("missing", [None, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_runs_with_ids_may_be_cut_anywhere(missing: float | None, seed: int) -> None:
    """Also where rows are just as old as the maturity: a label may still come at that time."""
    rng = np.random.default_rng(seed)
    n = 40
    day = np.sort(rng.integers(0, 12, n)).astype([int, float][seed % 2])
    known, ids = day + rng.integers(0, 9, n), np.arange(n)
    f, y = rng.normal(size=n), np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n))

    def made() -> Any:
        return gq.Debiaser(0.2, maturity=4, missing_is=missing)

    def ran(layer: Any, cut: slice) -> list[float]:
        given = {"times": day[cut], "label_times": known[cut], "ids": ids[cut].tolist()}
        return list(layer.run(f[cut], y[cut], **given).values)

    whole, pieces = made(), made()
    served = ran(whole, slice(None))
    ends = [0, *np.sort(rng.integers(0, n + 1, 3)).tolist(), n]
    again = [v for a, b in pairwise(ends) if a < b for v in ran(pieces, slice(a, b))]
    assert served == again and whole.internals.state.saved() == pieces.internals.state.saved()
    assert whole.ids == pieces.ids
    waits = {id for id, what in whole.ids.items() if what == "open"}
    old = set(ids[(day < day[-1] - 4) & np.isnan(y)].tolist())
    assert bool(old & waits) == (missing is None and bool(old))


def test_a_label_that_is_dated_before_the_clock_comes_at_the_clock() -> None:
    layer = gq.Debiaser(0.5, maturity=10)
    layer.predict(0.0, id="a", time=0)
    layer.predict(0.0, id="b", time=20)
    assert layer.update(8.0, id="a", time=5) == "applied"  # its row is 20 old, whatever is said


def test_a_label_of_a_column_that_comes_after_the_maturity_counts_as_missing() -> None:
    for ids in (None, ["a", "b", "c"]):
        layer = gq.Debiaser(0.5, maturity=10, missing_is=1.0)
        given = {"times": [0, 0, 30], "label_times": [10, 11, 40]}
        layer.run([0.0] * 3, [8.0, 8.0, 8.0], **given, ids=ids)
        found = layer.equilibrium()
        assert found.rows == 2 and found.bias_before == -(8.0 + 1.0) / 2


def test_a_missing_label_may_come_at_the_very_age_and_is_the_same_when_it_comes_later() -> None:
    layer = gq.Debiaser(0.5, maturity=10, missing_is=1.0)
    for id in "abc":
        layer.predict(0.0, id=id, time=0)
    layer.predict(0.0, id="d", time=10)
    assert layer.update(8.0, id="a", time=10) == "waiting"  # it is not missing yet
    with pytest.raises(LabelConflict, match=r"counts as 1\.0, not 8\.0"):
        layer.update(8.0, id="c", time=11)
    assert layer.update(1.0, id="b", time=11) == "duplicate"  # it counts as this by now
    assert layer.equilibrium().rows == 3
    assert layer.equilibrium().bias_before == pytest.approx(-10.0 / 3.0)


def test_rows_that_a_refused_run_had_counted_as_missing_queue_as_before(monkeypatch: Any) -> None:
    def refuse(*_: Any) -> Any:
        raise Diverging("a step is too large")

    layer = gq.Debiaser(0.1, maturity=3, missing_is=0.0, queue=True)
    layer.predict(1.0, time=2), layer.predict(2.0, time=0)
    monkeypatch.setattr("gradeq.layers.internals.run_columns", refuse)
    with pytest.raises(Diverging):
        layer.run([1.0, 1.0], times=[2, 30])
    assert layer.update(5.0, time=2) == "waiting"
    assert [own.ticket.base for own in layer.internals.tickets.waiting.values()] == [1.0]


def test_a_maturity_between_whole_numbers_counts_in_whole_times():
    columns, events = (gq.Debiaser(0.1, maturity=2.5) for _ in range(2))
    times = np.arange(8)
    run = columns.run(np.full(8, 10.0), np.full(8, 11.0), ids=times, times=times)
    served = []
    for k in range(8):
        served.append(events.predict(10.0, id=k, time=k))
        events.update(11.0, id=k, time=k)
    assert run.served.tolist() == served
    assert columns.ids == events.ids
