"""Downloads: https alone, converted to our columns, kept only when the digest is known."""

import csv
import gzip
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gradeq.datasets import CATALOG, File, catalog, compas, csv_tables, find, football, helpsteer
from gradeq.errors import BadInput


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GRADEQ_DATA", raising=False)


def answering(monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception) -> list[str]:
    asked: list[str] = []

    def fetch(url: str, name: str, progress: catalog.Progress) -> bytes:
        asked.append(url)
        if isinstance(answer, Exception):
            raise answer
        progress(name, len(answer), len(answer))
        return answer

    monkeypatch.setattr(catalog, "fetch", fetch)
    return asked


def test_a_download_is_converted_checked_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b"date,home_team,away_team,home_score,away_score,neutral\n"
    raw += b"2024-01-01,A,B,2,1,FALSE\n2024-01-02,B,A,0,0,TRUE\n2030-01-01,A,B,NA,NA,FALSE\n"
    asked = answering(monkeypatch, raw)
    matches = football.load()
    assert matches.winner.tolist() == ["home", "draw"]
    assert matches.neutral.tolist() == [False, True]
    assert football.load().home.tolist() == ["A", "B"]
    assert len(asked) == 1, "the second load comes from the cache"
    assert [path.name for path in catalog.cache_folder().iterdir()] == ["football_internationals.csv.gz"]


def test_a_download_that_is_not_the_known_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, b"other bytes")
    with pytest.raises(BadInput, match="its SHA-256 differs, so it is not used"):
        find(CATALOG["elec2"])
    assert not catalog.cache_folder().exists()


@pytest.mark.parametrize("failure", [OSError("no route\nto host"), TimeoutError(), b"[]", b"{", b"\xff"], ids=str)
def test_a_failed_download_is_one_line_that_says_where_to_get_it(
    monkeypatch: pytest.MonkeyPatch, failure: bytes | Exception
) -> None:
    answering(monkeypatch, failure)
    with pytest.raises(BadInput) as error:
        helpsteer.load()
    assert "\n" not in str(error.value)
    assert "https://" in str(error.value)


def test_what_has_no_plain_address_says_where_to_get_it() -> None:
    with pytest.raises(BadInput, match=r"arena_140k\.csv\.gz is not available; get it from https://"):
        find(CATALOG["arena_140k"])


def test_only_https_is_fetched() -> None:
    for url in ("http://example.org/x", "file:///etc/hostname", "ftp://example.org/x"):
        with pytest.raises(ValueError, match="is not https"):
            catalog.fetch(url, "x", lambda *_: None)
    with pytest.raises(OSError, match="without https"):
        catalog._OnlyHttps().redirect_request(
            None,
            None,
            302,
            "",
            None,
            "http://169.254.169.254/",  # type: ignore[arg-type]
        )


def test_the_original_compas_file_gives_the_columns_we_use(data_dir: Path) -> None:
    """A file with the original's layout, names and double columns gives the known digest."""
    text = gzip.decompress((data_dir / "compas.csv.gz").read_bytes()).decode()
    ours = list(csv.DictReader(io.StringIO(text)))
    layout = ["id", "name", "compas_screening_date", "sex", "race", "decile_score", "dob"]
    layout += ["v_decile_score", "is_recid", "decile_score", "sex"]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(layout)
    for i, row in enumerate(ours):
        cells = {**row, "id": str(i), "name": "Doe, Jane", "dob": "1900-01-01"}
        writer.writerow([*(cells[name] for name in layout[:-2]), "", ""])
    reduced = compas._reduced(out.getvalue().encode())
    assert hashlib.sha256(reduced).hexdigest() == compas.DATASET.files[0].sha256[1]
    assert b"Doe" not in reduced


def test_the_authors_rewards_give_our_file(data_dir: Path) -> None:
    text = (data_dir / "helpsteer2_rewards.csv").read_text()
    header, *lines = text.splitlines()
    names = header.split(",")[:-1]
    records = []
    for line in lines:
        *ratings, reward = line.split(",")
        pairs = [f'"{n}": {v}' for n, v in zip(names, ratings, strict=True)]
        pairs += ['"prompt": "p, q"', f'"rm_rewards": {reward}']
        records.append("{" + ", ".join(pairs) + "}")
    made = csv_tables._without_text(("[" + ",".join(records) + "]").encode())
    assert hashlib.sha256(made).hexdigest() in helpsteer.DATASET.files[0].sha256
    assert len(json.loads("[" + ",".join(records) + "]")) == 1038


def test_progress_is_told_and_a_damaged_cache_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = b"a\n1\n"
    digest = hashlib.sha256(text).hexdigest()
    file = File("x.csv", (digest,), "https://example.org/x.csv")
    dataset = replace(CATALOG["elec2"], name="x", files=(file,))
    answering(monkeypatch, text)
    told: list[tuple[str, int, int]] = []
    (path,) = find(dataset, progress=lambda *step: told.append(step))
    assert told == [("x", 4, 4)]
    assert path.read_bytes() == text
    path.write_bytes(b"a\n2\n")
    with pytest.raises(BadInput, match="not the known"):
        find(dataset)
