"""Many series: the worst, the widest and the table of all are true of what was written."""

import csv
import re

import numpy as np
import pytest

import gradeq as gq
from cli.calling import here, ok, refused, write
from gradeq.cli.outcome import GroupSums
from relative import relative

SKUS, DAYS = 40, 45


@pytest.fixture(scope="module")
def demand(tmp_path_factory):
    """Series of very different size, one of which has three labels only."""
    rng = np.random.default_rng(9)
    rate = np.exp(rng.normal(0.5, 1.0, SKUS))
    lines = ["day,sku,low,high,sold"]
    for day in range(DAYS):
        for sku in range(SKUS):
            f = rate[sku] * rng.uniform(0.6, 1.2)
            sold = rng.poisson(rate[sku]) if sku or day < 3 else ""
            name = f"0{sku}" if sku % 2 else f"=shop {sku}"
            lines.append(f"{day},{name},{f - 1.0:.3f},{f + 1.0:.3f},{sold}")
    path = tmp_path_factory.mktemp("series") / "demand.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path):
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path).to_pydict()
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def floats(column):
    return np.array([np.nan if x in ("", None) else float(x) for x in column])


KINDS = {
    "debias": (["debias", "--prediction", "low"], lambda: gq.Debiaser(support=(0, None)), False),
    "quantile": (
        ["quantile", "--prediction", "low", "--level", 0.3],
        lambda: gq.QuantileTracker(0.3, support=(0, None)),
        False,
    ),
    "pooled": (
        ["quantile", "--prediction", "low", "--level", 0.3, "--pool"],
        lambda: gq.QuantileTracker(0.3, support=(0, None)),
        True,
    ),
    "several": (
        ["quantile", "--prediction", "low", "--level", 0.2, "--level", 0.9],
        lambda: gq.MultiQuantileTracker([0.2, 0.9], support=(0, None)),
        False,
    ),
    "interval": (
        ["quantile", "--prediction", "low", "--prediction", "high", "--interval", 0.8],
        lambda: gq.IntervalTracker(0.8, support=(0, None)),
        False,
    ),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_of_all_series_is_that_of_the_library(demand, tmp_path, kind, suffix):
    arguments, make, pool = KINDS[kind]
    out = tmp_path / f"keys{suffix}"
    command, *rest = arguments
    ok(here(command, demand, *rest, "--label", "sold", "--key", "sku", "--min", 0, "--keys-out", out))
    table, cells = read(out), read(demand)
    low, high, y = (floats(cells[name]) for name in ("low", "high", "sold"))
    base = np.stack([low, high], axis=1) if kind == "interval" else low
    layer = gq.Keyed(make(), pool=pool)
    layer.run(base, y, key=cells["sku"])
    columns = layer.table().columns()
    assert table["key"] == columns["key"] and len(table["key"]) == SKUS
    for name, values in columns.items():
        if name != "key":
            assert np.allclose(floats(table[name]), values, rtol=1e-12, atol=1e-12, equal_nan=True)
    frame = layer.table().to_frame()
    assert list(frame.columns) == list(columns) and len(frame) == SKUS


def test_worst_and_widest_are_what_the_rows_say(demand, tmp_path):
    out, keys = tmp_path / "out.csv", tmp_path / "keys.csv"
    command, *rest = KINDS["interval"][0]
    given = [command, demand, *rest, "--label", "sold", "--key", "sku", "-o", out, "--keys-out", keys]
    said = ok(here(*given, "--json")).json["series"]
    rows = read(out)
    lower, upper, y = (floats(rows[name]) for name in ("lower", "upper", "sold"))
    names, known = np.array(rows["sku"]), ~np.isnan(y)
    covered = (lower < y) & (y <= upper)
    off, width = {}, {}
    for name in set(rows["sku"]):
        mine = known & (names == name)
        off[name] = abs(covered[mine].mean() - 0.8) if mine.sum() >= 30 else -1.0
        width[name] = (upper - lower)[mine].mean() if mine.sum() >= 30 else -1.0
    assert (said["count"], said["judged"]) == (SKUS, SKUS - 1)
    by_size = sorted(off.values(), reverse=True)
    found = [abs(one["coverage"]["after"] - 0.8) for one in said["worst"]]
    assert found == pytest.approx(by_size[:10], abs=1e-9)
    assert [one["key"] for one in said["widest"]] == sorted(width, key=width.get, reverse=True)[:10]
    assert said["off"]["mean"] == pytest.approx(np.mean(by_size[:-1]), abs=1e-9)
    table = read(keys)
    known = {name: float(x) for name, x in zip(table["key"], table["width_after"], strict=True) if x}
    assert all(known[name] == pytest.approx(width[name]) for name in width if width[name] > 0.0)
    page = ok(here(*given)).out
    assert "worst series" in page and "widest series" in page and said["worst"][0]["key"] in page
    assert f"Series: {SKUS} of sku, {SKUS - 1} with 30 labels or more." in page


def test_of_several_levels_the_one_that_is_farthest_off_is_told(demand, tmp_path):
    out = tmp_path / "out.csv"
    command, *rest = KINDS["several"][0]
    given = [command, demand, *rest, "--label", "sold", "--key", "sku", "-o", out]
    worst = ok(here(*given, "--report", tmp_path / "page.html", "--json")).json["series"]["worst"]
    cells = read(out)
    y, names = floats(cells["sold"]), np.array(cells["sku"])
    for one in worst:
        mine = (names == one["key"]) & ~np.isnan(y)
        off = {tau: np.mean(y[mine] <= floats(cells[f"adjusted_{tau}"])[mine]) - tau for tau in (0.2, 0.9)}
        assert one["level"] == max(off, key=lambda tau: abs(off[tau]))
        assert one["coverage"]["after"] - one["level"] == pytest.approx(off[one["level"]], abs=1e-9)
    assert f"{worst[0]['key']} at {worst[0]['level']}" in (tmp_path / "page.html").read_text()


def test_the_report_has_the_section_with_paths(demand, tmp_path):
    page = tmp_path / "page.html"
    command, *rest = KINDS["interval"][0]
    ok(here(command, demand, *rest, "--label", "sold", "--key", "sku", "--report", page, "--quiet"))
    text = page.read_text()
    section = text[text.index("<h2>Series</h2>") :]
    section = section[: section.index("</section>")]
    assert "The ten farthest off" in section and "The widest" in section
    body = section[section.index('id="series"') :]
    assert body.count('scope="row"') == 11 and body.count('class="spark"') == 11
    alone = demand.with_name("one.csv")
    alone.write_text("".join(demand.read_text().splitlines(keepends=True)[:2]))
    ok(here(command, alone, *rest, "--label", "sold", "--key", "sku", "--report", page, "--quiet"))
    assert "<h2>Series</h2>" not in page.read_text()


def test_weights_count_in_the_table_and_in_the_charts(demand, tmp_path):
    heavy = tmp_path / "heavy.csv"
    rows = demand.read_text().splitlines()
    heavy.write_text("\n".join([f"{rows[0]},w", *(f"{row},{i % 3}" for i, row in enumerate(rows[1:]))]))
    out, keys = tmp_path / "out.csv", tmp_path / "keys.csv"
    command, *rest = KINDS["interval"][0]
    given = [command, heavy, *rest, "--label", "sold", "--key", "sku", "--weight", "w", "-o", out]
    ok(here(*given, "--keys-out", keys, "--report", tmp_path / "page.html"))
    table, cells = read(keys), read(out)
    mine = np.array(cells["sku"]) == table["key"][5]
    lower, upper, y, w = (floats(cells[name])[mine] for name in ("lower", "upper", "sold", "w"))
    w = relative(w.tolist())
    covered = np.average((lower < y) & (y <= upper), weights=w)
    assert float(table["coverage_after"][5]) == pytest.approx(covered, abs=1e-9)
    assert float(table["width_after"][5]) == pytest.approx(np.average(upper - lower, weights=w))


def test_series_with_groups_are_listed_by_key_and_group(demand, tmp_path):
    keys = tmp_path / "keys.csv"
    given = ["--prediction", "low", "--label", "sold", "--key", "sku", "--by", "day"]
    done = ok(here("debias", demand, *given, "--keys-out", keys, "--report", tmp_path / "p.html"))
    assert "worst series" in done.out
    assert read(keys)["key"][0] == "=shop 0, day=0"


@pytest.mark.parametrize(
    "given, said",
    [
        (["--keys-out", "keys.csv"], "--keys-out writes one row for each series of --key"),
        (["--key", "sku", "--keys-out", "keys.xlsx"], "must end in .csv, .csv.gz or .parquet"),
        (["--key", "sku", "--keys-out", "k.csv", "-o", "k.csv"], "is used for two outputs"),
        (["--key", "sku", "--keys-out", "no/such/keys.csv"], "there is no folder"),
        (["--key", "none", "--keys-out", "keys.csv"], "none"),
    ],
)
def test_bad_input_of_keys_out_is_one_line_and_leaves_nothing(demand, tmp_path, monkeypatch, given, said):
    monkeypatch.chdir(tmp_path)
    done = here("debias", demand, "--prediction", "low", "--label", "sold", *given)
    assert said in refused(done)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "given, said",
    [
        ([], "give --key as well"),
        (["--key", "sku", "--eta", 0.1], "leave out --eta"),
        (["--key", "sku", "--by", "day"], "leave out --by"),
        (["--key", "sku", "--decay", 0.5], "leave out --decay"),
        (["--key", "sku", "--link", "linear"], "leave out --link linear"),
    ],
)
def test_what_does_not_go_with_pool_is_refused(demand, given, said):
    rest = ["--prediction", "low", "--label", "sold", "--level", 0.9, "--pool"]
    assert said in refused(here("quantile", demand, *rest, *given))


