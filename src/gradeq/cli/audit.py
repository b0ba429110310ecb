"""``gradeq audit``: is a saved state whole, ours, and in balance?"""

from __future__ import annotations

from typing import Any

import click


@click.command(short_help="Check a saved state or the store of a service.")
@click.argument("state", type=click.Path(), metavar="STATE|STORE")
@click.option(
    "--witness",
    type=click.Path(),
    metavar="FILE",
    help="The witness of a store: has it all that was ever acknowledged?",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print nothing; only set the exit code.")
def command(state: str, witness: str | None, as_json: bool, quiet: bool) -> None:
    """Check a saved state or the store of a service.

    The identity is the bookkeeping of learning: the parameters moved by exactly the sum of
    step times gradient over all labels. An update half done breaks it, and so does a sum or
    a parameter that was changed.

    Of a store (an SQLite file or a postgresql:// address) the whole journal is read: its rows
    must add up to the exact sums and to the hash of the head, and done again they must give
    every snapshot to the last bit. A server may be at work on it.

    \b
    Examples
      gradeq audit state.json

    \b
    Exit code
      0 sound   2 no such file   3 damaged, newer than this gradeq, or not ours
    """
    from gradeq.cli.audit_store import audit, is_store
    from gradeq.cli.json_summary import dumped

    if is_store(state):
        audit(state, witness, as_json, quiet)
        return
    if witness is not None:
        raise click.UsageError("--witness is for stores; a state file has none")
    found = audited(state)
    if as_json:
        click.echo(dumped(found))
    elif not quiet:
        for line in told(found):
            click.echo(line)


def audited(path: str) -> dict[str, Any]:
    """What the state says about itself; raises when it is not sound."""
    import json

    from gradeq.cli.json_summary import warned
    from gradeq.cli.state_file import layer_of, read_text
    from gradeq.cli.task import step_of
    from gradeq.errors import BadInput, StateError
    from gradeq.report.of_state import covered_since, groups_since, harm_since, in_short
    from gradeq.report.surprises import not_known

    text = read_text(path)
    if text is None:
        raise BadInput(f"{path} does not exist; name a state file")
    layer: Any = layer_of(path, text)
    body = json.loads(text)
    reached = layer.equilibrium()
    if reached.balance == "broken":
        raise StateError(
            f"{path}: the identity is broken: parameters and stored gradients differ by "
            f"{reached.gap:.2g}; restore a backup and run again from the files"
        )
    flight, unknown = layer.in_flight, not_known(reached.hidden)
    return {
        "path": path,
        "kind": layer.kind,
        "format": body["format"],
        "version": body["gradeq"],
        "sha256": body["sha256"],
        "eta": step_of(layer),
        "served": flight["served"],
        "labelled": flight["labelled"],
        "open": flight["open"],
        "parameters": len(reached.coordinates),
        "gap": reached.gap,
        "exact": reached.exact,
        "verdict": in_short(layer, reached),
        **covered_since(layer, reached),
        "groups": groups_since(layer, reached),
        "log": layer.log,
        "warnings": warned([*([] if unknown is None else [unknown]), *harm_since(layer, reached)]),
        **paired(layer),
    }


def paired(layer: Any) -> dict[str, Any]:
    """How many runs the state has seen, and whether the last outputs are those that were written with it."""
    import hashlib

    from gradeq.cli.desk import Desk

    desk = Desk.of(layer)

    def now(path: str, mark: str) -> str:
        try:
            with open(path, "rb") as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == mark
        except OSError:
            return "gone"
        return "in place" if same else "changed since"

    writing = [run for run in desk.runs if run[3]]
    wrote = writing[-1] if writing else (None, "", 0, [])
    return {
        "runs": desk.number,
        "wrote": {"run": wrote[0], "outputs": {path: now(path, mark) for path, mark in wrote[3]}},
    }


def told(found: dict[str, Any]) -> list[str]:
    """The findings, one line each."""
    from gradeq.cli.summary import said
    from gradeq.report.markup import clean
    from gradeq.report.story import Notice

    kind = "from two states alone" if found["exact"] else "by the stored sums"
    return [
        f"ok  checksum  sha256 {found['sha256'][:16]}... matches {clean(found['path'], 200)}",
        f"ok  version   format {found['format']}, written by gradeq {found['version']}",
        f"ok  identity  gap {found['gap']:.0e}, {kind}",
        f"{found['kind']} layer, step {found['eta']}: {found['served']:,} served, "
        f"{found['labelled']:,} labelled, {found['open']:,} waiting",
        clean(found["verdict"], 2000),
        *grouped(found["groups"]),
        *[said(Notice(**warning)) for warning in found["warnings"]],
        *wrote(found),
    ]


def grouped(groups: list[dict[str, Any]]) -> list[str]:
    """The groups as the table of a run shows them, largest remaining error first."""
    from gradeq.cli.summary import GroupRow, tabled

    if not groups:
        return []
    what = "coverage" if "coverage" in groups[0] else "bias"
    rows = []
    for group in groups:
        pairs = [group[name][when] for name in (what, "loss") for when in ("before", "after")]
        rows.append(GroupRow(group["name"], group["rows"], pairs, group["bound"], group["vacuous"]))
    return ["", *tabled(rows, what), ""]


def wrote(found: dict[str, Any]) -> list[str]:
    """run 7 wrote out.csv, page.html: in place; nothing for a state without outputs."""
    from gradeq.report.markup import clean

    outputs = found["wrote"]["outputs"]
    if not outputs:
        return []
    if len(set(outputs.values())) == 1:
        said = f"{', '.join(outputs)}: {next(iter(outputs.values()))}"
    else:
        said = ", ".join(f"{path}: {how}" for path, how in outputs.items())
    return [clean(f"run {found['wrote']['run']} of {found['runs']} wrote {said}", 2000)]
