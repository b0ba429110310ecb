"""``gradeq audit``: checks a saved state or the store of a service."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import click

from gradeq.errors import StateError
from gradeq.tables import some


@click.command(short_help="Check a saved state or the store of a service.")
@click.argument("state", type=click.Path(), metavar="STATE|STORE")
@click.option(
    "--witness", type=click.Path(), metavar="FILE", help="A witness: does the store have all it saw acknowledged?"
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
    from gradeq.cli.summary import to_json

    stored = is_store(state)
    if witness is not None and not stored:
        raise click.UsageError("--witness is for stores; a state file has none")
    findings = store_findings(state, witness) if stored else state_findings(state)
    if as_json:
        click.echo(to_json(findings))
    elif not quiet:
        for line in store_lines(findings) if stored else state_lines(findings):
            click.echo(line)
    if stored and not findings["sound"]:
        raise click.exceptions.Exit(3)


def state_findings(path: str) -> dict[str, Any]:
    from gradeq.cli.session import RunHistory, existing_state
    from gradeq.cli.summary import notices_json
    from gradeq.cli.task import step_of
    from gradeq.report.notices import figures_not_known
    from gradeq.report.state_facts import coverage_as_json, groups_as_json, state_sentence, worse_in_state

    text, layer = existing_state(path)
    body = json.loads(text)
    reached = layer.equilibrium()
    if reached.balance == "broken":
        raise StateError(
            f"{path}: the identity is broken: parameters and stored gradients differ by "
            f"{reached.gap:.2g}; restore a backup and run again from the files"
        )
    outputs: dict[str, str] = {}
    history = RunHistory.of(layer)
    number, _, _, marks = next((run for run in reversed(history.runs) if run[3]), (None, "", 0, []))
    for output, mark in marks:
        try:
            with open(output, "rb") as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == mark
            outputs[output] = "in place" if same else "changed since"
        except OSError:
            outputs[output] = "gone"
    traffic, unknown = layer.traffic, figures_not_known(reached.hidden)
    return {
        "path": path,
        "kind": layer.kind,
        "format": body["format"],
        "version": body["gradeq"],
        "sha256": body["sha256"],
        "eta": step_of(layer),
        "served": traffic["served"],
        "labelled": traffic["labelled"],
        "open": traffic["open"],
        "parameters": len(reached.coordinates),
        "gap": reached.gap,
        "exact": reached.exact,
        "verdict": state_sentence(layer, reached),
        **coverage_as_json(layer, reached),
        "groups": groups_as_json(layer, reached),
        "log": layer.log,
        "warnings": notices_json([*([] if unknown is None else [unknown]), *worse_in_state(layer, reached)]),
        "runs": history.number,
        "wrote": {"run": number, "outputs": outputs},
    }


def state_lines(findings: dict[str, Any]) -> list[str]:
    from gradeq.cli.summary import notice_text, table_lines
    from gradeq.report.components import clean
    from gradeq.report.story import Notice

    kind = "from two states alone" if findings["exact"] else "by the stored sums"
    lines = [
        f"ok  checksum  sha256 {findings['sha256'][:16]}... matches {clean(findings['path'], 200)}",
        f"ok  version   format {findings['format']}, written by gradeq {findings['version']}",
        f"ok  identity  gap {findings['gap']:.0e}, {kind}",
        f"{findings['kind']} layer, step {findings['eta']}: {findings['served']:,} served, "
        f"{findings['labelled']:,} labelled, {findings['open']:,} waiting",
        clean(findings["verdict"], 2000),
    ]
    if groups := findings["groups"]:  # as in the table of a run, largest remaining error first
        what = "coverage" if "coverage" in groups[0] else "bias"
        rows = []
        for group in groups:
            pairs = [group[name][when] for name in (what, "loss") for when in ("before", "after")]
            rows.append((group["name"], group["rows"], pairs, group["bound"], group["vacuous"]))
        lines += ["", *table_lines(rows, what), ""]
    lines += [notice_text(Notice(**warning)) for warning in findings["warnings"]]
    if outputs := findings["wrote"]["outputs"]:  # run 7 of 9 wrote out.csv, page.html: in place
        status = ", ".join(f"{path}: {how}" for path, how in outputs.items())
        if len(set(outputs.values())) == 1:
            status = f"{', '.join(outputs)}: {next(iter(outputs.values()))}"
        lines.append(clean(f"run {findings['wrote']['run']} of {findings['runs']} wrote {status}", 2000))
    return lines


SQLITE = b"SQLite format 3\0"


def is_store(path: str) -> bool:
    if path.startswith(("postgresql://", "postgres://", "sqlite:///")):
        return True
    try:
        if not os.path.isfile(path):  # looking into a pipe would take from it
            return False
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):
        return False


def store_findings(url: str, witness: str | None) -> dict[str, Any]:
    from gradeq.cli.store import opened_store

    with opened_store(url, read_only=True) as store:
        from gradeq.service.audit import audit_store
        from gradeq.service.witness import missing_in_file

        layers = [found.as_dict() for found in audit_store(store)]
        damaged = store.driver.check()
        missing = missing_in_file(witness, store) if witness is not None else {}
        names = {row.number: f"{row.tenant}/{row.name}" for row in store.layers()}
    lost = {names.get(number, f"layer {number}"): why for number, why in missing.items()}
    return {
        "store": store.url,
        "sound": not damaged and not lost and all(layer["sound"] for layer in layers),
        "damaged": damaged,
        "layers": layers,
        "witness": witness,
        "missing": lost,
    }


def store_lines(findings: dict[str, Any]) -> list[str]:
    from gradeq.report.components import clean

    lines = []
    for layer in findings["layers"]:
        name = f"{layer['tenant']}/{layer['name']}"
        counts = f"{layer['entries']:,} entries, {some(layer['labels'], 'label')}, {layer['open']:,} waiting"
        if folded := layer["entries"] - layer["read"]:
            rest = f"{some(layer['labels'], 'label')} and {layer['open']:,} waiting in the other {layer['read']:,}"
            counts = f"{layer['entries']:,} entries, {folded:,} of them folded; {rest}"
        if layer["sound"]:
            lines.append(f"ok       {name}: {counts}; journal, sums, snapshots and state agree")
        lines += [f"damaged  {name}: {fault}" for fault in layer["faults"]]
    lines += [f"damaged  the file: {fault}" for fault in findings["damaged"]]
    lines += [f"missing  {name}: {why}" for name, why in findings["missing"].items()]
    if findings["witness"] is not None and not findings["missing"]:
        lines.append("ok       the store has all that the witness saw acknowledged")
    if not findings["layers"]:
        lines.append(f"ok       {findings['store']} has no layers")
    return [clean(line, 500) for line in lines]
