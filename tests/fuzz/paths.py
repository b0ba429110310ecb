"""The same stream by every path: events, columns, cuts with JSON in between, a replayed journal, merged parts."""

import copy
import heapq
import itertools
import json

import numpy as np

import gradeq as gq
from fuzz.settings import GROUPS
from fuzz.telling import close, expect
from gradeq.ledger.facts import DELAY_MOST, DELAY_SUM
from laws.kinds import certified


class Stream:
    """Rows with everything they need, some labels late, missing or of weight 0."""

    def __init__(self, case, rng, n):
        self.case, self.n = case, n
        size = (n, case.forecasts) if case.forecasts > 1 else n
        if case.binary:
            self.base = rng.uniform(0.02, 0.98, n)
            self.y = rng.choice([0.0, 1.0], n) if rng.random() < 0.5 else rng.uniform(size=n)
        else:
            axis = -1 if case.forecasts > 1 else 0
            self.base = case.scale * np.sort(rng.normal(size=size), axis=axis)
            if case.forecasts == 1:
                rng.shuffle(self.base)
            self.y = case.scale * rng.normal(0.5, 1.0, n)
        if case.positive:
            self.base = case.scale * rng.uniform(0.5, 2.0, n)
            self.y = self.base * rng.uniform(0.5, 2.0, n)
        if case.kind == "risk":
            self.y = rng.uniform(*case.ends, n)
        if case.games:
            self.a = np.array([f"p{k}" for k in rng.integers(0, 4, n)], dtype=object)
            self.b = np.array([f"q{k}" for k in rng.integers(0, 4, n)], dtype=object)
            self.y = rng.choice([0.0, 0.5, 1.0], n)
        self.y = np.clip(self.y, *case.support)
        self.y[rng.random(n) < 0.1] = np.nan
        heavy = float(rng.choice([3.0, 3.0, 60.0]))
        weights = np.where(rng.random(n) < 0.1, 0.0, 10.0 ** rng.uniform(-6, np.log10(heavy), n))
        self.w = None if case.weights == "none" else weights
        self.groups = {name: rng.choice(list(GROUPS[name]), n) for name in case.groups}
        spread = float(rng.choice([1.0, 1.0, 30.0]))
        self.features = {name: spread * rng.normal(size=n) for name in case.features}
        self.key = rng.integers(0, 4, n) if case.keyed else None
        self.home = rng.choice([1.0, 0.0, -1.0], n) if case.home else None
        self.late = rng.random() < 0.6 and not case.at_once
        self.times = np.sort(rng.integers(0, n, n)).astype(float)
        self.due = self.times + rng.integers(0, 1 + int(rng.choice([1, 5, 40])), n)
        still = sorted(rng.integers(0, n + 1, 2).tolist())
        self.still = range(*still) if rng.random() < 0.3 else range(0)  # rows while it is frozen

    def settled(self, layer, i):
        """Freeze or resume a layer that is about to serve row i."""
        if (i in self.still) != layer.frozen:
            layer.freeze() if i in self.still else layer.resume()

    def pieces(self, layer, cuts=(), between=lambda layer: layer):
        """All rows in pieces, cut here too: the runs, and the layer."""
        ends = [*cuts, self.still.start, self.still.stop] if self.still else cuts
        runs = []
        for a, b in itertools.pairwise([0, *sorted(ends), self.n]):
            self.settled(layer, a)
            runs.append(self.columns(layer, slice(a, b)))
            layer = between(layer)
        return runs, layer

    def columns(self, layer, cut):
        """A run over some of the rows: a slice, or which of them."""
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
        return layer.run(*(() if case.kind == "risk" else (self.base[cut],)), self.y[cut], **given)

    def flush(self, layer, mine):
        """Another row long after all labels have come, of one that is there already; it has no label itself."""
        if self.late and mine.any():
            times, due, y = self.times, self.due, self.y
            self.times, self.due = np.full(self.n, 1e9), np.full(self.n, 1e9)
            self.y = np.full(self.n, np.nan)
            i = int(np.flatnonzero(mine)[0])
            self.columns(layer, slice(i, i + 1))
            self.times, self.due, self.y = times, due, y

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
        if case.kind == "risk":
            return layer.open(**given)
        f = self.base[i]
        return layer.open(tuple(f) if case.forecasts > 1 else float(f), **given)

    def learns(self, i):
        dropped = self.case.told.get("ties") == "drop" and self.y[i] == 0.5
        weighs = self.w is None or self.w[i] > 0.0
        return weighs and not (np.isnan(self.y[i]) or dropped)

    def alive(self, waiting, now):
        """The tickets that are not too old when a row of this time has been served."""
        ttl = self.case.told.get("ttl")
        return [own for own in waiting if ttl is None or now - self.times[own[1]] <= ttl]


