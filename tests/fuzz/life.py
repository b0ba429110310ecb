"""One life of a layer under an adversary who sees what is served, and the books kept by hand beside it."""

import contextlib
import copy
import math
import warnings
from fractions import Fraction

import numpy as np

import gradeq as gq
from fuzz.adversary import SEVERAL, STYLES, label
from fuzz.settings import GROUPS
from fuzz.waiting import close, learn_in_turn, learn_mature, let_go, mature, stopped_learning

LOST_FUTURES = True  # whether tickets that a restored backup never served are posted to it


class Row:
    """A row as the outside world saw it; ``w`` is the weight that it is learned with, once it was served."""

    __slots__ = (
        "base", "coords", "frozen", "game", "given", "id", "key", "lapsed", "learned", "number", "posting", "served",
        "step", "ticket", "time", "w", "where", "y", "z",
    )  # fmt: skip

    def __init__(self, base, w, where, coords, z, key):
        self.given = w
        self.base, self.w, self.where, self.coords, self.z, self.key = (base, w, where, coords, z, key)
        self.served = self.y = self.id = self.time = self.ticket = self.posting = self.game = None
        self.learned = self.lapsed = self.frozen = False
        self.number, self.step = 0, 1.0


class Life:
    """Serve, hold, release, correct, freeze, change steps; everything learned is written down by hand.

    ``look`` is called with the life now and then; ``part``: what the names of groups, players and keys end with;
    ``alone``: not to be merged with another, so that steps may be changed and tickets kept in hand; ``late``: the
    share of labels that are held back, left out: drawn.
    """

    def __init__(self, case, rng, rows, look=None, part="", first=0, alone=True, late=None):
        self.case, self.rng, self.layer, self.part, self.alone = case, rng, case.make(), part, alone
        self.rows, self.open, self.clock, self.frozen, self.number = [], [], 0.0, False, first
        styles = STYLES if case.forecasts == 1 else SEVERAL
        self.style, self.side = str(rng.choice(styles)), int(rng.choice([0, 2]))
        self.wild = rng.random() < 0.4  # corrections, steps, freezing, resets, columns
        self.late = 0.0 if case.at_once else float(rng.choice([0.0, 0.0, 0.3, 0.9, 1.0]))
        self.late = self.late if late is None else late
        self.hold = int(rng.choice([3, 10, 40]))  # the most labels that are held back
        self.quiet = int(rng.choice([0, 30]))  # until then labels come at once
        self.lost = float(rng.choice([0.0, 0.0, 0.1, 0.5]))
        self.in_hand = alone and not case.at_once and rng.random() < 0.3
        if self.style == "anchor":  # levels are bounded one by one only if all labels come at once
            self.late = self.lost = 0.0
        self.corrected = self.stepped = self.merged = self.shared = False
        self.players, self.turn = int(rng.integers(2, 6)), int(rng.choice([10, 60, 1000]))
        self.fresh = int(rng.choice([0, 0, 50]))  # until then only the first names are seen
        self.size = float(rng.choice([1.0, 1.0, 1e3, 1e-3]))  # of features
        self.sums, self.usual = {}, 0.0
        self.means = {}  # by key: how many positive weights were served, and their exact sum
        self.constant_weight = float(10.0 ** rng.uniform(-6, 6))
        self.heavy = int(rng.integers(5, 60))  # the row that is a million times as heavy
        self.served, self.waited, self.heard = 0, [], 0
        self.earlier, self.later = None, []
        self.backup, self.astray, self.stray, self.restored = None, [], False, False
        self.maturity, self.maturing, self.held_back = case.told.get("maturity"), [], []
        if self.maturity:
            self.in_hand = False
        # Without ids at most one prediction (of each key) waits for its label, unless all are to queue for theirs.
        free = alone and not (self.in_hand or case.at_once or self.maturity)
        free = free and hasattr(self.layer, "skip")
        queue = case.told.get("queue", False)
        self.queue = bool(free and queue and rng.random() < 0.8)
        self.single = bool(free and not queue and rng.random() < 0.15)
        self.line, self.named = [], {}
        self.waiting, self.replaced = {}, 0
        if self.single:
            self.late = 0.0
        self.look = look
        moments = set(rng.integers(3, rows, 2).tolist()) if look else ()
        for t in range(rows):
            self.step(t)
            if t in moments:
                look(self)
        if look and rng.random() < 0.7:  # in the end all that was held back comes at once
            with contextlib.suppress(gq.Diverging):
                self.release(rows)
                if self.maturity:
                    self.clock += self.maturity
                    self.layer.advance(self.clock)
                    mature(self, math.nextafter(self.clock, math.inf))

    # What is served

    def weight(self):
        rng = self.rng
        return {
            "mild": lambda: float(rng.uniform(0.5, 2.0)),
            "heavy": lambda: float(rng.choice([1.0, 50.0, 50.0])),
            "light": lambda: float(rng.uniform(0.01, 1.0)),
            "wild": lambda: float(10.0 ** rng.uniform(-12, 3)),
            "zeros": lambda: float(rng.choice([0.0, 1.0])),
            "huge": lambda: float(10.0 ** rng.uniform(-6, 6)),
            "large": lambda: float(rng.uniform(300.0, 2500.0)),
            "constant": lambda: self.constant_weight,
            "lognormal": lambda: float(np.exp(3.0 * rng.normal())),
            "one": lambda: 1e6 if self.served == self.heavy else 1.0,
            "none": lambda: 1.0,
        }[self.case.weights]()

    def base(self, t):
        case, rng = self.case, self.rng
        if case.kind == "risk":
            return case.told["start"]
        if case.games:
            return 0.5
        if case.binary:
            wild = rng.random() < 0.1
            return float(rng.choice([0.0, 1.0, rng.uniform()]) if wild else rng.uniform(0.02, 0.98))
        if case.positive:
            return float(case.scale * rng.uniform(0.5, 2.0))
        if case.forecasts > 1:
            own = np.sort(rng.normal(size=case.forecasts))
            if self.style == "anchor":
                apart = 1.0 + 30.0 * min(1.0, self.layer.step / case.scale)  # many steps
                own = own[0] + np.arange(len(own)) * apart * float((t // 40) % 2 == 0)
            return tuple(float(case.scale * x) for x in own)
        return float(case.scale * rng.normal())

    def row(self, t):
        """A row that is about to be served."""
        case, rng, where, coords, z, key = self.case, self.rng, {}, [], [], None
        few = 1 if t < self.fresh else 9
        if case.games:
            pair = rng.choice(2 if t < self.fresh else self.players, 2, replace=False)
            coords, z = [f"p{k}{self.part}" for k in pair], [1.0, -1.0]
            if case.home:
                where["home"] = float(rng.choice([1.0, 0.0, -1.0]))
                # Its step is a tenth of the players': it enters rows as the root of that.
                coords, z = [*coords, "(first side)"], [*z, where["home"] * math.sqrt(0.1)]
        if case.groups:
            own = {name: str(rng.choice(list(GROUPS[name][:few]))) + self.part for name in case.groups}
            where["groups"], coords = own, [f"{name}={value}" for name, value in own.items()]
            z = [1.0] * len(coords)
        if case.features:
            far = self.size * (100.0 if rng.random() < 0.02 else 1.0)
            own = {name: far * float(rng.normal()) for name in case.features}
            where["features"], coords, z = own, [*coords, *own], [*z, *own.values()]
        if case.keyed:
            key = where["key"] = str(rng.integers(min(few, 3))) + self.part
        coords, z = (coords, z) if coords else (["(all)"], [1.0])
        return Row(self.base(t), self.weight(), where, coords, z, key)

    def serve(self, row):
        """Serve one row and write it down."""
        case, layer, given = self.case, self.layer, dict(row.where)
        args = tuple(row.coords[:2]) if case.games else () if case.kind == "risk" else (row.base,)
        if case.at_once:  # this form takes scores at once only
            row.game, row.served = (args, given), layer.peek(*args, **given)
            return
        given["weight"] = row.given
        if self.in_hand:
            row.ticket = layer.open(*args, **given)
            row.served, row.step = row.ticket.served, row.ticket.step
            self.usual = (row.step * max(self.usual, row.step / 30.0)) ** 0.5
        elif self.single:
            self.serve_single(row, args, given)
        else:
            if not self.queue or self.rng.random() < 0.3:
                given["id"] = row.id = self.number
                self.number += 1
            if not self.queue and (self.rng.random() < 0.5 or self.maturity):
                given["time"] = row.time = self.clock
            row.served = case.seen(layer, layer.predict(*args, **given))
            mature(self, self.clock)
            row.step = self.rng.random()
            if self.queue:
                self.line.append(row)
        self.counted(row)
        if row.time is not None:
            self.lapse(row.time)

    def serve_single(self, row, args, given):
        """Serve a row without an id: it takes the place of the one that waits."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = self.layer.predict(*args, **given)
        row.served = self.case.seen(self.layer, shown)
        self.replaced += row.key in self.waiting
        self.waiting[row.key] = row

    def peek(self, row):
        """A look at what would be served leaves no trace."""
        args = tuple(row.coords[:2]) if self.case.games else ()
        args = args if self.case.games or self.case.kind == "risk" else (row.base,)
        before = self.layer.to_json()
        self.layer.peek(*args, **row.where)
        assert self.layer.to_json() == before, "a look left a trace"

    def counted(self, row):
        self.served += 1
        if row.given > 0.0:
            n, total = self.means.get(row.key, (0, Fraction(0)))
            n, total = self.means[row.key] = n + 1, total + Fraction(row.given)
            row.w = float(Fraction(row.given) * n / total)
        row.number = self.served
        self.rows.append(row)

    def lapse(self, now):
        """By hand: the tickets that are too old from now on."""
        ttl = self.case.told.get("ttl")
        for row in self.rows if ttl is not None else ():
            if row.time is not None and row.y is None and now - row.time > ttl:
                row.lapsed = True

    # What is learned

    def learn(self, row, y):
        """Post a label and write it down."""
        if self.maturity:
            learn_mature(self, row, y)
            return
        if self.rng.random() < 0.02 and not row.lapsed:
            self.offer(row, math.inf if self.rng.random() < 0.5 else -math.inf)
            beyond = math.nextafter(self.case.support[0], -math.inf)
            if math.isfinite(beyond):
                self.offer(row, beyond)
        try:
            outcome = self.post(row, y)
        except gq.ExpiredTicket:
            assert row.lapsed, f"expired too early: {row.time}, {self.clock}"
            return
        assert not row.lapsed, f"an expired label was taken: {row.time}, {self.clock}"
        if outcome == "waiting":
            self.held_back.append((row, y))
            return let_go(self)
        if row.game is not None:
            self.counted(row)
        let_go(self)
        self.said(row, y)
        return None

    def post(self, row, y):
        """Give a label to the layer: what became of it."""
        layer = self.layer
        if row.game is not None:
            args, given = row.game
            return layer.play(*args, y, row.given, **given)
        if row.ticket is not None:
            row.posting = layer.post(row.ticket, y)
            return "applied"
        if self.single:
            outcome = layer.update(y, **({} if row.key is None else {"key": row.key}))
            if not isinstance(y, float) or math.isfinite(y):
                del self.waiting[row.key]
            return outcome
        named = self.named if self.queue else {"id": row.id}
        return layer.update(y, **named)

    def offer(self, row, y):
        """A label that is out of all bounds is refused, and nothing has changed."""
        before = self.layer.to_json()
        try:
            self.post(row, y)
        except gq.BadInput:
            assert self.layer.to_json() == before, f"a label of {y} was refused and left a trace"
        else:
            raise AssertionError(f"a label of {y} was taken")

    def said(self, row, y):
        """By hand: what a label that was taken means."""
        row.y, row.frozen = y, self.frozen
        row.learned = not self.frozen and row.w > 0.0 and not self.dropped(y)
        if row.w > 0.0 and not self.dropped(y):
            self.heard += 1
            self.waited.append(self.served - row.number)
        if row.learned:
            self.entered(row, 1.0)
            if self.earlier is not None:
                self.later.append(row)

    def dropped(self, y):
        return self.case.told.get("ties") == "drop" and y == 0.5

    def entered(self, row, sign):
        for k, e in enumerate(self.case.error(row.served, row.y, row.base)):
            for name, z in zip(row.coords, row.z, strict=True):
                self.sums[name, k] = self.sums.get((name, k), 0.0) + sign * row.w * e * z

    def step(self, t):
        rng = self.rng
        self.clock += 1.0
        try:
            row = self.row(t)
            if rng.random() < 0.05:
                self.peek(row)
            self.serve(row)
            if self.queue:
                learn_in_turn(self, t)
            elif self.single and rng.random() < self.lost:
                if rng.random() < 0.5:  # it is known that no label comes; else the next one replaces it
                    close(self, row, {} if row.key is None else {"key": row.key})
            elif rng.random() < self.lost:
                if row.id is not None and rng.random() < 0.3:
                    close(self, row, {"id": row.id})
                    if not self.maturity and rng.random() < 0.3:
                        self.learn(row, label(self, row, t))  # too late
            else:
                if t >= self.quiet and rng.random() < self.late:
                    self.open.append(row)
                else:
                    self.learn(row, label(self, row, t))
            if len(self.open) > self.hold or (self.open and self.late < 1.0 and rng.random() < 0.1):
                self.release(t)
                if self.look and rng.random() < 0.2:
                    self.look(self)
            if self.wild:
                self.meddle(t)
        except gq.Diverging:
            self.open = [row for row in self.open if row.y is None]
            if self.maturity:
                stopped_learning(self)
        if t == 40 and not self.merged:
            self.earlier, self.later = self.layer.copy(), []

    def release(self, t):
        """All labels that were held back, in one of several orders."""
        if self.queue:
            return learn_in_turn(self, t, all_of_them=True)
        order, held = int(self.rng.integers(3)), self.open
        self.open = []
        if order == 2:
            held = [held[i] for i in self.rng.permutation(len(held))]
        for row in held[::-1] if order == 1 else held:
            self.learn(row, label(self, row, t))
        return None

    # What is done by hand

    def meddle(self, t):
        rng, layer = self.rng, self.layer
        pick = rng.random()
        if pick < 0.02:
            self.correct(t)
        elif pick < 0.03 and not self.frozen:
            layer.freeze()
            self.frozen = True
        elif pick < 0.06 and self.frozen:
            self.resume()
        elif pick < 0.075:
            self.forget(t)
        elif pick < 0.09 and self.alone and self.case.constant and hasattr(layer, "set_step"):
            self.change_step()
        elif pick < 0.11:
            self.layer = self.case.revive(layer.to_json())
        elif pick < 0.13 and not self.maturity:
            self.columns(t)
        elif pick < 0.14:
            layer.expire(self.clock)
            self.lapse(self.clock)
        elif pick < 0.15 and self.alone:
            self.backup = (layer.to_json(), self.books())
        elif pick < 0.165 and self.backup is not None:
            self.restore()
        elif pick < 0.25 and self.astray and LOST_FUTURES:
            self.post_astray(t)

    BOOKS = (
        "clock", "corrected", "frozen", "heard", "means", "replaced", "served", "stepped", "stray", "usual",
    )  # fmt: skip

    def books(self):
        """A copy of everything that is written down by hand."""
        twins = {id(row): copy.copy(row) for row in self.rows}
        lists = [[twins[id(row)] for row in own] for own in (self.rows, self.open, self.later)]
        lists.append([twins[id(row)] for row in self.line])
        pairs = [[(twins[id(row)], y) for row, y in own] for own in (self.maturing, self.held_back)]
        waiting = {key: twins[id(row)] for key, row in self.waiting.items()}
        plain = {name: copy.copy(getattr(self, name)) for name in self.BOOKS}
        return lists, pairs, waiting, plain, dict(self.sums), list(self.waited), self.earlier

    def restore(self):
        """Back to a backup: what was served since is a lost future, whose tickets are still in somebody's hands."""
        text, books = self.backup
        known = {row.number for row in books[0][0]}
        self.astray += [
            row
            for row in self.rows
            if (row.ticket is not None or row.id is not None) and row.y is None and row.number not in known
        ]
        lists, pairs, self.waiting, plain, self.sums, self.waited, self.earlier = books
        self.rows, self.open, self.later, self.line = lists
        self.maturing, self.held_back = pairs
        for name, value in plain.items():
            setattr(self, name, value)
        self.layer, self.backup, self.restored = self.case.revive(text), None, True

    def post_astray(self, t):
        """The label of a ticket from a lost future is refused, or learned from with no bound left."""
        row = self.astray.pop()
        self.named = {"id": row.id}
        before = self.layer.to_json()
        y = label(self, row, t)
        try:
            self.post(row, y)
        except (gq.TicketError, gq.BadInput):
            assert self.layer.to_json() == before, "a ticket was refused and left a trace"
            return
        except gq.Diverging:
            return
        self.stray = True
        self.rows.append(row)
        self.said(row, y)

    def forget(self, t):
        """All that was held back, and then the lateness forgotten: what has happened still counts."""
        self.release(t)
        self.layer.reset_in_flight()
        if self.look:
            self.look(self)

    def resume(self):
        self.layer.resume()
        self.frozen = False

    def correct(self, t):
        done = [row for row in self.rows[-200:] if row.y is not None and (row.id, row.ticket) != (None, None)]
        if not done:
            return
        row = done[int(self.rng.integers(len(done)))]
        y = label(self, row, t)
        if y == row.y:
            return
        try:
            if row.posting is not None:
                row.posting = self.layer.repost(row.posting, y)[1]
            else:
                self.layer.correct(row.id, y)
        except gq.BadInput as refusal:
            if "cannot be taken back" not in str(refusal):  # its loss was infinite
                raise
            return
        moved = row.w > 0.0 and not row.frozen
        self.corrected |= moved
        if row.learned:
            self.entered(row, -1.0)
        row.y, row.learned = y, moved and not self.dropped(y)
        if row.learned:
            self.entered(row, 1.0)

    def change_step(self):
        """Another step, and all that was held back after it was raised."""
        known = self.layer.step
        if self.usual == 0.0:
            self.usual = known
        try:
            self.layer.set_step(known * float(self.rng.choice([1.0, 0.1, 0.5, 2.0, 10.0])))
        except (gq.StepTooLarge, gq.BadInput):
            return
        self.stepped = True
        if self.rng.random() < 0.5:
            self.release(0)

    def columns(self, t):
        """A few rows as columns, labels at once; the adversary says them blindly."""
        case, rows = self.case, [self.row(t) for _ in range(int(self.rng.integers(1, 8)))]
        for row in rows:
            row.served = case.raw(row.base)
            row.y = label(self, row, t) if self.rng.random() >= self.lost else None
        given = {"weights": [row.given for row in rows]}
        labels = [np.nan if row.y is None else row.y for row in rows]
        for what in ("groups", "features"):
            if what in rows[0].where:
                given[what] = {k: [r.where[what][k] for r in rows] for k in rows[0].where[what]}
        for what in ("key", "home"):
            if what in rows[0].where:
                given[what] = [row.where[what] for row in rows]
        if case.games:
            args = ([row.coords[0] for row in rows], [row.coords[1] for row in rows], labels)
        else:
            bases = [row.base for row in rows]
            args = (labels,) if case.kind == "risk" else (np.array(bases), labels)
        served = np.asarray(self.layer.run(*args, **given).values).tolist()
        for row, value in zip(rows, served, strict=True):
            row.served = tuple(value) if isinstance(value, list) else value
            y, row.y = row.y, None
            self.counted(row)
            if y is not None:
                self.said(row, y)

    # Two partitions

    def join(self, other, rows):
        """Merge the layer of another life into this one's, and go on with both."""
        for life in (self, other):
            life.resume()
        self.layer.merge(other.layer)
        self.shared |= other.shared or bool(self.known() & other.known())
        for key, (n, total) in other.means.items():
            m, own = self.means.get(key, (0, Fraction(0)))
            self.means[key] = (m + n, own + total)
        for row in other.rows:
            row.number += self.served
        self.rows += other.rows
        self.open += other.open
        self.served, self.heard = self.served + other.served, self.heard + other.heard
        self.waited += other.waited
        self.clock, self.number = max(self.clock, other.clock), max(self.number, other.number)
        self.corrected |= other.corrected
        self.merged, self.earlier = True, None
        for name, total in other.sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + total
        for t in range(rows):
            self.step(t)

    def known(self):
        """The parameters that something was learned about."""
        learned = [row for row in self.rows if row.learned]
        return {
            (row.key, name)
            for row in learned
            for name, z in zip(row.coords, row.z, strict=True)
            if z != 0.0 or not self.case.games
        }


def lived(case, rng, rows, look=None):
    """A whole life; one in eight is two partitions that are merged, about the same names or about others."""
    if rng.random() >= 0.125 or case.told.get("maturity"):
        return Life(case, rng, rows, look)
    part = str(rng.choice(["", "2", "2"]))
    one = Life(case, rng, rows // 2, alone=False)
    one.join(Life(case, rng, rows // 2, part=part, first=10**6, alone=False), 25)
    return one
