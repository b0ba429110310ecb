"""A user's script that calls every public verb of every layer; type checkers read it, nothing runs it."""

from __future__ import annotations

from datetime import datetime
from typing import reveal_type

import numpy as np
import polars as pl
from numpy.typing import NDArray

import gradeq as gq
from gradeq.ledger.values import Posting, Ticket

column = [1.0, 2.0, 3.0]
array: NDArray[np.float64] = np.array(column)
series = pl.Series(column)
now = datetime(2026, 1, 1)


def events_of_a_debiaser() -> None:
    layer = gq.Debiaser(eta="auto", groups=["region"], late_cap="auto", shadow=False)
    served: float = layer.predict(10.0, {"region": "north"}, weight=2.0, id="a", time=now)
    outcome: str = layer.update(12.0, "a", time=now)
    layer.update(None)
    ticket: Ticket = layer.open(10.0, groups={"region": "north"})
    shown: float = layer.value_of(ticket)
    posting: Posting = layer.post(ticket, 11.0)
    back, again = layer.repost(posting, 12.0)
    layer.replay([ticket, posting, back, again])
    preview: Ticket = layer.preview(10.0, {"region": "north"})
    layer.adopt(preview, 11.0)
    peeked: float = layer.peek(10.0, {"region": "north"})
    layer.skip("b")
    layer.correct("a", 11.0)
    layer.forget("a")
    layer.expire(now)
    layer.advance(now)
    layer.set_step(0.1)
    layer.freeze()
    layer.resume()
    layer.reset_in_flight()
    print(served, outcome, shown, peeked, layer.cold, layer.frozen, layer.ids, layer.queue)
    reveal_type(layer.predict(10.0))
    reveal_type(layer.peek(10.0))
    reveal_type(layer.value_of(ticket))
    reveal_type(ticket.served)
    reveal_type(ticket.base)
    reveal_type(posting.served)
    reveal_type(posting.errors)
    reveal_type(layer.theta)
    reveal_type(layer.ids)
    reveal_type(layer.traffic)
    reveal_type(layer.steps)
    reveal_type(layer.log)
    reveal_type(layer.eta)
    reveal_type(layer.schedule)
    reveal_type(layer.support)
    reveal_type(layer.bins)


def columns_of_a_debiaser() -> None:
    layer = gq.Debiaser(groups="region")
    groups = {"region": ["n", "s", "n"]}
    run = layer.run(array, labels=column, groups=groups, times=array, label_times=array, ids=[1, 2, 3])
    reveal_type(run.served)
    reveal_type(run.values)
    reveal_type(run.labelled)
    reveal_type(run.trace)
    reveal_type(run.trace.theta)
    reveal_type(run.posts)
    reveal_type(run.weighed)
    reveal_type(layer.run(column, column, groups=groups).served)
    reveal_type(layer.run(series, series, groups=groups).served)
    reveal_type(layer.predict_many(series, groups=groups, weights=array, ids=[4, 5, 6]))
    reveal_type(layer.update_many(column, [1, 2, 3]))
    reveal_type(layer.update_many(array, ids=array, times=array))
    reveal_type(layer.update_many(series, ids=series))
    frontier = layer.sweep([0.1, 0.2], array, array, groups=groups)
    reveal_type(frontier.least_loss())
    reveal_type(frontier.least_bias(0.02).worst)
    reveal_type(layer.harm_cap())


def certificates() -> None:
    layer = gq.Debiaser()
    found = layer.equilibrium()
    reveal_type(found)
    reveal_type(found.bound)
    reveal_type(found.coordinates)
    reveal_type(found.as_dict())
    reveal_type(found.certificate)
    reveal_type(found.certificate["bound"])
    reveal_type(layer.labels_until(0.1))
    reveal_type(layer.since(layer.copy()))
    reveal_type(layer.plot())
    layer.report("report.html", layer.run(array, array))


def saved_layers() -> None:
    layer = gq.Debiaser()
    layer.save("layer.json")
    reveal_type(gq.load("layer.json"))
    reveal_type(gq.load("layer.json").predict(10.0))
    reveal_type(gq.load("layer.json").peek(10.0))
    reveal_type(gq.load("layer.json").run(array, array).served)
    reveal_type(gq.load("layer.json").predict_many(array))
    reveal_type(gq.load("layer.json").update(1.0))
    reveal_type(gq.load("layer.json").theta)
    reveal_type(gq.from_json(layer.to_json()).predict(10.0))
    reveal_type(gq.load("layer.json", gq.Debiaser).predict(10.0))
    reveal_type(gq.from_json(layer.to_json(), gq.Keyed[gq.IntervalTracker]).predict(1.0, "a"))
    layer.merge(layer.copy())


