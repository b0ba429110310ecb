"""Twenty kills and twenty size limits, spread over all commands; `make test-faults` tries two hundred of each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_no_row_is_lost_or_learned_from_twice_whatever_write_a_run_ends_at():
    done = subprocess.run(
        [sys.executable, "-m", "faults", "--kills", "20", "--sizes", "20"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 laws broken" in done.stdout