def test_sums_of_many_groups_do_not_depend_on_how_few_a_piece_has():
    rng = np.random.default_rng(1)
    codes, values = rng.integers(0, 1000, 300), rng.normal(size=300)
    whole, pieces = GroupSums(["x"]), GroupSums(["x"])
    whole.add(codes, {"x": values}, 1000)
    for cut in np.array_split(np.arange(300), 60):
        pieces.add(codes[cut], {"x": values[cut]}, 1000)
    assert np.array_equal(whole.rows, pieces.rows)
    assert np.allclose(whole.totals("x"), pieces.totals("x"), atol=1e-12)
    assert np.allclose(whole.totals("x"), np.bincount(codes, values, 1000), atol=1e-12)


def test_short_series_that_are_far_off_are_shown_the_way_to_pool(demand):
    given = ["quantile", demand, "--prediction", "low", "--label", "sold", "--interval", 0.8]
    assert "Try --pool" in ok(here(*given, "--key", "sku")).out
    for more in (["--key", "sku", "--pool"], ["--key", "sku", "--eta", 0.5], []):
        assert "--pool" not in ok(here(*given, *more)).out


def test_with_link_exp_series_are_told_in_relative_errors_by_name(demand, tmp_path):
    out, keys, page = (tmp_path / name for name in ("out.csv", "keys.csv", "page.html"))
    given = ["debias", demand, "--prediction", "high", "--label", "sold", "--key", "sku",
             "--link", "exp", "-o", out, "--keys-out", keys, "--report", page]  # fmt: skip
    said = ok(here(*given, "--json")).json["series"]
    rows, table = read(out), read(keys)
    f, served, y = (floats(rows[name]) for name in ("high", "adjusted", "sold"))
    names, known = np.array(rows["sku"]), ~np.isnan(y)
    assert not {"bias_after", "loss_after"} & set(table)
    for place, name in enumerate(table["key"]):
        mine = known & (names == name)
        for when, values in (("before", f), ("after", served)):
            error = ((values - y) / f)[mine]
            assert float(table[f"relative_bias_{when}"][place]) == pytest.approx(error.mean())
            loss = float(table[f"relative_loss_{when}"][place])
            assert loss == pytest.approx(np.mean(error**2))
    assert all({"relative_bias", "relative_loss"} < set(one) for one in said["worst"])
    text = ok(here(*given)).out
    assert "relative bias before" in text and "Their relative bias is" in text
    shown = page.read_text()
    assert "Their relative bias is" in shown and "Relative bias as served" in shown


