"""Odd CSV and Parquet files and odd options: python -m fuzz.odd_files [--runs N] [--seed S].

The law: exit code 0, 2 or 3; a refusal is one line on stderr, called no fault of gradeq's own, and leaves state and
outputs as they were; a run that ends well says nothing on stderr and its outputs are whole.
"""

import argparse
import decimal
import gzip
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cli.calling import here
from fuzz.telling import Broken
from gradeq.files import open_table

NUMBERS = ["0", "1", "0.25", "-3.5", "1e3", " 7 ", "007"]
CELLS = [
    "", "NA", "nan", "inf", "-inf", "1e308", "-1e308", "5e-324", "1e999", "9007199254740993",
    "18446744073709551615", "99999999999999999999999", "0x10", "1_000", "١", "true", "True", "a", "é",
    "\N{GRINNING FACE}",
    "=1+1", "(missing)", "2024-01-31", "2024-01-31T17:05:00Z", "2024-01-31 17:05:00.123456789", "0001-01-01",
    "9999-12-31", "2262-04-12", "1e18", '"', '""', "a,b", "two\nlines", "\r", "\t", "\0", "x" * 5000, "\u2028", "-0",
    "home", "tie",
]  # fmt: skip
BYTES = [b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"\x80", b'"', b"\n\n", b"\r", b",", b"\x1f\x8b", b"PAR1"]
ZONES = [None, "UTC", "Europe/Paris", "+07:30", "Nowhere/X"]
ROLES = ["p", "y", "g", "h", "t", "d", "w", "id", "a", "b", "s"]


def plain(rng, role, i):
    """A cell that is as it should be."""
    made = {
        "p": lambda: rng.random(),
        "y": lambda: float(rng.random() < 0.5),
        "g": lambda: rng.choice("abc"),
        "h": lambda: rng.randrange(4),
        "t": lambda: i,
        "d": lambda: i + rng.randrange(5),
        "w": lambda: rng.choice([0.0, 1.0, 2.5]),
        "id": lambda: f"r{i}",
        "a": lambda: rng.choice("uvw"),
        "b": lambda: rng.choice("xyz"),
        "s": lambda: rng.choice([0.0, 0.5, 1.0]),
    }
    return made[role]()


def odd_csv(rng, rows):
    """The bytes of a CSV file, some cells or bytes of it odd."""
    import csv
    import io

    names = list(ROLES)
    table = [[str(plain(rng, role, i)) for role in ROLES] for i in range(rows)]
    if rng.random() < 0.5:
        column = rng.randrange(len(ROLES))
        for row in table:
            if rng.random() < rng.choice([0.05, 1.0]):
                row[column] = rng.choice(CELLS + NUMBERS)
    if table and rng.random() < 0.1:
        row = rng.choice(table)
        rng.choice([lambda: row.pop(), lambda: row.append("more"), row.clear])()
    if rng.random() < 0.08:
        names[rng.randrange(len(names))] = rng.choice(
            ["", "p", " y", "a,b", '"', "é", "\N{GRINNING FACE}", "x\ny", "=1"]
        )
    out = io.StringIO()
    csv.writer(out, lineterminator=rng.choice(["\n", "\r\n"])).writerows([names, *table])
    data = out.getvalue().encode("utf-8", "surrogatepass")
    if rng.random() < 0.15:
        at = rng.choice([0, rng.randrange(len(data) + 1)])
        data = data[:at] + rng.choice(BYTES) + data[at:]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data


def odd_gzip(rng, data):
    """The same gzipped, now and then damaged."""
    packed = bytearray(gzip.compress(data))
    if rng.random() < 0.3:
        del packed[rng.randrange(len(packed)) :]
    elif rng.random() < 0.3:
        packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
    return bytes(packed)


