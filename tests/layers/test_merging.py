"""What is no other partition cannot be merged."""

import pytest

import gradeq as gq


@pytest.mark.parametrize("make", [lambda: gq.Debiaser(0.1), lambda: gq.Elo(0.1)])
def test_a_layer_takes_in_another_of_its_kind_and_not_itself(make):
    layer = make()
    before = layer.to_json()
    with pytest.raises(gq.BadInput, match="with itself"):
        layer.merge(layer)
    for stranger in (5, None, gq.QuantileTracker(0.9, 0.1)):
        with pytest.raises(gq.BadInput, match=f"not {type(stranger).__name__}"):
            layer.merge(stranger)
    assert layer.to_json() == before
