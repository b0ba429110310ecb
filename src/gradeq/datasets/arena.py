"""Chatbot Arena: pairs of language models and which answer people preferred."""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradeq.datasets.catalog import Dataset, Days, File, Folder, Texts, find, read_csv
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
    columns = read_csv(DATASET, folder)
    return Battles(*map(columns.texts, ("model_a", "model_b", "winner")))


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
    stamps, *names = zip(*sorted(counted, key=itemgetter(0))[-last:], strict=True)
    a, b, winner = (np.array(column, str) for column in names)
    return TimedBattles(a, b, winner, (np.array(stamps) * 1e6).astype("datetime64[us]"))


_BLOCK = 1 << 20


def _battles(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of the file's JSON array, read in blocks, with their keys checked."""
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
            missing = [name for name in PAPER.columns if name not in record] if isinstance(record, dict) else None
            if missing is None or missing:
                problem = f"has no {missing[0]!r}" if missing else "is not an object"
                raise BadInput(f"{path}: record {number} {problem}; is it the battles file?")
            yield record
