"""MIMIC-IV length of stay, by the paper's pipeline from the four raw PhysioNet files."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradeq.datasets.catalog import Dataset, Days, File, Floats, Folder, Texts
from gradeq.errors import BadInput, missing_extra

if TYPE_CHECKING:
    import pandas as pd


DATASET = Dataset(
    name="mimic",
    title="MIMIC-IV length of hospital stay",
    source="https://physionet.org/content/mimiciv",
    licence="PhysioNet Credentialed Health Data License 1.5.0",
    files=tuple(File(f"{name}.csv") for name in ("admissions", "patients", "diagnoses_icd", "procedures_icd")),
    columns=("subject_id", "hadm_id", "admittime", "dischtime", "ethnicity", "marital_status"),
    about="The last 10,000 stays by date of admission. Fig. 1, 13, 16 of the paper.",
)

# MIMIC-IV writes HISPANIC/LATINO, so the authors' last name matches no stay.
ETHNICITIES = ("ASIAN", "WHITE", "BLACK/AFRICAN AMERICAN", "HISPANIC OR LATINO")
CHUNKS = 12

_ADMISSIONS = (
    "subject_id", "hadm_id", "ethnicity", "admittime", "dischtime", "hospital_expire_flag", "marital_status",
    "insurance", "language",
)  # fmt: skip
_PATIENTS = ("subject_id", "gender", "anchor_age", "anchor_year", "anchor_year_group")
_CODES = ("subject_id", "hadm_id", "seq_num", "icd_code", "icd_version")


class Stays(NamedTuple):
    """Columns of equal length, by date of admission."""

    prediction: Floats  # days, of gradient boosting refitted on a growing prefix
    days: Floats
    ethnicity: Texts
    marital_status: Texts
    admitted: Days


def load(folder: Folder = None, *, last: int = 10_000) -> Stays:
    """The paper's stream of stays: predictions of a refitted model, and whole days stayed.

    As in the paper, features include the common diagnoses and procedures of all stays of a person, also later ones,
    so the base model sees the future.
    """
    import pandas as pd

    stays = read_stays(_folder(folder))
    codes = code_columns(stays)
    # The authors drop people by ethnicity after the common codes are chosen.
    chosen = stays["ethnicity"].isin(ETHNICITIES).to_numpy()
    if chosen.sum() < CHUNKS:
        raise BadInput(f"mimic: only {chosen.sum()} stays pass the paper's filters; {CHUNKS} needed")
    stays = stays[chosen]
    days = stays["days"].to_numpy(np.float64)
    # The two id columns are in the features because the authors left them in.
    plain = stays[["subject_id", "hadm_id", "real_admit_year", "age"]].to_numpy(np.float64)
    words = ["gender", "ethnicity", "marital_status", "insurance", "language"]
    indicators = pd.get_dummies(stays[words], columns=words).to_numpy(np.float64)
    prediction = refitted(np.hstack([plain, indicators, codes[chosen]]), days)
    return Stays(
        prediction=prediction[-last:],
        days=days[-last:],
        ethnicity=np.array(stays["ethnicity"].tolist(), str)[-last:],
        marital_status=np.array(stays["marital_status"].tolist(), str)[-last:],
        admitted=stays["admittime"].to_numpy("datetime64[D]")[-last:],
    )


def read_stays(folder: Path) -> pd.DataFrame:
    """One row per stay, joined and filtered as in the paper, by date of admission.

    The columns diagnoses and procedures hold each stay's list of three-digit codes.
    """
    admissions = _read(folder, "admissions", _ADMISSIONS).dropna()
    for name in ("admittime", "dischtime"):
        admissions[name] = admissions[name].astype("datetime64[s]").dt.normalize()
    patients = _read(folder, "patients", _PATIENTS).dropna()
    stays = admissions.merge(patients, on="subject_id")
    since = stays["admittime"].dt.year - stays["anchor_year"]
    stays["age"] = since + stays["anchor_age"]
    stays["real_admit_year"] = since + stays["anchor_year_group"].str[:4].astype(int)
    for name in ("diagnoses", "procedures"):
        codes = _codes(_read(folder, f"{name}_icd", _CODES), name)
        stays = stays.merge(codes, on=["subject_id", "hadm_id"])
    stays = stays[stays["age"].between(18, 89)].copy()
    stays["days"] = (stays["dischtime"] - stays["admittime"]).dt.days
    return stays.sort_values("admittime", kind="stable").reset_index(drop=True)


def refitted(features: Floats, target: Floats, chunks: int = CHUNKS) -> Floats:
    """Predictions of a model that is refitted before each chunk on all earlier stays; 0 in the first chunk.

    The last chunk is up to twice as long.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError:
        raise missing_extra("sklearn", "the base model of the MIMIC data") from None
    edges = [len(target) // chunks * i for i in range(1, chunks - 1)]
    prediction = np.zeros(len(target))
    for start, stop in zip(edges, [*edges[1:], len(target)], strict=True):
        # Trees need no scaled features.
        model = HistGradientBoostingRegressor(max_depth=20, random_state=0)
        model.fit(features[:start], target[:start])
        prediction[start:stop] = model.predict(features[start:stop])
    return prediction


def _codes(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Each stay's list of codes, cut to their category: three characters, four for ICD-9 E codes."""
    table = table.dropna().drop_duplicates().sort_values(["subject_id", "hadm_id", "seq_num"])
    code, version = table["icd_code"].astype(str).str.strip(), table["icd_version"].astype(int)
    long = (version == 9) & code.str.startswith("E") & (name == "diagnoses")
    category = code.str[:3].where(~long, code.str[:4])
    table[name] = "ICD" + version.astype(str) + "_" + category
    return table.groupby(["subject_id", "hadm_id"])[name].agg(list).reset_index()


def _folder(folder: Folder) -> Path:
    place = os.environ.get("GRADEQ_DATA", "") if folder is None else os.fspath(folder)
    if not place:
        raise BadInput(f"mimic: name the folder with its four files; they are at {DATASET.source}")
    for candidate in (Path(place), Path(place) / "hosp", Path(place) / "mimic"):
        if _path(candidate, "admissions") is not None:
            return candidate
    raise BadInput(f"mimic: admissions.csv is not in {place}; get it from {DATASET.source}")


def _path(folder: Path, name: str) -> Path | None:
    paths = (folder / f"{name}{suffix}" for suffix in (".csv", ".csv.gz"))
    return next((path for path in paths if path.is_file()), None)


def _read(folder: Path, name: str, columns: tuple[str, ...]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise missing_extra("pandas", "reading the MIMIC files") from None
    path = _path(folder, name)
    if path is None:
        raise BadInput(f"mimic: {name}.csv is not in {folder}; get it from {DATASET.source}")
    try:
        kinds = {"icd_code": str} if "icd_code" in columns else None
        table = pd.read_csv(path, dtype=kinds)
    except (ValueError, OSError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"mimic: {path} cannot be read as CSV: {reason[:120]}") from None
    # Releases from 2.0 on call it race.
    table = table.rename(columns={"race": "ethnicity"} if "ethnicity" in columns else {})
    lacking = [column for column in columns if column not in table.columns]
    if lacking:
        raise BadInput(f"mimic: {path} has no column {lacking[0]!r}; is it the MIMIC-IV file?")
    return table[list(columns)]


COMMON = 50


def code_columns(stays: pd.DataFrame) -> Floats:
    """One row per stay: a column per common code of the person in any stay, and one each for all other codes."""
    diagnoses = _common(stays, "diagnoses", "procedures")
    procedures = [code for code in _common(stays, "procedures", "diagnoses") if code not in diagnoses]
    here = np.hstack([_indicators(stays, "diagnoses", diagnoses), _indicators(stays, "procedures", procedures)])
    persons = np.unique(stays["subject_id"].to_numpy(), return_inverse=True)[1]
    ever = np.zeros((int(persons.max()) + 1, here.shape[1]))
    np.maximum.at(ever, persons, here)
    return np.asarray(ever[persons])


def _common(stays: pd.DataFrame, name: str, other: str) -> list[str]:
    """The most frequent codes. As in the authors' table of pairs, a code counts once per code of the other kind."""
    counts: Counter[str] = Counter()
    for codes, pairs in zip(stays[name], stays[other], strict=True):
        for code in codes:
            counts[code] += len(pairs)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [code for code, _ in ranked[:COMMON]]


def _indicators(stays: pd.DataFrame, name: str, common: list[str]) -> Floats:
    place = {code: k for k, code in enumerate(common)}
    rows = np.zeros((len(stays), len(common) + 1))
    for i, codes in enumerate(stays[name]):
        rows[i, [place.get(code, len(common)) for code in codes]] = 1.0
    return rows
