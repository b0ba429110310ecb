"""Finds the files of a data set: a folder that is given, GRADEQ_DATA, the cache, or a download."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path

from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.download import Progress, fetch, on_terminal
from gradeq.errors import BadInput
from gradeq.files.atomic import atomic
from gradeq.files.failures import writing

Folder = str | os.PathLike[str] | None


def find(
    dataset: Dataset,
    folder: Folder = None,
    *,
    download: bool = True,
    progress: Progress = on_terminal,
) -> list[Path]:
    """The paths of the data set's files, each with the right content; else one clear line.

    A folder that is given must have them. Otherwise they are looked for in GRADEQ_DATA and in the
    cache, and downloaded to the cache where a plain public address is known.
    """
    return [_find(dataset, file, folder, download, progress) for file in dataset.files]


def check_folder(folder: Folder, whose: str = "") -> None:
    """Refuse a data folder that is none."""
    if folder is not None and not (os.fspath(folder) and Path(folder).is_dir()):
        raise BadInput(f"{whose}there is no data folder {os.fspath(folder)!r}")


def cache_folder() -> Path:
    """Where downloads are kept: gradeq/data in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "gradeq" / "data"


def _find(dataset: Dataset, file: File, folder: Folder, download: bool, progress: Progress) -> Path:
    if folder is not None:
        check_folder(folder, f"{dataset.name}: ")
        path = Path(folder) / file.name
        if not path.is_file():
            raise BadInput(
                f"{dataset.name}: {file.name} is not in {os.fspath(folder)}; {_where(dataset)}"
            )
        return _checked(dataset, file, path)
    named = os.environ.get("GRADEQ_DATA", "")
    for place in [*([Path(named)] if named else []), cache_folder()]:
        if (place / file.name).is_file():
            return _checked(dataset, file, place / file.name)
    if not (download and file.url):
        raise BadInput(
            f"{dataset.name}: {file.name} is not available; {_where(dataset)}, "
            "and name its folder in GRADEQ_DATA"
        )
    return _downloaded(dataset, file, progress)


def _downloaded(dataset: Dataset, file: File, progress: Progress) -> Path:
    try:
        data = fetch(file.url, dataset.name, progress)
        text = file.convert(data) if file.convert is not None else data
    except (OSError, ValueError, KeyError, IndexError) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise BadInput(
            f"{dataset.name}: {file.name} could not be downloaded ({reason}); {_where(dataset)}, "
            "and name its folder in GRADEQ_DATA"
        ) from None
    if file.sha256 and hashlib.sha256(text).hexdigest() not in file.sha256:
        raise BadInput(
            f"{dataset.name}: what {file.url} holds today is not the known {file.name}; "
            "its SHA-256 differs, so it is not used"
        )
    path = cache_folder() / file.name
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    packed = gzip.compress(text, mtime=0) if path.suffix == ".gz" else text
    with atomic(path) as out, writing(path):
        out.write(packed)
    return path


def _checked(dataset: Dataset, file: File, path: Path) -> Path:
    """The path, when the file's text is one of those known by its digest."""
    if not file.sha256:
        return path
    try:
        digest = _digest(path)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{dataset.name}: {path} cannot be read: {error}") from None
    if digest not in file.sha256:
        raise BadInput(
            f"{dataset.name}: {path} has SHA-256 {digest[:12]}..., not the known "
            f"{file.sha256[0][:12]}...; replace it with the original ({dataset.source})"
        )
    return path


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as raw:
        data = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        while block := data.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _where(dataset: Dataset) -> str:
    return f"get it from {dataset.source}"
