"""By hand: labels that wait for the age of their rows or are held back, and predictions that queue for theirs."""

import math

from fuzz.adversary import label


def mature(life, now, learned=lambda row: True):
    """The labels that are learned by now, of rows that were mature before."""
    if not life.maturity:
        return
    missing = life.case.told.get("missing_is")
    if missing is not None:
        known = {id(row) for row, _ in life.maturing}
        life.maturing += [
            (row, missing)
            for row in life.rows
            if row.y is None and not row.lapsed and id(row) not in known and row.time + life.maturity < now
        ]
    due = [own for own in life.maturing if own[0].time + life.maturity < now and learned(own[0])]
    life.maturing = [own for own in life.maturing if not any(own is other for other in due)]
    for row, y in due:
        life.said(row, y)


def learn_mature(life, row, y):
    """Post a label that may have to wait; one that is missing by now counts already."""
    old = life.clock > row.time + life.maturity
    missed = old and "missing_is" in life.case.told
    if row.y is None and not missed and not any(row is own for own, _ in life.maturing):
        outcome = life.layer.update(y, id=row.id)
        assert outcome == ("applied" if old else "waiting"), (outcome, row.time, life.clock)
        mature(life, life.clock)
        if old:
            life.said(row, y)
        else:
            life.maturing.append((row, y))


def stopped_learning(life):
    """A waiting label would have thrown the layer out of its range: those before it were learned; freeze it."""
    closed = {id for id, what in life.layer.ids.items() if what == "closed"}
    mature(life, life.clock, lambda row: row.id in closed)
    life.layer.freeze()
    life.frozen = True


def let_go(life):
    """The labels that were held back, and are learned by now."""
    if life.held_back:
        ids = life.layer.ids
        done = [own for own in life.held_back if ids[own[0].id] == "closed"]
        life.held_back = [own for own in life.held_back if ids[own[0].id] != "closed"]
        for row, y in done:
            life.said(row, y)


def learn_in_turn(life, t, all_of_them=False):
    """Labels of predictions that queue, the oldest first (of a key, if one is named), or of one with an id."""
    rng = life.rng
    while life.line and (all_of_them or len(life.line) > life.hold or rng.random() >= life.late):
        row, life.named = life.line[0], {}
        if rng.random() < 0.3:
            row = life.line[int(rng.integers(len(life.line)))]
            if row.id is not None:
                life.named = {"id": row.id}
            elif row.key is not None:
                life.named = {"key": row.key}
                row = next(own for own in life.line if own.key == row.key)
            else:
                row = life.line[0]
        if rng.random() < life.lost:
            close(life, row, life.named)
        else:
            life.learn(row, label(life, row, t))
            life.line = [own for own in life.line if own is not row]


def close(life, row, named):
    """No label will come: the ticket is closed and nothing learned."""
    if life.case.games or life.rng.random() < 0.5:
        outcome = life.layer.skip(**named)
    else:
        outcome = life.layer.update(None if life.rng.random() < 0.5 else math.nan, **named)
    assert outcome == "skipped", outcome
    row.lapsed = True
    life.line = [own for own in life.line if own is not row]
    if life.waiting.get(row.key) is row:
        del life.waiting[row.key]
