"""A time to live or a maturity such as 5d is a span of dates: a plain number as a time is refused."""

from datetime import UTC, date, datetime, timedelta

import pytest

import gradeq as gq

DAY = datetime(2024, 3, 1)
SPANS = [{"ttl": "5d"}, {"maturity": "5d"}, {"maturity": "5d", "ttl": "9d"}]
LAYERS = {
    "debias": gq.Debiaser,
    "quantile": lambda **own: gq.QuantileTracker(0.7, **own),
    "interval": lambda **own: gq.IntervalTracker(0.8, **own),
    "ensemble": lambda **own: gq.QuantileEnsemble(0.7, [0.1, 0.5], 0.2, **own),
    "keyed": lambda **own: gq.Keyed(gq.Debiaser(0.1, **own)),
    "elo": lambda **own: gq.Elo(0.1, **own),
}
CASES = [(k, s) for k in LAYERS for s in SPANS if k != "elo" or "maturity" not in s]


def row_of(kind):
    return ("a", "b") if kind == "elo" else (1.0,)


def key_of(kind):
    return {"key": "k"} if kind == "keyed" else {}


def columns_of(kind):
    key = {"key": ["k", "k"]} if kind == "keyed" else {}
    return (["a", "a"], ["b", "c"], [0.0, 1.0]) if kind == "elo" else ([1.0, 1.0], [1.0, 2.0]), key


def numbers_for_times(kind, layer):
    """Every verb that takes a time, called with a number."""
    columns, key = columns_of(kind)
    yield lambda: layer.predict(*row_of(kind), **key_of(kind), id="z", time=5)
    yield lambda: layer.expire(5)
    yield lambda: layer.run(*columns, times=[1, 2], **key)
    yield lambda: layer.run(*columns, times=[DAY, DAY], label_times=[1, 2], **key)
    if kind != "elo":
        yield lambda: layer.predict_many(columns[0], times=[1, 2], **key)
        yield lambda: layer.advance(5.0)


@pytest.mark.parametrize(("kind", "spans"), CASES)
def test_a_number_is_no_time_of_a_layer_with_a_span(kind, spans):
    layer = LAYERS[kind](**spans)
    for again in (False, True):
        layer = gq.from_json(layer.to_json()) if again else layer
        before = layer.to_json()
        for call in numbers_for_times(kind, layer):
            with pytest.raises(gq.BadInput, match=r"5d.*give dates") as error:
                call()
            assert "\n" not in str(error.value) and layer.to_json() == before
        layer = layer.copy()
    layer.predict(*row_of(kind), **key_of(kind), id="a", time=DAY)
    before = layer.to_json()
    for call in numbers_for_times(kind, layer):
        with pytest.raises(gq.BadInput, match="numbers"):
            call()
        assert layer.to_json() == before


@pytest.mark.parametrize("spans", SPANS)
@pytest.mark.parametrize("when", [date(2024, 3, 1), DAY, DAY.replace(tzinfo=UTC)], ids=repr)
def test_any_kind_of_date_may_come_first_and_merging_keeps_it(spans, when):
    layer, fresh = gq.Debiaser(0.1, **spans), gq.Debiaser(0.1, **spans)
    layer.predict(1.0, id="a", time=when)
    fresh.merge(layer)
    other = DAY if getattr(when, "tzinfo", None) else DAY.replace(tzinfo=UTC)
    for own in (layer, fresh):
        with pytest.raises(gq.BadInput, match="zone"):
            own.predict(1.0, id="b", time=other)
    plain = gq.Debiaser(0.1, ttl=5.0)
    plain.predict(1.0, time=3)
    plain.update(1.0)


def test_the_line_says_the_value_the_option_and_the_remedy():
    with pytest.raises(gq.BadInput) as error:
        gq.Debiaser(maturity="36h").predict(1.0, time=7.5)
    assert str(error.value) == (
        "time=7.5: with maturity='36h' times are dates, not numbers; give dates, or maturity as a number in the unit "
        "of your times"
    )


@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind != "elo"])
@pytest.mark.parametrize("maturity", [5, "5d"])
def test_a_prediction_without_a_time_never_matures_so_it_is_refused(kind, maturity):
    layer = LAYERS[kind](maturity=maturity)
    before = layer.to_json()
    with pytest.raises(gq.BadInput, match=r"maturity.*predict\(..., time=\)"):
        layer.predict(*row_of(kind), **key_of(kind), id="a")
    with pytest.raises(gq.BadInput, match="maturity"):
        layer.predict(*row_of(kind), **key_of(kind))
    assert layer.to_json() == before
    layer.post(layer.open(*row_of(kind), **key_of(kind)), 1.0)  # tickets in the caller's hands: the caller waits


def test_a_refused_row_of_a_new_group_is_not_the_last_event():
    layer = gq.Debiaser(0.1, groups=["g"], maturity=5)
    layer.predict(1.0, groups={"g": "a"}, time=1)
    with pytest.raises(gq.BadInput):
        layer.predict(1.0, groups={"g": "new"})
    assert layer.cold == ("g=a",)


@pytest.mark.filterwarnings("ignore::gradeq.ReplacedPrediction")
@pytest.mark.parametrize("kind", [kind for kind in LAYERS if kind != "elo"])
@pytest.mark.parametrize("given_up", ["replaced", "skipped", "skipped by id", "batch"])
def test_a_row_that_was_given_up_is_not_learned_as_the_missing_label(kind, given_up):
    layer = LAYERS[kind](maturity="5d", missing_is=0.0)
    if given_up == "skipped by id":
        layer.predict(*row_of(kind), **key_of(kind), id="a", time=DAY)
        layer.skip(id="a")
    else:
        layer.predict(*row_of(kind), **key_of(kind), time=DAY)
    if given_up == "skipped":
        layer.skip()
    elif given_up == "batch":
        key = {"key": ["k"]} if kind == "keyed" else {}
        layer.predict_many([1.0], times=[DAY], **key)
    else:
        layer.predict(*row_of(kind), **key_of(kind), time=DAY)
    waiting = given_up != "skipped"
    again = gq.from_json(layer.to_json())
    for own in (layer, again):
        assert own.advance(DAY + timedelta(days=9)) == waiting
        assert own.equilibrium().rows == waiting
        assert own.equilibrium().learning.replaced == (given_up in ("replaced", "batch"))
