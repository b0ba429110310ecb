"""Compile or interpret: by seconds, once for a run. Clocks and prices are made up here; nothing is timed."""

import itertools

import numpy as np
import pytest

import gradeq.engine.learner as learner_module
from gradeq import Debiaser
from gradeq.engine.learner import Learner
from gradeq.kernels import choice
from gradeq.kernels.compile import key_of
from gradeq.losses import Squared

N = 2_000


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """A process that has compiled nothing: starting costs 1 s; a loop takes 1 s to load, its name ``dear`` 10."""
    monkeypatch.delenv("GRADEQ_COMPILE", raising=False)
    for name, empty in (("_plans", {}), ("_spent", {}), ("_chosen", set()), ("_refused", set())):
        monkeypatch.setattr(choice, name, empty)
    monkeypatch.setattr(choice, "START", 1.0)
    monkeypatch.setattr(choice, "in_memory", lambda key=None: False)
    monkeypatch.setattr(choice, "price", lambda loop, parts: 10.0 if loop is dear else 1.0)


@pytest.fixture
def asked(monkeypatch):
    """The names of loops that were to be compiled; none is."""
    names = []
    monkeypatch.setattr(choice, "compiled", lambda loop, parts: names.append(loop.__name__))
    return names


def one():
    """Stands for a loop."""


def two():
    """Stands for a loop."""


def dear():
    """Stands for a loop with a long text."""


def chosen(**seconds):
    """Which of the loops are chosen when interpreting each takes so long."""
    wanted = {key_of(globals()[k], ()): choice.Lap(globals()[k], (), s) for k, s in seconds.items()}
    choice.choose(wanted, choice.START)
    return {key[0].__name__ for key in choice._chosen}


def tick(monkeypatch, seconds):
    """Every look at the clock is so much later than the last."""
    count = itertools.count()
    monkeypatch.setattr(choice, "clock", lambda: seconds * next(count))


def test_a_loop_is_compiled_when_interpreting_would_take_longer_than_start_and_load():
    assert chosen(one=1.9) == set()
    assert chosen(one=2.1) == {"one"}


def test_the_start_is_shared_by_the_loops_of_a_run():
    assert chosen(one=1.6, two=1.3) == set()
    assert chosen(one=1.6, two=1.6) == {"one", "two"}


def test_a_loop_that_costs_more_than_it_saves_is_interpreted_beside_compiled_ones():
    assert chosen(one=5.0, dear=9.0) == {"one"}


def test_once_started_only_the_loop_itself_has_to_pay(monkeypatch):
    monkeypatch.setattr(choice, "in_memory", lambda key=None: key is None)
    assert chosen(one=0.9, two=1.1) == {"two"}


def test_short_pieces_add_up():
    for _ in range(3):
        assert chosen(one=0.5) == set()
        choice.note(one, (), 0.75)
    assert chosen(one=0.5) == {"one"}


def test_no_text_is_made_where_even_the_shortest_would_take_too_long_to_compile(monkeypatch):
    looked = []
    monkeypatch.setattr(choice, "price", lambda loop, parts: looked.append(loop) or 1.0)
    monkeypatch.setattr(choice, "is_cached", lambda text, name: name == "two")
    assert chosen(one=1.0 + 0.9 * choice.BUILD) == set() and not looked
    assert chosen(two=1.0 + 0.9 * choice.BUILD) == set() and looked == [two]


def test_a_refused_loop_is_never_chosen_again():
    choice.refuse(one, ())
    assert chosen(one=100.0) == set()


def test_what_is_cached_on_disk_is_cheaper_and_what_has_no_text_has_no_price(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(choice, "text_of", lambda loop, parts: None if loop is dear else "text")
    monkeypatch.setattr(choice, "is_cached", lambda text, name: name == "one")
    assert choice.price(one, ()) < 0.1 < choice.price(two, ()) < choice.price(dear, ())
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    choice._prices.clear()
    assert choice.price(one, ()) == float("inf")
    choice._prices.clear()


def overlapping(n):
    """A layer of two group columns, and rows for it."""
    rng = np.random.default_rng(0)
    groups = {"a": rng.integers(0, 5, n), "b": rng.integers(0, 3, n)}
    return Debiaser(eta=0.05, groups=["a", "b"]), rng.normal(size=n), rng.normal(size=n), groups


def test_loops_of_a_long_first_run_share_the_start(monkeypatch, asked):
    """Each has to make up for its load, 1 s, and its share of the start: here half of it."""
    tick(monkeypatch, 0.0)
    for loop, run, compiled in ((1.6, 0.9, False), (1.4, 2.8, False), (1.6, 3.2, True)):
        choice._plans.clear()
        monkeypatch.setattr(choice, "GUESS", loop / N)
        monkeypatch.setattr(choice, "GUESS_RUN", run / N)
        layer, f, y, groups = overlapping(N)
        layer.run(f, y, groups)
        assert bool(asked) == compiled


def test_a_run_tells_the_next_how_long_a_row_takes(monkeypatch, asked):
    tick(monkeypatch, 1.0)
    layer, f, y, groups = overlapping(N)
    layer.run(f, y, groups)
    assert not asked
    assert all(lap.seconds >= 1.0 / N for plan in choice._plans.values() for lap in plan.values())
    layer.run(np.tile(f, 3), np.tile(y, 3), {k: np.tile(v, 3) for k, v in groups.items()})
    assert asked


def test_a_learner_counts_the_blocks_that_are_still_to_come(monkeypatch, asked):
    tick(monkeypatch, 0.1)
    monkeypatch.setattr(learner_module, "BLOCK", 100)
    learner = Learner(Squared(), 0.1)
    run = learner.run(learner.start(), None, np.ones(4_000))
    assert run.state.n == 4_000
    assert asked
