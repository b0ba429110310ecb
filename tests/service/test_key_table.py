"""The page of a layer with keys names those farthest off, the worst first, and says how many there are."""

import re
import time

import numpy as np
import pytest

import gradeq as gq
from gradeq.report.charts import ChartSheet
from gradeq.report.state_facts import smallest_positions
from gradeq.service.dashboard.layer_page import layer_page
from gradeq.service.dashboard.overview import overview_of
from service.test_overview import known

KINDS = {
    "bias": lambda: gq.Keyed(gq.Debiaser(eta=0.05)),
    "exp": lambda: gq.Keyed(gq.Debiaser(eta=0.05, link="exp")),
    "quantile": lambda: gq.Keyed(gq.QuantileTracker(0.9, eta=0.1)),
    "interval": lambda: gq.Keyed(gq.IntervalTracker(0.8, eta=0.1)),
    "levels": lambda: gq.Keyed(gq.MultiQuantileTracker([0.1, 0.9], eta=0.1)),
    "groups": lambda: gq.Keyed(gq.Debiaser(eta=0.05, groups=["g"])),
    "features": lambda: gq.Keyed(gq.Debiaser(eta=0.05, features=["x"])),
}


def page_of(layer):
    return str(layer_page(overview_of(layer, known(layer, ())), ChartSheet(), False))


def fed(kind, keys, rows=40):
    rng, layer = np.random.default_rng(9), KINDS[kind]()
    key = np.tile([f"k{j:03}" for j in range(keys)], rows)
    f = rng.uniform(5.0, 6.0, len(key))
    y = f + np.tile(np.linspace(0.0, 3.0, keys), rows) + rng.normal(0.0, 0.1, len(key))
    more = {"groups": {"g": np.tile(["a", "b"], len(key))[: len(key)]}} if kind == "groups" else {}
    more |= {"features": {"x": rng.normal(size=len(key))}} if kind == "features" else {}
    layer.run(f, y, key=key, **more)
    return layer


@pytest.mark.parametrize("kind", KINDS)
def test_the_keys_farthest_off_come_first_and_the_rest_is_counted(kind):
    layer = fed(kind, 50)
    page, table = page_of(layer), layer.table()
    body = page.split('id="keys"')[1].split("</table>")[0]
    shown = re.findall(r'<th scope="row">(?:<[^>]*>)*([^<]+)', body)
    assert len(shown) == 20
    assert f"{len(table.keys)} keys" in page and "the 20 farthest off, the worst first" in page
    order = np.argsort(-np.abs(table.error), kind="stable")[:20]
    named = [table.keys[j] for j in order]
    assert all(one.startswith(name[:8]) for one, name in zip(shown, named, strict=True))


def test_few_keys_are_all_there_and_one_needs_no_table():
    assert "3 keys" in page_of(fed("bias", 3)) and "; all, the worst first" in page_of(fed("bias", 3))
    assert 'id="keys"' not in page_of(fed("bias", 1)) and 'id="keys"' not in page_of(fed("bias", 2, 0))


def test_the_first_of_many_are_those_that_sorting_gives():
    rng = np.random.default_rng(1)
    for _ in range(200):
        values = rng.integers(-4, 4, rng.integers(1, 60)) / 2.0
        values[rng.random(len(values)) < 0.1] = np.nan
        most = int(rng.integers(1, 30))
        expected = np.argsort(values, kind="stable")[:most]
        assert smallest_positions(values, most).tolist() == expected.tolist()


def test_a_hundred_thousand_keys_take_no_longer_than_a_blink():
    layer, n = gq.Keyed(gq.Debiaser(eta=0.05)), 100_000
    f = np.random.default_rng(2).normal(size=n)
    layer.run(f, f + 1.0, key=np.arange(n))
    page_of(layer)
    began = time.thread_time()
    page = page_of(layer)
    assert time.thread_time() - began < 1.0 and "100,000 keys" in page
