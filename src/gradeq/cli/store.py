"""``gradeq store``: what can be done with the store of a service beside serving it."""

from __future__ import annotations

import time
from typing import Any

import click

from gradeq.cli.service_extra import opened

STORE = click.argument("url", metavar="STORE")
LAYER = click.argument("layer", metavar="LAYER")
DAY = 86_400.0


@click.group(name="store", short_help="Back up, move, fold, rebuild the store of a service.")
def command() -> None:
    """Back up, move, fold, rebuild the store of a service.

    A STORE is an SQLite file or a postgresql:// address, a LAYER is its name or TENANT/NAME.
    `gradeq audit STORE` checks it.
    """


@command.command()
@STORE
@click.argument("path", metavar="FILE", type=click.Path())
def backup(url: str, path: str) -> None:
    """Copy a store to a new file, while a server may be at work on it."""
    with opened(url, read_only=True) as store:
        store.driver.backup(path)
        layers = len(store.layers())
    click.echo(f"{path}: {layers:,} layer{'' if layers == 1 else 's'} as of now")


@command.command()
@STORE
@LAYER
@click.option("-o", "--output", required=True, type=click.Path(), help="The state file to write.")
def export(url: str, layer: str, output: str) -> None:
    """Write a layer as a state file of the library and of the command line."""
    with opened(url, read_only=True) as store:
        from gradeq.files.atomic import write_text
        from gradeq.service.moving import exported

        text = exported(store, row_of(store, layer))
    write_text(output, [text, "\n"], [url])
    click.echo(f"{output}: {layer} with its open tickets and the labels of closed ids")


@command.command(name="import")
@click.argument("state", metavar="STATE", type=click.Path())
@STORE
@click.option("--name", required=True, help="The name of the new layer.")
@click.option("--tenant", default="default", show_default=True, help="Whose layer it is.")
def import_(state: str, url: str, name: str, tenant: str) -> None:
    """Start a layer from a state file; no server may be at work on an SQLite store meanwhile."""
    from gradeq.cli.state_file import layer_of, read_text
    from gradeq.errors import BadInput

    text = read_text(state)
    if text is None:
        raise BadInput(f"{state} does not exist; name a state file")
    layer: Any = layer_of(state, text)
    with opened(url) as store:
        from gradeq.service.desk import Desk

        store.driver.hold()
        if not Desk(store).create(tenant, name, {}, text.decode().strip()):
            raise BadInput(f"{url} has a layer {name!r} of this state already; take another name")
    book = layer._book
    lost = sum(own is None for _, own, _ in book.tickets())
    click.echo(
        f"{tenant}/{name}: {layer.in_flight['served']:,} served, {len(book.by_id):,} waiting for labels"
    )
    if lost:
        click.echo(f"{lost:,} predictions wait without an id; their labels cannot be sent")
    if book.waiting:
        click.echo(f"{len(book.waiting):,} labels were known but not due; send them again")


@command.command()
@STORE
@click.option(
    "--keep", type=float, required=True, metavar="DAYS", help="Rows younger than this stay."
)
@click.option("--layer", metavar="LAYER", help="Only this layer.")
def fold(url: str, keep: float, layer: str | None) -> None:
    """Fold old closed rows of the journals into their sums; every identity stays exact.

    A ticket goes with its label and corrections, an open one once its ttl has passed. What goes
    must be in a snapshot. Ids stay refused as long as their rows are there, so DAYS is at least
    twice the ttl. The store is audited first. A server may be at work on it.
    """
    with opened(url) as store:
        from gradeq.errors import BadInput
        from gradeq.service.audit import Auditor
        from gradeq.service.desk import SAVE_EVERY
        from gradeq.service.retention import fold_layer, unsaved
        from gradeq.service.store.failures import StoreDamaged

        if not keep > 0.0:
            raise BadInput(f"--keep {keep:g} is too little; give a positive number of days")
        for row in store.layers() if layer is None else [row_of(store, layer)]:
            found = Auditor(store).tail(row)
            if found.faults:
                raise StoreDamaged(f"{row.name} is damaged: {found.faults[0]}; nothing was folded")
            try:
                gone = fold_layer(store, row, keep * DAY, time.time())
            except BadInput as error:
                if layer is not None:
                    raise
                click.echo(f"{row.tenant}/{row.name}: left as it is ({error})")
                continue
            said = f"{row.tenant}/{row.name}: {gone:,} of {found.entries:,} entries folded now"
            if waits := unsaved(store, row, keep * DAY, time.time()):
                said += (
                    f"; {waits:,} that are old enough stay: only what is in every snapshot can go, and a server "
                    f"saves one every {SAVE_EVERY:,} entries and when it stops"
                )
            click.echo(said)


