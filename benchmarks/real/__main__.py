"""``python -m benchmarks.real [KIND ...]``: measure, print, and write bench-out/real.json."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.real.run import KINDS, found

OUT = Path("bench-out")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description=main.__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all")
    parser.add_argument("--each", action="store_true", help="a table for every stream as well")
    parser.add_argument("--stream", action="append", default=[], help="only streams named so")
    given = parser.parse_args()
    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    measured = found(given.kinds, given.stream)
    for kind in measured["kinds"]:
        print(*lines(kind, given.each), sep="\n")
    OUT.mkdir(exist_ok=True)
    text = json.dumps(measured, indent=1, ensure_ascii=False, allow_nan=False)
    (OUT / "real.json").write_text(text + "\n", encoding="utf-8")
    print(f"Written: {OUT / 'real.json'}")


def lines(kind: dict[str, Any], each: bool) -> Iterator[str]:
    """The tables of one kind."""
    if each:
        for name, rules in kind["streams"].items():
            yield from table(f"{kind['title']}: {name}", kind["measures"], rules)
    count = len(kind["streams"])
    title = f"{kind['title']}, all {count} streams (* the defaults were chosen on these)"
    yield from table(title, kind["measures"], kind["all"])


def table(title: str, measures: list[Any], rules: dict[str, Any]) -> Iterator[str]:
    """A line for each rule; - where there is nothing to measure."""
    yield title
    yield f"{'':<26}" + "".join(f"{measure['title']:>16}" for measure in measures)
    for rule, figures in rules.items():
        yield f"{rule:<26}" + "".join(f"{shown(figures, measure):>16}" for measure in measures)
    yield ""


def shown(figures: dict[str, Any], measure: dict[str, str]) -> str:
    """One figure as text."""
    figure = figures[measure["key"]]
    return "-" if figure is None else format(figure, measure["format"])


if __name__ == "__main__":
    main()
