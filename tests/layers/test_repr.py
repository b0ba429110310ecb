"""What layers show of themselves and of frames: short words, and rows joined only where they belong together."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gradeq as gq

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def keyed(n=3000, keys=1000):
    rng = np.random.default_rng(4)
    layer = gq.Keyed(gq.QuantileTracker(0.8))
    run = layer.run(rng.normal(size=n), rng.normal(size=n), key=np.arange(n) % keys)
    return layer, run


def test_a_table_of_many_series_and_a_run_are_shown_in_one_line():
    layer, run = keyed()
    for shown, words in (
        (layer.table(), ["1,000 series", "3,000 labels"]),
        (run, ["3,000 rows", "3,000 labelled", "served: ndarray"]),
    ):
        assert len(str(shown)) < 120 and "\n" not in str(shown)
        assert all(word in repr(shown) for word in words)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_series_is_of_the_kind_that_is_asked_for(kind):
    table = keyed()[0].table()
    frame = table.to_frame(kind)
    assert isinstance(frame, KINDS[kind]) and len(frame) == 1000
    assert np.array_equal(np.asarray(frame["rows"]), table.rows)
    with pytest.raises(gq.BadInput, match="kind='excel'"):
        table.to_frame("excel")


@pytest.mark.parametrize("other", ["labels", "weights", "times", "ids"])
def test_pandas_columns_with_different_indexes_are_refused_and_nothing_is_learned(other):
    rng = np.random.default_rng(5)
    base = pd.Series(rng.normal(size=50))
    given = {
        "labels": base + 1.0, "weights": base.abs() + 1.0, "times": pd.Series(range(50)),
        "ids": pd.Series([f"r{i}" for i in range(50)]),
    }  # fmt: skip
    turned = given | {other: given[other].iloc[::-1]}
    layer = gq.Debiaser()
    kept = layer.to_json()
    with pytest.raises(gq.BadInput, match=f"predictions and {other} are pandas columns") as refusal:
        layer.run(base, **turned)
    assert "\n" not in str(refusal.value) and layer.to_json() == kept
    layer.run(base, **given)
    other_way = gq.Debiaser()
    other_way.run(base.to_numpy(), **{name: column.tolist() for name, column in given.items()})
    assert layer.theta == other_way.theta