def quantiles() -> None:
    one = gq.QuantileTracker(0.9, schedule=gq.Power(0.1, 0.5), penalty=None, support=(0.0, None))
    reveal_type(one.predict(1.0, {}, {"x": 1.0}))
    reveal_type(one.predict_many(column))
    reveal_type(one.run(array, array).served)
    reveal_type(one.coverage)
    reveal_type(one.level)
    reveal_type(one.sweep([0.1], array, array).raw)
    several = gq.MultiQuantileTracker([0.1, 0.9])
    reveal_type(several.predict([1.0, 2.0]))
    reveal_type(several.run(column).served)
    reveal_type(several.predict_many(array))
    reveal_type(several.coverage)
    interval = gq.IntervalTracker(0.8)
    lower, upper = interval.predict(1.0)
    reveal_type(lower + upper)
    reveal_type(interval.predict_many(array))
    reveal_type(interval.coverage)
    mixture = gq.QuantileEnsemble(0.9, etas=[0.1, 1.0], ensemble_eta=0.5)
    reveal_type(mixture.predict(1.0, id="a"))
    reveal_type(mixture.peek(1.0))
    reveal_type(mixture.run(array, array).served)
    reveal_type(mixture.predict_many(array, ids=["a", "b", "c"]))
    reveal_type(mixture.tracker_weights)
    reveal_type(mixture.trackers)
    reveal_type(mixture.coverage)
    reveal_type(mixture.theta)


def sets_and_knobs() -> None:
    layer = gq.Conformal("absolute", coverage=0.9, eta=0.1)
    found = layer.predict(1.0)
    reveal_type(found)
    reveal_type(2.0 in found)
    reveal_type(found.interval)
    reveal_type(found.threshold)
    reveal_type(layer.value_of(layer.open(1.0)))
    reveal_type(layer.run(array, array).served)
    reveal_type(gq.Conformal.from_json(layer.to_json(), "absolute").peek(1.0))
    knob = gq.RiskControl(lambda theta, y: float(y > theta), target=0.1, eta=0.1, span=(0.0, 1.0))
    reveal_type(knob.predict())
    reveal_type(knob.peek())
    reveal_type(knob.predict_many(3))
    reveal_type(knob.run(array).served)
    reveal_type(knob.risk)
    reveal_type(knob.theta)


def many_series() -> None:
    many = gq.Keyed(gq.Debiaser(eta=0.5))
    reveal_type(many)
    reveal_type(many.layer)
    reveal_type(many.predict(10.0, "shop 1", id=7))
    reveal_type(many.peek(10.0, "shop 1"))
    reveal_type(many.run(array, array, key=["a", "b", "c"]).served)
    reveal_type(many.predict_many(series, ["a", "b", "c"]))
    reveal_type(many.update(1.0, key="shop 1"))
    reveal_type(many.update_many(column, key=["a", "b", "c"]))
    reveal_type(many.skip(key="shop 1"))
    reveal_type(many.keys)
    reveal_type(many.theta)
    reveal_type(many.equilibrium("shop 1"))
    reveal_type(many.table())
    reveal_type(gq.Keyed(gq.IntervalTracker(0.9)).predict(1.0, "a"))
    reveal_type(gq.Keyed(gq.MultiQuantileTracker([0.1, 0.9])).run(column, key=column).served)
    many.set_step(0.1)


def ratings() -> None:
    elo = gq.Elo()
    reveal_type(elo.predict("ann", "bob", id=1))
    reveal_type(elo.peek("ann", "bob"))
    reveal_type(elo.predict_many(["ann"], ["bob"], ids=[2]))
    reveal_type(elo.update(1, id=1))
    reveal_type(elo.play("ann", "bob", 0.5, home=1.0))
    reveal_type(elo.run(["ann"], ["bob"], [1.0]).served)
    reveal_type(elo.run(["ann"], ["bob"]).served)
    reveal_type(elo.update(1.0, 1))
    reveal_type(elo.update_many([1.0], [2]))
    reveal_type(elo.play("ann", "bob", 0.5))
    reveal_type(elo.board("now").leader)
    reveal_type(elo.connected())
    reveal_type(elo.drift())
    reveal_type(elo.sweep([0.1], ["ann"], ["bob"], [1.0]).least_loss())
    reveal_type(elo.leaderboard())
    reveal_type(elo.equilibrium())
    reveal_type(elo.ratings)
    reveal_type(elo.theta)


def learners() -> None:
    learner = gq.Learner(gq.Squared(), 0.1, penalty=gq.Ridge(0.1), link=gq.Identity())
    state = learner.start(2)
    reveal_type(learner.predict(state, array))
    state, ticket = learner.ticket(state, array)
    reveal_type(learner.update(state, ticket, 1.0))
    reveal_type(learner.descend(state, array))
    reveal_type(learner.run(state, None, column).served)
    reveal_type(state.theta)
    reveal_type(gq.check_loss(gq.Huber(1.0)))
