"""Lateness and steps as they are followed: the short forms say what the long ones would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.engine.flight import calm
from gradeq.kernels.account import FIRST, LAST, VARIATION, follow
from gradeq.kernels.flight import EPOCH, note


@given(st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=40))
def test_the_path_of_steps_is_their_total_variation(etas):
    path = [0.0, 0.0, 0.0]
    for eta in etas:
        follow(path, 0, eta)
    inverse = 1.0 / np.array(etas)
    assert (path[FIRST], path[LAST]) == (inverse[0], inverse[-1])
    assert path[VARIATION] == pytest.approx(np.abs(np.diff(inverse)).sum(), rel=1e-12)


@given(st.integers(0, 4000))
def test_labels_at_once_leave_what_their_number_says(labels):
    """Until a label is late nothing need be kept: epochs of 50, 100, 150, ... labels, every peak 1."""
    cell = [1.0, 0.0, 0.0, EPOCH, 1.0]
    for _ in range(labels):
        note(cell, 0, 1.0)
    assert calm(np.array([float(labels)]))[0].tolist() == cell


def test_a_very_late_label_is_forgotten_after_two_epochs():
    cell = [1.0, 0.0, 0.0, EPOCH, 1.0]
    note(cell, 0, 500.0)
    peaks = []
    for _ in range(6000):
        note(cell, 0, 2.0)
        peaks.append(cell[0])
    assert peaks[0] == 500.0 and peaks[-1] == 2.0 and cell[4] == 500.0
