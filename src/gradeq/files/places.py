"""Where a file may be written: what an output must not be, and how the files beside it are named."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable

from gradeq.errors import BadInput

_LONGEST = 255  # bytes of a name, on every common system
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")


def refuse_address(name: str, done: str, remedy: str) -> None:
    """Refuse what is the address of something elsewhere: only local files are read and written."""
    found = _ADDRESS.match(name)
    if found is None:
        return
    if found[1].lower() == "file":
        remedy = "give the file system path without file://"
    raise BadInput(f"{name} is an address, and only local files are {done}; {remedy}")


def check_output(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> None:
    """Refuse an output that is no plain file, lies in no folder, or is one of the inputs."""
    try:
        name = os.fspath(path)
    except TypeError:
        raise BadInput(f"{path!r} is no name of a file; give a path") from None
    if not name:
        raise BadInput("the name of an output is empty; name a file")
    refuse_address(name, "written", "write a local file and upload it")
    place = os.path.realpath(name)
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        raise BadInput(f"{name} cannot be written: there is no folder {folder}; make it first")
    try:
        there = os.stat(place)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{name} cannot be written: {reason}; choose another place") from None
    if stat.S_ISDIR(there.st_mode):
        raise BadInput(f"{name} is a folder; name a file for the output")
    if not stat.S_ISREG(there.st_mode):
        raise BadInput(f"{name} is a pipe or a device; name a file for the output")
    if not os.access(place, os.W_OK):
        raise BadInput(f"{name} may not be written; check its permissions")
    for other in inputs:
        if os.path.exists(other) and os.path.realpath(other) == place:
            raise BadInput(f"{name} is an input too; write the output to another file")
        if os.path.exists(other) and os.path.samestat(os.stat(other), there):
            raise BadInput(f"{name} is the input {other}; write the output to another file")


def beside(place: str, ending: str) -> str:
    """The name of a file of ours beside another one, short enough whatever that one is called."""
    folder, name = os.path.split(place)
    whole = os.fsencode(f".gradeq-{name}{ending}")
    if len(whole) > _LONGEST:
        short = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        cut = os.fsencode(name)[:100].decode("utf-8", "ignore")
        whole = os.fsencode(f".gradeq-{cut}-{short}{ending}")
    return os.path.join(folder, os.fsdecode(whole))


def keep_mode(descriptor: int, place: str) -> None:
    """Give a new file the permissions, and where that is allowed the owner, of the one whose place it takes."""
    try:
        there = os.stat(place)
    except OSError:
        return
    if os.name == "posix":
        own = os.fstat(descriptor)
        if (own.st_uid, own.st_gid) != (there.st_uid, there.st_gid):
            with contextlib.suppress(OSError):
                os.fchown(descriptor, there.st_uid, there.st_gid)
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, there.st_mode & 0o777)
