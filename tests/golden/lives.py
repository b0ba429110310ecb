"""One layer through a stream, by every way in: events, columns, tickets in hand, saved and resumed, merged."""

import contextlib
import warnings
from datetime import UTC, datetime, timedelta

import numpy as np

import gradeq as gq
from golden.streams import columns, rows_of
from golden.trees import plain

ROWS, HALF = 48, 24
DAY = datetime(2024, 1, 1, tzinfo=UTC)


@contextlib.contextmanager
def quiet():
    """Warnings are wording."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def attempt(do):
    """What a call gives, or the name of its refusal."""
    try:
        return plain(do())
    except (gq.GradeqError, TypeError, AttributeError, NotImplementedError) as error:
        if isinstance(error, gq.GradeqError):
            return {"refused": type(error).__name__}
        return {"refused": "not offered"}


def shown(value):
    """What predict gave, as numbers."""
    if hasattr(value, "threshold"):
        return plain([value.threshold, *value.interval])
    return plain(value)


class Life:
    """A layer that is fed row by row; ``moment`` is the time of a row."""

    def __init__(self, case, layer, rows):
        self.case, self.layer, self.rows, self.at = case, layer, rows, 0
        self.due, self.served, self.answers = [], [], []
        self.dates = "dates" in case.shape.options

    def moment(self, number):
        return DAY + timedelta(hours=number) if self.dates else float(number)

    def to(self, end):
        while self.at < end:
            self.step(self.rows[self.at])
            self.at += 1
        return self

    def step(self, row):
        layer, shape, t = self.layer, self.case.shape, self.at
        self.meddle(t)
        now, self.due = [d for d in self.due if d[0] <= t], [d for d in self.due if d[0] > t]
        for _, do, own in now:
            getattr(self, do)(own)
        given = dict(row.where)
        if row.weight != 1.0 or shape.weights:
            given["weight"] = row.weight
        if shape.at_once:
            given.pop("weight", None)
            self.served.append(shown(layer.peek(*row.args, **given)))
            self.play(row)
            return
        if not shape.queue:
            given |= {"id": f"row {row.number}", "time": self.moment(t)}
        self.served.append(shown(layer.predict(*row.args, **given)))
        if row.skipped:
            self.due.append((t + 4, "skip", row))
        elif row.late is not None:
            if row.late == 0 or shape.queue:
                self.label(row)
            else:
                self.due.append((t + row.late, "label", row))
            if row.other is not None and not shape.queue:
                self.due.append((t + row.late + 7, "correct", row))

    def play(self, row):
        home = {"home": [row.where["home"]]} if "home" in row.where else {}
        sides = [[side] for side in row.args]
        self.layer.run(*sides, [row.label], weights=[row.weight], **home)

    def answer(self, do):
        found = attempt(do)
        self.answers.append(found["refused"] if isinstance(found, dict) else found)

    def label(self, row):
        if self.case.shape.queue:
            key = {"key": row.where["key"]} if "key" in row.where else {}
            self.answer(lambda: self.layer.update(row.label, **key))
        elif self.case.shape.kind == "games":
            own = ([row.label], [f"row {row.number}"])
            self.answer(lambda: next(iter(self.layer.update_many(*own))))
        else:
            self.answer(lambda: self.layer.update(row.label, id=f"row {row.number}"))

    def correct(self, row):
        self.answer(lambda: self.layer.correct(f"row {row.number}", row.other))

    def skip(self, row):
        self.answer(lambda: self.layer.skip(id=f"row {row.number}"))

    def meddle(self, t):
        """What else happens in this life."""
        options = self.case.shape.options
        if "set_step" in options and t == 20:
            self.answer(lambda: self.layer.set_step(self.layer.step / 2.0))
        if "freeze" in options and t in (10, 18):
            self.answer(self.layer.freeze if t == 10 else self.layer.resume)
        if "reset_in_flight" in options and t == 20:
            self.answer(self.layer.reset_in_flight)
        if "forget" in options and t == 21:
            self.answer(lambda: self.layer.forget("row 1"))
        if "expire" in options and t == 22:
            self.answer(lambda: self.layer.expire(self.moment(12)))
        if "advance" in options and t == 19:
            self.answer(lambda: self.layer.advance(self.moment(19)))


def certificate(layer):
    """All figures of the certificate."""
    found = layer.equilibrium()
    return {**plain(found.as_dict()), "verdict": plain(found.verdict() + " ")}


def figures(layer, earlier=None):
    """Everything that a layer shows of itself."""
    asked = {
        "certificate": lambda: certificate(layer),
        "theta": lambda: layer.theta,
        "step": lambda: layer.step,
        "steps": lambda: layer.steps,
        "in_flight": lambda: layer.traffic,
        "log": lambda: layer.log,
        "labels_until": lambda: layer.labels_until(0.01),
        "harm_cap": layer.harm_cap if hasattr(layer, "harm_cap") else None,
        "since": None if earlier is None else lambda: layer.since(earlier),
        "keys": (lambda: layer.table().columns()) if hasattr(layer, "table") else None,
        "weights": (lambda: layer.tracker_weights) if hasattr(layer, "tracker_weights") else None,
        "leaderboard": layer.leaderboard if hasattr(layer, "leaderboard") else None,
        "all-time": (lambda: layer.leaderboard("all-time")) if hasattr(layer, "leaderboard") else None,
        "now": (lambda: layer.leaderboard("now")) if hasattr(layer, "leaderboard") else None,
    }
    return {name: attempt(do) for name, do in asked.items() if do is not None}


def by_events(case):
    """The first half of a life."""
    return Life(case, case.make(), rows_of(case.name, case.shape, ROWS)).to(HALF)


def resumed(case, life, text):
    """The second half with a layer that was read from a state: it must not matter when it was saved."""
    earlier, layer = case.revive(text), case.revive(text)
    again = Life(case, layer, life.rows)
    again.at, again.due = life.at, list(life.due)
    again.to(ROWS)
    return {"served": again.served, "answers": again.answers, "figures": figures(layer, earlier)}


def continued(life):
    """The second half of a life that goes on without being saved."""
    life.to(ROWS)
    return life.served[HALF:]


def by_columns(case):
    """A third by predict_many and update_many, the rest by run with late labels."""
    shape, layer = case.shape, case.make()
    rows = rows_of(case.name + " columns", shape, ROWS)
    first, rest = rows[:16], rows[16:]

    def ids(own):
        return {} if shape.queue or shape.at_once else {"ids": [f"row {r.number}" for r in own]}

    def weights(own):
        return {"weights": [r.weight for r in own]} if shape.weights else {}

    def bases(own):
        if shape.kind == "bare":
            return ()
        return tuple(np.array([row.args[k] for row in own]) for k in range(len(own[0].args)))

    life = Life(case, layer, rows)
    moments = [life.moment(row.number) for row in rows]
    many = bases(first) or (len(first),)

    def serve_many():
        if shape.at_once:  # games that cannot wait for their scores
            return np.array([layer.peek(*row.args, **row.where) for row in first])
        timed = {} if shape.queue else {**ids(first), "times": moments[:16]}
        return layer.predict_many(*many, **columns(first), **weights(first), **timed)

    served = attempt(serve_many)
    told = [row for row in first[::-1] if row.late is not None]
    answers = attempt(
        lambda: (
            layer.update_many([row.label for row in told], **ids(told))
            if not shape.queue
            else layer.update_many([row.label for row in told])
        )
    )
    labels = [float("nan") if row.late is None else row.label for row in rest]
    due = [life.moment(row.number + (row.late or 0)) for row in rest]
    late = {} if shape.queue or shape.at_once else {"times": moments[16:], "label_times": due}
    run = attempt(
        lambda: layer.run(*bases(rest), labels, **columns(rest), **weights(rest), **ids(rest), **late).served
    )
    return {"served": served, "answers": answers, "run": run, "figures": figures(layer)}


def posting(own):
    """A posting as it is shown."""
    names = ("number", "served", "weight", "step", "eta", "late", "y", "errors", "losses", "sign")
    return {name: plain(getattr(own, name)) for name in names}


def opened(case):
    """A layer, eight rows, and their tickets in the caller's hands."""
    layer, rows = case.make(), rows_of(case.name + " tickets", case.shape, 8)
    return layer, rows, [layer.open(*row.args, **row.where, weight=row.weight) for row in rows]