@command.command()
@STORE
@click.option("--key", "which", required=True, metavar="KEY", help="The key, by its prefix.")
@click.option("--layer", metavar="LAYER", help="Only this layer.")
def undo(url: str, which: str, layer: str | None) -> None:
    """Take back every label that an API key sent, in all layers of its tenant.

    Reversals are posted: sums are what they were without these labels, to the last bit; what was
    served stays as it was. A label that the key put in the place of another's gives way to that
    one. Rows that were folded stay. No server may be at work on an SQLite store meanwhile; ask the
    server then, with POST /v1/layers/NAME/undo.
    """
    from gradeq.cli.api_keys import the_one
    from gradeq.report.numerals import some

    with opened(url) as store:
        from gradeq.service.desk import Desk

        key = the_one(store, which)
        rows = store.layers(key.tenant) if layer is None else [row_of(store, layer)]
        desk = Desk(store)
        desk.start()
        try:
            for row in rows:
                done = desk.undo(row.tenant, row.name, key.number)
                click.echo(
                    f"{row.tenant}/{row.name}: {some(done.taken_back, 'label')} of {key.prefix} taken back, "
                    f"{done.restored:,} replaced by the one before, {done.left:,} left as they are"
                )
        finally:
            desk.stop()


@command.command()
@STORE
@click.argument("path", metavar="COPY", type=click.Path())
def rebuild(url: str, path: str) -> None:
    """Make sums and snapshots anew from the journal, in a copy; the original is not touched."""
    with opened(url, read_only=True) as store:
        from gradeq.service.rebuild import rebuild as made_anew

        made_anew(store, path, time.time(), click.echo)
    click.echo(f"{path} is whole; gradeq audit {path} looks at all of it")


@command.command()
@STORE
def migrate(url: str) -> None:
    """Bring a store of an older gradeq to this version, on a copy; the original is kept."""
    from gradeq.cli.service_extra import needed

    with needed("the store of a service"):
        from gradeq.service.store import driver_of
        from gradeq.service.store.migrate import migrate as migrated
    driver = driver_of(url)
    try:
        click.echo(f"{driver.url} is of this version now; as it was, it is in {migrated(driver)}")
    finally:
        driver.close()


@command.command()
@STORE
@LAYER
@click.option("--witness", type=click.Path(), metavar="FILE", help="The witness that saw more.")
def accept(url: str, layer: str, witness: str | None) -> None:
    """Let a layer learn again that was stopped, once you have taken note of why.

    Its books must balance; what a witness saw and the store lacks is given up for lost.
    """
    with opened(url) as store:
        from gradeq.service.audit import Auditor
        from gradeq.service.store.failures import StoreDamaged
        from gradeq.service.witness import Witness

        store.driver.hold()
        row = row_of(store, layer)
        found = Auditor(store).whole(row)
        if found.faults:
            raise StoreDamaged(
                f"{row.name} is damaged: {found.faults[0]}; see gradeq store rebuild"
            )
        if witness is not None:
            seen = Witness(witness, store)
            seen.accept([row.number])
            seen.close()
        with store.write() as tx:
            tx.stop(row.number, "")
    click.echo(f"{row.tenant}/{row.name} learns again, from entry {found.entries:,} on")


def row_of(store: Any, layer: str) -> Any:
    """The layer of this name; with several tenants, TENANT/NAME."""
    from gradeq.errors import BadInput

    rows = store.layers()
    found = [row for row in rows if layer in (row.name, f"{row.tenant}/{row.name}")]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{row.tenant}/{row.name}" for row in found or rows[:10]) or "none"
    why = "is not one layer" if found else "is no layer"
    raise BadInput(f"{layer!r} {why} of {store.url}; there are {names}")
