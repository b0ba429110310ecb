"""A seeded stream for any layer: rows, and what becomes of their labels (at once, late, never, corrected, skipped).

Chance comes from ``random.random`` and plain arithmetic alone, which are the same on every machine.
"""

import random
from dataclasses import dataclass, field

GROUPS = {"g": "abc", "h": "xy"}
PLAYERS = ["ann", "bob", "cy", "dee", "eve", "fay"]


@dataclass
class Shape:
    """What a layer takes: how rows and labels for it are made."""

    kind: str = "real"  # real, binary, positive, games, bare (no prediction)
    groups: tuple = ()
    features: tuple = ()
    keyed: bool = False
    forecasts: int = 1
    support: tuple = (None, None)
    weights: str = ""  # "", mild, zeros
    home: bool = False
    queue: bool = False
    at_once: bool = False
    options: tuple = field(default=())  # what else happens in this life


@dataclass
class Row:
    """A row and the fate of its label."""

    number: int
    args: tuple
    where: dict
    weight: float
    label: float
    late: int | None  # rows until the label comes; None: never
    other: float | None  # the label that replaces it later
    skipped: bool


class Chance(random.Random):
    """Seeded by a text."""

    def normal(self):
        return sum(self.random() for _ in range(12)) - 6.0

    def pick(self, values):
        return values[int(self.random() * len(values))]


def base_of(chance, shape):
    if shape.kind == "binary":
        return 0.02 + 0.96 * chance.random()
    if shape.kind == "positive":
        return 0.5 + 1.5 * chance.random()
    if shape.forecasts > 1:
        return sorted(chance.normal() for _ in range(shape.forecasts))
    return chance.normal()


def label_of(chance, shape):
    if shape.kind == "games":
        return chance.pick([0.0, 0.5, 1.0, 1.0])
    if shape.kind == "binary":
        return float(chance.random() < 0.4)
    if shape.kind == "positive":
        return 0.5 + 2.0 * chance.random()
    y, (low, high) = 0.6 + 1.5 * chance.normal(), shape.support
    y = y if low is None else max(y, low)
    return y if high is None else min(y, high)


def row_of(chance, shape, number, part=""):
    """A row; ``part`` ends the names of groups, players and keys."""
    where = {}
    if shape.kind == "games":
        a = chance.pick(PLAYERS)
        args = (a + part, chance.pick([name for name in PLAYERS if name != a]) + part)
        if shape.home:
            where["home"] = chance.pick([1.0, 0.0, -1.0])
    else:
        args = () if shape.kind == "bare" else (base_of(chance, shape),)
    if shape.groups:
        where["groups"] = {name: chance.pick(GROUPS[name]) + part for name in shape.groups}
    if shape.features:
        where["features"] = {name: chance.normal() for name in shape.features}
    if shape.keyed:
        where["key"] = chance.pick(["u", "v", "w"]) + part
    weight = {"": [1.0], "mild": [0.5, 1.0, 1.75], "zeros": [0.0, 1.0, 9.0]}[shape.weights]
    fate = chance.random()
    late = None if fate < 0.1 else 1 + int(12 * chance.random()) if fate < 0.45 else 0
    other = label_of(chance, shape) if chance.random() < 0.08 else None
    return Row(number, args, where, chance.pick(weight), label_of(chance, shape), late, other, fate < 0.03)


def rows_of(name, shape, count, part=""):
    chance = Chance(name)
    return [row_of(chance, shape, k, part) for k in range(count)]


def columns(rows):
    """Groups, features, keys and home sides of rows as the columns that many rows are given in."""
    found = {}
    for what in ("groups", "features"):
        if what in rows[0].where:
            names = rows[0].where[what]
            found[what] = {name: [row.where[what][name] for row in rows] for name in names}
    for what in ("key", "home"):
        if what in rows[0].where:
            found[what] = [row.where[what] for row in rows]
    return found