def odd_column(rng, rows):
    """A column of any type, with absent and extreme values."""
    moments = [0, 1, -1, 10**9, 10**18, 2**63 - 1, -(2**62)]
    days = [0, 1, 19000, -719162, 2932896, 2**31 - 1, -(2**31)]
    digits = [decimal.Decimal(text) for text in ("0", "1.5", "-99999999", "0.01")]
    kinds = [
        lambda: (rng.choice([pa.int8(), pa.uint8()]), [0, 1, 127]),
        lambda: (pa.int64(), [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)]),
        lambda: (pa.uint64(), [0, 1, 2**64 - 1]),
        lambda: (rng.choice([pa.float16(), pa.float32()]), [0.0, 1.0, 0.1, float("nan")]),
        lambda: (pa.float64(), [0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf")]),
        lambda: (pa.bool_(), [True, False]),
        lambda: (rng.choice([pa.string(), pa.large_string(), pa.string_view()]), CELLS + NUMBERS),
        lambda: (rng.choice([pa.string(), pa.large_string(), pa.string_view()]), NUMBERS),
        lambda: (rng.choice([pa.binary(), pa.large_binary(), pa.binary_view()]), [b"", b"a", b"\xff"]),
        lambda: (pa.binary(2), [b"ab", b"\xff\0"]),
        lambda: (pa.decimal128(20, 2), digits),
        lambda: (pa.decimal256(70, 5), [*digits, decimal.Decimal(10**60)]),
        lambda: (pa.timestamp(rng.choice(["s", "ms", "us", "ns"]), rng.choice(ZONES)), moments),
        lambda: (pa.duration(rng.choice(["s", "ms", "us", "ns"])), moments),
        lambda: (pa.date32(), days),
        lambda: (pa.date64(), [86400000 * day for day in days[:5]]),
        lambda: (pa.time32("s"), [0, 1, 86399]),
        lambda: (pa.time64(rng.choice(["us", "ns"])), [0, 1, 999]),
        lambda: (pa.null(), [None]),
        lambda: (pa.list_(pa.int64()), [[], [1]]),
        lambda: (pa.struct([("x", pa.int64())]), [{"x": 1}, None]),
    ]  # fmt: skip
    kind, values = rng.choice(kinds)()
    few = rng.sample(values, rng.randrange(1, len(values) + 1))
    absent = rng.choice([0.0, 0.0, 0.2, 1.0])
    column = pa.array([None if rng.random() < absent else rng.choice(few) for _ in range(rows)], kind)
    return column.dictionary_encode() if rng.random() < 0.2 and not pa.types.is_nested(kind) else column


def odd_parquet(rng, rows, path):
    """A Parquet file, one or two columns of which are odd; False where there can be none such."""
    columns = {role: pa.array([plain(rng, role, i) for i in range(rows)]) for role in ROLES}
    for role in rng.sample(ROLES, rng.choice([1, 1, 2])):
        columns[role] = odd_column(rng, rows)
    if rng.random() < 0.1:
        columns[rng.choice(["", "é", "x\ny", "adjusted"])] = columns["p"]
    try:
        pq.write_table(pa.table(columns), path, row_group_size=rng.choice([None, 1, 7]))
    except (pa.ArrowException, ValueError):
        return False
    if rng.random() < 0.05:
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))
    return True


def odd_options(rng):
    """A command with options that fit the columns, some of them with odd values."""
    step = lambda: rng.choice(["0.1", "1e-12", "5e-324", "1e308", "auto", "plain", "1.9"])  # noqa: E731
    command = rng.choice(["debias", "debias", "debias", "quantile", "elo", "label"])
    if command == "label":
        return ["label", "--id", "id", "--label", "y", "--state", "known.json",
                *rng.choice([[], ["--rejected", "out.csv"], ["--rejected", "out.parquet", "--correct"]])]  # fmt: skip
    given = [command]
    if command == "elo":
        given += ["--a", "a", "--b", "b", "--score", "s"]
        given += rng.choice([[], ["--k", rng.choice(["32", "1e308", "5e-324"])], ["--eta", step()]])
        given += rng.choice([[], ["--predictions", "each.csv"], ["--predictions", "each.parquet"]])
    else:
        given += ["--prediction", "p", "--label", "y"]
        given += rng.choice([[], ["--by", "g"], ["--by", "g", "--by", "h"], ["--key", "g"], ["--key", "h"]])
        given += rng.choice([[], [], ["--eta", step()]])
        given += ["--level", rng.choice(["0.9", "1e-300", "0.5"])] if command == "quantile" else []
        given += rng.choice([[], [], [], ["--min", "-1e308", "--max", "1e308"]])
    given += rng.choice([[], ["--time", "t"], ["--time", "t", "--label-time", "d"], ["--delay", "3"]])
    given += rng.choice([[], [], ["--weight", "w"]])
    given += rng.choice([[], [], ["--in-flight", rng.choice(["1e30", str(10**30), "5", "9" * 400])]])
    given += rng.choice([[], [], ["--id", "id"]])
    given += rng.choice([[], ["-o", "out.csv"], ["-o", "out.csv.gz"], ["-o", "out.parquet"]])
    given += rng.choice([[], [], ["--report", "page.html"]])
    given += rng.choice([[], ["--state", "new.json"], ["--state", "known.json"]])
    return given + rng.choice([[], ["--json"], ["--quiet"]])


