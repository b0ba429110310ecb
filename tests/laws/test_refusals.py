"""Refused means unchanged: after any exception a layer is what it was, to the last character of its JSON."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from gradeq import GradeqError
from laws.kinds import KINDS

BAD_NUMBERS = [math.nan, math.inf, "x", None, 10**400, [1.0, "y"]]
BAD_ROWS = [{"weight": -1.0}, {"weight": math.nan}, {"id": True}, {"id": 1.5}, {"time": "noon"}]


class Life(RuleBasedStateMachine):
    """Anything that can be done to a layer, in any order, sensible or not."""

    kind = None

    @initialize(seed=st.integers(0, 10**6))
    def born(self, seed):
        self.rng = np.random.default_rng(seed)
        self.layer = self.kind.make()
        self.ids, self.clock = [], 0.0

    def tried(self, call, *args, **given):
        """Do it; if it is refused, nothing has changed and one line says why."""
        before = self.layer.to_json()
        try:
            return call(*args, **given)
        except GradeqError as error:
            assert "\n" not in str(error), str(error)
            assert self.layer.to_json() == before, f"changed by a refusal: {error}"
            return None

    def settle(self, y, **given):
        return self.tried(self.layer.update, y, **given)

    @rule(known=st.booleans(), timed=st.booleans())
    def predict(self, known, timed):
        id = self.ids[-1] if known and self.ids else len(self.ids)
        self.clock += 1.0
        given = {"time": self.clock} if timed else {}
        row = (*self.kind.args(self.rng),)
        where = self.kind.where(self.rng)
        if self.tried(self.layer.predict, *row, **where, id=id, **given) is not None:
            self.ids.append(id)

    @rule(bad=st.sampled_from(BAD_ROWS))
    def predict_with_a_bad_row(self, bad):
        where = self.kind.where(self.rng)
        if where.get("groups"):
            where["groups"] = {**where["groups"], self.kind.groups[0]: "never seen before"}
        self.tried(self.layer.predict, *self.kind.args(self.rng), **{"id": f"b{self.clock}", **where, **bad})

    @rule(bad=st.sampled_from(BAD_NUMBERS))
    def predict_a_bad_value(self, bad):
        if not self.kind.bare and not self.kind.games:
            self.tried(self.layer.predict, bad, **self.kind.where(self.rng))
        elif self.kind.games:
            self.tried(self.layer.predict, "newcomer", "newcomer", id="self")
            self.tried(self.layer.predict, "newcomer", None, id="none")

    @rule(place=st.integers(0, 40))
    def update(self, place):
        id = self.ids[place % len(self.ids)] if self.ids else "nobody"
        self.settle(self.kind.label(self.rng), id=id)

    @rule()
    def update_the_oldest(self):
        self.settle(self.kind.label(self.rng))

    @rule(bad=st.sampled_from(BAD_NUMBERS))
    def update_with_a_bad_label(self, bad):
        self.settle(bad)

    @rule(place=st.integers(0, 40))
    def correct(self, place):
        id = self.ids[place % len(self.ids)] if self.ids else "nobody"
        self.tried(self.layer.correct, id, self.kind.label(self.rng))

    @rule(open=st.booleans())
    def with_the_ticket_in_hand(self, open):
        ticket = self.tried(self.layer.open, *self.kind.args(self.rng), **self.kind.where(self.rng))
        if ticket is not None and open:
            posting = self.tried(self.layer.post, ticket, self.kind.label(self.rng))
            if posting is not None:
                self.tried(self.layer.repost, posting, self.kind.label(self.rng))
        foreign = ticket and ticket._replace(row=ticket.row._replace(names=("other", "names", "here", "x")))
        if foreign:
            self.tried(self.layer.post, foreign, self.kind.label(self.rng))

    @rule(hand=st.sampled_from(["freeze", "resume", "reset_in_flight"]))
    def by_hand(self, hand):
        getattr(self.layer, hand)()

    @rule(ahead=st.floats(0.0, 50.0))
    def expire(self, ahead):
        self.layer.expire(self.clock + ahead)

    @rule(eta=st.sampled_from([0.05, 0.3, 0.0, -1.0, math.nan, "x", None]))
    def set_step(self, eta):
        if hasattr(self.layer, "set_step"):
            self.tried(self.layer.set_step, eta)

    @rule(
        n=st.integers(0, 5),
        spoil=st.sampled_from(["", "", "labels", "length", "weights", "self"]),
        late=st.booleans(),
    )
    def run(self, n, spoil, late):
        rng, kind = self.rng, self.kind
        rows = [kind.args(rng) for _ in range(n)]
        labels = [kind.label(rng) for _ in range(n)]
        given = {}
        if spoil == "labels" and n:
            labels[-1] = math.inf
        if spoil == "length":
            labels = [*labels, 0.5]
        if spoil == "weights" and n:
            given["weights"] = [1.0] * (n - 1) + [-2.0]
        if late:
            given["times"] = [self.clock + i for i in range(n)]
            given["label_times"] = [self.clock + i + float(rng.integers(0, 6)) for i in range(n)]
            self.clock += n
        if kind.games:
            a, b = [r[0] for r in rows], [r[1] for r in rows]
            if spoil == "self" and n:
                b[-1] = a[-1]
            self.tried(self.layer.run, a, b, labels, **given)
            return
        places = [kind.where(rng) for _ in range(n)]
        for what in ("groups", "features"):
            names = getattr(kind, what)
            if names:
                given[what] = {name: [p[what][name] for p in places] for name in names}
        if kind.keyed:
            given["key"] = [p["key"] for p in places]
        columns = ()
        if not kind.bare:
            shape = (n, kind.forecasts) if kind.forecasts > 1 else n
            columns = (np.array([r[0] for r in rows], dtype=float).reshape(shape),)
        self.tried(self.layer.run, *columns, labels, **given)

    @rule()
    def there_and_back(self):
        text = self.layer.to_json()
        self.layer = self.kind.saved(text)
        assert self.layer.to_json() == text

    @invariant()
    def certified(self):
        if not hasattr(self, "layer"):
            return
        result = self.layer.equilibrium()
        assert result.gap <= 1e-9
        assert result.bound is None or abs(result.largest) <= result.bound * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("name", KINDS)
def test_a_refusal_changes_nothing_whatever_came_before(name):
    machine = type(f"Life of {name}", (Life,), {"kind": KINDS[name]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