def sums(layer):
    return json.loads(layer.to_json())["state"]["columns"]


def check_paths(case, rng):
    """Raise ``Broken`` unless every path gives the same bits."""
    stream = Stream(case, rng, int(rng.choice([5, 60, 160])))
    try:
        runs, whole = stream.pieces(case.make())
    except gq.Diverging:
        return
    cut_and_resumed(case, rng, stream, whole, runs)
    if stream.late and case.kind not in ("elo", "conformal"):
        matured(case, rng, stream)
    events(case, stream, whole, runs)
    if not stream.still:
        parts(case, rng, stream, whole)


def told(runs):
    """What runs tell together: the values served, the labels that still wait, those that expired."""
    served = np.concatenate([np.asarray(run.values) for run in runs if len(run.values)])
    return served, (runs[-1].waiting, sum(run.expired for run in runs))


def cut_and_resumed(case, rng, stream, whole, runs):
    """The columns in more pieces, saved and read back in between."""
    cuts = rng.integers(0, stream.n + 1, 2).tolist()
    pieces, resumed = stream.pieces(case.make(), cuts, lambda layer: case.revive(layer.to_json()))
    (served, counts), (joined, again) = told(runs), told(pieces)
    expect(np.array_equal(served, joined, equal_nan=True), "cut and resumed", cuts)
    expect(counts == again, "waiting and expired, cut and resumed", counts, again, cuts)
    expect(whole.to_json() == resumed.to_json(), "the state, cut and resumed", cuts)


def matured(case, rng, stream):
    """With a maturity, and labels that count as missing: the same as labels that are due then, and say so."""
    settings, usual, age = case.make.settings, dict(case.make.settings), int(rng.integers(1, 30))
    missing = [None, case.held(0.0) if not case.ends else case.ends[0]][int(rng.integers(2))]
    settings.pop("ttl", None)
    mature = stream.times + age
    twin = copy.copy(stream)
    twin.due = np.maximum(stream.due, mature)
    if missing is not None:
        absent = np.isnan(stream.y) | (stream.due > mature)
        twin.y, twin.due = np.where(absent, missing, stream.y), mature
    try:
        shown = []
        for own, more in ((stream, {"maturity": age, "missing_is": missing}), (twin, {"maturity": 0})):
            settings |= {"missing_is": None, **more}
            runs, layer = own.pieces(case.make())
            shown.append((told(runs)[0].tolist(), sums(layer)))
        expect(shown[0] == shown[1], "labels at maturity", age, missing)
    except gq.Diverging:
        pass
    finally:
        settings.clear()
        settings |= usual


