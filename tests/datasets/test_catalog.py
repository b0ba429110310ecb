"""The data sets at hand: right shape and numbers; a bad folder is one clear line."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from gradeq.datasets import CATALOG, arena, climate, compas, covid, elec2, flights, football, french, helpsteer
from gradeq.errors import BadInput, MissingExtra


def test_every_data_set_says_where_it_is_from_and_under_which_licence() -> None:
    for name, dataset in CATALOG.items():
        assert dataset.name == name
        assert dataset.source.startswith("https://")
        assert dataset.licence and dataset.about and dataset.columns and dataset.files
        for file in dataset.files:
            assert not file.url or file.url.startswith("https://")
            assert all(len(digest) == 64 for digest in file.sha256)
        assert "\n" not in str(dataset)


def test_compas_has_the_paper_s_rows_and_bias(data_dir: Path) -> None:
    whole = compas.load(data_dir)
    assert len(whole.row) == 7214
    assert not {"age", "age_cat", "priors_count"} & set(whole._fields)
    paper = compas.load_paper(data_dir)
    counts = dict(zip(*np.unique(paper.race, return_counts=True), strict=True))
    assert counts == {"African-American": 3696, "Caucasian": 2454, "Hispanic": 637}
    assert np.mean(paper.violent_score - paper.is_recid) == pytest.approx(-0.11287756, abs=1e-8)
    assert (np.diff(paper.date).astype(int) >= 0).all()
    assert len(np.unique(paper.date)) == 690


def test_compas_can_be_had_in_the_authors_order(data_dir: Path, reference_dir: Path) -> None:
    order = reference_dir / "compas_row_order.txt"
    paper = compas.load_paper(data_dir, order)
    assert paper.row[:5].tolist() == [536, 1114, 834, 6127, 6052]
    stable = compas.load_paper(data_dir)
    assert sorted(paper.row) == sorted(stable.row)
    assert paper.date.tolist() == stable.date.tolist()
    by_row = dict(zip(stable.row.tolist(), stable.is_recid.tolist(), strict=True))
    assert [by_row[row] for row in paper.row.tolist()] == paper.is_recid.tolist()


def test_a_wrong_order_of_compas_is_refused(data_dir: Path, tmp_path: Path) -> None:
    order = tmp_path / "order.txt"
    for text, message in [("1\n99999\n", "does not have"), ("x\n", "cannot be read")]:
        order.write_text(text)
        with pytest.raises(BadInput, match=message):
            compas.load_paper(data_dir, order)


def test_helpsteer_has_the_paper_s_means(data_dir: Path) -> None:
    data = helpsteer.load(data_dir)
    assert len(data.reward) == 1038
    assert data.helpfulness.mean() == pytest.approx(2.893063583815029, abs=1e-12)
    assert data.reward.mean() == pytest.approx(2.4432976822981693, abs=1e-12)


def test_arena_has_its_votes(data_dir: Path) -> None:
    votes = arena.load(data_dir)
    assert len(votes.a) == 135_634
    assert len(set(votes.a) | set(votes.b)) == 53
    assert set(votes.winner) == {"model_a", "model_b", "tie", "both_bad"}
    assert (votes.a == votes.b).sum() == 10


def test_football_is_by_date_and_its_sample_is_part_of_it(data_dir: Path) -> None:
    matches = football.load(data_dir)
    assert len(matches.date) >= 49_520
    assert (np.diff(matches.date).astype(int) >= 0).all()
    assert set(matches.winner) == {"home", "away", "draw"}
    columns = (matches.date.astype(str), matches.home, matches.away, matches.winner)
    known = set(zip(*columns, strict=True))
    some = football.sample()
    assert set(zip(some.date.astype(str), some.home, some.away, some.winner, strict=True)) <= known


def test_the_football_sample_is_carried_within_the_package() -> None:
    some = football.sample()
    assert len(some.date) == 1500
    assert len(set(some.home) | set(some.away)) == 40
    assert (np.diff(some.date).astype(int) >= 0).all()
    package = Path(football.__file__).parent
    assert (package / "football_sample.csv.gz").stat().st_size < 40_000
    assert "CC0" in (package / "football_sample.LICENSE.txt").read_text(encoding="utf-8")


def test_the_flights_sample_is_every_25th_flight_and_carried_within_the_package() -> None:
    some = flights.sample()
    assert len(some.delay) == 9978
    assert (np.diff(some.served).astype(int) >= 0).all() and (some.landed > some.served).all()
    package = Path(flights.__file__).parent
    assert (package / "flights_sample.csv.gz").stat().st_size < 100_000
    assert "CC0" in (package / "flights_sample.LICENSE.txt").read_text(encoding="utf-8")
    try:
        whole = flights.load()
    except MissingExtra as error:
        pytest.skip(str(error))
    for name, column in whole._asdict().items():
        mine = getattr(some, name)
        if name == "prediction":
            assert np.abs(mine - column[::25]).max() < 0.0501
        else:
            assert (mine == column[::25]).all(), name


def test_the_series_have_their_rows_and_ranges(data_dir: Path) -> None:
    power = elec2.load(data_dir)
    assert len(power.nswdemand) == 45_312
    assert set(power.day) == set(range(1, 8))
    assert 0 <= power.nswprice.min() <= power.nswprice.max() <= 1
    delhi = climate.load(data_dir)
    assert len(delhi.date) == 1575
    assert str(delhi.date[0]) == "2013-01-01"
    prices = french.load(data_dir)
    assert prices.spot.shape == (34_896,)
    assert prices.day_before.shape == prices.week_before.shape == (34_896, 24)
    midnight = prices.hour == 0
    assert (prices.day_before[24][0] == prices.spot[0]) and midnight[0]
    monday_first = (prices.time.astype("datetime64[D]").astype(int) + 3) % 7
    assert (prices.weekday == monday_first).all()


def test_covid_forecasts_never_cross(data_dir: Path) -> None:
    data = covid.load(data_dir)
    assert data.quantiles.shape == (10_876, 23) == (len(data.deaths), len(covid.LEVELS))
    assert (np.diff(data.quantiles, axis=1) >= 0).all()
    weeks = (data.target_date - data.forecast_date).astype(int)
    assert ((weeks - 7 * (data.horizon - 1) >= 0) & (weeks - 7 * (data.horizon - 1) < 7)).all()


def test_flights_are_served_before_they_land() -> None:
    try:
        stream = flights.load()
    except MissingExtra as error:
        pytest.skip(str(error))
    assert len(stream.delay) == 249_435
    assert (np.diff(stream.served).astype(int) >= 0).all()
    assert (stream.landed > stream.served).all()
    assert set(stream.month) == set(range(4, 13))
    assert set(stream.origin) == {"EWR", "JFK", "LGA"}
    # Labels are late: this many predictions wait for theirs at the busiest moment.
    posted = np.searchsorted(np.sort(stream.landed), stream.served, side="right")
    assert (np.arange(1, len(posted) + 1) - posted).max() == 399
    error = stream.prediction - stream.delay
    assert np.isfinite(error).all()
    assert np.sqrt(np.mean(error**2)) < stream.delay.std()
    by_month = [error[stream.month == month].mean() for month in range(4, 13)]
    assert min(by_month) < -8
    assert max(by_month) > 8


def test_a_bad_folder_is_one_clear_line(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^compas: there is no data folder"):
        compas.load(tmp_path / "none")
    with pytest.raises(BadInput, match=r"^compas: compas\.csv\.gz is not in .*; get it from https"):
        compas.load(tmp_path)
    target = tmp_path / "compas.csv.gz"
    text = gzip.decompress((data_dir / "compas.csv.gz").read_bytes())
    target.write_bytes(gzip.compress(text.replace(b"2013-08-14", b"2013-08-15", 1), mtime=0))
    with pytest.raises(BadInput, match=r"^compas: .* has SHA-256 .*, not the known"):
        compas.load(tmp_path)
    target.write_bytes(gzip.compress(text, 1, mtime=0))  # packed otherwise, the same text
    assert len(compas.load(tmp_path).row) == 7214
    target.write_bytes(b"not gzip")
    with pytest.raises(BadInput, match=r"^compas: .* cannot be read"):
        compas.load(tmp_path)


def test_wrong_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "football_internationals.csv.gz"
    path.write_bytes(gzip.compress(b"date,home,away_team,winner,neutral\n", mtime=0))
    with pytest.raises(BadInput, match="has no column 'home_team'; did you mean"):
        football.load(tmp_path)


def test_the_environment_names_a_folder_and_a_given_one_goes_first(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(data_dir / "helpsteer2_rewards.csv", tmp_path)
    monkeypatch.setenv("GRADEQ_DATA", str(tmp_path))
    assert len(helpsteer.load().reward) == 1038
    with pytest.raises(BadInput, match="is not in"):
        helpsteer.load(tmp_path / "..")
