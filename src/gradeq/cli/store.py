"""``gradeq store``: maintenance of a service's store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from gradeq.cli.options import NUMBER
from gradeq.errors import BadInput, missing_extra
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    from gradeq.service.store.journal_store import LayerRow, Store


@contextmanager
def service_imports(purpose: str) -> Iterator[None]:
    """Turn a missing dependency into one line that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "gradeq":
            raise
        raise missing_extra("service", purpose) from None


def opened_store(url: str, read_only: bool = False, existing: bool = False) -> closing[Store]:
    """Context manager of an open store; with ``existing`` a missing one is an error."""
    with service_imports("the store of a service"):
        from gradeq.service import schemas  # noqa: F401
        from gradeq.service.store import open_store
    if existing:
        open_store(url, True).close()
    return closing(open_store(url, read_only))


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
    with opened_store(url, read_only=True) as store:
        store.driver.backup(path)
        layers = len(store.layers())
    click.echo(f"{path}: {some(layers, 'layer')} as of now")


@command.command()
@STORE
@LAYER
@click.option("-o", "--output", required=True, type=click.Path(), help="The state file to write.")
def export(url: str, layer: str, output: str) -> None:
    """Write a layer as a state file of the library and of the command line."""
    with opened_store(url, read_only=True) as store:
        from gradeq.files.paths import write_text
        from gradeq.service.maintenance import export_state

        text = export_state(store, find_layer(store, layer))
    write_text(output, [text, "\n"], [url])
    click.echo(f"{output}: {layer} with its open tickets and the labels of closed ids")


@command.command(name="import")
@click.argument("state", metavar="STATE", type=click.Path())
@STORE
@click.option("--name", required=True, help="The name of the new layer.")
@click.option("--tenant", default="default", show_default=True, help="Whose layer it is.")
def import_(state: str, url: str, name: str, tenant: str) -> None:
    """Start a layer from a state file; no server may be at work on an SQLite store meanwhile."""
    from gradeq.cli.session import existing_state

    text, layer = existing_state(state)
    with opened_store(url) as store:
        from gradeq.service.desk import Desk

        store.driver.lock_server()
        if not Desk(store).create(tenant, name, {}, text.decode().strip()):
            raise BadInput(f"{url} has a layer {name!r} of this state already; take another name")
    book = layer.internals.tickets
    lost = sum(own is None for _, own, _ in book.tickets())
    click.echo(f"{tenant}/{name}: {layer.traffic['served']:,} served, {len(book.by_id):,} waiting for labels")
    if lost:
        whose = agreeing(lost, "its label", "their labels")
        waits = some(lost, "prediction", "waits", "wait")
        click.echo(f"{waits} without an id; {whose} cannot be sent")
    if known := len(book.waiting_ids):
        waits = some(known, "label", "waits", "wait")
        click.echo(f"{waits} until {agreeing(known, 'its row is', 'their rows are')} mature")
    if lost := len(book.waiting) - len(book.waiting_ids):
        click.echo(f"{some(lost, 'label', 'was', 'were')} waiting without an id and cannot be learned")


@command.command()
@STORE
@click.option("--keep", type=NUMBER, required=True, metavar="DAYS", help="Rows younger than this stay.")
@click.option("--layer", metavar="LAYER", help="Only this layer.")
def fold(url: str, keep: float, layer: str | None) -> None:
    """Fold old closed rows of the journals into their sums; every identity stays exact.

    A ticket goes with its label and corrections, an open one once its ttl has passed. What goes
    must be in a snapshot. Ids stay refused as long as their rows are there, so DAYS is at least
    twice the ttl. The store is audited first. A server may be at work on it.
    """
    with opened_store(url, existing=True) as store:
        from gradeq.service.audit import Auditor
        from gradeq.service.desk import SNAPSHOT_EVERY
        from gradeq.service.maintenance import fold_layer, rows_without_snapshot
        from gradeq.service.store.database import StoreDamaged

        if not keep > 0.0:
            raise BadInput(f"--keep {keep:g} is too little; give a positive number of days")
        for row in store.layers() if layer is None else [find_layer(store, layer)]:
            audit = Auditor(store).tail(row)
            if audit.faults:
                raise StoreDamaged(f"{row.name} is damaged: {audit.faults[0]}; nothing was folded")
            try:
                gone = fold_layer(store, row, keep * DAY, time.time())
            except BadInput as error:
                if layer is not None:
                    raise
                click.echo(f"{row.tenant}/{row.name}: left as it is ({error})")
                continue
            line = f"{row.tenant}/{row.name}: {gone:,} of {audit.entries:,} entries folded now"
            if waits := rows_without_snapshot(store, row, keep * DAY, time.time()):
                line += (
                    f"; {waits:,} that are old enough stay: only what is in every snapshot can go, and a server "
                    f"saves one every {SNAPSHOT_EVERY:,} entries and when it stops"
                )
            click.echo(line)


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
    from gradeq.cli.api_keys import find_key

    with opened_store(url, existing=True) as store:
        from gradeq.service.desk import Desk

        key = find_key(store, which, active=False)  # a bad key is often revoked first
        rows = store.layers(key.tenant) if layer is None else [find_layer(store, layer)]
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
    """Recompute sums and snapshots from the journal, in a copy; the original is not touched."""
    with opened_store(url, read_only=True) as store:
        from gradeq.service.maintenance import rebuild as rebuild_store

        rebuild_store(store, path, time.time(), click.echo)
    click.echo(f"{path} is complete; gradeq audit {path} checks it")


@command.command()
@STORE
def migrate(url: str) -> None:
    """Bring a store of an older gradeq to this version, on a copy; the original is kept."""

    with service_imports("the store of a service"):
        from gradeq.service.store import driver_of
        from gradeq.service.store.migrate import migrate as migrated
    driver_of(url, True).close()  # one that is not there is refused, not made
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
    with opened_store(url, existing=True) as store:
        from gradeq.service.audit import Auditor
        from gradeq.service.store.database import StoreDamaged
        from gradeq.service.witness import Witness

        store.driver.lock_server()
        row = find_layer(store, layer)
        audit = Auditor(store).full(row)
        if audit.faults:
            raise StoreDamaged(f"{row.name} is damaged: {audit.faults[0]}; see gradeq store rebuild")
        if witness is not None:
            seen = Witness(witness, store)
            seen.accept([row.number])
            seen.close()
        with store.write() as tx:
            tx.stop(row.number, "")
    click.echo(f"{row.tenant}/{row.name} learns again, from entry {audit.entries:,} on")


def find_layer(store: Store, layer: str) -> LayerRow:
    rows = store.layers()
    matches = [row for row in rows if layer in (row.name, f"{row.tenant}/{row.name}")]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(f"{row.tenant}/{row.name}" for row in matches or rows[:10]) or "none"
    why = "matches several layers" if matches else "is not a layer"
    raise BadInput(f"{layer!r} {why} of {store.url}; there are {names}")
