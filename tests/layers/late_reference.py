"""The automatic step written out plainly from its specification, as slowly and as simply as it can be said."""

import math
from collections import defaultdict

MEMORIES = (10, 30, 100, 300, 1000, 3000, 10000, 30000)


class Hedge:
    """Weights of several experts by posted loss; Delta grows faster where labels are late."""

    def __init__(self, experts):
        self.losses, self.delta = [0.0] * experts, 0.0
        self.labels, self.lateness = 0, 0.0

    @property
    def rate(self):
        return math.log(len(self.losses)) / self.delta if self.delta else 0.0

    def weights(self):
        best = min(self.losses)
        raw = [math.exp(-self.rate * (loss - best)) for loss in self.losses]
        return [w / sum(raw) for w in raw]

    def enter(self, lost, rows_late):
        self.labels += 1
        window = min(self.labels, max(1000.0, 4.0 * self.lateness))
        self.lateness += (rows_late - self.lateness) / window
        weights, rate = self.weights(), self.rate
        mean = sum(w * loss for w, loss in zip(weights, lost, strict=True))
        if rate:
            parts = [w * math.exp(-min(rate * x, 700)) for w, x in zip(weights, lost, strict=True)]
            mix = -math.log(sum(parts) + 1e-300) / rate
        else:
            mix = min(lost)
        if mean - mix > 1e-9 * mean:
            self.delta += (mean - mix) * (1.0 + 2.0 * self.lateness)
        self.losses = [a + b for a, b in zip(self.losses, lost, strict=True)]


class Cell:
    """Rows and lateness of one group: the peak is renewed in growing epochs."""

    def __init__(self):
        self.rows, self.peak, self.recent, self.labels, self.length = 0, 1, 0, 0, 50

    def post(self, late):
        self.peak, self.recent = max(self.peak, late), max(self.recent, late)
        self.labels += 1
        if self.labels >= self.length:
            self.peak, self.recent, self.labels = self.recent, 0, 0
            self.length = max(self.length + 50, 4 * self.peak)


class Lateness:
    """The step of a label: min(eta, c / (w P)), P the sum of its cells' peaks, once one of them is 2 or more."""

    def __init__(self, eta, cap):
        self.eta, self.cap, self.cells = eta, cap, defaultdict(Cell)

    def serve(self, names):
        for name in names:
            self.cells[name].rows += 1
        return [self.cells[name].rows for name in names]

    def step(self, names, opened, w):
        cells = [self.cells[name] for name in names]
        for cell, at in zip(cells, opened, strict=True):
            cell.post(cell.rows - at + 1)
        peaks = [cell.peak for cell in cells]
        return min(self.eta, self.cap / (w * sum(peaks))) if max(peaks) >= 2 else self.eta


class Mean:
    """One expert: a running mean of known residuals, overall and by group."""

    def __init__(self, memory, columns):
        self.keep, self.columns = 1.0 - 1.0 / memory, columns
        self.a, self.precision = 0.0, 0.0
        self.d, self.p, self.last = defaultdict(float), defaultdict(float), defaultdict(int)

    def offset(self, names):
        return self.a + sum(self.d[name] for name in names)

    def learn(self, names, e, v, w, labels):
        self.precision = self.keep * self.precision + w * v
        self.a -= w * e / (self.precision + 3.0)
        for name in names:
            self.p[name] = self.keep ** (labels - self.last[name]) * self.p[name] + w * v
            self.d[name] -= w * e / ((self.p[name] + 3.0) * self.columns)
            self.last[name] = labels


class AutoDebiaser:
    """Raw and eight means, mixed, then one slow correction of the error of what was served."""

    def __init__(self, outcome, columns):
        self.binary, self.columns = outcome == "binary", columns
        eta, cap = (0.03, 0.5) if self.binary else (0.01, 0.1)
        self.flight = Lateness(eta / max(1, columns), cap)
        self.hedge = Hedge(9)
        self.means = [Mean(memory, columns) for memory in MEMORIES]
        self.u, self.low, self.high, self.served = defaultdict(float), 0.0, 0.0, 0
        self.open = {}

    def link(self, f, offset):
        if not self.binary:
            return f + offset
        p = min(max(f, 1e-6), 1.0 - 1e-6)
        return 1.0 / (1.0 + (1.0 - p) / p * math.exp(-offset))

    def said(self, mean, names):
        offset = mean.offset(names)
        return offset if self.binary else min(max(offset, self.low), self.high)

    def predict(self, id, f, names=()):
        raw = min(max(f, 1e-6), 1.0 - 1e-6) if self.binary else f
        said = [raw] + [self.link(f, self.said(mean, names)) for mean in self.means]
        m = sum(w * x for w, x in zip(self.hedge.weights(), said, strict=True))
        cells = names or ("(all)",)
        self.served += 1
        s = self.link(m, sum(self.u[name] for name in cells))
        self.open[id] = (f, names, cells, self.flight.serve(cells), self.served, said, s)
        return s

    def update(self, id, y, w=1.0):
        f, names, cells, opened, number, said, s = self.open.pop(id)
        self.low, self.high = min(self.low, y - f), max(self.high, y - f)
        self.hedge.enter([w * (x - y) ** 2 for x in said], self.served - number)
        for mean in self.means:
            q = self.link(f, mean.offset(names))
            v = max(q * (1.0 - q), 1e-3) if self.binary else 1.0
            mean.learn(names, q - y, v, w, self.hedge.labels)
        step = self.flight.step(cells, opened, w)
        for name in cells:
            self.u[name] -= step * (w * (s - y))
        return step


