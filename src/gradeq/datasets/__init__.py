"""Named public data sets: where from, under which licence, with which digest, as numpy columns.

    from gradeq.datasets import compas
    data = compas.load_paper()          # from GRADEQ_DATA, the cache, or a download

Each module has DATASET, which says what it is, and load(folder=None). CATALOG lists them all.
"""

from gradeq.datasets import (
    arena,
    climate,
    compas,
    covid,
    elec2,
    flights,
    football,
    french,
    helpsteer,
    mimic,
)
from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.locate import cache_folder, find

CATALOG: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        compas.DATASET,
        helpsteer.DATASET,
        arena.DATASET,
        arena.PAPER,
        football.DATASET,
        flights.DATASET,
        mimic.DATASET,
        elec2.DATASET,
        climate.DATASET,
        covid.DATASET,
        french.DATASET,
    )
}

__all__ = [
    "CATALOG",
    "Dataset",
    "File",
    "arena",
    "cache_folder",
    "climate",
    "compas",
    "covid",
    "elec2",
    "find",
    "flights",
    "football",
    "french",
    "helpsteer",
    "mimic",
]
