"""One life of a layer under an adversary who sees what is served, and the books kept by hand beside it."""

import numpy as np

import gradeq as gq
from fuzz.settings import GROUPS

STYLES = ("away", "away", "constant", "turning", "random", "ties", "extreme")


class Row:
    """A row as the outside world saw it."""

    __slots__ = ("base", "coords", "game", "id", "key", "learned", "served", "w", "y", "z")

    def __init__(self, base, served, w, coords, z, key, id):
        self.base, self.served, self.w, self.coords, self.z = base, served, w, coords, z
        self.key, self.id, self.y, self.learned, self.game = key, id, None, False, None


class Life:
    """Serve, hold, release, correct, freeze, change steps; everything learned is written down by hand."""

    def __init__(self, case, rng, rows):
        self.case, self.rng, self.layer = case, rng, case.make()
        self.rows, self.open, self.clock, self.frozen = [], [], 0.0, False
        self.style = str(rng.choice(STYLES))
        self.wild = rng.random() < 0.35  # corrections, steps, freezing, resets
        self.late = float(rng.choice([0.0, 0.0, 0.3, 0.9])) if "proximal" not in case.told else 0.0
        self.lost = float(rng.choice([0.0, 0.1, 0.5]))
        self.corrected = self.stepped = False
        self.players = int(rng.integers(2, 6))
        self.earlier, self.later = None, []
        for t in range(rows):
            self.step(t)

    def weight(self):
        how, rng = self.case.weights, self.rng
        if how == "mild":
            return float(rng.uniform(0.5, 2.0))
        if how == "wild":
            return float(10.0 ** rng.uniform(-12, 3))
        if how == "zeros":
            return float(rng.choice([0.0, 1.0]))
        return 1.0

    def base(self):
        case, rng = self.case, self.rng
        if case.binary:
            return (
                float(rng.choice([0.0, 1.0, rng.uniform()]))
                if rng.random() < 0.1
                else float(rng.uniform(0.02, 0.98))
            )
        if case.positive:
            return float(case.scale * rng.uniform(0.5, 2.0))
        if case.forecasts > 1:
            return tuple(float(case.scale * x) for x in np.sort(rng.normal(size=case.forecasts)))
        return float(case.scale * rng.normal())

    def label(self, row, t):
        """What the adversary says, having seen what was served."""
        case, rng, s = self.case, self.rng, row.served
        if case.kind == "conformal":
            return row.base + float(case.scale * rng.normal())
        middle = s[len(s) // 2] if isinstance(s, tuple) else s
        if case.binary:
            high, low, centre = 1.0, 0.0, 0.5
        elif case.positive:
            high, low, centre = 2.0 * row.base, 0.5 * row.base, row.base
            if self.style == "extreme":
                return float(row.base * rng.choice([0.0, 0.1, 3.0]))
        else:
            f = row.base[0] if isinstance(row.base, tuple) else row.base
            high, low, centre = f + case.scale, f - case.scale, f
        style = self.style
        if style == "away":
            return low if middle > centre else high
        if style == "constant":
            return high
        if style == "turning":
            return high if (t // 25) % 2 else low
        if style == "ties":
            return middle if not case.binary else float(rng.choice([low, high]))
        if style == "extreme":
            return (
                centre + (high - centre) * 30.0 * float(rng.normal())
                if not case.binary
                else float(rng.random() < 0.9)
            )
        return (
            float(rng.uniform(low, high)) if not case.games else float(rng.choice([0.0, 0.5, 1.0]))
        )

    def serve(self, id):
        """Serve one row and write it down."""
        case, rng, layer = self.case, self.rng, self.layer
        w = self.weight()
        given = {"weight": w, "id": id}
        if rng.random() < 0.5:
            given["time"] = self.clock
        if case.games:
            a, b = rng.choice(self.players, 2, replace=False)
            a, b = f"p{a}", f"p{b}"
            coords, z = [a, b], [1.0, -1.0]
            if case.home:
                given["home"] = float(rng.choice([1.0, 0.0, -1.0]))
                coords, z = [*coords, "(first side)"], [*z, given["home"]]
            if "proximal" not in case.told:
                return Row(0.5, layer.predict(a, b, **given), w, coords, z, None, id)
            side = {"home": given["home"]} if case.home else {}
            row = Row(0.5, layer.predict(a, b, **side), w, coords, z, None, id)
            row.game = (a, b, w, side)  # this form takes scores at once only
            return row
        f = self.base()
        coords, z = [], []
        if case.groups:
            given["groups"] = {name: str(rng.choice(list(GROUPS[name]))) for name in case.groups}
            coords += [f"{name}={value}" for name, value in given["groups"].items()]
            z += [1.0] * len(case.groups)
        if case.features:
            x = float(rng.normal()) * (100.0 if rng.random() < 0.02 else 1.0)
            given["features"] = {"x": x}
            coords, z = [*coords, "x"], [*z, x]
        if not coords:
            coords, z = ["(all)"], [1.0]
        key = None
        if case.keyed:
            key = given["key"] = str(rng.integers(3))
        if case.kind in ("ensemble", "conformal"):
            given.pop("time", None)
        served = layer.predict(f, **given)
        if case.kind == "conformal":
            served = served.threshold
        return Row(f, served, w, coords, z, key, id)

    def learn(self, row, y):
        """Post a label and write it down."""
        verb = self.layer.settle if self.case.games else self.layer.update
        try:
            if row.game is not None:
                a, b, w, side = row.game
                outcome = self.layer.update(a, b, y, w, **side)
            else:
                outcome = verb(y, id=row.id)
        except gq.ExpiredTicket:
            return
        dropped = outcome == "dropped"
        row.y, row.learned = y, not self.frozen and row.w > 0.0 and not dropped
        if self.earlier is not None and row.learned:
            self.later.append(row)

    def step(self, t):
        rng, layer = self.rng, self.layer
        self.clock += 1.0
        try:
            row = self.serve(t)
            self.rows.append(row)
            if rng.random() >= self.lost:
                if rng.random() < self.late:
                    self.open.append(row)
                else:
                    self.learn(row, self.label(row, t))
            if self.open and (len(self.open) > 40 or rng.random() < 0.1):
                order = [
                    self.open,
                    self.open[::-1],
                    list(rng.permutation(np.array(self.open, dtype=object))),
                ]
                released = order[int(rng.integers(3))]
                self.open = []
                for held in released:
                    self.learn(held, self.label(held, t))
            if self.wild:
                self.meddle(t)
        except gq.Diverging:
            self.open = [row for row in self.open if row.y is None]
        if t == 40:
            self.earlier = layer.copy()
            self.before = len([r for r in self.rows if r.learned])

    def meddle(self, t):
        rng, layer = self.rng, self.layer
        pick = rng.random()
        if pick < 0.02:
            done = [row for row in self.rows[-200:] if row.y is not None and row.game is None]
            if done:
                row = done[int(rng.integers(len(done)))]
                y = self.label(row, t)
                if y != row.y and not (self.case.games and 0.5 in (y, row.y)):
                    layer.correct(row.id, y)
                    self.corrected |= row.learned
                    row.y = y
        elif pick < 0.03 and not self.frozen:
            layer.freeze()
            self.frozen = True
        elif pick < 0.06 and self.frozen:
            layer.resume()
            self.frozen = False
        elif pick < 0.07:
            layer.reset_in_flight()
        elif (
            pick < 0.08
            and isinstance(self.case.told.get("eta"), float)
            and hasattr(layer, "set_step")
        ):
            layer.set_step(self.case.told["eta"] * float(rng.choice([1.0, 0.1, 0.5])))
            self.stepped = True
        elif pick < 0.1 and self.case.kind != "risk":
            self.layer = gq.from_json(layer.to_json())
