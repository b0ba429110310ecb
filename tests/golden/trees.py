"""Trees of plain values: how they are made, kept in files, and compared to the last bit.

A tree is made of dicts, lists, texts, numbers, booleans and None. Text with spaces is wording: only the numbers in it
are kept. ``GRADEQ_GOLDEN=close`` compares floats to nine digits instead, for machines whose C library rounds exp and
log otherwise.
"""

import dataclasses
import functools
import json
import lzma
import math
import os
import re
import struct
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RECORDED, STATES = HERE / "recorded", HERE / "states"
NUMBER = re.compile(r"(?<![\w.])[-+\u2212]?(?:\d[\d,]*\d|\d)(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
SHOWN = 5  # differences of one case that are listed


def numbers(text):
    """All numbers of a text, in their order; 1,234 is 1234."""
    found = (own.replace(",", "").replace("\u2212", "-") for own in NUMBER.findall(text))
    return [float(own) if set(own) & set(".eE") else int(own) for own in found]


def plain(value):
    """A value as a tree: what it says, without its types and its wording."""
    if isinstance(value, str):
        return numbers(value) if re.search(r"\s", value) else value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
        return {name: plain(getattr(value, name)) for name in fields}
    if hasattr(value, "_asdict"):
        return {name: plain(own) for name, own in value._asdict().items()}
    if isinstance(value, dict):
        return {str(name): plain(own) for name, own in value.items()}
    if hasattr(value, "items"):
        return {str(name): plain(own) for name, own in value.items()}
    return [plain(own) for own in value]


# Files: for each family what its trees look like, as JSON, and the bytes of all their floats; packed


def without_floats(tree, floats):
    """The tree with a mark in the place of each float, or of each row of them; the floats are appended."""
    if isinstance(tree, dict):
        return {name: without_floats(own, floats) for name, own in tree.items()}
    if isinstance(tree, list):
        if tree and all(type(own) is float for own in tree):
            floats += tree
            return f"~{len(tree)}"
        return [without_floats(own, floats) for own in tree]
    if type(tree) is float:
        floats.append(tree)
        return "~"
    return tree


def with_floats(tree, floats):
    """The tree that ``without_floats`` was given."""
    if isinstance(tree, dict):
        return {name: with_floats(own, floats) for name, own in tree.items()}
    if isinstance(tree, list):
        return [with_floats(own, floats) for own in tree]
    if isinstance(tree, str) and tree.startswith("~"):
        return next(floats) if tree == "~" else [next(floats) for _ in range(int(tree[1:]))]
    return tree


@functools.cache
def recorded(family):
    """All trees of a family that were recorded, by the name of their case."""
    path = RECORDED / f"{family}.xz"
    if not path.exists():
        return {}
    shapes, _, raw = lzma.decompress(path.read_bytes()).partition(b"\n")
    floats = iter(np.frombuffer(raw, "<f8").tolist())
    return {name: with_floats(own, floats) for name, own in json.loads(shapes).items()}


def write_recorded(family, trees):
    """Keep the trees of a family."""
    RECORDED.mkdir(exist_ok=True)
    recorded.cache_clear()
    floats = []
    shapes = json.dumps({name: without_floats(trees[name], floats) for name in sorted(trees)})
    raw = shapes.encode() + b"\n" + np.array(floats, "<f8").tobytes()
    (RECORDED / f"{family}.xz").write_bytes(lzma.compress(raw, preset=6))


@functools.cache
def kept_states(family):
    """The states of a family that were saved once, by the name of their case."""
    path = STATES / f"{family}.json.xz"
    return json.loads(lzma.decompress(path.read_bytes())) if path.exists() else {}


def write_states(family, states):
    """Keep saved states."""
    STATES.mkdir(exist_ok=True)
    kept_states.cache_clear()
    text = json.dumps({name: states[name] for name in sorted(states)}, indent=0)
    (STATES / f"{family}.json.xz").write_bytes(lzma.compress(text.encode(), preset=6))


def matching(names, pattern):
    """Those of the names that a pattern such as ``layers/debias*`` names, or that begin with it."""
    own = [part for part in pattern.split(";") if part]
    return [name for name in names if any(fnmatchcase(name, p) or name.startswith(p) for p in own)]


# Comparison


def close():
    """Whether floats are compared to nine digits only."""
    return os.environ.get("GRADEQ_GOLDEN", "") == "close"


def same(one, other):
    """Whether two floats have the same bits; every NaN is the same."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if close():
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return struct.pack("<d", one) == struct.pack("<d", other)


def spelled(value):
    if isinstance(value, float):
        return f"{value!r} ({value.hex()})"
    text = repr(value)
    return text if len(text) < 100 else text[:97] + "..."


def differences(then, now, place=""):
    """Every place where two trees differ, with both values."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in [*then, *(name for name in now if name not in then)]:
            where = f"{place}.{name}" if place else name
            if name not in now:
                yield f"{where}: {spelled(then[name])} was recorded, nothing is there now"
            elif name not in then:
                yield f"{where}: nothing was recorded, {spelled(now[name])} is there now"
            else:
                yield from differences(then[name], now[name], where)
    elif isinstance(then, list) and isinstance(now, list):
        if len(then) != len(now):
            extra = spelled(max(then, now, key=len)[min(len(then), len(now))])
            yield f"{place}: {len(then)} values were recorded, there are {len(now)} now; {extra} is one too many"
        for k, (one, other) in enumerate(zip(then, now, strict=False)):
            yield from differences(one, other, f"{place}[{k}]")
    elif type(then) is float and type(now) is float:
        if not same(then, now):
            yield f"{place}: {spelled(then)} was recorded, {spelled(now)} came"
    elif type(then) is not type(now) or then != now:
        yield f"{place}: {spelled(then)} was recorded, {spelled(now)} came"


def complaint(family, case, tree):
    """Every place where a tree is not the one that was recorded, and how to record it; empty if it is."""
    name, known = f"{family}/{case}", recorded(family).get(case)
    if known is None:
        return f"{name} was never recorded: make golden-record CASES='{name}'"
    found = list(differences(known, tree))
    if not found:
        return ""
    more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    lines = "".join(f"\n  {line}" for line in found[:SHOWN])
    return f"{name} is not what was recorded:{lines}{more}\nif that is on purpose: make golden-record CASES='{name}'"
