"""Columns of features leave behind what the same rows leave one at a time, whatever their signs and however long."""

import numpy as np
import pytest

from gradeq import Debiaser
from gradeq.ledger import batch


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("groups", [(), ("g", "h")], ids=str)
@pytest.mark.parametrize("labelled", [1.0, 0.7])
def test_columns_in_parts_are_the_events(sign, groups, labelled, monkeypatch):
    """State and facts, the largest feature and the norms among them; parts of a few rows have the same bits."""
    monkeypatch.setattr(batch, "CACHED", 17)
    rng = np.random.default_rng(5)
    n, names = 60, ("x", "z")
    f, y = rng.normal(size=n), rng.normal(1.0, 1.0, n)
    y[rng.random(n) > labelled] = np.nan
    features = {name: sign * rng.exponential(0.5, n) for name in names}  # of one sign: min is not -max
    codes = {name: rng.integers(0, 3, n) for name in groups}
    whole, single = (Debiaser(0.1, groups=groups, features=names) for _ in range(2))
    served = whole.run(f, y, codes, features).served
    for i in range(n):
        own = {name: column[i] for name, column in features.items()}
        row = {name: int(column[i]) for name, column in codes.items()} or None
        assert single.predict(f[i], row, own, id=i) == served[i]
        if not np.isnan(y[i]):
            single.update(y[i], id=i)
    assert whole.internals.state.facts == single.internals.state.facts
    assert whole.theta == single.theta and whole.equilibrium().bound == single.equilibrium().bound
