"""Where experiments take their data: each file is looked for, checked and read once, however many figures use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gradeq.datasets import Dataset, cache_folder
from gradeq.errors import GradeqError

T = TypeVar("T")
ORDER = "compas_row_order.txt"


class Source:
    """The data folder of the user (None: GRADEQ_DATA, the cache, or a download)."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = None if folder is None else os.fspath(folder)
        self._read: dict[Any, Any] = {}

    def load(self, loader: Callable[..., T], **settings: Any) -> T:
        """What the loader gives, read once; a refusal is remembered as well."""
        key = (loader, *sorted(settings.items()))
        if key not in self._read:
            try:
                self._read[key] = loader(self.folder, **settings)
            except GradeqError as error:
                self._read[key] = error
        if isinstance(self._read[key], GradeqError):
            raise self._read[key]
        return self._read[key]  # type: ignore[no-any-return]

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """A result that several figures share."""
        if name not in self._read:
            self._read[name] = compute()
        return self._read[name]  # type: ignore[no-any-return]

    def has(self, dataset: Dataset) -> bool:
        """Whether any file of the data set is at hand, good or bad; nothing is downloaded."""
        names = [name for file in dataset.files for name in (file.name, f"{file.name}.gz")]
        places = [place / inner for place in self._places() for inner in ("", "hosp", "mimic")]
        return any((place / name).is_file() for place in places for name in names)

    def compas_order(self) -> Path | None:
        """The file with the authors' order of the COMPAS rows, in the data folder or in reference beside it."""
        for place in self._places():
            for path in (place / ORDER, place.parent / "reference" / ORDER):
                if path.is_file():
                    return path
        return None

    def _places(self) -> list[Path]:
        if self.folder is not None:
            return [Path(self.folder)]
        named = os.environ.get("GRADEQ_DATA", "")
        return [*([Path(named)] if named else []), cache_folder()]
