"""Damaged files are found, never silently wrong; `make test-faults` tries many more."""

import os

import pytest

from service.damage import cuts, flips, sample, try_all


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return sample(tmp_path_factory.mktemp("damage"))


@pytest.mark.parametrize("ending", ["", "-wal"])
@pytest.mark.parametrize("fault", [flips, cuts])
def test_no_damage_is_silent(own, ending, fault):
    source = own.open if ending else own.closed
    size = os.path.getsize(f"{source}{ending}")
    found = try_all(own, source, ending, fault(100 if fault is flips else 25, size, 1))
    assert found.silent == [] and found.found > found.tried / 4, found


@pytest.mark.parametrize("ending", ["", "-wal"])
def test_without_damage_nothing_is_found(own, ending):
    source = own.open if ending else own.closed
    found = try_all(own, source, ending, iter([("nothing", lambda whole: whole)]))
    assert (found.found, found.harmless) == (0, 1)
