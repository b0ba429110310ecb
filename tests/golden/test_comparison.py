"""The comparison itself: a change of one bit of one value, anywhere, is found and named."""

import copy
import json
import math
import re
from typing import Any

import pytest

import gradeq as gq
from golden import commands, families, trees
from golden.streams import Chance

FAMILIES = list(families.MODULES)


def places(tree: Any, place: str = "") -> list[tuple[Any, Any, str]]:
    """Every number of a tree: what holds it, where in that, and what its place is called."""
    names = tree if isinstance(tree, dict) else range(len(tree))
    found = []
    for name in names:
        inner = f"{place}.{name}" if place else name
        where = f"{place}[{name}]" if isinstance(tree, list) else inner
        if isinstance(tree[name], dict | list):
            found += places(tree[name], where)
        elif type(tree[name]) in (int, float) and tree[name] == tree[name]:
            found.append((tree, name, where))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_one_bit_of_any_number_is_found_and_named(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADEQ_GOLDEN", raising=False)
    chance, known = Chance(family), trees.recorded(family)
    for case in [chance.pick(sorted(known)) for _ in range(20)]:
        now = copy.deepcopy(known[case])
        assert trees.complaint(family, case, now) == ""
        every = places(now)
        for holder, name, where in [chance.pick(every) for _ in range(20 if every else 0)]:
            then = holder[name]
            holder[name] = math.nextafter(then, math.inf) if type(then) is float else then + 1
            said = trees.complaint(family, case, now)
            assert f"{family}/{case}" in said and f"\n  {where}: {then!r}" in said
            assert repr(holder[name]) in said
            holder[name] = then


@pytest.mark.parametrize(
    "case", ["option debias groups weights", "option keyed logit ttl", "table auto logit overlap"]
)
def test_one_bit_of_what_a_layer_serves_is_found(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = gq.Keyed if "keyed" in case else gq.Debiaser
    honest, count = cls.predict, 0

    def predict(*args: Any, **given: Any) -> Any:
        nonlocal count
        count += 1
        served = honest(*args, **given)
        return math.nextafter(served, 9.0) if count == 18 else served

    monkeypatch.delenv("GRADEQ_GOLDEN", raising=False)
    assert families.complaints("debias", [case]) == []
    monkeypatch.setattr(cls, "predict", predict)
    (said,) = families.complaints("debias", [case])
    assert f"debias/{case} is not what was recorded:\n  half.served[17]: " in said


def test_a_number_of_a_summary_or_a_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = commands.called

    def called(words: list[str], stdin: str = "") -> Any:
        code, out, err = honest(words, stdin)
        if "--json" in words:
            found = json.loads(out)
            found["bias"]["after"] = math.nextafter(found["bias"]["after"], 1.0)
            out = json.dumps(found)
        else:
            page = commands.Path("page.html")
            text = re.sub("(?<=<p>)240(?= adjusted)", "241", page.read_text("utf-8"), count=1)
            page.write_text(text, encoding="utf-8")
        return code, out, err

    monkeypatch.delenv("GRADEQ_GOLDEN", raising=False)
    assert families.complaints("commands", ["debias eta"]) == []
    monkeypatch.setattr(commands, "called", called)
    (said,) = families.complaints("commands", ["debias eta"])
    assert "json.json.bias.after: " in said and "page.html.text[" in said
    assert "240 was recorded, 241 came" in said


def test_close_allows_what_another_c_library_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    then, now = {"x": [1.0, 2.0]}, {"x": [1.0, math.nextafter(2.0, 3.0)]}
    monkeypatch.delenv("GRADEQ_GOLDEN", raising=False)
    assert len(list(trees.differences(then, now))) == 1
    monkeypatch.setenv("GRADEQ_GOLDEN", "close")
    assert list(trees.differences(then, now)) == []
    assert len(list(trees.differences(then, {"x": [1.0, 2.0001]}))) == 1


def test_numbers_of_a_text_are_kept_and_words_are_not() -> None:
    text = "bias \u22120.233 -> -0.0415 over 1,354 of 400 rows (gap 0e+00), p99 of v2.1, 3 %"
    assert trees.numbers(text) == [-0.233, -0.0415, 1354, 400, 0.0, 3]
    assert trees.plain({"said": "12 rows", "name": "auto"}) == {"said": [12], "name": "auto"}
