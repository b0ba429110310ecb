"""The commands that write files, and what they start from."""

from pathlib import Path

from cli.calling import games, here, ok, prices, scores, write

BASE = ("--prediction", "score", "--label", "outcome", "--quiet")
QUANTILE = ("--prediction", "forecast", "--label", "price", "--level", "0.9", "--quiet")
ELO = ("--a", "home", "--b", "away", "--winner", "winner", "--quiet")
STATE = ("--state", "st.json")
PAGE = ("--report", "page.html")

JOBS = {
    "debias": ("debias", "s.csv", *BASE, "--by", "region", "-o", "out.csv", *PAGE, *STATE),
    "debias, zipped, with ids": ("debias", "s.csv", *BASE, "--id", "id", "-o", "out.csv.gz", *STATE),
    "debias, continued": ("debias", "s2.csv", *BASE, "--id", "id", "-o", "out.csv", "--state", "known.json"),
    "debias, sorted, parquet": ("debias", "s.csv", *BASE, "--time", "day", "-o", "out.parquet", *STATE),
    "debias, by key": ("debias", "s.csv", *BASE, "--eta", "0.1", "--key", "shop", "--keys-out", "keys.csv", *STATE),
    "debias, no state": ("debias", "s.csv", *BASE, "-o", "out.csv", *PAGE),
    "quantile": ("quantile", "p.csv", *QUANTILE, "-o", "out.csv", *PAGE, *STATE),
    "elo": ("elo", "g.csv", *ELO, "-o", "out.csv", "--predictions", "each.parquet", *PAGE, *STATE),
    "label": ("label", "labels.csv", "--id", "id", "--label", "y", "--rejected", "out.csv", "--state", "known.json"),
    "reproduce": ("reproduce", "restorative-field", "-o", ".", "--quiet"),
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the inputs of all jobs, and a state that rows wait in; the folder is the present one."""
    rows = scores(300)
    write(folder / "s.csv", rows)
    write(folder / "s2.csv", [row | {"id": f"b{row['id']}"} for row in scores(200, seed=7)])
    write(folder / "p.csv", prices(300))
    write(folder / "g.csv", games(300))
    blank = [row["id"] for row in rows if row["outcome"] == ""]
    write(folder / "labels.csv", [{"id": id, "y": 1} for id in [*blank, "nobody"]])
    ok(here("debias", "s.csv", *BASE, "--id", "id", "--state", "known.json"))