def events(case, stream, whole, runs):
    """One event at a time, tickets in hand and as JSON, some corrected; then all again from the journal."""
    held, journal, waiting, shown, expired = case.make(), [], [], [], 0

    def post(i, ticket):
        journal.append(held.post(gq.Ticket.from_json(ticket.to_json()), float(stream.y[i])))

    for i in range(stream.n):
        stream.settled(held, i)
        while stream.late and waiting and waiting[0][0] <= stream.times[i]:
            _, k, ticket = heapq.heappop(waiting)
            post(k, ticket)
        ticket = stream.ticket(held, i)
        journal.append(ticket)
        shown.append(ticket.served)
        expired += len(waiting)
        waiting = stream.alive(waiting, stream.times[i])
        expired -= len(waiting)
        heapq.heapify(waiting)
        if stream.learns(i):
            if stream.late:
                heapq.heappush(waiting, (stream.due[i], i, ticket))
            else:
                post(i, ticket)
    served, counts = told(runs)
    expect(np.array_equal(served, np.array(shown).reshape(served.shape)), "events and columns")
    expect(counts == (len(waiting), expired), "waiting and expired", counts, waiting, expired)
    learned = sum(isinstance(one, gq.Posting) for one in journal)
    expect(len(runs) > 1 or runs[0].labelled == learned, "labels learned from", learned)
    expect(held.theta == whole.theta, "parameters of events and columns")
    expect(sums(held) == sums(whole), "state of events and columns", differing(held, whole))
    expect(certified(held) == certified(whole), "certificate of events and columns")
    for entry in [one for one in journal if isinstance(one, gq.Posting)][-3:]:
        before = held.to_json()
        try:
            journal += held.repost(entry, case.ends[0] if case.ends else float(np.nanmin(stream.y)))
        except gq.BadInput as refusal:  # of a label whose loss was infinite
            expect("cannot be taken back" in str(refusal), "a correction", refusal)
            expect(held.to_json() == before, "refused, but changed")
    again = case.make()
    again.replay(type(entry).from_json(entry.to_json()) for entry in journal)
    expect(sums(again) == sums(held), "a replayed journal", differing(again, held))


def parts(case, rng, stream, whole):
    """Two partitions merged: where nothing is shared between them, they are the run over all rows."""
    alone = case.combination.rows == "groups" and case.kind == "debias" and case.told.get("penalty") is None
    alone = alone and not case.auto
    apart = stream.key if case.keyed else stream.groups["g"] if alone else rng.integers(0, 2, stream.n)
    names = sorted(set(apart.tolist()))
    mine = np.isin(apart, names[: len(names) // 2])
    one, other = case.make(), case.make()
    try:
        for layer, own in ((one, mine), (other, ~mine)):
            stream.columns(layer, own)
            stream.flush(layer, own)
    except gq.Diverging:
        return
    twin = other.copy()
    twin.merge(one), one.merge(other)
    size = sum(abs(c.average_gradient) for c in one.equilibrium().coordinates) + case.scale
    for a, b in zip(*(by_name(layer) for layer in (one, twin)), strict=True):
        expect(a.name == b.name and a.rows == b.rows, "merged either way", a, b)
        alike = a.average_gradient == b.average_gradient or close(a.average_gradient, b.average_gradient, size)
        expect(alike, "merged either way", a, b)
    expiring = case.told.get("ttl") is not None and stream.late  # it is the rows of both that let time pass
    apart = case.keyed and case.combination.keyed != "pooled"  # keys that share nothing
    # Groups share the mean of weights, which partitions do not: only keys have one each.
    if expiring or not (apart or (alone and stream.w is None)):
        return
    whole = whole.copy()
    stream.flush(whole, mine), stream.flush(whole, ~mine)
    for (name, a), (_, b) in zip(theta(one), theta(whole), strict=True):
        expect(np.allclose(a, b, 1e-12, 1e-15), "parameters of merged parts", name, a, b)
    for k, (a, b) in enumerate(zip(one.internals.state.facts, whole.internals.state.facts, strict=True)):
        # How many rows came in between is counted over the whole layer, and each part saw its own alone.
        known = k not in (DELAY_SUM, DELAY_MOST) or not stream.late
        expect(not known or close(a, b, abs(b)) or a == b, "facts of merged parts", k, a, b)


def theta(layer):
    return sorted(layer.theta.items())


def by_name(layer):
    return sorted(layer.equilibrium().coordinates, key=lambda c: c.name)


def differing(one, other):
    a, b = sums(one), sums(other)
    return {name: (a[name], b[name]) for name in a if a[name] != b[name]}


__all__ = ["check_paths"]
