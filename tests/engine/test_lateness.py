"""Lateness and steps as they are followed: the short forms say what the long ones would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.engine.label_stats import prompt_cells
from gradeq.kernels.account import FIRST, LAST, STEPS, VARIATION, follow
from gradeq.kernels.flight import EPOCH, note

POSITIVE = st.floats(1e-6, 10.0)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=40))
def test_the_path_of_steps_is_their_total_variation(rows):
    path, steps = [0.0] * 3, [0.0] * STEPS
    for eta, w in rows:
        follow(path, steps, 0, eta, w, 1.0)
    etas, weights = np.array(rows).T
    inverse, masses = 1.0 / etas, etas * weights
    assert (path[FIRST], path[LAST]) == (inverse[0], inverse[-1])
    changes = np.abs(np.diff(inverse))
    assert path[VARIATION] == pytest.approx(changes.sum(), rel=1e-12)
    for sums, added in zip((steps[::2], steps[1::2]), (masses, masses**2), strict=True):
        so_far = np.cumsum(added)
        assert sums == pytest.approx([so_far[-1], so_far[:-1] @ changes], rel=1e-12)


@given(POSITIVE, POSITIVE, st.integers(1, 50))
def test_equal_steps_are_followed_at_once(eta, w, count):
    known, many = ([0.0, 0.0, 0.0, 0.0] for _ in range(2))
    for _ in range(count):
        follow([0.0] * 3, known, 0, eta, w, 1.0)
    follow([0.0] * 3, many, 0, eta, w, float(count))
    assert many == pytest.approx(known, rel=1e-12)


@given(st.integers(0, 4000))
def test_labels_at_once_leave_what_their_number_says(labels):
    """Until a label is late nothing need be kept: epochs of 50, 100, 150, ... labels, every peak 1."""
    cell = [1.0, 0.0, 0.0, EPOCH, 1.0]
    for _ in range(labels):
        note(cell, 0, 1.0)
    assert prompt_cells(np.array([float(labels)]))[0].tolist() == cell


def test_a_very_late_label_is_forgotten_after_two_epochs():
    cell = [1.0, 0.0, 0.0, EPOCH, 1.0]
    note(cell, 0, 500.0)
    peaks = []
    for _ in range(6000):
        note(cell, 0, 2.0)
        peaks.append(cell[0])
    assert peaks[0] == 500.0 and peaks[-1] == 2.0 and cell[4] == 500.0
