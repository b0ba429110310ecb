"""What a data set is: where it comes from, under which licence, which files, which columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One file of a data set, and how to make it from its public source.

    sha256 lists the known digests of its text (unpacked, if it is gzipped); empty when the public
    file grows. url is a public https address; without one the file cannot be downloaded for you.
    convert turns the downloaded bytes into the text that the loader reads.
    """

    name: str
    sha256: tuple[str, ...] = ()
    url: str = ""
    convert: Callable[[bytes], bytes] | None = None


@dataclass(frozen=True)
class Dataset:
    """A named public data set; ``source`` is its project page, for people."""

    name: str
    title: str
    source: str
    licence: str
    files: tuple[File, ...]
    columns: tuple[str, ...]
    about: str

    def __str__(self) -> str:
        return f"{self.name}: {self.title} ({self.licence}; {self.source})"
