"""A life of a layer of the service with backups, failing commits and restarts, and the books kept by hand."""

import contextlib
import copy
import os
import shutil
import tempfile
from fractions import Fraction

import numpy as np

from fuzz.adversary import STYLES, label
from fuzz.check import averages, by_hand, coverage, keys, leaderboard, learned
from fuzz.life import Row
from fuzz.settings import GROUPS, Case, eta, weighted
from fuzz.table import Combination
from fuzz.telling import Broken, expect
from gradeq.service.audit import Auditor
from gradeq.service.desk import Desk
from gradeq.service.layer_spec import layer_of
from gradeq.service.schemas import Label, Prediction
from gradeq.service.store import open_store
from gradeq.service.store.database import StoreUnavailable

NAME = ("t", "own")


def service_case(rng):
    """A layer of the service with random settings: its specification and how it is judged by hand."""
    kind = str(rng.choice(["debias", "debias", "binary", "quantile", "elo"]))
    link = {"debias": "identity", "binary": "logit", "quantile": "linear", "elo": ""}[kind]
    spec = {"kind": "debias" if kind == "binary" else kind}
    signed, keyed = rng.random() < 0.4, kind != "elo" and rng.random() < 0.25
    groups = ("g",) if kind != "elo" and not keyed and rng.random() < 0.4 else ()
    step = str(rng.choice(["eta", "auto", "decay"])) if kind != "quantile" else "eta"
    if step != "auto" or kind == "elo":
        spec["eta"] = eta(rng, 1.0)
    if step == "decay" and kind != "elo":
        spec["decay"] = float(rng.uniform(0.1, 0.9))
    if step == "eta" and kind == "debias" and not keyed and rng.random() < 0.3:
        spec |= {"penalty": "ridge", "strength": float(10.0 ** rng.uniform(-6, -1))}
    if kind == "binary":
        spec |= {"outcome": "binary", "link": link}
        spec |= {"clip": float(rng.choice([1e-6, 0.01, 0.2]))} if rng.random() < 0.4 else {}
    spec |= {"link": link, "level": 0.9} if kind == "quantile" else {}
    spec |= {"groups": list(groups)} if groups else {}
    spec |= {"keyed": True} if keyed else {}
    spec |= {"tickets": "signed"} if signed else {}
    if kind != "elo":  # halves, so that no row is just as old as this
        spec["maturity"] = 0 if signed or rng.random() < 0.6 else float(rng.choice([2.5, 9.5]))
        if spec["maturity"] and rng.random() < 0.5:
            spec["missing_is"] = 0.0
    own = Combination(
        spec["kind"], "eta" if step == "eta" else "auto", link, keyed="keyed" if keyed else "",
        rows="groups" if groups else "", penalty=spec.get("penalty", ""), more="half" if kind == "elo" else "",
    )  # fmt: skip
    told = {name: value for name, value in spec.items() if name not in ("penalty", "link")}
    return Case(
        lambda: layer_of(spec), own, 1.0, groups, levels=(0.9,) if kind == "quantile" else (),
        weights=weighted(rng), told=told | {"ties": "half"},
    ), spec  # fmt: skip