def hand_texts(case):
    """A ticket and a posting as a caller keeps them."""
    layer, rows, tickets = opened(case)
    return {"ticket": tickets[7].to_json(), "posting": layer.post(tickets[6], rows[6].label).to_json()}


def in_hand(case, texts):
    """Tickets in the caller's hands: postings, some of them corrected; ``texts`` are those that were kept."""
    layer, rows, tickets = opened(case)
    served = [plain(ticket.served) for ticket in tickets]
    posted = [
        layer.post(gq.Ticket.from_json(ticket.to_json()), row.label)
        for ticket, row in zip(tickets[5::-1], rows[5::-1], strict=True)
    ]
    posted += layer.repost(posted[2], rows[0].label)
    texts = texts or hand_texts(case)
    layer.post(tickets[6], rows[6].label)
    posted.append(layer.post(gq.Ticket.from_json(texts["ticket"]), rows[7].label))
    posted += layer.repost(gq.Posting.from_json(texts["posting"]), rows[1].label)
    return {"served": served, "postings": [posting(own) for own in posted], "certificate": certificate(layer)}


def merged(case):
    """Two partitions with other names, joined, and what is served next."""
    lives = []
    for part in ("", "2"):
        rows = rows_of(case.name + part, case.shape, 24, part)
        for row in rows:
            row.number += 1000 * len(part)
        lives.append(Life(case, case.make(), rows).to(20))
    one, two = lives
    one.layer.merge(two.layer)
    one.at = 20
    one.to(24)
    return {"served": one.served[20:], "certificate": certificate(one.layer)}
