"""The command line: one file a command, no logic of its own.

Exit codes are those of `discreet.cli.printing`.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TextIO, cast

import typer

from discreet._version import __version__
from discreet.cli.app import open_page
from discreet.cli.assess import assess
from discreet.cli.budget import budget
from discreet.cli.compare import compare
from discreet.cli.dp import dp
from discreet.cli.evaluate import evaluate
from discreet.cli.federated import federated
from discreet.cli.finish import finish
from discreet.cli.inspect import inspect
from discreet.cli.methods import methods
from discreet.cli.one_measure import attack, risk
from discreet.cli.options import in_one_run
from discreet.cli.outputs import outputs
from discreet.cli.preflight import preflight
from discreet.cli.printing import BAD_INPUT, DEFECT, say_paragraph
from discreet.cli.protect import protect
from discreet.cli.register import register
from discreet.cli.suggest import search, suggest
from discreet.cli.synthesize import synthesize
from discreet.cli.table import table
from discreet.core.errors import DiscreetError, DiscreetWarning, gave_up
from discreet.core.files.atomic import written

app = typer.Typer(
    name="discreet",
    help="How risky is this data, and what may be released? Start with: discreet inspect FILE",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def add(command: Callable[..., None], name: str | None = None) -> None:
    """Make a function a command."""
    app.command(name)(in_one_run(command))


for one in (
    assess, inspect, risk, attack, protect, suggest, search, preflight, synthesize, finish, compare, evaluate, methods,
):  # fmt: skip
    add(one)
add(open_page, "app")
for group in (table, outputs, budget, register, dp, federated):
    for registered in group.registered_commands:
        if registered.callback is not None:
            registered.callback = in_one_run(registered.callback)
    app.add_typer(group)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


@cache
def _command() -> Callable[[], None]:
    """Build the tree of commands, once for all that a process runs."""
    tree = typer.main.get_command(app)
    _show_brackets(tree)
    return cast(Callable[[], None], tree)


def _show_brackets(command: Any) -> None:
    """Let help show what stands in brackets, as [peers] of a site file: it would be taken for markup and left out."""
    from rich.markup import escape

    for part in (command, *command.params):
        for text in ("help", "short_help", "epilog"):
            if isinstance(getattr(part, text, None), str):
                setattr(part, text, escape(getattr(part, text)))
    for inner in getattr(command, "commands", {}).values():
        _show_brackets(inner)


def main() -> None:
    """Run the command line and turn every refusal into one paragraph and an exit code."""
    warnings.showwarning = _shown_plainly
    for stream in (sys.stdout, sys.stderr):
        # A console that knows few characters shows the code of the others; it is no reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    already = len(written())
    try:
        _command()()
    except DiscreetError as error:
        _refuse(f"{error} {_said_of_files(already)}" if len(written()) > already else str(error), BAD_INPUT)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
    except BaseException as error:
        # An engine in Rust gives up with an error that is no Exception; what the user or the system ends is not ours.
        if not gave_up(error):
            raise
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            _refuse("The name of a file is longer than this system allows. Give a shorter one.", BAD_INPUT)
        if os.environ.get("DISCREET_TRACEBACK"):
            raise
        _refuse(
            f"Something went wrong inside discreet ({type(error).__name__}). {_said_of_files(already)} Run again with "
            "DISCREET_TRACEBACK=1 in the environment to see where (the trace may show data), and please report it.",
            DEFECT,
        )


def _said_of_files(already: int) -> str:
    """Say what is in place although the run failed: it may have come as far as its first files."""
    done = list(dict.fromkeys(written()[already:]))
    if not done:
        return "Nothing was written."
    return f"Written before that, and complete: {', '.join(done)}."


def _refuse(message: str, code: int) -> None:
    typer.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    say_paragraph(message, err=True)
    raise SystemExit(code)


def _shown_plainly(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show our own warnings as a note, and keep those of other libraries to themselves."""
    if issubclass(category, DiscreetWarning):
        typer.secho("Note: ", fg="yellow", bold=True, nl=False, err=True)
        say_paragraph(str(message), err=True)
