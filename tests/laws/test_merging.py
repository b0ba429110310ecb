"""Merging is a sum, for every kind of layer: any tree, any order, a fresh layer as zero; refused means unchanged."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import gradeq as gq
from gradeq.kernels.account import GRADIENT
from gradeq.ledger import facts as fact
from gradeq.ledger.state import MEAN, TIMES
from laws.kinds import KINDS
from laws.partitions import EPS, by_name, joins, merged, partition, rounding, several, written
from laws.test_journal import lived

TREES = 4
STEPS = ("steps", "total_steps")  # begun when steps first differ, as the step so far times the weights so far


def ratios(found):
    """Shares as parts of the largest: nothing else of them counts."""
    shares = {key: x for key, x in found.items() if key[0] == "shares"}
    most = max(shares.values(), default=1.0)
    return {**found, **{key: x / most for key, x in shares.items()}}


@pytest.mark.parametrize("name", KINDS)
def test_merging_is_associative_and_commutative_to_rounding(name):
    """Any two trees give the same state by name; ranges, maxima and flags to the last bit."""
    kind, rng = KINDS[name], np.random.default_rng(14)
    parts = several(kind)
    how, start = joins(parts[0]), {e.name: e.start for e in parts[0].internals.state.columns}
    owns = [by_name(part) for part in parts]
    trees = [ratios(by_name(merged(parts, rng))) for _ in range(TREES)]
    for found in trees[1:]:
        assert found.keys() == trees[0].keys()
        for key, x in found.items():
            column, _, c = key
            numbers = [own[key] for own in owns if key in own]
            allowed = rounding(how[column][c], numbers, start[column][c])
            if column in STEPS:
                allowed += 16 * EPS * abs(x)
            assert x == trees[0][key] or abs(x - trees[0][key]) <= allowed, key


def on_a_grid(layer):
    """The layer with every sum a whole number of 1/1024: such sums have no rounding."""
    layer.internals.state = state = written(layer)
    for each in state.columns:
        table = state.view(each.name).reshape(-1, len(each.start))
        for c, (how, start) in enumerate(zip(each.merge, each.start, strict=True)):
            if how in ("sum", "move") and each.name != "tally":
                table[:, c] = start + np.rint((table[:, c] - start) * 1024.0) / 1024.0
    state.facts = state.raw_facts
    return layer


@pytest.mark.parametrize("name", KINDS)
def test_merging_whole_numbers_is_exact(name):
    """Counts, ranges, pair tables and every other sum of whole units: all trees agree to the last bit."""
    kind, rng = KINDS[name], np.random.default_rng(15)
    parts = [on_a_grid(part) for part in several(kind)]
    how = joins(parts[0])
    trees = [by_name(merged(parts, rng)) for _ in range(TREES)]
    for found in trees:
        exact = {
            key: x for key, x in found.items() if how[key[0]][key[2]] not in (MEAN, TIMES) and key[0] not in STEPS
        }
        assert exact == {key: trees[0][key] for key in exact}
        assert exact["facts", "", fact.SERVED] == sum(part.traffic["served"] for part in parts)


@pytest.mark.parametrize("name", KINDS)
def test_a_fresh_layer_is_zero(name):
    """Merged either way it changes no bit of the state, no ticket, and no promise."""
    kind = KINDS[name]
    layer = partition(kind, 3)
    promised = str(layer.equilibrium())
    into, out = kind.make(), layer.copy()
    into.merge(layer)
    out.merge(kind.make())
    for found in (into, out):
        assert by_name(found) == by_name(layer)
        assert list(found.internals.tickets.tickets()) == list(layer.internals.tickets.tickets())
        assert str(found.equilibrium()) == promised


def gradients(layer, postings):
    """What postings add to the sum of gradients of every parameter at every level, by name, term by term."""
    found, dropped = {}, getattr(layer, "ties", None) == "drop"
    for own in postings:
        if own.sign == 0.0 or own.weight == 0.0 or (dropped and own.y == 0.5):
            continue
        for j, z in zip(layer.internals.names.place(own.row).params, own.row.values, strict=True):
            for k, e in enumerate(own.errors[: layer.internals.rule.width]):
                terms = found.setdefault((layer.internals.names.names[j], k), [])
                terms.append(own.sign * own.weight * e * z)
    return found


def accounts(layer):
    """The sum of gradients in the account of every parameter at every level, by name."""
    names, width = list(layer.internals.names.names), layer.internals.rule.width
    sums = layer.internals.state.view("sums").reshape(len(names), width, -1)[:, :, GRADIENT].tolist()
    return {(name, k): own[k] for name, own in zip(names, sums, strict=True) for k in range(width)}


@pytest.mark.parametrize("name", KINDS)
def test_the_merged_certificate_is_that_of_all_postings(name):
    """Its sums are those of the postings of all partitions, and those of one layer that got them all by replay."""
    kind, rng = KINDS[name], np.random.default_rng(16)
    lives = [lived(kind, seed, 50) for seed in range(4)]
    whole, again = merged([layer for layer, _, _ in lives], rng), kind.make()
    journal = [entry for _, own, _ in lives for entry in own]
    # Slopes of a penalty are by place, and places are those of the layer that wrote the journal.
    penalised = whole.internals.rule.penalty is not None
    again.replay(entry._replace(slopes=()) if penalised else entry for entry in journal)
    wanted = gradients(whole, [entry for entry in journal if hasattr(entry, "eta")])
    for layer in (whole, again):
        found = accounts(layer)
        assert found.keys() >= wanted.keys()
        for key, terms in wanted.items():
            allowed = (len(terms) + 4) * EPS * math.fsum(map(abs, terms)) * 2
            assert abs(found[key] - math.fsum(terms)) <= allowed, key
    assert whole.equilibrium().rows == again.equilibrium().rows
    assert whole.equilibrium().gap <= 1e-13 * len(journal)


def end_of(kind, args, up):
    """A label at one end: as far from the prediction as labels of this stream come."""
    if kind.games or kind.binary:
        return float(up)
    base = float(np.ravel(args[0])[-1 if up else 0]) if args else 0.0
    return float(np.clip(base + (2.0 if up else -2.0), *kind.support))


@pytest.mark.parametrize("waiting", [1, 2, 5])
@pytest.mark.parametrize("up", [True, False], ids=["up", "down"])
@pytest.mark.parametrize("name", KINDS)
def test_no_bound_is_exceeded_after_a_merge(name, up, waiting):
    """One partition has learned all it can; the other has served from a fresh state, and its labels come now.

    They push further what is at its end already, although they came at once by the count of their own rows.
    """
    kind, rng = KINDS[name], np.random.default_rng(17)
    learned, fresh = kind.make(), kind.make()
    for i in range(150):
        args = kind.args(rng)
        learned.predict(*args, **kind.where(rng), id=i)
        learned.update(end_of(kind, args, up), id=i)
    labels = {}
    for i in range(1000, 1000 + waiting):
        args = kind.args(rng)
        fresh.predict(*args, **kind.where(rng), id=i)
        labels[i] = end_of(kind, args, up)
    for layer, other in ((learned.copy(), fresh), (fresh.copy(), learned)):
        layer.merge(other)
        for i, y in labels.items():
            layer.update(y, id=i)
            found = layer.equilibrium()
            for c in found.coordinates:
                assert c.bound is None or abs(c.bias_after) <= c.bound * (1 + 1e-9)
            assert found.bound is None or abs(found.largest) <= found.bound * (1 + 1e-9)


@pytest.mark.parametrize("name", ["disjoint", "logit", "quantile", "keyed", "elo", "keyed groups"])
def test_partitions_that_share_nothing_keep_their_bounds(name):
    """Some single run did the same, so what was proven of each part is proven of both."""
    kind, rng = KINDS[name], np.random.default_rng(19)
    one, other = kind.make(), kind.make()
    for _ in range(200):
        for part, layer in enumerate((one, other)):
            args, where = kind.args(rng), kind.where(rng)
            if kind.games:
                args = tuple(f"{player}-{part}" for player in args)
            elif kind.keyed:
                where["key"] = f"{where['key']}-{part}"
            else:
                where["groups"] = {k: f"{v}-{part}" for k, v in where["groups"].items()}
            layer.post(layer.open(*args, **where), kind.label(rng))
    one.merge(other)
    found = one.equilibrium()
    assert found.bound is not None and abs(found.largest) <= found.bound


def refused(layer, other, why):
    """Merging is refused for this reason, and both are as they were."""
    both = [one for one in (layer, other) if hasattr(one, "to_json")]
    before = [one.to_json() for one in both]
    with pytest.raises(gq.BadInput, match=why):
        layer.merge(other)
    assert [one.to_json() for one in both] == before


@pytest.mark.parametrize("name", KINDS)
def test_what_has_no_meaning_is_refused_and_nothing_changes(name):
    """Itself, what is no layer of this kind, and a partition that served one of the same ids: open or closed."""
    kind, rng = KINDS[name], np.random.default_rng(20)
    layer = partition(kind, 5, 20)
    refused(layer, layer, "with itself")
    refused(layer, 5, "not int")
    refused(layer, gq.Elo(0.5) if not kind.games else gq.Debiaser(0.5), "not (Elo|Debiaser)")
    for id in (next(iter(layer.internals.tickets.by_id)), next(iter(layer.internals.tickets.closed))):
        other = partition(kind, 6, 5, 500)
        other.predict(*kind.args(rng), **kind.where(rng), id=id)
        refused(layer, other, "same id")
        refused(other, layer, "same id")
        other.update(kind.label(rng), id=id)
        refused(layer, other, "same id")
        refused(other, layer, "same id")


def test_an_expired_id_is_refused_by_both_sides():
    """One side's open id is the other's expired one: whoever takes whom in, both have served it."""
    one, other = gq.Debiaser(0.5, ttl=5), gq.Debiaser(0.5, ttl=5)
    for layer in (one, other):
        layer.predict(0.0, id="x", time=0.0)
    other.predict(0.0, id="y", time=100.0)
    assert "x" in one.internals.tickets.by_id and "x" in other.internals.tickets.lapsed
    for mine, theirs in ((one, other), (other, one)):
        with pytest.raises(gq.BadInput, match="same id"):
            mine.merge(theirs)


@pytest.mark.parametrize("change", [{"eta": 0.3}, {"late_cap": 0.2}, {"groups": ["h"]}])
def test_other_settings_are_refused_and_nothing_changes(change):
    kind = KINDS["disjoint"]
    layer, other = partition(kind, 7), gq.Debiaser(**{"eta": 0.2, "groups": ["g"], **change})
    before = layer.to_json(), other.to_json()
    with pytest.raises(gq.OtherSettings, match=next(iter(change))):
        layer.merge(other)
    assert (layer.to_json(), other.to_json()) == before


def test_time_goes_on_from_the_later_of_both():
    one, other = gq.Debiaser(0.5, ttl=5), gq.Debiaser(0.5, ttl=5)
    one.predict(0.0, id="x", time=0.0)
    other.predict(0.0, id="y", time=100.0)
    for mine, theirs in ((one.copy(), other), (other.copy(), one)):
        mine.merge(theirs)
        assert mine.internals.tickets.now == 100.0


def test_shares_of_filters_survive_many_merges():
    """Of products of small shares the ratios count: scaled, none is ever rounded to nothing."""
    rng, parts = np.random.default_rng(21), []
    for own in range(2):
        layer = gq.Elo("auto")
        for t in range(1500):
            a, b = rng.choice(6, 2, replace=False)
            ahead = (a < b) ^ bool((t // 150) % 2 * own)
            layer.play(f"p{a}", f"p{b}", float(rng.random() < (0.9 if ahead else 0.1)))
        parts.append(layer)
    one, other = parts
    for _ in range(60):
        one.merge(other)
    assert 0.0 < one.peek("p0", "p1") < 1.0
    assert np.array(one.internals.state.shares).min() > 0.0


def test_the_page_says_how_every_column_is_merged():
    """The table of docs/many-sites.md names each column of every kind under each of its rules, and no other."""
    page = (Path(__file__).parents[2] / "docs" / "many-sites.md").read_text(encoding="utf-8")
    said = set()
    for how, names in re.findall(r"^\| (\w+) \| (.*) \|$", page.split("| merged by |")[1], re.M):
        said |= {(how, name) for name in re.findall(r"`(\w+)`", names)}
    made = [kind.make() for kind in KINDS.values()]
    assert said == {
        (how, each.name) for layer in made for each in layer.internals.state.columns for how in each.merge
    }
