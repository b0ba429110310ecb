"""Without the other library, the adapter says in one line what to install."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("library", ["sklearn", "river"])
def test_a_missing_library_is_named_with_its_remedy(library: str) -> None:
    script = (
        "import sys\n"
        f"sys.modules[{library!r}] = None\n"
        "import gradeq\n"
        "try:\n"
        f"    import gradeq.adapters.{library}\n"
        "except gradeq.MissingExtra as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert f'pip install "gradeq[{library}]"' in done.stdout