class Scale:
    """The running mean of |y - m|, half-life 100 labels, or 4 times their mean lateness if that is more."""

    def __init__(self):
        self.num = self.den = 0.0

    def at(self, m):
        return max(self.num / self.den, 1e-9 * abs(m)) if self.num else 0.0

    def enter(self, m, y, lateness=0.0):
        fade = max(2.0**-0.01, 1.0 - math.log(2.0) / max(4.0, 4.0 * lateness))
        self.num, self.den = fade * self.num + abs(y - m), fade * self.den + 1.0


def isotonic(z):
    """The nearest increasing sequence: neighbours in the wrong order share their mean."""
    blocks = []
    for x in z:
        blocks.append([x, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, m), (b, n) = blocks[-2:]
            blocks[-2:] = [[(a * m + b * n) / (m + n), m + n]]
    return [level for level, size in blocks for _ in range(size)]


class Tracks:
    """One expert on quantiles: an offset in asinh units for each level, overall and by group."""

    def __init__(self, rate, columns, start):
        self.rate, self.columns = rate, columns
        self.a, self.d = list(start), defaultdict(lambda: [0.0] * len(start))

    def says(self, base, scale, names):
        if not scale:
            return list(base)
        m = base[len(base) // 2]
        return [
            m + scale * math.sinh(math.asinh((f - m) / scale) + self.a[k] + sum(self.d[n][k] for n in names))
            for k, f in enumerate(base)
        ]

    def learn(self, names, misses, w, labels, own_labels):
        for k, miss in enumerate(misses):
            self.a[k] -= min(0.3, w * max(self.rate, 1.0 / (labels + 10))) * miss
            for name in names:
                step = min(0.3, w * max(self.rate, 1.0 / (own_labels[name] + 30)))
                self.d[name][k] -= step / self.columns * miss


class AutoTracker:
    """Raw forecasts and five trackers, mixed level by level, then one slow tracker of what was served."""

    def __init__(self, taus, columns, raw=True, start=None):
        self.taus, self.raw = taus, raw
        start = start or [0.0] * len(taus)
        self.flight = Lateness(0.03, 0.3)
        self.trackers = [Tracks(rate, columns, start) for rate in (0.0003, 0.001, 0.01, 0.1, 0.3)]
        self.hedge, self.own = Hedge(5 + raw), defaultdict(int)
        self.scale, self.final_scale, self.served = Scale(), Scale(), 0
        self.u = defaultdict(lambda: [0.0] * len(taus))
        self.open = {}

    def mixed(self, base, said):
        """The weighted mean; one forecast for several levels is no expert on any."""
        weights, first = self.hedge.weights(), 0
        if self.raw and len(base) > 1 and base[0] == base[-1]:
            first = 1
        share = sum(weights[first:])
        mix = [
            sum(w * values[k] for w, values in zip(weights[first:], said[first:], strict=True)) / share
            for k in range(len(base))
        ]
        return mix, first

    def predict(self, id, base, names=()):
        scale, cells = self.scale.at(base[len(base) // 2]), names or ("(all)",)
        said = [list(base)] * self.raw + [own.says(base, scale, names) for own in self.trackers]
        mix, asleep = self.mixed(base, said)
        if asleep:
            said[0] = mix
        mix = isotonic(mix) if scale else list(base)
        m = mix[len(mix) // 2]
        last, s = self.final_scale.at(m), mix
        if last:
            moved = [math.asinh((x - m) / last) + sum(self.u[name][k] for name in cells) for k, x in enumerate(mix)]
            s = [m + last * math.sinh(x) for x in isotonic(moved)]
        self.served += 1
        opened = self.flight.serve(cells)
        self.open[id] = (base, names, cells, opened, self.served, said, m, s)
        return s

    def misses(self, values, y):
        return [float(y <= value) - tau for value, tau in zip(values, self.taus, strict=True)]

    def pinball(self, values, y):
        pairs = zip(values, self.taus, strict=True)
        return sum(max(tau * (y - x), (tau - 1.0) * (y - x)) for x, tau in pairs)

    def update(self, id, y, w=1.0):
        base, names, cells, opened, number, said, m, s = self.open.pop(id)
        labels = self.hedge.labels
        self.hedge.enter([w * self.pinball(values, y) for values in said], self.served - number)
        centre = base[len(base) // 2]
        scale = self.scale.at(centre)  # as it is now
        self.scale.enter(centre, y, self.hedge.lateness)
        scale = scale or self.scale.at(centre)
        for own in self.trackers if scale else ():
            own.learn(names, self.misses(own.says(base, scale, names), y), w, labels, self.own)
        for name in names:
            self.own[name] += 1
        self.final_scale.enter(m, y)
        step = self.flight.step(cells, opened, w)
        for name in cells:
            for k, miss in enumerate(self.misses(s, y)):
                self.u[name][k] -= step * (w * miss)
        return step
