"""What is acknowledged survives a power cut; `make test-faults` tries many more."""

import pytest

from service.cuts import recorded, try_cuts


@pytest.mark.parametrize("seed", [0, 1])
def test_no_cut_loses_what_was_acknowledged(tmp_path, seed):
    found = try_cuts(recorded(tmp_path, "FULL", 100, seed), tmp_path, 200, seed)
    assert (found.losing, found.most, found.refused, found.faults) == (0, 0, 0, [])


def test_the_same_cuts_lose_much_where_commits_are_not_synced(tmp_path):
    """Else the cuts would prove nothing. What is left is whole all the same, or nothing is."""
    found = try_cuts(recorded(tmp_path, "NORMAL", 100), tmp_path, 100)
    assert found.losing > 50 and found.most > 5 and found.refused < 10
    assert found.faults == []
