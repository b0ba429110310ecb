"""Every refusal that a client can get speaks of the API: no class, no Python value, no option of a command."""

import re

import pytest

from gradeq.layers.registry import layer_class
from gradeq.service.layer_spec import SERVICE_SETTINGS, _settings
from service.running import running

GOOD = {
    "debias": {"eta": 0.1},
    "quantile": {"level": 0.9},
    "quantiles": {"levels": [0.1, 0.9]},
    "interval": {"coverage": 0.8},
    "conformal": {"score": "absolute", "coverage": 0.9},
    "ensemble": {"level": 0.9, "etas": [0.1], "ensemble_eta": 0.1},
    "elo": {},
}
VALUES = [None, True, "x", -1, 0, 5, 1e308, [], {}, ["a"], [1], {"a": 1}, "auto", [0.5, 0.1], 3.5]
TOGETHER = [
    {"keyed": True, "eta": "auto"}, {"features": ["x"]}, {"decay": 0.5}, {"decay": 0.5, "eta": 0.1},
    {"link": "linear"}, {"penalty": "ridge", "strength": 0.1}, {"keyed": True, "pool": True},
    {"keyed": True, "groups": ["a"], "pool": True}, {"link": "exp", "eta": "auto"},
    {"outcome": "binary", "link": "exp"}, {"groups": ["a", "b"], "eta": 1.0}, {"support": [5, 1]},
    {"outcome": "binary", "support": [0, 5]}, {"outcome": "binary", "clip": 0.7}, {"k": 32, "eta": 0.1},
    {"eta": 0.1, "proximal": -1}, {"home_advantage": True, "home_step": 9}, {"state": {"a": 1}},
]  # fmt: skip
BODIES = ["[]", "5", "{", "null", '{"kind": 1, "kind": 2}', "{}", '{"kind": "keyed"}', "9" * 5000]
LAYERS = {
    **{kind: {"kind": kind, **spec} for kind, spec in GOOD.items()},
    "auto": {"kind": "debias"},
    "keyed": {"kind": "debias", "keyed": True},
    "feature": {"kind": "debias", "eta": 0.1, "features": ["x"]},
    "group": {"kind": "debias", "groups": ["g"]},
    "binary": {"kind": "debias", "outcome": "binary"},
    "exp": {"kind": "debias", "eta": 0.1, "link": "exp"},
    "limits": {"kind": "debias", "support": [0, 10]},
    "limited quantile": {"kind": "quantile", "level": 0.9, "support": [0, 1]},
    "signed": {"kind": "debias", "tickets": "signed"},
    "home": {"kind": "elo", "home_advantage": True},
    "few": {"kind": "debias", "keyed": True, "max_names": 1},
    "cqr": {"kind": "conformal", "score": "cqr", "coverage": 0.9},
    "expired": {"kind": "debias", "ttl": 1e-9},
    "frozen": {"kind": "debias", "eta": 0.1},
}
PREDICTIONS = [
    {}, {"id": 1}, {"prediction": "a"}, {"prediction": [1]}, {"prediction": [1, 2, 3]}, {"prediction": []},
    {"prediction": True}, {"prediction": -1}, {"prediction": 1.5}, {"prediction": 1, "groups": {"g": None}},
    {"prediction": 1, "groups": {"z": 1}}, {"prediction": 1, "groups": []},
    {"prediction": 1, "features": {"x": "a"}}, {"prediction": 1, "features": {"z": 1}},
    {"prediction": 1, "key": "k", "features": {"x": 1}, "groups": {"g": 1}}, {"prediction": 1, "key": []},
    {"prediction": 1, "weight": -1}, {"prediction": 1, "weight": 2}, {"prediction": 1, "weight": 1e-320},
    {"prediction": 1, "weight": "a"}, {"a": "x"}, {"a": "x", "b": "x"}, {"a": "x", "b": "y", "home": "z"},
    {"a": "x", "b": "y", "home": 7}, {"a": {}, "b": "y"}, {"a": "", "b": "y"}, {"id": "", "prediction": 1},
    {"id": 1.5, "prediction": 1}, {"id": "x" * 300, "prediction": 1}, {"id": 2**70, "prediction": 1},
    {"prediction": 1, "id": "same"}, {"prediction": 2, "id": "same"}, {"prediction": 1, "zzz": 1},
    {"prediction": 1, "key": "k2"}, {"prediction": 1, "key": "k3"}, [1], [], 5, "x", None,
]  # fmt: skip
LABELS = [
    {}, {"label": 1}, {"id": "nope", "label": 1}, {"id": "L", "label": None}, {"id": "L", "label": "a"},
    {"id": "L", "label": -1}, {"id": "L", "label": 7}, {"id": "L", "label": 1e308}, {"id": "L", "label": 0.3},
    {"id": "L", "label": 0.4}, {"id": "L", "label": 0, "correct": True}, {"id": "L", "label": 1e200, "correct": True},
    {"id": "L", "label": 1, "correct": "x"}, {"id": "L", "label": 1, "ticket": "x"}, {"label": 1, "ticket": 5},
    {"label": 1, "ticket": "eyJ.abc"}, {"id": "L", "labels": 1}, {"id": "L", "label": True},
]  # fmt: skip
DONE = [
    {}, {"do": "x"}, {"do": "freeze", "eta": 1}, {"do": "set_step"}, {"do": "set_step", "eta": -1},
    {"do": "set_step", "eta": 1e9}, {"do": "set_step", "eta": "a"}, {"do": "resume", "x": 1},
]  # fmt: skip
WRONG = [
    ("GET", "/v1/layers/none"), ("PUT", "/v1/layers/a%20b"), ("PATCH", "/v1/layers/x"), ("GET", "/v1/layers?x=1"),
    ("GET", "/v1/layers/debias/journal?limit=x"), ("POST", "/v1/layers/debias/predictions?atomic=maybe"),
    ("GET", "/nowhere"), ("POST", "/v1/layers/debias/audit"),
]  # fmt: skip
GOOD_ITEM = {
    "keyed": {"prediction": 1, "key": "k"}, "quantiles": {"prediction": [0, 1]}, "cqr": {"prediction": [0, 1]},
    "feature": {"prediction": 1, "features": {"x": 1}}, "group": {"prediction": 1, "groups": {"g": 1}},
    "elo": {"a": "q", "b": "r"}, "home": {"a": "q", "b": "r"}, "few": {"prediction": 1, "key": "k2"},
}  # fmt: skip
LEAKS = re.compile(
    r"--|Error|\bNone\b|\bTrue\b|\bFalse\b|NoneType|__\w+__|gradeq\.|help\(|[Ee]xpected|Object|\$\.|\binstance|"
    r"argument|\b(?:Debiaser|Elo|Conformal|Keyed|\w+Tracker|\w+Ensemble|Constant|Power|Logit|Ridge|Lasso)\b|"
    r"\b\w+=|\bfloat\b|\bint\b|\bstr\b|\bbool\b|\barray\b|\btuple\b|\bdict\b|internal|\w+\(\w+=| a [aeio]\w+ layer"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("words") / "store.db") as own:
        yield own


