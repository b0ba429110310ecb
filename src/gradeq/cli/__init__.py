"""The command line: reads files, writes adjusted files, a summary and a report.

``main`` is the installed command. Every failure is one line on stderr and an exit code: 2 for wrong usage, bad
input or a full disk, 3 for a damaged state, 130 after Ctrl-C, 1 for an internal error.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from traceback import print_exc, walk_tb
from types import FrameType
from typing import TYPE_CHECKING

import click

from gradeq._version import __version__
from gradeq.tables import some

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

COMMANDS = {
    "debias": "Remove the bias of predictions, overall and in every group.",
    "quantile": "Make quantile forecasts and intervals cover what they promise.",
    "label": "Post labels that arrived later, for rows that wait in a state.",
    "elo": "Rate players so that predicted and actual win rates agree.",
    "audit": "Check a saved state or the store of a service.",
    "serve": "Serve live layers over HTTP, with a durable journal.",
    "store": "Back up, move, fold, rebuild the store of a service.",
    "keys": "Create, list, replace and revoke the API keys of a store.",
    "demo": "Run the main job on real flights and write the report.",
    "reproduce": "Draw the figures of the paper.",
    "completion": "Print the script that completes gradeq in your shell.",
}
MODULES = {"keys": "api_keys"}  # of commands whose module has another name
INTERNAL_ERROR, BAD_INPUT, DAMAGED_STATE = 1, 2, 3
BY_SIGNAL, SIGINT, SIGPIPE = 128, 2, 13  # a process that a signal ended has 128 and its number


class Commands(click.Group):
    """Imports each subcommand when it is used: ``gradeq --help`` loads none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in ("debias", "quantile") and "numpy" not in sys.modules:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # they multiply no matrices, and idle threads spin
        module = MODULES.get(cmd_name, cmd_name)
        command: click.Command = import_module(f"gradeq.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="gradeq", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Keep deployed predictions honest.

    gradeq takes a file of predictions and labels, adjusts each prediction with what it learned
    from earlier labels, and writes the file with the adjusted values as a new column. In the long
    run, whatever the data, the bias (or miscoverage, or win-rate error) goes to zero. The summary
    says how close it got, at what cost in accuracy, and proves the figure from the state.

    \b
    gradeq debias scores.csv --prediction score --label outcome --by region -o adjusted.csv
    gradeq COMMAND --help     what a command does, its options, examples
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled like Ctrl-C: temporary files are removed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once is enough: cleaning up must not be interrupted
    raise Terminated(number)


def main(arguments: Sequence[str] | None = None) -> None:
    # Imports create many objects and no garbage; frequent collections would take a tenth of a short run.
    gc.set_threshold(100_000)
    # Closed standard streams are opened again, so that no output file gets their descriptor.
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    for name in ("SIGTERM", "SIGHUP"):
        ending = getattr(signal, name, None)
        if ending is not None and signal.getsignal(ending) == signal.SIG_DFL:
            signal.signal(ending, _stop)
    code = run(arguments)
    gc.freeze()  # nothing to collect at the end either
    if "pyarrow.csv" in sys.modules:
        # An Arrow thread may still be reading a file that was rejected midway, or (before pyarrow 21) hang;
        # it must not run into a finalizing interpreter.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    published_files().clear()
    if hasattr(sys.stdout, "reconfigure"):
        # A name that the terminal's encoding lacks is spelled out instead of ending the run.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if "_GRADEQ_COMPLETE" in os.environ:  # the shell asks for completions
            group.main(arguments, prog_name="gradeq")
        # Not ``group.main``, which prints a line of its own after Ctrl-C and hides a broken pipe.
        with group.make_context("gradeq", list(sys.argv[1:] if arguments is None else arguments)) as context:
            code = group.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        discard_stream(1)  # its reader has left, and does not want a line either
        return BY_SIGNAL + SIGPIPE
    except (click.Abort, KeyboardInterrupt) as interrupt:
        number = interrupt.number if isinstance(interrupt, Terminated) else SIGINT
        how = "" if published_files() else "; no output was written, the state is unchanged"
        return _fail(f"interrupted{how}", BY_SIGNAL + number)
    except click.ClickException as refusal:
        return _fail(_usage_message(refusal), BAD_INPUT)
    except Exception as error:
        return _fail(*_message_and_code(error))


def _usage_message(refusal: click.ClickException) -> str:
    context: click.Context | None = getattr(refusal, "ctx", None)
    message = refusal.format_message()
    if context is None:
        return message
    if type(refusal).__name__ == "NoArgsIsHelpError":
        known = ", ".join(context.command.list_commands(context))  # type: ignore[attr-defined]
        return f"{context.command_path} needs a command: {known}; see {context.command_path} --help"
    if isinstance(refusal, click.MissingParameter) and refusal.param is not None:
        parameter = refusal.param
        is_option = parameter.param_type_name == "option"
        name = parameter.opts[-1] if is_option else parameter.make_metavar(context)
        value = f"{name} {parameter.metavar}" if is_option and parameter.metavar else name
        return f"{name} is missing; give {value} (see {context.command_path} --help)"
    if message.startswith("No such command"):
        return f"{message.rstrip('.')}; {context.command_path} --help lists them"
    return message


def _message_and_code(error: Exception) -> tuple[str, int]:
    from gradeq.errors import GradeqError, OtherSettings, StateError
    from gradeq.files.paths import is_system_error, reason

    if os.environ.get("GRADEQ_DEBUG"):
        print_exc()
    if isinstance(error, StateError) and not isinstance(error, OtherSettings):
        return str(error), DAMAGED_STATE
    if isinstance(error, GradeqError):
        return str(error), BAD_INPUT
    if isinstance(error, MemoryError):
        return "out of memory; use a machine with more, or a smaller file", BAD_INPUT
    if isinstance(error, OSError):
        why = error.strerror or str(error)
        frames = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
        if click.echo.__code__ in frames or frames[-1] is run.__code__:  # only these write to standard output
            discard_stream(1)
            return f"standard output cannot be written: {why}; make room or send it elsewhere", BAD_INPUT
        where = os.fsdecode(error.filename or "a file")
        return f"{where} cannot be used: {why}; make room or choose another place", BAD_INPUT
    if is_system_error(error):
        what = f"the input or an option has a value beyond what can be computed with: {reason(error)}"
        return f"{what}; look for huge numbers and odd types", BAD_INPUT
    what = f"{type(error).__name__}: {error}"
    return f"internal error in gradeq ({what}); set GRADEQ_DEBUG=1 for the traceback", INTERNAL_ERROR


def _fail(message: str, code: int) -> int:
    """Print one line on stderr, without control characters, that names the files already written."""
    placed = list(published_files())
    if placed:
        others = f" and {len(placed) - 5} more" if len(placed) > 5 else ""
        message += f"; already written completely: {', '.join(placed[:5])}{others}"
    line = " ".join(message.split())
    line = "".join(c if c.isprintable() else "\ufffd" for c in line)
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(errors="backslashreplace")
    try:
        print(f"gradeq: error: {line[:1000]}", file=sys.stderr, flush=True)
    except OSError:  # without a reader the exit code says it
        discard_stream(2)
    return code


def discard_stream(stream: int) -> None:
    """Point a closed stream at /dev/null, so that flushing it at exit does not raise."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def published_files() -> deque[str]:
    """The outputs that this run has published, without importing gradeq.files."""
    module = sys.modules.get("gradeq.files.paths")
    return deque() if module is None else module.published_paths


_PATIENCE = 1.0  # seconds before the bar is imported and shown


@contextmanager
def progress(title: str, quiet: bool) -> Iterator[Callable[[int, float | None], None]]:
    """Yields a callback for the rows done and the share of the input read; shows a bar if rich is installed."""
    if quiet or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda rows, share: None
        return
    bar: Progress | None = None
    task: TaskID
    began = time.monotonic()

    def step(rows: int, share: float | None) -> None:
        nonlocal bar, task
        passed = time.monotonic() - began
        if passed < _PATIENCE:
            return
        if bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            words = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}")
            bar = Progress(*words, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            bar.start()
            task = bar.add_task(title, total=1.0 if share is not None else None, rate="")
        bar.update(task, completed=share or 0.0, rate=f"{some(rows, 'row')}, {rows / passed:,.0f}/s")

    try:
        yield step
    finally:
        if bar is not None:
            bar.stop()