class ServiceLife:
    """Predictions and labels over a desk, and everything that was answered written down."""

    corrected, part = False, ""  # no partition

    def __init__(self, case, spec, rng, turns):
        self.case, self.spec, self.rng = case, spec, rng
        self.signed, self.maturity = spec.get("tickets") == "signed", spec.get("maturity")
        self.style, self.side, self.turn = str(rng.choice(STYLES)), int(rng.choice([0, 2])), 10
        self.rows, self.sums, self.means, self.usual = [], {}, {}, 0.0
        self.now, self.number, self.lost_rows, self.backup = 0.0, 0, [], None
        self.frozen, self.waits, self.constant_weight = False, [], float(10.0 ** rng.uniform(-6, 6))
        with tempfile.TemporaryDirectory() as folder:
            self.path, self.copy = (os.path.join(folder, name) for name in ("store.db", "backup"))
            self.open()
            self.desk.create(*NAME, spec)
            try:
                for t in range(turns):
                    self.live(t)
                    if t % 10 == 9:
                        check_service(self)
                check_service(self)
            finally:
                self.close()

    def open(self):
        self.desk = Desk(open_store(self.path), clock=lambda: self.now)
        self.desk.start()

    def close(self):
        self.desk.stop()
        self.desk.store.close()

    @property
    def layer(self):
        return self.desk.runtime(*NAME).layer

    def live(self, t):
        rng, self.now = self.rng, self.now + 1.0
        self.predict(t, int(rng.integers(1, 5)))
        open_rows = [row for row in self.rows if row.y is None and not self.waiting(row)]
        some = [row for row in open_rows if rng.random() < 0.4]
        rng.shuffle(some)
        self.send(some, t)
        pick = rng.random()
        if pick < 0.05:
            self.close(), self.open()
        elif pick < 0.09:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.copy)
            self.desk.store.driver.backup(self.copy)
            self.backup = self.books()
        elif pick < 0.14 and self.backup is not None:
            self.restore()
        elif pick < 0.2:
            self.failing_commit(t)
        elif pick < 0.24:
            self.freeze_or_resume()
        elif pick < 0.4 and self.lost_rows:
            self.send_lost(t)

    def row(self):
        case, rng = self.case, self.rng
        weight = {"none": 1.0, "constant": self.constant_weight, "zeros": float(rng.choice([0, 1]))}
        weight |= {"large": float(rng.uniform(300, 2500)), "mild": float(rng.uniform(0.5, 2.0))}
        weight |= {"heavy": float(rng.choice([1.0, 50.0]))}
        given = weight.get(case.weights, float(10.0 ** rng.uniform(-6, 6)))
        if case.games:
            pair = [f"p{k}" for k in rng.choice(4, 2, replace=False)]
            return Row(0.5, given, {"a": pair[0], "b": pair[1]}, pair, [1.0, -1.0], None)
        where = {name: str(rng.choice(list(GROUPS[name]))) for name in case.groups}
        coords = [f"{name}={value}" for name, value in where.items()] or ["(all)"]
        key = str(rng.integers(3)) if case.keyed else None
        base = float(rng.uniform(0.02, 0.98)) if case.binary else float(rng.normal())
        more = ({"groups": where} if where else {}) | ({"key": key} if case.keyed else {})
        return Row(base, given, more, coords, [1.0], key)

    def predict(self, t, count):
        rows = [self.row() for _ in range(count)]
        for row in rows:
            row.id, row.time, self.number = str(self.number), self.now, self.number + 1
        items = [
            Prediction(
                id=row.id, weight=row.given, **row.where,
                **({} if self.case.games else {"prediction": row.base}),
            )
            for row in rows
        ]  # fmt: skip
        answers = self.desk.predict(*NAME, items).result()
        self.mature()
        for row, answer in zip(rows, answers, strict=True):
            expect(answer.status == "served", "served", answer)
            row.served, row.ticket, row.learned = answer.adjusted, answer.ticket, False
            n, total = self.means.get(row.key, (0, Fraction(0)))
            if row.given > 0.0:
                n, total = n + 1, total + Fraction(row.given)
                row.w = float(Fraction(row.given) * n / total)
                if not self.signed:
                    self.means[row.key] = n, total
            self.rows.append(row)

    def waiting(self, row):
        return any(row is own for own, _ in self.waits)

    def mature(self):
        """By hand: the labels of rows that are old enough."""
        if not self.maturity:
            return
        if "missing_is" in self.spec:
            self.waits += [
                (row, 0.0)
                for row in self.rows
                if row.y is None and row.time + self.maturity < self.now and not self.waiting(row)
            ]
        due = [own for own in self.waits if own[0].time + self.maturity < self.now]
        self.waits = [own for own in self.waits if own[0].time + self.maturity >= self.now]
        for row, y in due:
            self.said(row, y)

    def send(self, rows, t, wanted=("applied",)):
        """Labels, and now and then the same again."""
        for row in rows:
            y = label(self, row, t)
            sent = Label(label=y, **({"ticket": row.ticket} if self.signed else {"id": row.id}))
            answer = self.desk.label(*NAME, [sent]).result()[0]
            young = self.maturity and row.time + self.maturity >= self.now
            self.mature()
            if row.y is not None:  # it counts as missing by now
                expect(answer.status == ("duplicate" if y == row.y else "conflict"), "late", answer)
                continue
            expect(answer.status == ("waiting" if young else "applied"), "label", answer)
            if young:
                self.waits.append((row, y))
            else:
                self.said(row, y)
            if self.rng.random() < 0.05:
                expect(self.desk.label(*NAME, [sent]).result()[0].status == "duplicate", "again")

    def said(self, row, y):
        row.y, row.learned = y, not self.frozen and row.w > 0.0
        if self.signed and row.given > 0.0:
            n, total = self.means.get(row.key, (0, Fraction(0)))
            self.means[row.key] = n + 1, total + Fraction(row.given)
        for k, e in enumerate(self.case.error(row.served, y, row.base)) if row.learned else ():
            for name, z in zip(row.coords, row.z, strict=True):
                self.sums[name, k] = self.sums.get((name, k), 0.0) + row.w * e * z

    def books(self):
        twins = {id(row): copy.copy(row) for row in self.rows}
        waits = [(twins[id(row)], y) for row, y in self.waits]
        return list(twins.values()), waits, dict(self.sums), dict(self.means), self.frozen, self.now

    def restore(self):
        """An old backup in the place of the store; what was served since is in the clients' hands."""
        self.close()
        for name in os.listdir(os.path.dirname(self.path)):
            if name != "backup":
                os.remove(os.path.join(os.path.dirname(self.path), name))
        shutil.move(self.copy, self.path)
        known = {row.id for row in self.backup[0]}
        self.lost_rows = [row for row in self.rows if row.id not in known and row.y is None]
        self.rows, self.waits, self.sums, self.means, self.frozen, self.now = self.backup
        self.backup = None
        self.open()

    def send_lost(self, t):
        """The label of a ticket of a lost state is refused and changes nothing, unless that state stands again."""
        row = self.lost_rows.pop()
        before, y = self.layer.to_json(), label(self, row, t)
        sent = {"ticket": row.ticket} if self.signed else {"id": row.id}
        answer = self.desk.label(*NAME, [Label(label=y, **sent)]).result()[0]
        self.mature()
        if answer.status == "applied":
            self.rows.append(row)
            self.said(row, y)
        else:
            expect(answer.status in ("rejected", "unknown"), "of a lost future", answer)
            expect(self.maturity or self.layer.to_json() == before, "refused, but changed")

    def failing_commit(self, t):
        """The disk is full for a while: what is answered then stands, or was never learned."""
        row = next((r for r in self.rows if r.y is None and not self.waiting(r)), None)
        if row is None:
            return
        store, write = self.desk.store, self.desk.store.write
        store.write = full(write)
        named = {"ticket": row.ticket} if self.signed else {"id": row.id}
        sent = Label(label=label(self, row, t), **named)
        with contextlib.suppress(StoreUnavailable):
            self.desk.label(*NAME, [sent]).result()
            raise AssertionError("a label was acknowledged that is not in the store")
        if self.signed:
            self.predict(t, 2)
        store.write = write
        self.send([row], t)

    def freeze_or_resume(self):
        self.desk.control(*NAME, "resume" if self.frozen else "freeze").result()
        self.mature()
        self.frozen = not self.frozen


def full(write):
    """A store whose transactions end in a full disk."""

    @contextlib.contextmanager
    def failing():
        with write() as tx:
            yield tx
            raise StoreUnavailable("the disk is full")

    return failing


def check_service(life):
    """Averages, losses and bounds by hand, and the audit of the store."""
    life.desk.control(*NAME, "reset_in_flight").result()  # labels that are due are learned with it
    life.mature()
    rows, result = learned(life), life.layer.equilibrium()
    expect(result.rows == len(rows), "rows", result.rows, len(rows))
    (row,) = life.desk.store.layers()
    found = Auditor(life.desk.store).full(row)
    expect(not found.faults, "audit", found.faults)
    own = by_hand(life, rows)
    if rows and own.weight:
        averages(life, result, rows, own)
        coverage(life, own)
        leaderboard(life, own)
        keys(life, rows)


def service_life(seed, turns=40):
    """One life over a desk; a failure is told with what the layer was."""
    rng = np.random.default_rng(3 * 10**9 + seed)
    case, spec = service_case(rng)
    try:
        return ServiceLife(case, spec, rng, turns)
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error} in {spec}") from error


__all__ = ["service_life"]
