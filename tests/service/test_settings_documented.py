"""The table of settings in the documentation is what the service takes, kind by kind."""

import re
from inspect import signature
from pathlib import Path

import pytest

from gradeq.layers.registry import layer_class
from gradeq.service.layer_spec import MAX_NAMES, SERVICE_SETTINGS, _required_settings, _settings, layer_of
from service.test_refusal_texts import GOOD

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
KINDS = ("debias", "quantile", "quantiles", "interval", "conformal", "ensemble", "elo")
TRACKERS = ("quantile", "quantiles", "interval")


def rows():
    """The setting, the kinds that take it, and its default, of every row of the table."""
    table = PAGE.split("## Settings\n")[1].split("\n## ")[0]
    for line in table.splitlines():
        if found := re.match(r"\| `(\w+)` \| ([^|]+) \| ([^|]*)\|", line):
            kinds = found[2].replace("all", ", ".join(KINDS)).replace("trackers", ", ".join(TRACKERS))
            yield found[1], kinds.strip().split(", "), found[3].strip().strip("`")


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_of_a_kind_is_in_the_table_and_no_other(kind):
    told = {name for name, kinds, _ in rows() if kind in kinds}
    own = set(SERVICE_SETTINGS) - {"kind", "decay", "strength"}
    assert told == set(_settings(layer_class(kind))) | own


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_those_of_the_classes(kind):
    cls = layer_class(kind)
    given = signature(cls).parameters
    for name, kinds, told in rows():
        if kind not in kinds or told in ("by kind", '"auto"') or name == "eta":
            continue
        if name == "max_names":
            assert told == str(MAX_NAMES)
        elif name in _required_settings(cls):
            assert told == ""
        elif name in given:
            default = given[name].default
            shown = {"None": "", "False": "false", "()": "[]"}.get(repr(default))
            if shown is not None:
                assert told == shown, name
            else:
                assert told.strip('"') == default or float(told) == default, name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ensemble"])
def test_a_step_left_out_is_the_one_of_the_table(kind):
    (told,) = [told for name, kinds, told in rows() if name == "eta" and kind in kinds]
    spec = {"kind": kind, **GOOD[kind]}
    spec.pop("eta", None)
    named = layer_of(spec | {"eta": told.strip('"')})
    assert layer_of(spec).settings["eta"] == named.settings["eta"]


@pytest.mark.parametrize("more", [
    {"keyed": True}, {"link": "exp"}, {"outcome": "binary", "link": "shift"}, {"penalty": "ridge", "strength": 0.1},
])  # fmt: skip
def test_where_auto_does_not_suit_the_step_left_out_is_the_plain_one(more):
    spec = {"kind": "debias", **more}
    assert layer_of(spec).step == layer_of(spec | {"eta": "plain"}).step == (0.03 if "outcome" in more else 0.01)
