"""``gradeq audit`` of the store of a service."""

from __future__ import annotations

import os
from typing import Any

import click

SQLITE = b"SQLite format 3\0"


def is_store(path: str) -> bool:
    """Whether this is the address of a store, or a file that may be one."""
    if path.startswith(("postgresql://", "postgres://", "sqlite:///")):
        return True
    try:
        if not os.path.isfile(path):  # looking into a pipe would take from it
            return False
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):
        return False


def audit(url: str, witness: str | None, as_json: bool, quiet: bool) -> None:
    """Audit a store and say what was found; exit code 3 when it is damaged."""
    from gradeq.cli.json_summary import dumped

    found = audited(url, witness)
    if as_json:
        click.echo(dumped(found))
    elif not quiet:
        for line in told(found):
            click.echo(line)
    if not found["sound"]:
        raise click.exceptions.Exit(3)


def audited(url: str, witness: str | None) -> dict[str, Any]:
    """What was found about a store."""
    from gradeq.cli.service_extra import opened

    with opened(url, read_only=True) as store:
        from gradeq.service.audit import audit_store
        from gradeq.service.witness import missing_in

        layers = [found.as_dict() for found in audit_store(store)]
        damaged = store.driver.check()
        missing = missing_in(witness, store) if witness is not None else {}
        names = {row.number: f"{row.tenant}/{row.name}" for row in store.layers()}
    lost = {names.get(number, f"layer {number}"): why for number, why in missing.items()}
    return {
        "store": store.url,
        "sound": not damaged and not lost and all(own["sound"] for own in layers),
        "damaged": damaged,
        "layers": layers,
        "witness": witness,
        "missing": lost,
    }


def told(found: dict[str, Any]) -> list[str]:
    """The findings, one line each."""
    from gradeq.report.markup import clean
    from gradeq.report.numerals import some

    lines = []
    for own in found["layers"]:
        name = f"{own['tenant']}/{own['name']}"
        counts = (
            f"{own['entries']:,} entries, {some(own['labels'], 'label')}, {own['open']:,} waiting"
        )
        if folded := own["entries"] - own["read"]:
            kept = f"{some(own['labels'], 'label')} and {own['open']:,} waiting in the {own['read']:,} kept"
            counts = f"{own['entries']:,} entries, {folded:,} of them folded; {kept}"
        if own["sound"]:
            lines.append(f"ok       {name}: {counts}; journal, sums, snapshots and state agree")
        lines += [f"damaged  {name}: {fault}" for fault in own["faults"]]
    lines += [f"damaged  the file: {fault}" for fault in found["damaged"]]
    lines += [f"missing  {name}: {why}" for name, why in found["missing"].items()]
    if found["witness"] is not None and not found["missing"]:
        lines.append("ok       the store has all that the witness saw acknowledged")
    if not found["layers"]:
        lines.append(f"ok       {found['store']} has no layers")
    return [clean(line, 500) for line in lines]
