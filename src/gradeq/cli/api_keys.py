"""``gradeq keys``: the API keys of a store."""

from __future__ import annotations

import time
from typing import Any

import click

from gradeq.cli.service_extra import opened

STORE = click.option(
    "--store", "url", default="gradeq.db", show_default=True, metavar="URL", help="The store."
)
WHICH = click.argument("which", metavar="KEY")


@click.group(short_help="Make, list, replace and revoke the API keys of a store.")
def command() -> None:
    """Make, list, replace and revoke the API keys of a store.

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
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["predict", "label", "admin"]),
    help="What it may do; give it several times. Default: all.",
)
@click.option(
    "--tenant",
    default="default",
    show_default=True,
    help="Whose layers it sees: keys of different tenants share nothing.",
)
@click.option("--name", default="", help="A name to know it by.")
def create(url: str, scopes: tuple[str, ...], tenant: str, name: str) -> None:
    """Make a key and print it, once."""
    with opened(url) as store:
        from gradeq.service.keys import SCOPES, new_key
        from gradeq.service.store.api_keys import add_key

        text, key = new_key(tenant, name, scopes or SCOPES)
        add_key(store, key)
    click.echo(text)


@command.command("list")
@STORE
def list_(url: str) -> None:
    """List the keys: prefix, tenant, scopes, when made, whether good, name."""
    with opened(url, read_only=True) as store:
        from gradeq.service.store.api_keys import keys_of

        found = keys_of(store)
    for key in found:
        scopes = ",".join(sorted(key.scopes))
        click.echo(
            f"{key.prefix}  {key.tenant}  {scopes}  made {day(key.created)}  {state(key)}  {key.name}".rstrip()
        )
    if not found:
        click.echo(f"no keys in {url}")


@command.command()
@STORE
@WHICH
def revoke(url: str, which: str) -> None:
    """Make a key useless from now on; KEY is its prefix."""
    with opened(url) as store:
        from gradeq.service.store.api_keys import end_key

        key = the_one(store, which)
        end_key(store, key.number, time.time())
    click.echo(f"{key.prefix} is no good any more")


@command.command()
@STORE
@WHICH
@click.option(
    "--overlap",
    default="24h",
    show_default=True,
    metavar="SPAN",
    help="How long the old key still works: 90s, 15m, 36h, 7d.",
)
def rotate(url: str, which: str, overlap: str) -> None:
    """Make a key with the same rights and print it; the old one works on for a while."""
    from gradeq.errors import BadInput
    from gradeq.spans import duration

    seconds = duration(overlap)
    if seconds is None or not 0.0 <= seconds < 1e9:
        raise BadInput(f"--overlap {overlap!r} is no duration; give 90s, 15m, 36h or 7d")
    with opened(url) as store:
        from gradeq.service.keys import new_key
        from gradeq.service.store.api_keys import add_key, end_key

        old = the_one(store, which)
        text, key = new_key(old.tenant, old.name, old.scopes)
        add_key(store, key)
        end_key(store, old.number, time.time() + seconds)
    click.echo(text)


def the_one(store: Any, which: str) -> Any:
    """The key with this prefix, which may be given as in a key, and which is still good."""
    from gradeq.errors import BadInput
    from gradeq.service.store.api_keys import keys_of

    prefix = which.removeprefix("gq_").partition("_")[0]
    for key in keys_of(store):
        if key.prefix == prefix and key.good(time.time()):
            return key
    raise BadInput(f"no key {prefix[:20]!r} that is good; `gradeq keys list` shows them")


def state(key: Any) -> str:
    """Whether a key is good."""
    now = time.time()
    if key.revoked is None:
        return "good"
    return f"good until {day(key.revoked)}" if key.good(now) else f"revoked {day(key.revoked)}"


def day(at: float) -> str:
    """A moment as people write it."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
