"""Data sets: their description, finding or downloading their files, and their columns as numpy arrays."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from gradeq.errors import BadInput
from gradeq.files import open_table
from gradeq.files.paths import atomic, writing


@dataclass(frozen=True)
class File:
    """One file of a data set, and how to make it from its public source.

    - ``sha256``: the accepted digests of its text (after unpacking gzip); empty if the public file grows.
    - ``url``: a public https address; without one, users must download the file themselves.
    - ``convert``: turns the downloaded bytes into the text that the loader reads.
    """

    name: str
    sha256: tuple[str, ...] = ()
    url: str = ""
    convert: Callable[[bytes], bytes] | None = None


@dataclass(frozen=True)
class Dataset:
    """A public data set; ``source`` is its project page."""

    name: str
    title: str
    source: str
    licence: str
    files: tuple[File, ...]
    columns: tuple[str, ...]
    about: str

    def __str__(self) -> str:
        return f"{self.name}: {self.title} ({self.licence}; {self.source})"


Texts = npt.NDArray[np.str_]
Floats = npt.NDArray[np.float64]
Days = npt.NDArray[np.datetime64]


class CsvColumns:
    """Columns of a CSV file, read once and converted on request."""

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str]) -> None:
        self._chunks = list(open_table([path]).batches(list(names)))

    def numbers(self, name: str, *, missing: bool = False) -> Floats:
        """A column of numbers; with ``missing``, empty cells become nan."""
        return np.concatenate([chunk.numbers(name, missing=missing) for chunk in self._chunks])

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """A column of whole numbers."""
        return self.numbers(name).astype(np.int64)

    def matrix(self, names: Sequence[str]) -> Floats:
        """Several columns of numbers as a matrix."""
        return np.column_stack([self.numbers(name) for name in names])

    def texts(self, name: str) -> Texts:
        """A column of text."""
        return np.array([cell for chunk in self._chunks for cell in chunk.batch.column(name).to_pylist()], str)

    def moments(self, name: str, unit: str = "D") -> Days:
        """A column of dates or times written as 2024-01-31 17:05:00."""
        return self.texts(name).astype(f"datetime64[{unit}]")


Progress = Callable[[str, int, int], None]

_LIMIT = 500 << 20
_SECONDS = 30


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise OSError("the server redirects to an address without https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(url: str, name: str, progress: Progress) -> bytes:
    """Download a public https address; calls progress(name, bytes so far, total bytes or 0)."""
    if not url.startswith("https://"):
        raise ValueError(f"{url} is not https")
    opener = urllib.request.build_opener(_OnlyHttps)
    request = urllib.request.Request(url, headers={"User-Agent": "gradeq"})
    parts: list[bytes] = []
    done = 0
    with opener.open(request, timeout=_SECONDS) as answer:
        total = int(answer.headers.get("Content-Length") or 0)
        while block := answer.read(1 << 16):
            done += len(block)
            if done > _LIMIT:
                raise OSError(f"more than {_LIMIT >> 20} MB")
            parts.append(block)
            progress(name, done, total)
    return b"".join(parts)


def on_terminal(name: str, done: int, total: int) -> None:
    """Show progress as one line on standard error if that is a terminal."""
    if sys.stderr.isatty():
        share = f"{100 * done // total} %" if total else f"{done >> 10} kB"
        end = "\n" if total and done >= total else ""
        sys.stderr.write(f"\rdownloading {name}: {share}{end}")
        sys.stderr.flush()


Folder = str | os.PathLike[str] | None


def cache_folder() -> Path:
    """The folder of downloads: gradeq/data in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "gradeq" / "data"


def search_folders(folder: Folder = None) -> list[Path]:
    """The folders to search for data files: ``folder``, or by default GRADEQ_DATA and the cache."""
    if folder is not None:
        return [Path(folder)]
    variable = os.environ.get("GRADEQ_DATA", "")
    return [*([Path(variable)] if variable else []), cache_folder()]


def check_folder(folder: Folder, prefix: str = "") -> None:
    """Raise unless the data folder exists."""
    if folder is not None and not (os.fspath(folder) and Path(folder).is_dir()):
        raise BadInput(f"{prefix}there is no data folder {os.fspath(folder)!r}")


def find(dataset: Dataset, folder: Folder = None, *, progress: Progress = on_terminal) -> list[Path]:
    """The paths of the data set's files, with their digests checked; raises ``BadInput`` if one is missing.

    ``folder`` must contain all of them. By default GRADEQ_DATA and the cache are searched, and files with a public
    address are downloaded to the cache.
    """
    check_folder(folder, f"{dataset.name}: ")
    return [_find(dataset, file, folder, progress) for file in dataset.files]


def read_csv(dataset: Dataset, folder: Folder = None) -> CsvColumns:
    """The columns of a data set of one CSV file."""
    (path,) = find(dataset, folder)
    return CsvColumns(path, dataset.columns)


def _find(dataset: Dataset, file: File, folder: Folder, progress: Progress) -> Path:
    for path in (place / file.name for place in search_folders(folder)):
        if path.is_file():
            _check_digest(dataset, file, path)
            return path
    advice = f"get it from {dataset.source}"
    if folder is not None:
        raise BadInput(f"{dataset.name}: {file.name} is not in {os.fspath(folder)}; {advice}")
    advice += ", and set GRADEQ_DATA to its folder"
    if not file.url:
        raise BadInput(f"{dataset.name}: {file.name} is not available; {advice}")
    try:
        data = fetch(file.url, dataset.name, progress)
        text = file.convert(data) if file.convert is not None else data
    except (OSError, ValueError, KeyError, IndexError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise BadInput(f"{dataset.name}: {file.name} could not be downloaded ({reason}); {advice}") from None
    if file.sha256 and hashlib.sha256(text).hexdigest() not in file.sha256:
        raise BadInput(f"{dataset.name}: {file.url} has changed: its SHA-256 differs, so it is not used")
    path = cache_folder() / file.name
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as out, writing(path):
        out.write(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


def _check_digest(dataset: Dataset, file: File, path: Path) -> None:
    """Raise unless the digest of the unpacked text is one of the accepted ones."""
    if not file.sha256:
        return
    digest = hashlib.sha256()
    try:
        with path.open("rb") as raw:
            data = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            while block := data.read(1 << 20):
                digest.update(block)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{dataset.name}: {path} cannot be read: {error}") from None
    if digest.hexdigest() not in file.sha256:
        raise BadInput(
            f"{dataset.name}: {path} has SHA-256 {digest.hexdigest()[:12]}..., not the known "
            f"{file.sha256[0][:12]}...; replace it with the original ({dataset.source})"
        )
