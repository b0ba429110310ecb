"""Chatbot Arena: pairs of language models and which answer people preferred."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradeq.datasets.catalog import CsvColumns, Dataset, Days, File, Folder, Texts, find
from gradeq.errors import BadInput

DATASET = Dataset(
    name="arena_140k",
    title="LMArena human preference votes, the 140k release",
    source="https://huggingface.co/datasets/lmarena-ai/arena-human-preference-140k",
    licence="CC-BY-4.0",
    files=(File("arena_140k.csv.gz", ("28b84d706d98ab05faa5cd0bb59bc89be36196f3bca2d0b7814542545e4b1a67",)),),
    columns=("row", "model_a", "model_b", "winner"),
    about="135,634 votes on 53 models, order shuffled, ten of them of a model against itself.",
)

PAPER = Dataset(
    name="arena_paper",
    title="Chatbot Arena battles up to 2024-08-26, the paper's file",
    source="https://storage.googleapis.com/arena_external_data/public/clean_battle_20240826_public.json",
    licence="published by LMSYS with the leaderboard notebook",
    files=(File("clean_battle_20240826_public.json"),),
    columns=("model_a", "model_b", "winner", "tstamp", "anony", "dedup_tag"),
    about="About 1.7 million battles; the paper uses the last 50,000 that count. Fig. 2, 9, 17, 18.",
)


class Battles(NamedTuple):
    """Columns of equal length; winner says model_a, model_b, tie, both_bad or tie (bothbad)."""

    a: Texts
    b: Texts
    winner: Texts


class TimedBattles(NamedTuple):
    """Battles with the time of the vote."""

    a: Texts
    b: Texts
    winner: Texts
    time: Days


def load(folder: Folder = None) -> Battles:
    """All votes of the 140k release, in file order."""
    (path,) = find(DATASET, folder)
    columns = CsvColumns(path, DATASET.columns)
    return Battles(*(columns.texts(name) for name in ("model_a", "model_b", "winner")))


def load_paper(folder: Folder = None, last: int = 50_000) -> TimedBattles:
    """The paper's battles: anonymous, not a duplicate prompt, no tie, by time, the last 50,000."""
    (path,) = find(PAPER, folder)
    counted = [
        (float(battle["tstamp"]), battle["model_a"], battle["model_b"], battle["winner"])
        for battle in _battles(path)
        if battle["anony"] is True
        and (battle["dedup_tag"] or {}).get("sampled", False)
        and battle["winner"] in ("model_a", "model_b")
    ]
    if not counted:
        raise BadInput(f"{path} has no battle that counts (anonymous, sampled, not a tie)")
    stamps = np.array([battle[0] for battle in counted])
    order = np.argsort(stamps, kind="stable")[-last:]
    a, b, winner = (np.array([counted[i][k] for i in order], str) for k in (1, 2, 3))
    return TimedBattles(a, b, winner, (stamps[order] * 1e6).astype("datetime64[us]"))


_BLOCK = 1 << 20


def _battles(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of the file's JSON array, read block by block; each has the columns of the data set."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8") as file:
        text = file.read(_BLOCK).lstrip()
        if not text.startswith("["):
            raise BadInput(f"{path} is not a JSON array of records")
        at, number, ended = 1, 0, False
        while True:
            while at < len(text) and text[at] in " \t\r\n,":
                at += 1
            if at < len(text) and text[at] == "]":
                return
            try:
                record, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                if ended:
                    raise BadInput(f"{path} is damaged or cut short: no whole record") from None
                more = file.read(_BLOCK)
                ended = not more
                text, at = text[at:] + more, 0
                continue
            number += 1
            if not isinstance(record, dict):
                raise BadInput(f"{path}: record {number} is not an object; is it the battles file?")
            lacking = next((name for name in PAPER.columns if name not in record), None)
            if lacking is not None:
                raise BadInput(f"{path}: record {number} has no {lacking!r}; is it the battles file?")
            yield record
