"""How the tests call the command: as installed, in a process of its own, or within this one."""

import csv
import io
import json
import math
import os
import random
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from gradeq.cli import run


class Done(NamedTuple):
    """What a call left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def installed() -> list[str]:
    """The gradeq command of this environment."""
    script = Path(sys.executable).with_name("gradeq")
    return [str(script)] if script.exists() else [sys.executable, "-m", "gradeq"]


def gradeq(*arguments: object, cwd: Path, stdin: str | None = None, **environment: str) -> Done:
    """Run the installed command in a process of its own."""
    done = subprocess.run(
        [*installed(), *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=400,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def here(*arguments: object) -> Done:
    """Run the command within this process: the same code, without the start."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return Done(code, out.getvalue(), err.getvalue())


def ok(done: Done) -> Done:
    """A call that ended well and said nothing on stderr."""
    assert (done.code, done.err) == (0, ""), done.err
    return done


def refused(done: Done, code: int = 2) -> str:
    """The one line of a call that was refused."""
    assert done.code == code, (done.code, done.out, done.err)
    assert done.out == ""
    assert done.err.startswith("gradeq: error: ") and done.err.count("\n") == 1, done.err
    assert "Traceback" not in done.err
    return done.err.strip()


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(path: Path, name: str) -> list[float]:
    return [float(row[name]) if row[name] else math.nan for row in table(path)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    return path


def scores(rows: int = 400, seed: int = 1) -> list[dict[str, Any]]:
    """Probabilities that are too low, with groups, times, late and missing labels, weights."""
    rng = random.Random(seed)
    made = []
    for i in range(rows):
        p = rng.choice([0.2, 0.4, 0.6])
        label = "" if rng.random() < 0.1 else int(rng.random() < p + 0.2)
        made.append(
            {
                "id": f"{i:05d}",
                "score": p,
                "outcome": label,
                "region": rng.choice(["north", "south", "=east", ""]),
                "sex": rng.choice(["f", "m"]),
                "day": rng.randrange(100),
                "known": "" if rng.random() < 0.05 else rng.randrange(130),
                "weight": rng.choice([0, 1, 2.5]),
                "x": rng.gauss(0, 1),
                "shop": rng.randrange(7),
            }
        )
    return made


def prices(rows: int = 400, seed: int = 2) -> list[dict[str, Any]]:
    """Forecasts that are too low and too sure."""
    rng = random.Random(seed)
    made = []
    for i in range(rows):
        f = 10.0 + rng.random()
        made.append(
            {
                "forecast": f,
                "low": f - 0.5,
                "high": f + 0.5,
                "price": f + rng.gauss(0.3, 1.0),
                "weekday": "MTWTFSS"[i % 7] + str(i % 7),
                "day": i,
            }
        )
    return made


def games(rows: int = 300, seed: int = 3) -> list[dict[str, Any]]:
    """Games among eight players of different strength, with ties."""
    rng = random.Random(seed)
    names = ["ann", "bob", "=cy", "dee", "eve", "fay", "gil", "007"]
    made = []
    for i in range(rows):
        a, b = rng.sample(range(8), 2)
        p = 1.0 / (1.0 + math.exp((b - a) / 3.0))
        roll = rng.random()
        winner = "tie" if roll > 0.9 else "home" if rng.random() < p else "away"
        score = {"home": 1, "away": 0, "tie": 0.5}[winner]
        made.append({"home": names[a], "away": names[b], "winner": winner, "score": score, "day": i // 3})
    return made