@pytest.mark.parametrize(("more", "same"), [([], True), (["--delay", 3], False)])
def test_widths_say_so_where_they_are_of_other_rows(demand, tmp_path, more, same):
    command, *rest = KINDS["interval"][0]
    given = [command, demand, *rest, "--label", "sold", "--key", "sku"]
    told = "(width: labelled rows of this run; the rest: labels learned from so far)"
    assert (told in ok(here(*given, *more)).out) != same
    state = tmp_path / "state.json"
    ok(here(*given, "--state", state))
    assert told in ok(here(*given, "--state", state, "--again")).out


def test_nothing_is_called_widest_where_no_width_is_known(demand, tmp_path):
    command, *rest = KINDS["interval"][0]
    state, part = tmp_path / "state.json", tmp_path / "part.csv"
    lines = demand.read_text().splitlines()
    lines = [f"id,{lines[0]}", *(f"r{k},{line}" for k, line in enumerate(lines[1:]))]
    half = 1 + SKUS * (DAYS - 1)
    given = [command, part, *rest, "--key", "sku", "--id", "id", "--state", state]
    part.write_text("\n".join(lines[:half]) + "\n")
    assert "widest series" in ok(here(*given, "--label", "sold")).out
    empty = [line.rpartition(",")[0] + "," for line in lines[half:]]
    part.write_text("\n".join([lines[0], *empty]) + "\n")
    said = ok(here(*given, "--label", "sold")).out
    assert "worst series" in said and "widest series" not in said and "largest loss" in said


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_crossing_forecasts_are_counted_and_change_nothing(demand, tmp_path, share):
    """Rows whose ends are the wrong way round are served as if they were in order, and told of."""
    rng = np.random.default_rng(3)
    head, *lines = demand.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    turned = rng.random(len(cells)) < share
    crossed = sum(bool(t) and c[2] != c[3] for t, c in zip(turned, cells, strict=True))
    other = [[*c[:2], c[3], c[2], c[4]] if t else c for t, c in zip(turned, cells, strict=True)]
    path, outs = tmp_path / "other.csv", [tmp_path / "a.csv", tmp_path / "b.csv"]
    path.write_text("\n".join([head, *map(",".join, other)]) + "\n")
    command, *rest = KINDS["interval"][0]
    said = [
        ok(here(command, file, *rest, "--label", "sold", "-o", out)).out
        for file, out in zip((demand, path), outs, strict=True)
    ]
    assert all(read(outs[0])[end] == read(outs[1])[end] for end in ("lower", "upper"))
    assert "crossing forecasts" not in said[0]
    note = f"{crossed:,} of {len(cells):,} rows had crossing forecasts; they were sorted."
    assert (note in said[1]) == bool(crossed)
    assert ("wrong order" in said[1]) == (share > 0.5)


