"""`ballast` and `kubectl ballast`: one program under two names."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ballast.cli.terminal import guarded
from ballast.errors import BallastError, InvalidField, InvalidResource, nearest
from ballast.kube.errors import Forbidden, NotConnected, Unavailable
from ballast.runtime import seldom_sought

COMMANDS = {
    "status": "Show each pool: its nodes, topologies and open moves.",
    "dashboard": "Show pools as a live page of this machine.",
    "plan": "Show what would be done now, and what would not and why.",
    "explain": "Explain why an executor is where it is, how busy a topology is, or what a policy sets.",
    "snapshot": "Write a pool to a file, for `plan -f` and bug reports.",
    "approve": "Approve proposed moves.",
    "stop": "Stop policies: nothing is gated, placed or moved.",
    "start": "Start stopped policies again.",
    "simulate": "Run a described load under policies, and compare them.",
    "discover": "Propose a SparkTopology for what runs, as YAML to review.",
    "report": "Show what the shuffle of running applications costs, and what placing would save.",
    "size": "Recommend parallelism, batch size, memory and JVM options of a pipeline.",
    "doctor": "Check a cluster, or an application before it runs, and say what to change.",
    "run": "Run the operator.",
    "history": "Keep what happened in a cluster as Parquet, out of Prometheus.",
    "backtest": "Run policies over many windows and seeds on Spark, and rank them.",
    "audit": "Check whether streaming queries lost or duplicated records.",
    "pyfiles": "Write what Spark jobs import of Ballast to a file for spark-submit --py-files.",
    "release": "Release gated executors when no operator runs.",
    "uninstall": "Check whether Ballast can be uninstalled, and what would be left behind.",
    "crds": "Generate the custom resource definitions.",
    "docs": "Print a page of the documentation.",
    "version": "Show the versions of this program, the operator and the CRDs.",
}
"""Each is the function of its name in the module of its name (or in that of _MODULES), with EXAMPLES.

COLUMNS are there where it prints tables, COMMAND where the command has its own class.
"""

_MODULES = {"report": "applications", "start": "stop"}
"""`ballast.cli.report` is what commands print; two commands that undo each other share a module."""

_EXAMPLES = ("kubectl ballast status", "kubectl ballast plan -o yaml", "ballast plan -f snapshot.yaml")
_EXIT_CODES = (
    "0  all went well",
    "1  it could not be done, or something was found; standard error says why and what helps",
    "2  wrong usage",
)
_STYLE: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}

_LIBRARY_WORDS = (
    (re.compile("^Value error, "), ""),
    (re.compile("^Input should be a valid number.*"), "write a number"),
    (re.compile("^Input should be a valid integer.*"), "write a whole number"),
    (re.compile("^Input should be (?=greater|less)"), "write a number "),
)
"""What the library says of an option's value, and plain words for it."""
_USAGE = ("--", "SCENARIO", "PAGE")
"""What the field of an error begins with that is about the command line: options, and arguments."""
_DISTRIBUTION = "ballast-operator"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(TyperGroup):
    """Loads a command when it is asked for: what some of them need takes a second to load."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        return command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        near = nearest(args[0], COMMANDS)
        if near and near != args[0]:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            for words, plain in _LIBRARY_WORDS:
                error.message = words.sub(plain, error.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def app(name: str) -> typer.Typer:
    """The program, as it is called."""
    program = typer.Typer(
        name=name,
        cls=_Commands,
        help="Place Spark executors close to what they exchange data with, and even out the load of their nodes.",
        epilog=_listed("Examples", _EXAMPLES) + _listed("Exit codes", _EXIT_CODES),
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        **{**_STYLE, "add_completion": name == "ballast"},
    )
    program.callback()(_general)
    return program


def command(name: str) -> Any:
    """Loads it."""
    with seldom_sought():
        module = import_module(f"ballast.cli.{_MODULES.get(name, name)}")
    single = typer.Typer(**_STYLE)
    epilog = _listed("Columns", getattr(module, "COLUMNS", ())) + _listed("Examples", module.EXAMPLES)
    single.command(name, cls=getattr(module, "COMMAND", TyperCommand), epilog=epilog)(getattr(module, name))
    found: Any = get_command(single)
    for each in found.params:
        if each.param_type_name == "argument":
            each.display_type_rich = _untyped
    return found


def _untyped(ctx: Any) -> str:
    """Of an argument, whose type in Python tells users nothing."""
    del ctx
    return ""


def _listed(title: str, lines: Sequence[str]) -> str:
    """Kept line by line, which the leading character asks for."""
    return f"\b\n{title}:\n" + "\n".join(f"  {line}" for line in lines) + "\n\n" if lines else ""


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 -- for this alone

        typer.echo(f"ballast {version(_DISTRIBUTION)}")
        raise typer.Exit


def _general(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    call("ballast", sys.argv[1:])


def kubectl() -> None:
    call("kubectl ballast", sys.argv[1:])


def call(name: str, arguments: Sequence[str]) -> NoReturn:
    """Ends the process: 0 when all went well, 1 with one line a problem on stderr when it did not, 2 for wrong usage.

    An error's notes follow as they are.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    with guarded():
        _call(name, arguments)


def _call(name: str, arguments: Sequence[str]) -> NoReturn:
    try:
        app(name)(args=[*_apart(arguments)], prog_name=name)
    except BallastError as error:
        end(error)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        # What is still buffered would be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        end(BallastError(f"standard output can't be written: {error.strerror}: make room, or write to another place"))
    sys.exit(0)


def _apart(arguments: Sequence[str]) -> Iterator[str]:
    """With `-n=NAME` as `-n NAME`, which kubectl takes, too."""
    for each in arguments:
        yield from (each[:2], each[3:]) if re.match(r"-[nopf]=", each) else (each,)


def end(error: BallastError, *, code: int | None = None) -> NoReturn:
    """Ends the process with the error's text and notes on stderr. By default, with 2 if an option can't be used."""
    first, *more = (line.strip() for line in _message(error).splitlines() if line.strip())
    one = " ".join([first, *more]) if len(more) < 2 else "\n  ".join([first, *more])
    print(f"Error: {one}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(f"\n{note}", file=sys.stderr)
    place = error.field if isinstance(error, InvalidField) else error.what if isinstance(error, InvalidResource) else ""
    sys.exit(code or (2 if place.startswith(_USAGE) else 1))


def _message(error: BallastError) -> str:
    """With what users can do about a cluster that they can't reach, or may not read."""
    if isinstance(error, Forbidden):
        return f"you may not {error.action}: {error.message}"
    if isinstance(error, NotConnected) and error.status:
        return f"{error.action}: your credentials are not accepted: renew them, or name another --context"
    if isinstance(error, Unavailable) and not error.status:
        return f"{error}: see to the cluster, or name another --context or --kubeconfig"
    return str(error)