def trial(seed, folder):
    """One call: its exit code; raises Broken where the law does not hold."""
    rng = random.Random(seed)
    rows = rng.choice([0, 1, 2, 7, 40, 120])
    for path in folder.iterdir():
        if path.name not in ("known.json", "start.csv"):
            path.unlink()
    form = rng.choice(["csv", "csv", "csv.gz", "parquet", "parquet"])
    path = folder / f"in.{form}"
    if form == "parquet":
        if not odd_parquet(rng, rows, path):
            return None
    else:
        data = odd_csv(rng, rows)
        path.write_bytes(odd_gzip(rng, data) if form == "csv.gz" else data)
    known, options = (folder / "known.json").read_bytes(), odd_options(rng)
    call = [options[0], path.name, *options[1:]]
    done = here(*call)

    def law(held, what):
        if not held:
            raise Broken(f"{what}: {' '.join(call)}: {done.code} {done.err[:400]!r}")

    left = sorted(p.name for p in folder.iterdir() if p.name not in ("known.json", "start.csv", path.name))
    unchanged = (folder / "known.json").read_bytes() == known
    law(done.code in (0, 2, 3), "an exit code of its own")
    law("internal error" not in done.err and "Traceback" not in done.err, "a fault of gradeq's own")
    if done.code:
        law(done.err.startswith("gradeq: error: ") and done.err.count("\n") == 1, "not one line")
        law(unchanged and not left, f"refused, and yet written {left}")
    else:
        law(done.err == "", "more than the output")
        whole(call, folder, rows, law)
        if not unchanged:
            law(here("audit", "known.json").code == 0, "a state that fails its audit")
            (folder / "known.json").write_bytes(known)
        if "new.json" in call:
            law(here("audit", "new.json").code == 0, "a state that fails its audit")
    return done.code


def whole(call, folder, rows, law):
    """Outputs of a run that ended well can be read, and those with a row for every row have all."""
    for name in ("out.csv", "out.csv.gz", "out.parquet", "each.csv", "each.parquet"):
        if name in call:
            law((folder / name).exists(), f"no {name}")
            counted = call[0] in ("debias", "quantile") or name.startswith("each")
            if counted:
                law(sum(chunk.batch.num_rows for chunk in open_table([folder / name]).batches()) > 0, name)


def prepare(folder):
    """A state that some rows of every file belong to."""
    rng = random.Random(0)
    lines = ["p,y,id", *(f"{rng.random()},{'' if i % 3 else 1},r{i}" for i in range(20))]
    (folder / "start.csv").write_text("\n".join(lines) + "\n")
    call = ("debias", "start.csv", "--prediction", "p", "--label", "y", "--id", "id", "--quiet")
    assert here(*call, "--state", "known.json").code == 0


def tried(seeds):
    """Try some; the count of each exit code, and what was broken."""
    codes, broken = Counter(), []
    with tempfile.TemporaryDirectory() as name, chdir(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as the command does, so that its line stands alone
        folder = Path(name)
        prepare(folder)
        for seed in seeds:
            try:
                codes[trial(seed, folder)] += 1
            except Broken as error:
                broken.append(f"seed {seed}: {error}")
    return codes, broken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began = time.monotonic()
    codes, broken = tried(range(given.seed, given.seed + given.runs))
    for line in broken:
        print(line)
    ended = ", ".join(f"{count} exit {code}" for code, count in sorted(codes.items(), key=str))
    print(f"{given.runs} runs: {ended}, {len(broken)} broken, {time.monotonic() - began:.0f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
