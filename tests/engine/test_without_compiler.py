"""Everything works without numba, and without a place to keep compiled code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
{block}
import numpy as np
from gradeq.engine.learner import Learner
from gradeq.geometries import Isotonic
from gradeq.losses import Quantile, Squared
from gradeq.checks import check_loss

rng = np.random.default_rng(0)
labels, keys = rng.normal(size=300), rng.integers(0, 3, 300)
for learner in (Learner(Squared(), 0.1), Learner(Quantile(0.9), 0.1, Isotonic())):
    run = learner.run(learner.start(3), keys, labels)
    print(run.state.u.tolist(), float(run.served.sum()))
assert check_loss(Squared(), quiet=True).passed
print("numba" in sys.modules and sys.modules["numba"] is not None, file=sys.stderr)
"""


def output(block: str = "", **environment: str) -> tuple[str, bool]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT.format(block=block)],
        capture_output=True,
        text=True,
        env={**os.environ, "GRADEQ_COMPILE": "1", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.strip() == "True"


def test_without_numba_the_answers_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    with_numba, used = output(GRADEQ_CACHE=str(tmp_path))
    without, missing = output("sys.modules['numba'] = None", GRADEQ_CACHE=str(tmp_path))
    assert (used, missing) == (True, False)
    assert with_numba == without


def test_without_a_writable_cache_the_answers_are_the_same(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder would go")
    cached, _ = output(GRADEQ_CACHE=str(tmp_path))
    uncached, _ = output(GRADEQ_CACHE=str(blocked), HOME="/nonexistent")
    assert cached == uncached


def test_short_input_starts_no_compiler() -> None:
    script = (
        "import sys; from gradeq.engine.learner import Learner; from gradeq.losses import Squared;"
        "l = Learner(Squared(), 0.1); l.run(l.start(), None, [0.5] * 5000); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
