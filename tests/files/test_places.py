"""Where outputs may lie: pipes, devices and loops stay what they are, names may be long, permissions are kept."""

import os
import stat
import threading

import pytest

from cli.calling import here, ok, refused, scores, write
from gradeq.files import paths, write_text

BASE = ("--prediction", "score", "--label", "outcome", "--quiet")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and links")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "WAIT", 0.2)
    write(tmp_path / "s.csv", scores(40))
    return tmp_path


@pytest.mark.parametrize("option", ["-o", "--report", "--state"])
@pytest.mark.parametrize("kind", ["pipe", "loop", "link to a device", "read only", "empty"])
def test_an_output_that_is_no_plain_file_is_refused_and_stays(folder, option, kind):
    place = folder / "out.csv"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "loop":
        place.symlink_to("out.csv")
    elif kind == "link to a device":
        place.symlink_to(os.devnull)
    elif kind == "read only":
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere")
        place.write_text("old")
        place.chmod(0o400)
    before = None if kind == "empty" else os.lstat(place)
    refused(here("debias", "s.csv", *BASE, option, "" if kind == "empty" else place))
    if before is not None:
        assert os.path.samestat(os.lstat(place), before)
    assert not list(folder.glob(".gradeq-*"))


def poured():
    with open("s.csv", "rb") as whole, open("in.csv", "wb") as pipe:
        pipe.write(whole.read())


def test_a_pipe_that_nobody_writes_to_is_refused_and_one_with_a_writer_is_read(folder):
    os.mkfifo("in.csv")
    assert "no program writes to" in refused(here("debias", "in.csv", *BASE))
    assert "no program writes to" in refused(here("audit", "in.csv"))
    ok(here("debias", "s.csv", *BASE, "-o", "file.csv"))
    for more in ((), ("--time", "day")):  # the second looks at the rows twice
        writer = threading.Thread(target=poured)
        writer.start()
        ok(here("debias", "in.csv", *BASE, *more, "-o", "pipe.csv"))
        writer.join()
        if not more:
            assert (folder / "pipe.csv").read_bytes() == (folder / "file.csv").read_bytes()
    os.mkfifo("in.parquet")
    assert "pipe or a device" in refused(here("debias", "in.parquet", *BASE))
    assert "device" in refused(here("audit", "/dev/zero"))


@pytest.mark.parametrize("letter", ["x", "é", "\N{GRINNING FACE}"])
def test_any_name_that_a_folder_takes_can_be_written(folder, letter):
    stem = letter * (250 // len(letter.encode()))
    ok(here("debias", "s.csv", *BASE, "-o", f"{stem}.csv", "--state", f"{stem}.s"))
    twin = stem[:-1] + "y"  # a lock of its own, though the beginning is the same
    ok(here("debias", "s.csv", *BASE, "--state", f"{twin}.s"))
    assert not list(folder.glob(".gradeq-*"))
    assert "too long" in refused(here("debias", "s.csv", *BASE, "-o", f"{stem}{stem}.csv"))


def test_a_file_keeps_its_permissions_and_a_new_one_has_the_usual_ones(folder):
    (folder / "old.csv").write_text("x")
    (folder / "old.csv").chmod(0o666)
    before = os.umask(0o077)
    try:
        for name in ("old.csv", "new.csv"):
            write_text(name, "y")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((folder / name).stat().st_mode) for name in ("old.csv", "new.csv")]
    assert modes == [0o666, 0o600]
