"""Writing behind: the same calls in the same order, and an error that nothing is written after."""

import time

import pytest

from gradeq.cli.row_reader import write_behind


def test_calls_are_made_in_order_and_all_are_made_by_the_end():
    done = []

    def write(k: int) -> None:
        time.sleep(0.001 * (k % 3))
        done.append(k)

    with write_behind(write) as put:
        for k in range(20):
            put(k)
    assert done == list(range(20))


@pytest.mark.parametrize("more", [0, 1, 10])
def test_an_error_is_raised_and_nothing_is_written_after_it(more):
    done = []

    def write(k: int) -> None:
        if k == 5:
            raise OSError("no room")
        done.append(k)

    with pytest.raises(OSError, match="no room"), write_behind(write) as put:
        for k in range(6 + more):
            put(k)
    assert done == list(range(5))
