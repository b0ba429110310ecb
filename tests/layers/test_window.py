"""Two states of a layer say what its errors averaged in between."""

import numpy as np
import pytest

from gradeq import BadInput, Debiaser, MultiQuantileTracker, OtherSettings, QuantileTracker, from_json

LAYERS = [
    lambda: Debiaser(eta=0.1),
    lambda: Debiaser(eta=0.1, groups=["g"]),
    lambda: Debiaser(eta="auto", groups=["g"]),
    lambda: QuantileTracker(0.9, eta=0.1),
    lambda: MultiQuantileTracker([0.1, 0.5, 0.9], eta=0.1),
]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("make", LAYERS, ids=lambda make: repr(make().settings))
def test_any_window_is_the_difference_of_two_states(make, late):
    rng = np.random.default_rng(0)
    n = 600
    base, labels, groups = rng.normal(size=n), rng.normal(0.5, 1.0, n), rng.choice(list("abc"), n)
    groups[:200] = "a"  # the others are born inside the window
    layer = make()
    times = np.arange(n, dtype=float)

    def run(a, b):
        when = {"times": times[a:b], "label_times": times[a:b] + 3} if late else {}
        named = {"g": groups[a:b]} if layer.settings["groups"] else None
        return layer.run(base[a:b], labels[a:b], named, **when)

    run(0, 200)
    earlier = from_json(layer.to_json())
    got = run(200, 500)
    between = layer.since(earlier)
    assert between.gap < 1e-12
    assert between.rows == got.labelled + 3 * late  # three labels were still on their way
    if layer.kind == "debias" and not late:
        errors = got.served - labels[200:500]
        for name, value in between.bias.items():
            rows = groups[200:500] == name[-1] if "=" in name else slice(None)
            assert value == pytest.approx(errors[rows].mean(), abs=1e-12)
    if not late:
        assert between.average_gradient == pytest.approx(between.from_state, abs=1e-12)


def test_windows_need_two_states_of_one_layer_in_order():
    early, late, other = Debiaser(eta=0.1), Debiaser(eta=0.1), Debiaser(eta=0.2)
    late.run([0.0], [1.0])
    with pytest.raises(BadInput, match="earlier one first"):
        early.since(late)
    with pytest.raises(OtherSettings):
        late.since(other)


def test_since_refuses_another_layer_with_the_same_settings():
    import gradeq as gq

    def lived(rows, y, group="a"):
        layer = gq.Debiaser(0.1, groups=["g"])
        layer.run([1.0] * rows, [y] * rows, groups={"g": [group] * rows})
        return layer

    layer = lived(10, 2.0)
    for other, words in (
        (lived(5, 2.0, "b"), "it knows 'g=b'"),
        (lived(10, 3.0), "no label came in between"),
        (lived(11, 2.0), "later than the second"),
    ):
        with pytest.raises(gq.BadInput, match=words) as error:
            layer.since(other)
        assert "\n" not in str(error.value)
    assert layer.since(layer.copy()).rows == 0
    assert layer.since(lived(5, 2.0)).rows == 5
