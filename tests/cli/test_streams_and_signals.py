"""How a process ends: full, closed and broken streams, signals; what is said then is what is true."""

import os
import signal
import subprocess
import sys
import time

import pytest

import gradeq as gq
from cli.calling import scores, write

RUN = [sys.executable, "-c", "from gradeq.cli import main; main()"]
BASE = ["--prediction", "score", "--label", "outcome", "--eta", "0.1"]
JOB = [*RUN, "debias", "s.csv", *BASE, "-o", "out.csv", "--state", "st.json"]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors and signals")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "s.csv", scores(40))
    return tmp_path


def shell(folder, streams, *job):
    """Run a job with its streams redirected by a shell."""
    line = ["sh", "-c", f'"$@" {streams}', "sh", *job]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def learned(folder):
    return gq.load(folder / "st.json").traffic["served"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_stdout_is_told_with_what_is_in_place_and_nothing_is_learned_twice(folder, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    done = shell(folder, ">/dev/full", *JOB)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "standard output cannot be written" in done.stderr
    assert "already written completely: out.csv, st.json" in done.stderr
    again = shell(folder, ">/dev/full", *JOB)
    assert again.returncode == 2 and "has seen these 40 rows" in again.stderr
    assert learned(folder) == 40
    both = shell(folder, ">/dev/full 2>/dev/full", *RUN, "audit", "st.json")
    assert (both.returncode, both.stderr) == (2, "")


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_empty_ones(folder, streams):
    done = shell(folder, streams, *JOB)
    assert (done.returncode, done.stderr) == (0, "")
    assert learned(folder) == 40 and (folder / "out.csv").read_text().count("\n") == 41
    assert shell(folder, streams, *JOB).returncode == 2


def test_a_closed_input_is_empty_and_a_reader_that_left_is_no_fault(folder):
    done = shell(folder, "<&-", *RUN, "debias", "-", *BASE)
    assert done.returncode == 2 and "standard input is empty" in done.stderr
    for job in (JOB, [*RUN, "--help"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(job, cwd=folder, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, "")
    assert learned(folder) == 40


def waiting(folder):
    """A run that has opened its outputs and waits for more rows."""
    process = subprocess.Popen(
        [*RUN, "debias", "-", *BASE, "-o", "out.csv", "--state", "st.json"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # also where tests run under nohup
    )  # fmt: skip
    assert process.stdin is not None
    header, _, rows = (folder / "s.csv").read_text().partition("\n")
    process.stdin.write(header + "\n" + rows * (1 + 12_000_000 // len(rows)))  # more than a block
    process.stdin.flush()
    until = time.monotonic() + 60
    while len(list(folder.glob(".gradeq-*.tmp"))) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_a_run_leaves_nothing_behind(folder, name):
    number = getattr(signal, name)
    process = waiting(folder)
    process.send_signal(number)
    time.sleep(0.3)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted; no output was written, the state is unchanged" in said
    assert said.count("\n") == 1 and os.listdir(folder) == ["s.csv"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_files_take_their_places_is_heard_when_all_are_there(folder, name):
    code = (
        "import os, signal\nreplace = os.replace\n"
        "def replaced(*paths):\n"
        f"    os.kill(os.getpid(), signal.{name})\n    replace(*paths)\n"
        "os.replace = replaced\nfrom gradeq.cli import main\nmain()"
    )
    done = shell(folder, "", sys.executable, "-c", code, *JOB[3:])
    assert done.returncode == 128 + getattr(signal, name) and done.stderr.count("\n") == 1
    assert "interrupted; already written completely: out.csv, st.json" in done.stderr
    assert learned(folder) == 40 and not list(folder.glob(".gradeq-*"))
