"""Named public data sets: where from, under which licence, with which digest, as numpy columns.

    from gradeq.datasets import compas
    data = compas.load_paper()          # from GRADEQ_DATA, the cache, or a download

Each has DATASET, which says what it is, and load(folder=None). CATALOG lists them all.
"""

from gradeq.datasets import arena, compas, covid, flights, football, mimic
from gradeq.datasets.catalog import Dataset, File, cache_folder, find
from gradeq.datasets.csv_tables import climate, elec2, french, helpsteer

_DATASETS = (
    compas.DATASET, helpsteer.DATASET, arena.DATASET, arena.PAPER, football.DATASET, flights.DATASET, mimic.DATASET,
    elec2.DATASET, climate.DATASET, covid.DATASET, french.DATASET,
)  # fmt: skip
CATALOG: dict[str, Dataset] = {dataset.name: dataset for dataset in _DATASETS}

__all__ = [
    "CATALOG", "Dataset", "File", "arena", "cache_folder", "climate", "compas", "covid", "elec2", "find", "flights",
    "football", "french", "helpsteer", "mimic",
]  # fmt: skip
