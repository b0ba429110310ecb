"""A lasting jump of the labels is found at its row; noise, drift and seasons are not one."""

import numpy as np
import pytest

from gradeq.report.rolling import Blocks, label_change
from report.samples import compas_rows, day


def found(labels, x=None):
    blocks = Blocks(("label", "label_squared"))
    blocks.add({"label": labels, "label_squared": labels**2}, x)
    return label_change(blocks)


@pytest.mark.parametrize("seed", range(8))
def test_labels_without_a_change_give_none(seed):
    rng = np.random.default_rng(seed)
    t = np.arange(5000)
    assert found((rng.random(5000) < 0.3).astype(float)) is None
    assert found(rng.normal(0, 1, 5000) + 0.5 * np.sin(t / 200)) is None
    assert found((rng.random(5000) < 0.3 + 0.2 * t / 5000).astype(float)) is None


@pytest.mark.parametrize("seed", range(8))
def test_a_jump_to_a_constant_is_found_at_its_first_row(seed):
    rng = np.random.default_rng(seed)
    labels = np.append((rng.random(4000) < 0.4).astype(float), np.ones(900))
    labels[3999] = 0.0
    change = found(labels)
    assert change is not None
    assert (change.x, change.rows_before, change.rows_after) == (4001.0, 4000, 900)
    assert change.after["label"] == 1.0


def test_a_jump_of_real_labels_is_found_near_its_row():
    rng = np.random.default_rng(3)
    change = found(np.append(rng.normal(0, 1, 3000), rng.normal(3, 1, 2000)))
    assert change is not None
    assert abs(change.x - 3001) <= 3


def test_too_few_rows_on_one_side_are_no_change():
    assert found(np.append(np.zeros(5000), np.ones(50))) is None
    assert found(np.append(np.zeros(50), np.ones(50))) is None


def test_constant_labels_are_no_change():
    assert found(np.ones(1000)) is None


def test_compas_changes_on_the_second_of_april_2014(data_dir):
    rows = compas_rows(data_dir)
    labels = np.array([float(row["is_recid"]) for row in rows])
    change = found(labels, np.array([day(row["compas_screening_date"]) for row in rows]))
    assert change is not None
    assert (change.x, change.rows_after) == (day("2014-04-02"), 953)
