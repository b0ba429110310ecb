"""Layers serve, learn, save and certify what they did, to the last bit; states that were kept load and go on so."""

import json

import pytest

from golden import families, layers, trees


@pytest.mark.parametrize("family", [own for own in families.LAYERS if own != "debias"])
def test_every_value_is_the_one_that_was_recorded(family: str) -> None:
    families.check(family)


def test_every_option_is_lived_through_and_its_state_kept() -> None:
    for family in families.LAYERS:
        kept, lived = trees.kept_states(family), trees.recorded(family)
        whole = [name for name, own in lived.items() if "refused" not in own]
        alike = [name for name in whole if "no step" in name or "lasso" in name]
        assert set(kept) == set(whole) - set(alike) and len(kept) > 10
        assert not any(own.get("state kept") or own.get("unbroken") for own in lived.values())
    assert sum(map(len, layers.cases().values())) > 2500


def test_states_of_format_2_stay_for_ever() -> None:
    every = [own["state"] for family in families.LAYERS for own in trees.kept_states(family).values()]
    assert sum(json.loads(own)["format"] == 2 for own in every) > 800
