"""Lives over a desk: nothing that the service prints may be contradicted, whatever happens to its store."""

import pytest

from fuzz.service_life import service_life

pytestmark = pytest.mark.filterwarnings("ignore:the weight .* outweighs all others")


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_no_life_of_the_service_contradicts_what_is_printed(first):
    for seed in range(first, first + 8):
        service_life(seed)
