"""MIMIC-IV by the paper's pipeline, on small files of the same schema made here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradeq.datasets import mimic
from gradeq.datasets.mimic import code_columns
from gradeq.errors import BadInput

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small fits wait for each other's threads far longer than they compute."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


ADMISSION = {
    "admission_type": "URGENT",
    "hospital_expire_flag": 0,
    "marital_status": "MARRIED",
    "insurance": "Other",
    "language": "ENGLISH",
    "ethnicity": "WHITE",
}


def admission(subject: int, stay: int, start: str, days: int, **other: Any) -> dict[str, Any]:
    times = {"admittime": f"{start} 23:10:00", "dischtime": f"{np.datetime64(start, 'D') + days} 01:00:00"}
    return {"subject_id": subject, "hadm_id": stay, **times, **ADMISSION, **other}


def patient(subject: int, **other: Any) -> dict[str, Any]:
    fixed = {"gender": "F", "anchor_age": 50, "anchor_year": 2150}
    group = {"anchor_year_group": "2011 - 2013", "dod": None}
    return {"subject_id": subject, **fixed, **group, **other}


def code(subject: int, stay: int, icd: str, version: int = 9, seq: int = 1) -> dict[str, Any]:
    ids = {"subject_id": subject, "hadm_id": stay, "seq_num": seq}
    return {**ids, "icd_code": icd, "icd_version": version}


def written(folder: Path, **tables: list[dict[str, Any]]) -> Path:
    for name, rows in tables.items():
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv.gz", index=False)
    return folder


def small(folder: Path) -> Path:
    """Four stays that count, and one for each reason not to."""
    stays = [
        admission(1, 10, "2151-05-01", 3),
        admission(1, 11, "2151-02-01", 1, marital_status="SINGLE"),
        admission(2, 20, "2151-03-01", 0),
        admission(3, 30, "2151-04-01", 9, ethnicity="UNKNOWN"),
        admission(4, 40, "2151-04-01", 9, marital_status=None),  # a cell is missing
        admission(5, 50, "2151-04-01", 9),  # 92 years old
        admission(6, 60, "2151-04-01", 9),  # no procedure
        admission(7, 70, "2151-04-01", 9),  # no diagnosis
        admission(9, 90, "2151-04-01", 9),  # no patient
    ]
    ages = {5: 91, 2: 17}
    patients = [patient(i, anchor_age=ages.get(i, 50)) for i in range(1, 9)]
    pairs = [(1, 10), (1, 11), (2, 20), (3, 30), (4, 40), (5, 50), (9, 90)]
    diagnoses = [code(*pair, "E8859") for pair in pairs] + [code(6, 60, "4280")]
    diagnoses += [code(1, 10, "I5022", 10, 2), code(1, 10, "I5022", 10, 2)]
    procedures = [code(*pair, "0331") for pair in pairs] + [code(7, 70, "0331")]
    return written(folder, admissions=stays, patients=patients, diagnoses_icd=diagnoses, procedures_icd=procedures)


def test_stays_are_joined_and_filtered_as_in_the_paper(tmp_path: Path) -> None:
    stays = mimic.read_stays(small(tmp_path))
    assert stays["hadm_id"].tolist() == [11, 20, 30, 10]  # by date of admission
    assert stays["days"].tolist() == [1, 0, 9, 3]  # whole days between dates
    assert stays["age"].tolist() == [51, 18, 51, 51]
    assert stays["real_admit_year"].tolist() == [2012] * 4
    assert stays["diagnoses"].tolist() == [["ICD9_E885"]] * 3 + [["ICD9_E885", "ICD10_I50"]]
    assert stays["procedures"].tolist() == [["ICD9_033"]] * 4


def test_codes_of_later_stays_leak_as_in_the_paper(tmp_path: Path) -> None:
    stays = mimic.read_stays(small(tmp_path))
    # Columns: E885, I50, other diagnosis; 033, other procedure. Rows: stays 11, 20, 30, 10.
    leaky = code_columns(stays)
    assert leaky.tolist() == [[1, 1, 0, 1, 0], [1, 0, 0, 1, 0], [1, 0, 0, 1, 0], [1, 1, 0, 1, 0]]


def test_common_codes_are_counted_once_per_code_of_the_other_kind() -> None:
    rows = [
        {"subject_id": 1, "diagnoses": ["a"], "procedures": ["x", "y", "z"]},
        *({"subject_id": 2 + i, "diagnoses": [f"b{i % 50}"], "procedures": ["x"]} for i in range(100)),
    ]
    table = code_columns(pd.DataFrame(rows))
    # "a" counts three times, the fifty others twice: it is in, and the last of them is out.
    assert table.shape[1] == (50 + 1) + (3 + 1)
    assert table[0, 0] == 1.0
    assert table[:, 50].sum() == 2.0


def test_predictions_come_from_earlier_stays_alone() -> None:
    rng = np.random.default_rng(2)
    features, target = rng.random((250, 3)), rng.random(250)
    first = mimic.refitted(features, target)
    assert (first[: 250 // 12] == 0).all()
    assert (first[250 // 12 :] != 0).all()
    changed = target.copy()
    changed[100:] += 7.0  # chunk edges are at 20, 40, ..., 200
    second = mimic.refitted(features, changed)
    assert (first[:100] == second[:100]).all()
    assert (first[100:120] == second[100:120]).all(), "fitted on the first 100 stays"
    assert (first[120:] != second[120:]).any()


def synthetic(folder: Path, n: int = 400, race: str = "ethnicity") -> Path:
    rng = np.random.default_rng(8)
    persons = rng.integers(1, 150, n)
    words = {
        race: rng.choice(["WHITE", "ASIAN", "BLACK/AFRICAN AMERICAN", "HISPANIC/LATINO"], n),
        "marital_status": rng.choice(["SINGLE", "MARRIED", "WIDOWED", "DIVORCED"], n),
    }
    stays = []
    for i in range(n):
        day = str(np.datetime64("2150-01-01") + int(rng.integers(0, 3000)))
        row = admission(int(persons[i]), 1000 + i, day, int(rng.integers(0, 20)))
        row.pop("ethnicity")
        stays.append({**row, **{name: str(values[i]) for name, values in words.items()}})

    def codes(size: int) -> list[dict[str, Any]]:
        return [
            code(int(persons[i]), 1000 + i, f"{int(c):03}1", 9, k)
            for i in range(n)
            for k, c in enumerate(rng.integers(0, size, 3))
        ]

    return written(
        folder,
        admissions=stays,
        patients=[patient(i) for i in range(1, 150)],
        diagnoses_icd=codes(80),
        procedures_icd=codes(60),
    )


def test_the_whole_pipeline_gives_the_last_stays_by_date(tmp_path: Path) -> None:
    data = mimic.load(synthetic(tmp_path), last=200)
    assert all(len(column) == 200 for column in data)
    assert (np.diff(data.admitted).astype(int) >= 0).all()
    assert "HISPANIC/LATINO" not in set(data.ethnicity)  # the authors' spelling finds none
    assert len(set(data.ethnicity)) == 3
    assert np.isfinite(data.prediction).all()
    again = mimic.load(tmp_path, last=200)
    assert (again.prediction == data.prediction).all()


def test_newer_releases_call_the_column_race(tmp_path: Path) -> None:
    (tmp_path / "hosp").mkdir()
    synthetic(tmp_path / "hosp", race="race")
    assert len(mimic.load(tmp_path, last=50).days) == 50


def test_bad_folders_and_files_are_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADEQ_DATA", raising=False)
    with pytest.raises(BadInput, match="name the folder with its four files"):
        mimic.load()
    with pytest.raises(BadInput, match=r"admissions\.csv is not in .*physionet\.org"):
        mimic.load(tmp_path)
    small(tmp_path)
    with pytest.raises(BadInput, match="only 3 stays pass"):
        mimic.load(tmp_path)
    (tmp_path / "patients.csv.gz").unlink()
    with pytest.raises(BadInput, match=r"patients\.csv is not in"):
        mimic.load(tmp_path)
    (tmp_path / "patients.csv").write_text("subject_id,gender\n1,F\n")
    with pytest.raises(BadInput, match="has no column 'anchor_age'"):
        mimic.load(tmp_path)
    (tmp_path / "patients.csv").write_text("")
    with pytest.raises(BadInput, match="cannot be read as CSV"):
        mimic.load(tmp_path)
