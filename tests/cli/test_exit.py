"""After a refusal the process ends at once, whatever arrow is still reading."""

import gzip
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def ragged(tmp_path_factory):
    """A file of several blocks, one of whose first lines is short, as it is and gzipped."""
    lines = ["p,y", *(f"{i % 97 / 97},{i % 89 / 89}" for i in range(400_000))]
    lines[5_000] = "1"
    folder, text = tmp_path_factory.mktemp("ragged"), "\n".join(lines)
    (folder / "plain.csv").write_text(text)
    with gzip.open(folder / "zipped.csv.gz", "wt", compresslevel=1) as file:
        file.write(text)
    return folder


@pytest.mark.parametrize("name", ["plain.csv", "zipped.csv.gz", "-"])
def test_a_refused_file_ends_the_process_every_time(ragged, name):
    command = [sys.executable, "-c", "from gradeq.cli import main; main()", "debias", name]
    for _ in range(4):
        with (ragged / "plain.csv").open("rb") as file:
            done = subprocess.run(
                [*command, "--prediction", "p", "--label", "y"], stdin=file, cwd=ragged, timeout=60,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1 and "row 5000 has 1 cell," in done.stderr
