"""Before anything was learned a layer serves the prediction itself, to the last bit, one by one and in columns."""

import numpy as np
import pytest

import gradeq as gq

RNG = np.random.default_rng(8)
REAL = [1.0, 0.1, 7 / 3, 1e-9, 1e9, -2.7, *RNG.normal(0.0, 100.0, 60).tolist()]
PROBABILITIES = [0.1, 0.5, 0.9, 1 / 3, 1e-6, 1 - 1e-6, *RNG.uniform(1e-6, 1 - 1e-6, 60).tolist()]
POSITIVE = [abs(f) for f in REAL]
KINDS = {
    "auto": (lambda: gq.Debiaser(), REAL, {}),
    "auto, groups": (lambda: gq.Debiaser(groups=["g", "h"]), REAL, {"groups": ("g", "h")}),
    "auto, limits": (lambda: gq.Debiaser(support=(-1e12, 1e12)), REAL, {}),
    "plain": (lambda: gq.Debiaser(eta=0.1), REAL, {}),
    "exp": (lambda: gq.Debiaser(eta=0.1, link="exp"), POSITIVE, {}),
    "auto, binary": (lambda: gq.Debiaser(outcome="binary"), PROBABILITIES, {}),
    "auto, binary, groups": (
        lambda: gq.Debiaser(outcome="binary", groups=["g"]), PROBABILITIES, {"groups": ("g",)},
    ),
    "binary": (lambda: gq.Debiaser(eta=0.1, outcome="binary"), PROBABILITIES, {}),
    "binary, limits": (
        lambda: gq.Debiaser(eta=0.1, outcome="binary", support=(1e-7, 1 - 1e-7)), PROBABILITIES, {},
    ),
    "shift": (lambda: gq.Debiaser(eta=0.1, outcome="binary", link="shift"), PROBABILITIES, {}),
    "quantile": (lambda: gq.QuantileTracker(0.9), REAL, {}),
    "quantile, sinh": (lambda: gq.QuantileTracker(0.9, eta=0.1), REAL, {}),
    "quantile, linear": (lambda: gq.QuantileTracker(0.9, eta=0.1, link="linear"), REAL, {}),
    "ensemble": (lambda: gq.QuantileEnsemble(0.9, [0.1, 0.5], 0.1), REAL, {}),
    "keyed": (lambda: gq.Keyed(gq.Debiaser()), REAL, {"key": ()}),
    "keyed, pooled": (lambda: gq.Keyed(gq.QuantileTracker(0.9, "auto"), pool=True), REAL, {"key": ()}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_while_nothing_is_learned_what_comes_in_goes_out(kind):
    make, base, more = KINDS[kind]
    groups = {name: "a" for name in more.get("groups", ())}
    given = ({"groups": groups} if groups else {}) | ({"key": "k"} if "key" in more else {})
    layer = make()
    assert [layer.predict(f, **given, id=k) for k, f in enumerate(base)] == base
    assert [make().preview(f, **given).served for f in base] == base


COMPILED = ("auto, groups", "auto, binary", "binary, limits", "exp")  # one of each link
PATHS = [*((kind, "0") for kind in KINDS), *((kind, "1") for kind in COMPILED)]


@pytest.mark.parametrize(("kind", "compiled"), PATHS)
def test_columns_serve_the_same_interpreted_and_compiled(kind, compiled, monkeypatch):
    monkeypatch.setenv("GRADEQ_COMPILE", compiled)
    make, base, more = KINDS[kind]
    groups = {name: ["a"] * len(base) for name in more.get("groups", ())}
    given = {"groups": groups} if groups else {}
    given |= {"key": ["k"] * len(base)} if "key" in more else {}
    labels = np.full(len(base), np.nan)  # they have not come
    assert make().run(np.array(base), labels, **given).served.tolist() == base
