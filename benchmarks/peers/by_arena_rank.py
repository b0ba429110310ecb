"""arena-rank: a Bradley-Terry fit with sandwich intervals, from a data frame of names."""

from __future__ import annotations

from typing import Any

from benchmarks.inputs import Data
from benchmarks.peers.entry import Entry, Job


def fitted(a: Any, b: Any, scores: Any) -> tuple[list[Any], dict[str, Any]]:
    """Competitors in its order, and ratings with their intervals."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    frame = pd.DataFrame({"model_a": a, "model_b": b, "winner": scores})
    data = PairDataset.from_pandas(frame, outcome_map=float)
    return data.competitors, BradleyTerry(len(data.competitors)).compute_ratings_and_cis(data)


def board(data: Data) -> Job:
    """From names to ratings with intervals."""
    import pandas as pd

    a, b = (pd.Series(data[side].to_pylist()) for side in ("a name", "b name"))
    return lambda: fitted(a, b, data["score"])[1]["ratings"]


DOES: dict[str, Entry] = {"leaderboard, names": Entry(1_000_000, board, None, "a fit, sandwich intervals")}
