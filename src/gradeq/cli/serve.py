"""``gradeq serve``: live layers over HTTP."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from gradeq.cli.options import WholeNumber, Within, option_group
from gradeq.errors import BadInput
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.service.app import Service

DAY = 86_400.0


serve_options = option_group(
    click.option("--store", "url", metavar="URL", help=(
        "Where everything is kept: a path or sqlite:///PATH for one file, postgresql://... for several servers on "
        "one store. Default gradeq.db.")),
    click.option("--host", default="127.0.0.1", show_default=True, help=(
        "The address to listen on; anything but this machine needs keys in the store.")),
    click.option("--port", type=WholeNumber(0, 65535), default=8000, show_default=True, help=(
        "The port; 0 takes a free one.")),
    click.option("--read-only", is_flag=True, help=(
        "Serve predictions from the store as it is; write nothing and learn nothing.")),
    click.option("--demo", is_flag=True, help=(
        "Stream a sample of the flights through the server in two minutes, to see the dashboard move; the store "
        "is a temporary file unless --store is given. Needs the extra `client` as well.")),
    click.option("--witness", type=click.Path(), metavar="FILE", help=(
        "Note in this file, best on another disk, how far each journal has come; if the store later lacks some of "
        "it, the layer serves but does not learn until you have taken note.")),
    click.option("--keep", type=Within(min=0, min_open=True), metavar="DAYS", help=(
        "Fold closed rows of the journals that are older than this into their sums, every hour, as `gradeq store "
        "fold` does. Default: keep every row.")),
    click.option("--rate", type=Within(min=0, min_open=True), default=200_000.0, metavar="N", help=(
        "Items a second for one key; more are answered with 429. Default 200,000.")),
    click.option("--max-body", type=WholeNumber(min=1_000), default=2_000_000, metavar="BYTES", help=(
        "The largest body of a call with predictions or labels. Default 2,000,000.")),
    click.option("--log-requests", is_flag=True, help="Log every call, not only those that are refused or slow."),
)  # fmt: skip


@click.command(short_help="Serve live layers over HTTP, with a durable journal.")
@serve_options
def command(
    url: str | None,
    host: str,
    port: int,
    read_only: bool,
    demo: bool,
    witness: str | None,
    keep: float | None,
    rate: float,
    max_body: int,
    log_requests: bool,
) -> None:
    """Serve live layers over HTTP, with a durable journal.

    Send predictions and get back what to serve; send labels when they are known. What is answered
    is on disk. The address, the first key (once, when the store has none) and a call to try are
    printed; logs go to stderr, one JSON object a line. The address opened in a browser shows the
    dashboard, /openapi.json describes every call. Needs the extra `service`.

    SIGTERM and Ctrl-C end it well: calls that are under way are answered, all that waits is
    committed.

    \b
    Examples
      gradeq serve
      gradeq serve --demo
      gradeq serve --store /var/lib/gradeq/layers.db --port 8080
      gradeq serve --store postgresql://gradeq@db/layers --host 0.0.0.0
    """
    from gradeq.cli.store import service_imports

    with service_imports("the HTTP service"):
        from gradeq.service.server import ServerSettings, serve
        from gradeq.service.telemetry import Limits, Log
    limits = Limits(body=max_body, rate=rate, burst=max(rate, 1.0))
    log = Log(requests=log_requests)
    seconds = None if keep is None else keep * DAY
    if keep is not None and read_only:
        raise BadInput("--keep folds journals, which --read-only forbids; leave one of them out")
    if not demo:
        store = url or "gradeq.db"
        serve(ServerSettings(store, host, port, read_only, limits, witness, seconds), log, greet)
        return
    if read_only:
        raise BadInput("--demo writes labels, which --read-only forbids; leave one of them out")
    from gradeq.service.demo import Demo

    with TemporaryDirectory(prefix="gradeq-demo-") as folder, Demo() as own:

        def greet_and_begin(service: Service, address: str, first: str | None) -> None:
            greet(service, address, first, demo=True)
            own.begin(service, address)

        store = url or f"{folder}/demo.db"
        settings = ServerSettings(store, host, port, read_only, limits, witness, seconds)
        serve(settings, log, greet_and_begin)


def greet(service: Service, address: str, first: str | None, demo: bool = False) -> None:
    count = len(service.desk.layers)
    layers = "no layers yet" if not count else some(count, "layer")
    mode = ", read only" if service.store.read_only else ""
    click.echo(f"gradeq serves {address} from {service.store.url} ({layers}{mode})")
    if first is not None:
        click.echo("\nYour first key, shown only now:\n")
        click.echo(f"  export GRADEQ_KEY={first}")
    if demo:
        click.echo("\nThe demo: flights out of New York stream through the server for two minutes.")
    elif not count and not service.store.read_only:
        click.echo("\nMake a layer:\n")
        click.echo(f'  curl -X PUT {address}/v1/layers/demand -H "Authorization: Bearer $GRADEQ_KEY" \\')
        click.echo("""    --json '{"kind": "debias", "eta": 0.05, "groups": ["region"]}'""")
    # What stands behind # signs the browser in and is never sent as part of an address.
    page = address if first is None else f"{address}/#{first}"
    click.echo(f"\nOpen {page} in a browser for the rest; Ctrl-C ends the server.")
    import sys

    sys.stdout.flush()
