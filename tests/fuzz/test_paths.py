"""Random layers and streams by every path: the same bits."""

import pytest

from fuzz.__main__ import paths

pytestmark = pytest.mark.filterwarnings("ignore:the weight .* outweighs all others")


@pytest.mark.parametrize("first", range(0, 900, 100))
def test_every_path_gives_the_same_bits(first):
    for seed in range(first, first + 100):
        paths(seed)