def check(answer):
    """The words of all refusals in an answer; whether there were any."""
    if answer.status_code < 400 and not isinstance(answer.json(), list):
        return False
    told = answer.json()
    told = [one for one in told if one.get("detail")] if isinstance(told, list) else [told]
    for one in told:
        for text in (one["detail"], one["remedy"]):
            assert text and not LEAKS.search(text), (str(answer.request.url), one)
            assert "\n" not in text and len(text) < 600
    return bool(told)


@pytest.mark.parametrize("kind", GOOD)
def test_refused_settings(kind, server):
    whole, refused = {"kind": kind, **GOOD[kind]}, 0
    put = lambda **body: server.client.put("/v1/layers/new", **body)  # noqa: E731
    specs = [
        {**whole, name: value}
        for name in [*_settings(layer_class(kind)), *SERVICE_SETTINGS[1:], "schedule", "bogus"]
        for value in VALUES
    ]
    specs += [{name: own for name, own in whole.items() if name != left} for left in GOOD[kind]]
    specs += [{**whole, **more} for more in TOGETHER]
    for spec in specs:
        answer = put(json=spec)
        refused += check(answer)
        if answer.status_code == 201:
            server.client.delete("/v1/layers/new")
    assert refused > 50
    assert all(check(put(content=body)) for body in BODIES)


@pytest.mark.parametrize("name", LAYERS)
def test_refused_items_and_controls(name, server):
    path = server.layer(name.replace(" ", "-"), **LAYERS[name])
    post = lambda where, body: server.client.post(f"{path}/{where}", json=body)  # noqa: E731
    refused = sum(check(post("predictions", item)) for item in PREDICTIONS)
    assert post("predictions", {"id": "L", **GOOD_ITEM.get(name, {"prediction": 0.5})}).is_success
    if name == "frozen":
        post("labels", {"id": "L", "label": 1.0})
        post("control", {"do": "freeze"})
    refused += sum(check(post("labels", item)) for item in LABELS)
    refused += sum(check(post("control", body)) for body in DONE)
    assert refused > 30


def test_refused_calls(server):
    server.layer("debias", eta=0.1)
    for method, path in WRONG:
        assert check(server.client.request(method, path, content=b'{"receipts": 5}'))
    assert check(server.as_key("gq_wrong").get("/v1/layers"))
    alone = server.as_key(server.new_key(scopes=["predict"]))
    assert check(alone.post("/v1/layers/debias/labels", json={}))
