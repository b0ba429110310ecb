"""The same stream by every path: events, columns, any cut with JSON in between, tickets in hand, replayed journal."""

import heapq
import json

import numpy as np

import gradeq as gq
from fuzz.check import Broken, expect
from fuzz.settings import GROUPS


class Stream:
    """Rows with everything they need, some labels late, missing or of weight 0."""

    def __init__(self, case, rng, n):
        self.case, self.n = case, n
        size = (n, case.forecasts) if case.forecasts > 1 else n
        if case.binary:
            self.base = rng.uniform(0.02, 0.98, n)
            self.y = rng.choice([0.0, 1.0], n) if rng.random() < 0.5 else rng.uniform(size=n)
        else:
            self.base = case.scale * np.sort(
                rng.normal(size=size), axis=-1 if case.forecasts > 1 else 0
            )
            if case.forecasts == 1:
                rng.shuffle(self.base)
            self.y = case.scale * rng.normal(0.5, 1.0, n)
        if case.positive:
            self.base = case.scale * rng.uniform(0.5, 2.0, n)
            self.y = self.base * rng.uniform(0.5, 2.0, n)
        if case.games:
            self.a = [f"p{k}" for k in rng.integers(0, 4, n)]
            self.b = [f"q{k}" for k in rng.integers(0, 4, n)]
            self.y = rng.choice([0.0, 0.5, 1.0], n)
        self.y[rng.random(n) < 0.1] = np.nan
        self.w = (
            np.where(rng.random(n) < 0.1, 0.0, rng.uniform(0.2, 3.0, n))
            if case.weights != "none"
            else None
        )
        self.groups = {name: rng.choice(list(GROUPS[name]), n) for name in case.groups}
        self.features = {name: rng.normal(size=n) for name in case.features}
        self.key = rng.integers(0, 4, n) if case.keyed else None
        self.home = rng.choice([1.0, 0.0, -1.0], n) if case.home else None
        self.late = rng.random() < 0.6 and "proximal" not in case.told
        self.times = np.sort(rng.integers(0, n, n)).astype(float)
        self.due = self.times + rng.integers(0, 1 + int(rng.choice([1, 5, 40])), n)

    def columns(self, layer, cut):
        """A run over some of the rows."""
        case, given = self.case, {}
        if self.late:
            given = {"times": self.times[cut], "label_times": self.due[cut]}
        if self.w is not None:
            given["weights"] = self.w[cut]
        if case.games:
            if self.home is not None:
                given["home"] = self.home[cut]
            return layer.run(self.a[cut], self.b[cut], self.y[cut], **given)
        for name, columns in (("groups", self.groups), ("features", self.features)):
            if columns:
                given[name] = {key: column[cut] for key, column in columns.items()}
        if case.keyed:
            given["key"] = self.key[cut]
        return layer.run(self.base[cut], self.y[cut], **given)

    def ticket(self, layer, i):
        """One row, its ticket in hand."""
        case, given = self.case, {"weight": 1.0 if self.w is None else float(self.w[i])}
        if case.games:
            if self.home is not None:
                given["home"] = float(self.home[i])
            return layer.open(self.a[i], self.b[i], **given)
        for name, columns in (("groups", self.groups), ("features", self.features)):
            if columns:
                given[name] = {key: column[i].item() for key, column in columns.items()}
        if case.keyed:
            given["key"] = int(self.key[i])
        f = self.base[i]
        return layer.open(tuple(f) if case.forecasts > 1 else float(f), **given)

    def learns(self, i):
        dropped = self.case.told.get("ties") == "drop" and self.y[i] == 0.5
        return not np.isnan(self.y[i]) and (self.w is None or self.w[i] > 0.0) and not dropped


def sums(layer):
    return json.loads(layer.to_json())["state"]["columns"]


def check_paths(case, rng):
    """Raise ``Broken`` unless every path gives the same bits."""
    if case.told.get("ttl") is not None:
        return
    stream = Stream(case, rng, int(rng.choice([5, 60, 160])))
    whole = case.make()
    try:
        served = np.asarray(stream.columns(whole, slice(0, stream.n)).values)
    except gq.Diverging:
        return
    pieces, resumed = [], case.make()
    cuts = np.sort(rng.integers(0, stream.n + 1, 2)).tolist()
    for a, b in zip([0, *cuts], [*cuts, stream.n], strict=True):
        pieces.append(np.asarray(stream.columns(resumed, slice(a, b)).values))
        resumed = gq.from_json(resumed.to_json())
    joined = np.concatenate([p for p in pieces if len(p)]) if stream.n else served
    expect(np.array_equal(served, joined, equal_nan=True), "cut and resumed", cuts)
    expect(whole.to_json() == resumed.to_json(), "the state, cut and resumed", cuts)
    held, journal, waiting, events = case.make(), [], [], []

    def post(i, ticket):
        journal.append(held.post(gq.Ticket.from_json(ticket.to_json()), float(stream.y[i])))

    for i in range(stream.n):
        while stream.late and waiting and waiting[0][0] <= stream.times[i]:
            _, k, ticket = heapq.heappop(waiting)
            post(k, ticket)
        ticket = stream.ticket(held, i)
        journal.append(ticket)
        events.append(ticket.served)
        if stream.learns(i):
            if stream.late:
                heapq.heappush(waiting, (stream.due[i], i, ticket))
            else:
                post(i, ticket)
    expect(np.array_equal(served, np.array(events).reshape(served.shape)), "events and columns")
    expect(held.theta == whole.theta, "parameters of events and columns")
    expect(sums(held) == sums(whole), "state of events and columns", differing(held, whole))
    again = case.make()
    again.replay(type(entry).from_json(entry.to_json()) for entry in journal)
    expect(sums(again) == sums(held), "a replayed journal", differing(again, held))


def differing(one, other):
    a, b = sums(one), sums(other)
    return {name: (a[name], b[name]) for name in a if a[name] != b[name]}


__all__ = ["Broken", "check_paths"]
