"""The BibTeX of the documentation says what CITATION.cff says, and that the version is this one."""

import re
from pathlib import Path

import gradeq

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
CFF = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
SOFTWARE, PAPER = CFF.split("preferred-citation:")


def entry(kind: str) -> dict[str, str]:
    """The fields of the one BibTeX entry of a kind."""
    (body,) = re.findall(rf"^@{kind}\{{\w+,\n(.*?)^\}}", PAGE, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^  (\w+)\s+= \{(.*)\},?$", body, re.MULTILINE))


def stated(part: str, name: str) -> str:
    """A field of CITATION.cff."""
    (value,) = re.findall(rf'^[ -]*{name}: "?([^"\n]+)"?$', part, re.MULTILINE)
    return value


def test_the_paper_is_the_one_of_the_citation_file() -> None:
    fields = entry("article")
    for name in ("title", "journal", "year", "url"):
        assert fields[name] == stated(PAPER, name), name
    given = re.findall(r'given-names: "?([^"\n]+)"?', PAPER)
    family = re.findall(r"family-names: (\w+)", PAPER)
    names = " and ".join(f"{last}, {first}" for first, last in zip(given, family, strict=True))
    assert fields["author"] == names


def test_the_software_is_the_one_of_the_citation_file_and_of_this_version() -> None:
    fields = entry("software")
    for name in ("title", "version", "license"):
        assert fields[name] == stated(SOFTWARE, name), name
    assert fields["author"] == "{" + stated(SOFTWARE, "name") + "}"
    assert fields["version"] == gradeq.__version__
