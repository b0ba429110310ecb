"""Threads that share a layer: whatever they do at once is what some order of the same calls gives, exactly."""

import copy
import multiprocessing
import sys
import threading
from contextlib import contextmanager
from inspect import getattr_static, isfunction

import numpy as np
import pytest

import gradeq as gq
from gradeq import GradeqError
from gradeq.layers.layer import INTERNAL
from gradeq.layers.locking import together
from laws.kinds import KINDS

THREADS, CALLS = 4, 40


class Recorder:
    """The lock of a layer, which notes the calls in the order in which they got it."""

    def __init__(self):
        self.lock, self.here, self.order = threading.RLock(), threading.local(), []

    def acquire(self, blocking=True, timeout=-1):
        taken = self.lock.acquire(blocking, timeout)
        if taken:
            depth = self.here.__dict__.setdefault("depth", 0)
            if depth == 0:
                self.order.append(self.here.call)
            self.here.depth += 1
        return taken

    def release(self):
        self.here.depth -= 1
        self.lock.release()

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *error):
        self.release()


@contextmanager
def eager_switches():
    """Let threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def together_in_threads(jobs):
    """Run all jobs at once; what one raises is raised here."""
    found = []

    def guarded(job):
        try:
            start.wait()
            job()
        except BaseException as error:
            found.append(error)

    start = threading.Barrier(len(jobs))
    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    with eager_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if found:
        raise found[0]


def calls_of(kind, thread):
    """What one thread does: predictions, late and repeated labels, corrections, columns, and reads."""
    rng = np.random.default_rng(thread)
    calls = []
    for k in range(CALLS):
        id = f"{thread}/{k}"
        calls.append(("predict", kind.args(rng), kind.where(rng) | {"id": id}))
        late = f"{thread}/{max(0, k - int(rng.integers(4)))}"
        calls.append(("update", (kind.label(rng),), {"id": late}))
        if k % 8 == 1:
            calls.append(("equilibrium", (), {}))
            calls.append(("to_json", (), {}))
        if k % 8 == 3:
            calls.append(("correct", (late, kind.label(rng)), {}))
        if k % 8 == 5:
            args = [kind.args(rng) for _ in range(5)]
            where = [kind.where(rng) for _ in range(5)]
            given = {"ids": [f"{id}/{j}" for j in range(5)]}
            for name, own in (("groups", kind.groups), ("features", kind.features)):
                if own:
                    given[name] = {c: [row[name][c] for row in where] for c in own}
            if kind.keyed:
                given["key"] = [row["key"] for row in where]
            columns = [np.array(column) for column in zip(*args, strict=True)]
            if kind.games:
                columns = [column.tolist() for column in columns]
            calls.append(("predict_many", tuple(columns) or (5,), given))
        if k % 8 == 7:
            calls.append(("repr", (), {}))
    return calls


def done(layer, call):
    """What a call gives, in a form that can be compared."""
    verb, args, given = call
    if verb == "repr":
        return repr(layer)
    try:
        found = getattr(layer, verb)(*args, **given)
    except GradeqError as refusal:
        return type(refusal).__name__, str(refusal)
    return repr(found) if isinstance(found, np.ndarray) or verb == "equilibrium" else found


@pytest.mark.filterwarnings("ignore::gradeq.errors.GradeqWarning")  # which are warned of depends on the order
@pytest.mark.parametrize("name", KINDS)
def test_calls_of_many_threads_are_those_calls_in_some_order(name):
    kind = KINDS[name]
    layer, recorder = kind.make(), Recorder()
    object.__setattr__(layer, "lock", recorder)
    results = {}

    def job(thread):
        def run():
            for k, call in enumerate(calls_of(kind, thread)):
                recorder.here.call = (thread, k, call)
                results[thread, k] = done(layer, call)

        return run

    together_in_threads([job(thread) for thread in range(THREADS)])
    object.__setattr__(layer, "lock", threading.RLock())
    fresh, seen = kind.make(), set()
    for thread, k, call in recorder.order:
        assert (thread, k) not in seen, f"{call[0]} let go of the lock halfway"
        seen.add((thread, k))
        assert done(fresh, call) == results[thread, k]
    assert seen == set(results) and fresh.to_json() == layer.to_json()


def public(cls):
    """The names of the methods and properties that users call."""
    for name in dir(cls):
        member = getattr_static(cls, name)
        if name in INTERNAL:
            continue
        if (not name.startswith("_") or name == "__repr__") and (isfunction(member) or isinstance(member, property)):
            yield name, member.fget if isinstance(member, property) else member


LAYERS = sorted({type(kind.make()) for kind in KINDS.values()}, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", LAYERS)
def test_nothing_public_goes_without_the_lock(cls):
    for name, member in public(cls):
        if not hasattr(member, "__wrapped__"):  # then its own text holds the lock
            assert {"lock", "together"} & set(member.__code__.co_names), f"{cls.__name__}.{name}"


def test_two_layers_that_take_each_other_in_do_not_wait_for_ever():
    first, second = gq.Debiaser(0.1, groups=["g"]), gq.Debiaser(0.1, groups=["g"])
    for layer in (first, second):  # alike, so that each may pass for an earlier state of the other
        layer.predict(1.0, {"g": "a"})
        layer.update(2.0)
    total = first.traffic["served"] + second.traffic["served"]

    def into(layer, other):
        def run():
            for _ in range(20):
                layer.since(other.copy())
                other.since(layer) if layer is first else layer.since(other)

        return run

    together_in_threads([into(first, second), into(second, first)])
    with together(first, second):
        first.merge(second)
    assert first.traffic["served"] == total


@pytest.mark.parametrize("name", KINDS)
def test_copies_go_on_by_themselves(name):
    kind, rng = KINDS[name], np.random.default_rng(0)
    layer = kind.make()
    for _ in range(9):
        layer.predict(*kind.args(rng), **kind.where(rng))
        layer.update(kind.label(rng))
    before = layer.to_json()
    twins = [layer.copy(), copy.deepcopy(layer)]
    assert {twin.to_json() for twin in twins} == {before}
    assert len({id(own.lock) for own in (layer, *twins)}) == 3
    for twin in twins:
        twin.freeze()
        assert twin.to_json() != before
    assert layer.to_json() == before


def learned(layer, n):
    """Learn from n events, in another process: what comes of it."""
    for _ in range(n):
        layer.predict(1.0, groups={"g": "a"})
        layer.update(2.0)
    return layer.to_json()


def written(layer):
    """A layer as it is saved."""
    return layer.to_json()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_layer_in_another_process_is_a_copy(method):
    layer = gq.Debiaser(0.1, groups=["g"])
    learned(layer, 3)
    before = layer.to_json()
    others = [kind.make() for kind in KINDS.values()]
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply(learned, (layer, 5))
        assert pool.map(written, others) == [written(other) for other in others]
    assert layer.to_json() == before
    assert learned(layer, 5) == there