@pytest.mark.parametrize("labels", [21, 40])
def test_terminal_and_page_name_ten_series_alike_and_say_when_young_ones_are_compared(labels, tmp_path):
    rows = [
        {"s": f"s{k}", "f": 5.0, "y": 5.0 + (17 * k + 5 * i) % 13 - 6.0} for i in range(labels) for k in range(24)
    ]
    page = tmp_path / "page.html"
    call = ("--prediction", "f", "--label", "y", "--level", "0.8", "--key", "s", "--eta", "0.3")
    state = tmp_path / "state.json"
    file = write(tmp_path / "rows.csv", rows)
    text = ok(here("quantile", file, *call, "--report", page, "--state", state)).out
    alone = tmp_path / "alone.html"
    gq.load(state).report(alone)
    assert "Keyed(QuantileTracker(level=0.8" in alone.read_text()
    for told in (path.read_text().replace("\u00a0", " ") for path in (page, alone)):
        assert "24 series of <code>s</code>" in told
        losses = told.split("The largest losses")[2].split("</table>")[0]
        assert losses.count("<tr>") == 11 and "The ten farthest off" in told
        assert ("those with fewer are compared too" in told) == (labels < 30)
        spread = re.search(r"off target by ([\d.]+) points on average, by ([\d.]+) or more", told)
        assert spread and spread[0] in text
    assert ("those with fewer are compared too" in text) == (labels < 30)


@pytest.mark.parametrize("option", ["--key", "--by"])
def test_a_bound_on_coverage_that_says_nothing_is_called_vacuous(demand, tmp_path, option):
    """Of an interval the bounds of both ends are added: beyond the trivial error no number stands in any table."""
    given = ["--prediction", "low", "--prediction", "high", "--interval", 0.8, "--label", "sold"]
    page = tmp_path / "page.html"
    for eta in (0.05, 0.1, 0.3, 1.0):
        plain = [*given, option, "sku", "--eta", eta]
        done = ok(here("quantile", demand, *plain, "--json", "--report", page))
        for own in done.json["groups"]:
            assert (own["vacuous"] is None) == (own["bound"] is None), own
            if own["bound"] is not None:
                raw = max(abs(own["coverage"]["before"] - 0.8), 0.05)
                assert own["vacuous"] == (own["bound"] >= raw), own
        bounds = re.findall(r'<td class="limit"[^>]*>(?:<span class="loose">)?([\d.,]+)', page.read_text())
        assert all(float(bound.replace(",", "")) <= 80.0 for bound in bounds)
