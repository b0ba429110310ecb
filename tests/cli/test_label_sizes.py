"""Labels of any size have a summary and a page; a perfect model is not said to get worse."""

import re

import numpy as np
import pytest

from cli.calling import here

SIZES = [1e-300, 1e-160, 1e16, 1e160, 1e300]
CALLS = {
    "auto": ["debias", "--by", "g"],
    "plain": ["debias", "--eta", "plain"],
    "exp": ["debias", "--link", "exp"],
    "keys": ["debias", "--key", "g"],
    "feature": ["debias", "--feature", "x", "--eta", "0.001"],
    "quantile": ["quantile", "--level", "0.9"],
    "interval": ["quantile", "--interval", "0.8"],
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CALLS)
def test_labels_of_any_size_have_a_summary_and_a_page(name, size, tmp_path):
    rng, n = np.random.default_rng(1), 300
    command, *options = CALLS[name]
    for perfect in (False, True):
        p = size * rng.uniform(0.5, 1.0, n)
        y = p if perfect else p * rng.uniform(0.7, 1.4, n)
        rows = [
            f"{a!r},{b!r},{'ab'[i % 2]},{i % 7}" for i, (a, b) in enumerate(zip(p.tolist(), y.tolist(), strict=True))
        ]
        (tmp_path / "rows.csv").write_text("\n".join(["p,y,g,x", *rows]) + "\n")
        page = tmp_path / "page.html"
        done = here(
            command, tmp_path / "rows.csv", "--prediction", "p", "--label", "y", *options, "--report", page
        )  # fmt: skip
        assert done.code == 0, done.err
        assert " inf" not in done.out and "nan" not in done.out
        assert not (perfect and "got worse" in done.out), done.out
        drawn = page.read_text()
        assert not re.findall(r' (?:x|y|[xy][12]|cx|cy|points|d|width|height)="[^"]*(?:nan|inf)', drawn)
