"""What a layer was made with is fixed: setting an attribute is refused, or takes effect at once and is saved."""

import numpy as np
import pytest

import gradeq as gq
from laws.kinds import KINDS

OTHER = [5.0, 0.5, True, False, None, "plain", [], lambda *_: 0.0]


@pytest.mark.parametrize("name", KINDS)
def test_setting_a_public_attribute_is_refused_or_is_saved(name):
    kind = KINDS[name]
    layer = kind.make()
    text = layer.to_json()
    attributes = [attribute for attribute in dir(layer) if not attribute.startswith("_")]
    for attribute in [*attributes, "eta", "etta", "queue", "groups"]:
        for value in OTHER:
            try:
                setattr(layer, attribute, value)
            except AttributeError as refusal:
                assert attribute in str(refusal)
                assert "\n" not in str(refusal)
                assert layer.to_json() == text
            except gq.BadInput:
                assert layer.to_json() == text
            else:
                assert attribute == "shadow", (attribute, value)
                assert kind.saved(layer.to_json()).shadow is layer.shadow is value
                layer.shadow = False
        with pytest.raises(AttributeError):
            delattr(layer, attribute)
    assert kind.saved(layer.to_json()).to_json() == text


SHADOWED = {
    "debias": lambda: gq.Debiaser(0.5),
    "limits": lambda: gq.Debiaser(0.5, support=(0, None)),
    "quantile": lambda: gq.QuantileTracker(0.9, 0.5),
    "ensemble": lambda: gq.QuantileEnsemble(0.9, [0.5, 1.0], 0.1),
}


@pytest.mark.parametrize("name", SHADOWED)
def test_shadow_may_change_and_takes_effect_at_once(name):
    layer = SHADOWED[name]()
    rng = np.random.default_rng(1)
    for y in rng.normal(9.0, 1.0, 60):
        layer.predict(3.0)
        layer.update(float(y))
    assert layer.predict(3.0, id=1) > 3.0
    layer.shadow = True
    assert layer.predict(3.0, id=2) == 3.0 == gq.from_json(layer.to_json()).predict(3.0, id=3)
    layer.shadow = False
    assert layer.predict(3.0, id=4) > 3.0


def test_the_keys_of_a_layer_are_in_shadow_together():
    layer = gq.Keyed(gq.Debiaser(0.5))
    layer.predict(3.0, key="a")
    layer.update(9.0)
    layer.shadow = True
    assert layer.layer.shadow is True
    assert layer.predict(3.0, key="a", id=1) == 3.0 == gq.from_json(layer.to_json()).predict(3.0, key="a", id=2)
    with pytest.raises(AttributeError, match="Keyed"):
        layer.layer.shadow = False
    with pytest.raises(gq.BadInput, match="Keyed"):
        layer.layer.set_step(0.1)


@pytest.mark.parametrize(
    ("layer", "attribute", "remedy"),
    [
        (gq.Debiaser(0.1), "eta", r"set_step\(eta\)"),
        (gq.Debiaser(), "eta", "make a new Debiaser"),
        (gq.Elo(0.1), "schedule", r"set_step\(eta\)"),
        (gq.Debiaser(0.1), "frozen", r"freeze\(\) or resume\(\)"),
        (gq.Conformal("absolute", 0.9), "shadow", "make a new Conformal"),
    ],
)
def test_the_refusal_names_the_remedy(layer, attribute, remedy):
    with pytest.raises(AttributeError, match=remedy):
        setattr(layer, attribute, 0.5)


def test_a_class_of_your_own_may_have_attributes_of_its_own():
    class Named(gq.Debiaser):
        def __init__(self, name):
            super().__init__(0.1)
            self.name = name

    layer = Named("sales")
    assert layer.copy().name == "sales"
    with pytest.raises(AttributeError):
        layer.eta = 0.5
