"""Every field of the state of every kind of layer, altered: ``python -m states.every_field 1 KIND ...``."""

import json
import sys
import warnings

from gradeq.errors import GradeqWarning, StateError
from laws.kinds import KINDS
from states.hostile import lived, text_of, used

FLOATS = ({"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, -1.0, 1e308, -1e308, 5e-324, 0.5, 1e17)
ODD = (None, True, "x", "", [], {}, [[]], -1, 0, 10**30, *FLOATS)


def fields(node, path=()):
    """Every place that has a name, and the first and last of a list."""
    if path:
        yield path
    if isinstance(node, dict):
        for key in node:
            yield from fields(node[key], (*path, key))
    elif isinstance(node, list):
        for k in sorted({0, len(node) - 1} if node else ()):
            yield from fields(node[k], (*path, k))


def changes(value):
    """What a value may be replaced by."""
    if isinstance(value, dict) and "values" in value:
        own = value["values"]
        yield from (dict(value, values=new) for new in lists(own))
    elif isinstance(value, list):
        yield from lists(value)
    yield from ODD


def lists(own):
    """Wrong lengths, and all entries odd."""
    yield from ([], own[:-1], [*own, *own[-1:]], own + own)
    if own:
        yield from ([x] * len(own) for x in FLOATS)


def altered(body):
    """Each altered copy, with what was done."""
    for part in ("settings", "state"):
        for path in fields(body[part]):
            node = body[part]
            for step in path[:-1]:
                node = node[step]
            old = node[path[-1]]
            for new in changes(old):
                if new == old and type(new) is type(old):
                    continue
                node[path[-1]] = new
                yield (part, *path, str(new)[:40])
            node[path[-1]] = old


def main(name, every=1):
    """Try one in so many, all unless told; a line for each fault of our own."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", GradeqWarning)  # a span that a label contradicts
    kind, layer = lived(name, 24)
    body = json.loads(layer.to_json())
    del body["sha256"]
    tried = faults = 0
    for k, done in enumerate(altered(body)):
        if k % every != len(name) % every:
            continue
        tried += 1
        print("trying", name, done, file=sys.stderr, flush=True)
        try:
            used(kind, kind.saved(text_of(body)))
        except StateError:
            continue
        except Exception as error:
            faults += 1
            line = " ".join(str(error).split())[:120]
            print("FAULT", name, done, type(error).__name__, line, flush=True)
    print("done", name, tried, faults, flush=True)


if __name__ == "__main__":
    one, *kinds = sys.argv[1:] or ["1"]
    for each in kinds or KINDS:
        main(each, int(one))
