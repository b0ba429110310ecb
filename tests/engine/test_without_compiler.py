"""Everything works without numba, and without a place to keep compiled code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gradeq

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


LATE = """
import numpy as np, gradeq as gq
rng = np.random.default_rng(0)
labels = rng.normal(size=4000)
run = gq.Debiaser().run(np.zeros(4000), labels, times=np.arange(4000), label_times=np.arange(4000) + 3)
print(float(run.served.sum()), gq.__file__)
"""


def test_a_cache_that_another_version_of_the_source_has_written_is_not_read(tmp_path: Path) -> None:
    """The cache may name types of ours that a kernel takes; one renamed since could not be loaded."""
    pytest.importorskip("numba")
    package = tmp_path / "src" / "gradeq"
    shutil.copytree(Path(gradeq.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        **os.environ,
        "GRADEQ_COMPILE": "1",
        "GRADEQ_CACHE": str(tmp_path),
        "PYTHONPATH": str(package.parent),
    }

    def late() -> str:
        done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert str(package) in done.stdout
        return done.stdout

    first, written = late(), set(tmp_path.rglob("gradeq_kernel_*.py"))
    with (package / "kernels" / "flight.py").open("a") as source:
        source.write("# changed\n")
    assert late() == first
    assert len(set(tmp_path.rglob("gradeq_kernel_*.py")) - written) == len(written) > 0
