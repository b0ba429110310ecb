"""Partitions merged in random trees under adversaries: nothing that is printed may be contradicted."""

import pytest

from fuzz.__main__ import partitions

pytestmark = pytest.mark.filterwarnings("ignore:the weight .* outweighs all others")


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_no_tree_of_partitions_contradicts_what_is_printed(first):
    assert sum(partitions(seed) for seed in range(first, first + 100)) > 20
