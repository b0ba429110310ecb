"""The command line: files in; adjusted files, verdict and report out.

``main`` is the installed command. Every failure ends as one line on stderr: exit code 2 for wrong
usage, bad input or a full disk, 3 for a damaged state, 130 after Ctrl-C, 1 for an internal error.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from traceback import walk_tb
from typing import Any

import click

from gradeq._version import __version__
from gradeq.cli.process import Stopped, end_well, in_place, lost, one_line, open_streams

COMMANDS = {
    "debias": "Remove the bias of predictions, overall and in every group.",
    "quantile": "Make quantile forecasts and intervals cover what they promise.",
    "label": "Post labels that arrived later, for rows that wait in a state.",
    "elo": "Rate players so that predicted and actual win rates agree.",
    "audit": "Check a saved state or the store of a service.",
    "serve": "Serve live layers over HTTP, with a durable journal.",
    "store": "Back up, move, fold, rebuild the store of a service.",
    "keys": "Make, list, replace and revoke the API keys of a store.",
    "demo": "Run the main job on real flights and write the report.",
    "reproduce": "Draw the figures of the paper.",
    "completion": "Print the script that completes gradeq in your shell.",
}
MODULES = {"keys": "api_keys"}  # of commands whose module has another name
OWN_FAULT, BAD_INPUT, DAMAGED_STATE = 1, 2, 3
BY_SIGNAL, SIGINT, SIGPIPE = 128, 2, 13  # a process that a signal ended has 128 and its number


class Interrupted(Exception):
    """Ctrl-C or another signal, under a name that click does not print a line for."""


class Unread(Exception):
    """The reader of standard output has left, under a name that click leaves to us."""


@contextmanager
def _ours() -> Iterator[None]:
    """Ends of a run that click would tell in its own way."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Interrupted from interrupt
    except BrokenPipeError as gone:
        raise Unread from gone


class Commands(click.Group):
    """The subcommands, each imported when it is used: ``gradeq --help`` loads none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from the module of its name."""
        if cmd_name not in COMMANDS:
            return None
        module = MODULES.get(cmd_name, cmd_name)
        command: click.Command = import_module(f"gradeq.cli.{module}").command
        return command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read what stands before the command; help and version are printed here."""
        with _ours():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _ours():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    # Imports make many objects and no garbage: looking for it all the while takes a tenth of a short run.
    gc.set_threshold(100_000)
    open_streams()
    one_line()
    end_well()
    code = run(arguments)
    gc.freeze()  # nor is there anything to look for at the end
    if "pyarrow.csv" in sys.modules:
        # A thread of arrow may still read ahead in a file that was refused half read, or (before pyarrow 21) wait
        # for nothing; it must not meet an interpreter that is ending.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    in_place().clear()
    if hasattr(sys.stdout, "reconfigure"):
        # A name that the terminal's encoding lacks is spelled out instead of ending the run.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = group.main(arguments, prog_name="gradeq", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except (Interrupted, click.Abort, KeyboardInterrupt) as interrupt:
        return _interrupted(interrupt)
    except click.ClickException as refusal:
        return _fail(refusal.format_message(), BAD_INPUT)
    except (BrokenPipeError, Unread):
        lost(1)  # its reader has left, and does not want a line either
        return BY_SIGNAL + SIGPIPE
    except Exception as error:
        return _explained(error)


def _interrupted(interrupt: BaseException) -> int:
    """What is true after Ctrl-C or a signal that ends a process."""
    cause = interrupt.__cause__ or interrupt
    number = cause.number if isinstance(cause, Stopped) else SIGINT
    how = "" if in_place() else "; no output was written, the state is unchanged"
    return _fail(f"interrupted{how}", BY_SIGNAL + number)


def _explained(error: Exception) -> int:
    from gradeq.errors import GradeqError, OtherSettings, StateError
    from gradeq.files.failures import is_beneath, reason

    if os.environ.get("GRADEQ_DEBUG"):
        import traceback

        traceback.print_exc()
    if isinstance(error, StateError) and not isinstance(error, OtherSettings):
        return _fail(str(error), DAMAGED_STATE)
    if isinstance(error, GradeqError):
        return _fail(str(error), BAD_INPUT)
    if isinstance(error, MemoryError):
        return _fail("out of memory; use a machine with more, or a smaller file", BAD_INPUT)
    if isinstance(error, OSError):
        return _fail(_of_the_system(error), BAD_INPUT)
    if is_beneath(error):
        told = (
            f"the input or an option has a value beyond what can be computed with: {reason(error)}"
        )
        return _fail(f"{told}; look for huge numbers and odd types", BAD_INPUT)
    what = f"{type(error).__name__}: {error}"
    return _fail(
        f"internal error in gradeq ({what}); set GRADEQ_DEBUG=1 for the traceback", OWN_FAULT
    )


def _of_the_system(error: OSError) -> str:
    """What the system refused: a file, or standard output, which is written by echo and by run alone."""
    reason = error.strerror or str(error)
    frames = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    if click.echo.__code__ in frames or frames[-1] is run.__code__:
        lost(1)
        return f"standard output cannot be written: {reason}; make room or send it elsewhere"
    where = os.fsdecode(error.filename or "a file")
    return f"{where} cannot be used: {reason}; make room or choose another place"


def _fail(message: str, code: int) -> int:
    """One line on stderr, without characters that could move the cursor; what was written before is said."""
    placed = list(in_place())
    if placed:
        others = f" and {len(placed) - 5} more" if len(placed) > 5 else ""
        message += f"; in their places already, each whole: {', '.join(placed[:5])}{others}"
    line = " ".join(message.split())
    line = "".join(c if c.isprintable() else "\ufffd" for c in line)
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(errors="backslashreplace")
    try:
        print(f"gradeq: error: {line[:1000]}", file=sys.stderr, flush=True)
    except OSError:  # where nobody listens the exit code says it
        lost(2)
    return code
