"""Altered states: right checksum, wrong sense. ``python -m states.hostile SEED COUNT KIND ...`` tries some.

Every altered state must be refused with ``StateError``, or make a layer that does its work or refuses in one line.
"""

import contextlib
import json
import random
import sys
import warnings

import numpy as np

import gradeq as gq
from gradeq.errors import GradeqError, StateError
from gradeq.layers import serialization
from laws.kinds import KINDS

ODD = [
    None, True, False, 0, 1, -1, 2, 7, 10**9, 2**31, 2**63, 10**40, 0.5, -0.0, 1e308, -1e308, 5e-324, "", "x",
    "(all)", "g=a", [], [0], [[]], {}, {"$float": "nan"}, {"$float": "inf"}, {"$float": "x"},
    {"$array": "d", "values": []},
    {"$array": "q", "values": [1]}, {"$array": "d", "base64": "AAAA"}, {"$part": "Constant", "eta": -1.0},
    {"$part": "Nothing"}, {"$part": "Constant"},
]  # fmt: skip


def lived(name, rows=40):
    """The saved form of a layer with open, closed, waiting and expired tickets."""
    kind, rng = KINDS[name], np.random.default_rng(11)
    layer = kind.make()
    for i in range(rows):
        layer.predict(*kind.args(rng), **kind.where(rng), id=i)
        if i % 5:
            layer.update(kind.label(rng), id=i)
    return kind, layer


def places(node, path=()):
    """Every place in a tree of JSON."""
    yield path
    if isinstance(node, dict):
        for key in node:
            yield from places(node[key], (*path, key))
    elif isinstance(node, list):
        for k in range(len(node)):
            yield from places(node[k], (*path, k))


def altered(body, rng):
    """A copy with one or two places changed, and what was done."""
    body, done = json.loads(json.dumps(body)), []
    for _ in range(rng.choice([1, 1, 1, 2])):
        every = [path for path in places(body) if len(path) > 1 and path[0] in ("settings", "state")]
        path = rng.choice(every)
        node = body
        for step in path[:-1]:
            node = node[step]
        last, deed = path[-1], rng.choice(["set", "drop", "twice", "near", "swap"])
        done.append((deed, path))
        if deed == "drop":
            del node[last]
        elif deed == "twice" and isinstance(node, list):
            node.insert(rng.randrange(len(node) + 1), node[last])
        elif deed == "near" and isinstance(node[last], (int, float)) and not isinstance(node[last], bool):
            x = node[last]
            node[last] = rng.choice([x + 1, x - 1, -x, x * 1e6, float(x)])
        elif deed == "swap" and isinstance(node, list):
            other = rng.randrange(len(node))
            node[last], node[other] = node[other], node[last]
        else:
            node[last] = rng.choice(ODD)
    return body, done


def text_of(body):
    """The state as text, its checksum repaired."""
    return serialization.canonical({**body, "sha256": serialization.checksum(body)})


def used(kind, layer):
    """Ask a layer for all it does."""
    rng = np.random.default_rng(3)
    str(layer), repr(layer), layer.equilibrium(), layer.to_json()
    n = 8
    for work in (
        lambda: [layer.update(kind.label(rng)) for _ in range(2)] if not kind.games else None,
        lambda: layer.predict(*kind.args(rng), **kind.where(rng), id="new"),
        lambda: layer.update(kind.label(rng), id="new"),
        lambda: layer.update(kind.label(rng), id=0),
        lambda: layer.correct(1, kind.label(rng)),
        lambda: layer.expire(1e9),
        lambda: run(kind, layer, n, rng),
        lambda: layer.equilibrium(),
        lambda: gq.from_json(layer.to_json()) if kind.saved is gq.from_json else None,
    ):
        with contextlib.suppress(GradeqError):
            work()


def run(kind, layer, n, rng):
    """Whole columns."""
    if kind.games:
        pairs = [kind.args(rng) for _ in range(n)]
        return layer.run([a for a, _ in pairs], [b for _, b in pairs], [kind.label(rng) for _ in range(n)])
    if kind.bare:
        return layer.run([kind.label(rng) for _ in range(n)])
    rows = [kind.where(rng) for _ in range(n)]
    given = {}
    for what in ("groups", "features"):
        if what in rows[0]:
            given[what] = {name: [row[what][name] for row in rows] for name in rows[0][what]}
    if kind.keyed:
        given["key"] = [row["key"] for row in rows]
    base = [kind.base(rng) for _ in range(n)]
    base = np.array(base) if kind.forecasts > 1 else base
    return layer.run(base, [kind.label(rng) for _ in range(n)], **given)


def main(name, seed, count):
    """Try some; print a line for each fault of our own, then how many were refused and taken."""
    warnings.simplefilter("error")
    kind, layer = lived(name)
    body = json.loads(layer.to_json())
    del body["sha256"]
    rng, refused, taken = random.Random(f"{name} {seed}"), 0, 0
    for k in range(count):
        changed, done = altered(body, rng)
        print("trying", k, done, file=sys.stderr, flush=True)
        try:
            found = kind.saved(text_of(changed))
        except StateError:
            refused += 1
            continue
        except Exception as error:
            print("FAULT load", name, seed, k, done, type(error).__name__, str(error)[:100], flush=True)
            continue
        try:
            used(kind, found)
        except Exception as error:
            print("FAULT use", name, seed, k, done, type(error).__name__, str(error)[:100], flush=True)
            continue
        taken += 1
    print("done", name, refused, taken, flush=True)


if __name__ == "__main__":
    for each in sys.argv[3:]:
        main(each, int(sys.argv[1]), int(sys.argv[2]))
