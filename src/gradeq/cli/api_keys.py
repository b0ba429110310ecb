"""``gradeq keys``: the API keys of a store."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gradeq.cli.store import opened_store
from gradeq.errors import BadInput
from gradeq.inputs.durations import duration

if TYPE_CHECKING:
    from gradeq.service.auth import ApiKey
    from gradeq.service.store.journal_store import Store

STORE = click.option("--store", "url", default="gradeq.db", show_default=True, metavar="URL", help="The store.")
SCOPE = click.Choice(["predict", "label", "admin"])
WHICH = click.argument("which", metavar="KEY")


@click.group(short_help="Create, list, replace and revoke the API keys of a store.")
def command() -> None:
    """Create, list, replace and revoke the API keys of a store.

    A key is shown once, when it is made; the store holds a hash of it. A running server sees
    changes within a few seconds.

    \b
    Examples
      gradeq keys create --name scoring --scope predict
      gradeq keys list
      gradeq keys rotate k3w7q2ab --overlap 24h
      gradeq keys revoke k3w7q2ab
    """


@command.command()
@STORE
@click.option("--scope", "scopes", multiple=True, type=SCOPE, help="What it may do; repeatable. Default: everything.")
@click.option("--tenant", default="default", show_default=True, help="Whose layers it sees: tenants share nothing.")
@click.option("--name", default="", help="A name to know it by.")
def create(url: str, scopes: tuple[str, ...], tenant: str, name: str) -> None:
    """Make a key and print it, once."""
    with opened_store(url) as store:
        from gradeq.service.auth import SCOPES, add_key, new_key

        text, key = new_key(tenant, name, scopes or SCOPES)
        add_key(store, key)
    click.echo(text)


@command.command("list")
@STORE
def list_(url: str) -> None:
    """List the keys: prefix, tenant, scopes, creation time, status, name."""
    with opened_store(url, read_only=True) as store:
        from gradeq.service.auth import read_keys

        keys = read_keys(store)
    for key in keys:
        status = "active"
        if key.revoked is not None:
            status = f"{'active until' if key.is_active(time.time()) else 'revoked'} {utc_time(key.revoked)}"
        scopes, created = ",".join(sorted(key.scopes)), f"made {utc_time(key.created)}"
        click.echo("  ".join((key.prefix, key.tenant, scopes, created, status, key.name)).rstrip())
    if not keys:
        click.echo(f"no keys in {url}")


@command.command()
@STORE
@WHICH
def revoke(url: str, which: str) -> None:
    """Make a key useless from now on; KEY is its prefix."""
    with opened_store(url, existing=True) as store:
        from gradeq.service.auth import revoke_key

        key = find_key(store, which)
        revoke_key(store, key.number, time.time())
    click.echo(f"{key.prefix} is revoked")


@command.command()
@STORE
@WHICH
@click.option(
    "--overlap",
    default="24h",
    show_default=True,
    metavar="SPAN",
    help="How long the old key works: 90s, 15m, 36h, 7d.",
)
def rotate(url: str, which: str, overlap: str) -> None:
    """Make a key with the same rights and print it; the old one works on for a while."""
    seconds = duration(overlap)
    if seconds is None or not 0.0 <= seconds < 1e9:
        raise BadInput(f"--overlap {overlap!r} is not a duration; give 90s, 15m, 36h or 7d")
    with opened_store(url, existing=True) as store:
        from gradeq.service.auth import add_key, new_key, revoke_key

        old = find_key(store, which)
        text, key = new_key(old.tenant, old.name, old.scopes)
        add_key(store, key)
        revoke_key(store, old.number, time.time() + seconds)
    click.echo(text)


def find_key(store: Store, which: str, active: bool = True) -> ApiKey:
    """The key with this prefix; ``active``: not a revoked one."""
    from gradeq.service.auth import read_keys

    prefix = which.removeprefix("gq_").partition("_")[0]
    for key in read_keys(store):
        if key.prefix == prefix and (not active or key.is_active(time.time())):
            return key
    raise BadInput(f"no key {prefix[:20]!r}{' that is active' if active else ''}; `gradeq keys list` shows them")


def utc_time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
