"""Every command with its options on small generated files: numbers of what is printed, --json, tables, states, pages.

A case is a list of calls in a folder of its own; a call is what one would type after ``gradeq``. The command runs as
``python -m gradeq`` does, without a process of its own.
"""

import contextlib
import csv
import gc
import gzip
import io
import json
import os
import re
import runpy
import shlex
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq

import gradeq as gq
from golden.lives import certificate, quiet
from golden.pages import page
from golden.streams import PLAYERS, Chance
from golden.trees import numbers, plain

FAMILY = "commands"


class Left(BaseException):
    """The command left with a code."""

    def __init__(self, code):
        self.code = code


def leave(code):
    raise Left(code)


@contextlib.contextmanager
def undisturbed():
    """What a command sets for its own process is set back."""
    signals = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ]
    handlers = {own: signal.getsignal(own) for own in signals}
    threshold, hook, excepthook = gc.get_threshold(), warnings.showwarning, sys.excepthook
    with mock.patch.object(os, "_exit", leave), warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for own, handler in handlers.items():
                signal.signal(own, handler)
            gc.set_threshold(*threshold)
            gc.unfreeze()
            warnings.showwarning, sys.excepthook = hook, excepthook


def called(words, stdin=""):
    """Exit code, stdout and stderr of ``gradeq`` with these words."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    with (
        undisturbed(), mock.patch.object(sys, "argv", ["gradeq", *words]), mock.patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
    ):  # fmt: skip
        try:
            runpy.run_module("gradeq", run_name="__main__", alter_sys=True)
        except (Left, SystemExit) as left:
            code = left.code
    return code or 0, out.getvalue(), err.getvalue()


# Files


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)


def files():
    """The files that every case finds in its folder."""
    chance = Chance("files")
    scores, prices, games = [], [], []
    for i in range(240):
        p = chance.pick([0.2, 0.4, 0.6, 0.75])
        late = int(25 * chance.random())
        scores.append({
            "id": f"{i:04d}", "score": p, "outcome": "" if chance.random() < 0.1 else int(chance.random() < p + 0.15),
            "region": chance.pick(["north", "south", "=east", ""]), "sex": chance.pick(["f", "m"]),
            "day": i // 2, "known": i // 2 + late, "date": f"2024-{1 + i // 40:02d}-{1 + i % 28:02d}",
            "weight": chance.pick([0, 1, 2.5]), "x": round(chance.normal(), 6), "shop": chance.pick(["u", "v", "w"]),
        })  # fmt: skip
        f = 10.0 + chance.random()
        prices.append({
            "id": f"{i:04d}", "forecast": f, "low": f - 0.5, "high": f + 0.5,
            "price": "" if chance.random() < 0.05 else max(0.0, f + 0.3 + chance.normal()),
            "weekday": "MTWTFSS"[i % 7] + str(i % 7), "day": i, "known": i + late, "shop": chance.pick(["u", "v"]),
            "x": round(chance.normal(), 6), "weight": chance.pick([1, 2]),
        })  # fmt: skip
        a, b = chance.pick(PLAYERS), chance.pick(PLAYERS)
        if a != b:
            ahead = PLAYERS.index(b) - PLAYERS.index(a)
            result = "tie" if chance.random() < 0.1 else "ab"[chance.random() > 0.5 + ahead / 10]
            games.append({
                "id": f"g{i}", "home": a, "away": b, "winner": result, "day": i // 3, "known": i // 3 + late // 3,
                "score": {"a": 1, "b": 0, "tie": 0.5}[result], "ground": chance.pick(["true", "false"]),
                "weight": chance.pick([1, 2]),
            })  # fmt: skip
    write(Path("scores.csv"), scores)
    write(Path("scores1.csv"), scores[:120])
    write(Path("scores2.csv"), scores[120:])
    write(Path("unlabelled.csv"), [{**own, "outcome": ""} for own in scores[:120]])
    labels = [own for own in scores[:130] if own["outcome"] != ""]
    write(Path("labels.csv"), [{"id": own["id"], "outcome": own["outcome"], "known": own["known"]} for own in labels])
    write(Path("changed.csv"), [{"id": own["id"], "outcome": 1 - own["outcome"]} for own in labels[:9]])
    write(Path("prices.csv"), prices)
    write(Path("prices0.csv"), [{**own, "price": ""} for own in prices[:80]])
    write(Path("games.csv"), games)
    write(Path("fixtures.csv"), [{**own, "winner": "", "score": ""} for own in games[:60]])
    semi = [{key: str(value).replace(".", ",") for key, value in own.items()} for own in scores]
    text = ";".join(semi[0]) + "\n" + "".join(";".join(own.values()) + "\n" for own in semi)
    Path("semi.csv").write_text(text.replace("date", "when"), encoding="utf-8")
    with gzip.open("scores.csv.gz", "wb") as file:
        file.write(Path("scores.csv").read_bytes())


# Cases

DEBIAS = "debias scores.csv --prediction score --label outcome"
BINARY = f"{DEBIAS} --outcome binary"
LATE = "--time day --label-time known"
QUANTILE = "quantile prices.csv --prediction forecast --label price"
GAMES = "elo games.csv --a home --b away --winner winner"
ALL = "-o out.csv --report page.html --state state.json"
CASES = {
    "debias": [f"{DEBIAS} {ALL}"],
    "debias eta": [f"{DEBIAS} --eta 0.05 {ALL}"],
    "debias plain by": [f"{DEBIAS} --eta plain --by region --by sex {ALL}"],
    "debias binary": [f"{BINARY} {ALL}"],
    "debias binary by late": [f"{BINARY} --by region {LATE} {ALL}"],
    "debias shift": [f"{BINARY} --link shift {ALL}"],
    "debias exp": [f"{DEBIAS} --link exp {ALL}"],
    "debias feature": [f"{DEBIAS} --feature x --by sex --eta 0.02 {ALL}"],
    "debias key": [f"{DEBIAS} --key shop --keys-out keys.csv {ALL}"],
    "debias key by binary": [f"{BINARY} --key shop --by sex --eta 0.1 --keys-out keys.parquet {ALL}"],
    "debias decay": [f"{DEBIAS} --eta 0.3 --decay 0.5 --by region {ALL}"],
    "debias ridge": [f"{DEBIAS} --eta 0.1 --penalty ridge --strength 0.01 --by region {ALL}"],
    "debias lasso": [f"{BINARY} --link shift --eta 0.1 --penalty lasso --strength 0.01 --by region {ALL}"],
    "debias clip": [f"{BINARY} --clip 0.1 --eta 0.2 {ALL}"],
    "debias limits": [f"{DEBIAS} --min 0 --max 1 --eta 0.5 {ALL}"],
    "debias weight": [f"{DEBIAS} --weight weight --by sex {ALL}"],
    "debias late": [f"{DEBIAS} --eta 0.1 --by sex {LATE} {ALL}"],
    "debias late no cap": [f"{DEBIAS} --eta 0.1 {LATE} --no-cap {ALL}"],
    "debias in-flight ttl": [f"{DEBIAS} --eta 0.1 {LATE} --in-flight 9 --ttl 12 {ALL}"],
    "debias delay": [f"{DEBIAS} --eta 0.1 --delay 5 {ALL}"],
    "debias delay dates": [f"{DEBIAS} --time date --delay 3d {ALL}"],
    "debias maturity": [f"{BINARY} {LATE} --maturity 20 {ALL}"],
    "debias missing-is": [f"{BINARY} {LATE} --maturity 20 --missing-is 0 {ALL}"],
    "debias maturity 0": [f"{BINARY} {LATE} --maturity 0 --eta 0.1 {ALL}"],
    "debias column parquet": [f"{DEBIAS} --column served --eta 0.1 -o out.parquet"],
    "debias gz": [f"{DEBIAS.replace('.csv', '.csv.gz')} --eta 0.1 -o out.csv.gz"],
    "debias several files": ["debias scores1.csv scores2.csv --prediction score --label outcome --by sex -o out.csv"],
    "debias semicolons": ["debias semi.csv --prediction score --label outcome --separator ; --decimal , -o out.csv"],
    "debias missing text": [f"{DEBIAS} --missing 0 --eta 0.1 -o out.csv"],
    "debias stdin": ["debias - --prediction score --label outcome --by sex --json < scores.csv"],
    "debias quiet": [f"{DEBIAS} --quiet -o out.csv"],
    "debias resumed": [
        f"{BINARY.replace('scores.csv', 'scores1.csv')} --by sex {LATE} --state state.json --json",
        f"{BINARY.replace('scores.csv', 'scores2.csv')} --by sex {LATE} {ALL}",
        "audit state.json --json",
    ],
    "debias again": [
        f"{DEBIAS} --eta 0.1 --state state.json",
        f"{DEBIAS} --eta 0.1 --state state.json",
        f"{DEBIAS} --eta 0.1 --state state.json --again --json",
    ],
    "debias other settings": [f"{DEBIAS} --eta 0.1 --state state.json", f"{DEBIAS} --eta 0.2 --state state.json"],
    "debias refused": [
        f"{DEBIAS} --eta 0", f"{DEBIAS} --feature x", "debias scores.csv --prediction nothing --label outcome",
        "debias scores.csv --prediction region --label outcome", f"{BINARY} --link identity", "debias none.csv",
    ],
    "label": [
        "debias unlabelled.csv --prediction score --outcome binary --by sex --id id --state state.json",
        "label labels.csv --state state.json --id id --label outcome --rejected rejected.csv --json",
        "label labels.csv --state state.json --id id --label outcome",
        "label changed.csv --state state.json --id id --label outcome --strict --json",
        "label changed.csv --state state.json --id id --label outcome --correct",
        "audit state.json",
        "label labels.csv --state state.json --id id --label region",
    ],
    "label late": [
        "debias unlabelled.csv --prediction score --eta 0.1 --id id --time day --ttl 9 --state state.json -o out.csv",
        "label labels.csv --state state.json --id id --label outcome --label-time known --rejected rejected.csv",
    ],
    "label quantile": [
        "quantile prices0.csv --prediction forecast --interval 0.8 --eta 0.1 --id id --state state.json -o out.csv",
        "label prices.csv --state state.json --id id --label price --json",
    ],
    "quantile": [f"{QUANTILE} --level 0.9 {ALL}"],
    "quantile eta by": [f"{QUANTILE} --level 0.9 --eta 0.1 --by weekday {ALL}"],
    "quantile plain late": [f"{QUANTILE} --level 0.5 --eta plain {LATE} {ALL}"],
    "quantile linear": [f"{QUANTILE} --level 0.8 --eta 0.3 --link linear {ALL}"],
    "quantile levels": [f"{QUANTILE} --level 0.1 --level 0.5 --level 0.9 {ALL}"],
    "quantile levels two": [
        f"quantile prices.csv --prediction low --prediction high --label price --level 0.1 --level 0.9 --eta 1 {ALL}"
    ],
    "quantile interval": [f"{QUANTILE} --interval 0.8 --by weekday {ALL}"],
    "quantile interval late": [f"{QUANTILE} --interval 0.8 --eta 0.1 {LATE} --column band {ALL}"],
    "quantile key": [f"{QUANTILE} --level 0.8 --key shop --keys-out keys.csv {ALL}"],
    "quantile pool": [f"{QUANTILE} --interval 0.8 --key shop --pool --keys-out keys.csv {ALL}"],
    "quantile ensemble": [f"{QUANTILE} --level 0.8 --ensemble 0.05,0.5 --ensemble-eta 0.1 {ALL}"],
    "quantile ensemble final": [f"{QUANTILE} --level 0.8 --ensemble 0.05,0.5 --ensemble-eta 0.1 --eta 0.05 {ALL}"],
    "quantile limits": [f"{QUANTILE} --level 0.1 --min 7 --max 15 --eta 0.1 {ALL}"],
    "quantile lower limit": [f"{QUANTILE} --level 0.1 --min 0 {ALL}"],
    "quantile feature": [f"{QUANTILE} --level 0.8 --feature x --eta 0.1 {ALL}"],
    "quantile decay weight": [f"{QUANTILE} --level 0.8 --eta 0.5 --decay 0.4 --weight weight {ALL}"],
    "quantile ridge": [f"{QUANTILE} --level 0.8 --eta 0.1 --penalty ridge --strength 0.01 {ALL}"],
    "quantile maturity": [f"{QUANTILE} --level 0.8 --eta 0.1 {LATE} --maturity 20 {ALL}"],
    "elo": [f"{GAMES} {ALL} --predictions p.csv"],
    "elo k": [f"{GAMES} --k 20 --ties drop {ALL} --predictions p.csv"],
    "elo eta": [f"{GAMES} --eta 0.1 --time day {ALL}"],
    "elo home": [f"{GAMES} --home a --neutral ground {ALL} --predictions p.csv --column chance"],
    "elo all-time": [f"{GAMES} --view all-time --json"],
    "elo now": [f"{GAMES} --view now --time day {ALL}"],
    "elo late": [f"{GAMES} {LATE} {ALL} --predictions p.parquet"],
    "elo delay": [f"{GAMES} --delay 7 --eta 0.1 {ALL}"],
    "elo score weight": ["elo games.csv --a home --b away --score score --weight weight -o out.parquet --json"],
    "elo decay": [f"{GAMES} --eta 0.3 --decay 0.5 {ALL}"],
    "elo lasso": [f"{GAMES} --eta 0.1 --penalty lasso --strength 0.01 {ALL}"],
    "elo fixtures": [
        "elo fixtures.csv --a home --b away --time day --id id --state state.json --predictions p.csv",
        "label games.csv --state state.json --id id --label winner --json",
        "label games.csv --state state.json --id id --label winner",
        "audit state.json --json",
    ],
    "elo refused": [
        f"{GAMES} --score score", f"{GAMES} --k 20 --eta 0.1", "elo games.csv --a home --b home --winner winner",
    ],
    "completion": ["completion bash", "completion zsh", "completion fish", "completion none"],
    "reproduce list": ["reproduce --list"],
    "reproduce light": ["reproduce regret-absolute restorative-field -o figures", "reproduce no-such-figure"],
}  # fmt: skip


def value_of(cell):
    try:
        return float(cell)
    except (TypeError, ValueError):
        return cell


def by_columns(names, rows):
    return {name: [value_of(row[k]) for row in rows] for k, name in enumerate(names)}


def table(path):
    """A written table as columns, new ones only where the input has many."""
    if path.suffix == ".parquet":
        made = pq.read_table(path)
        return {name: plain(made[name].to_pylist()) for name in made.column_names}
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="", encoding="utf-8") as file:
        first, *rows = csv.reader(
            file,
            delimiter=";" if Path("semi.csv").exists() and ";" in path.read_text("utf-8", "replace")[:80] else ",",
        )
    return by_columns(first, rows)


INPUT = {
    "id", "score", "outcome", "region", "sex", "day", "known", "date", "when", "weight", "x", "shop", "forecast",
    "low", "high", "price", "weekday", "home", "away", "winner", "ground",
}  # fmt: skip


def left_behind(name, path):
    """A file that a command wrote, as a tree."""
    if path.suffix == ".html":
        return page(path.read_text(encoding="utf-8"))
    if path.suffix == ".json":
        with quiet():
            return certificate(gq.from_json(path.read_text(encoding="utf-8")))
    made = table(path)
    own = {column: values for column, values in made.items() if column not in INPUT}
    return {"columns": list(made), "rows": len(next(iter(made.values()), [])), **own}


WRITTEN = (".csv", ".gz", ".parquet", ".html", ".json")


def done(line, stdin=""):
    """One call: its code and its numbers; and once more with --json where the command has it."""
    code, out, err = called(shlex.split(line.replace(" ;", " ';'")), stdin)
    if "--json" in line and code in (0, 1):
        said = json.loads(out)
        said.pop("sha256", None)  # states say when they were written
        return {"code": code, "json": plain(said), "stderr": numbers(err)}
    out = re.sub(r"gradeq \d+\.\d+\.\d+\S*|\d[\d.]* s\b", "", out)  # versions, and seconds that a run took
    return {"code": code, "printed": numbers(out), "stderr": numbers(err)}


def lived(name):
    """The calls of a case in a folder of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            files()
            known, found = set(os.listdir()), {}
            for k, line in enumerate(CASES[name], 1):
                line, _, source = line.partition(" < ")
                stdin = Path(source).read_text(encoding="utf-8") if source else ""
                if k == len(CASES[name]) and ALL in line and "--json" not in line:
                    # The same run twice: as text, and in a copy of the folder's state as JSON.
                    found["json"] = as_json(line)
                found[f"{k}. {line.split()[0]}"] = done(line, stdin)
            for path in sorted(Path().rglob("*")):
                if path.is_file() and path.name not in known and path.suffix in WRITTEN:
                    found[str(path)] = left_behind(name, path)
            return found
        finally:
            os.chdir(before)


def as_json(line):
    """The summary of a call as JSON, from a copy of its state."""
    state = Path("state.json")
    kept = state.read_bytes() if state.exists() else None
    short = re.sub(r" (-o|--report|--predictions|--keys-out) \S+", "", line)
    try:
        return done(f"{short} --json")
    finally:
        if kept is None:
            state.unlink(missing_ok=True)
        else:
            state.write_bytes(kept)


def cases():
    return {FAMILY: CASES}


def trees(family, names):
    for name in names:
        yield name, lived(name)
