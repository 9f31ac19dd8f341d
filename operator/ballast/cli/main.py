"""`ballast` and `kubectl ballast`: one program under two names."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from ballast.cli import approve, crds, explain, plan, release, run, snapshot, status
from ballast.errors import BallastError
from ballast.kube.errors import Forbidden

EXAMPLES = (
    "kubectl ballast status",
    "kubectl ballast plan -o yaml",
    "ballast plan -f snapshot.yaml",
)

_DISTRIBUTION = "ballast-operator"


def app(name: str) -> typer.Typer:
    """The program, as it is called."""
    program = typer.Typer(
        name=name,
        help="Keep Spark executors close to what they talk to, and the nodes under them level.",
        epilog=_epilog(EXAMPLES),
        no_args_is_help=True,
        add_completion=name == "ballast",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(_general)
    for command, examples in _commands():
        program.command(epilog=_epilog(examples))(command)
    return program


def _commands() -> list[tuple[Callable[..., None], tuple[str, ...]]]:
    return [
        (status.status, status.EXAMPLES),
        (plan.plan, plan.EXAMPLES),
        (explain.explain, explain.EXAMPLES),
        (snapshot.snapshot, snapshot.EXAMPLES),
        (approve.approve, approve.EXAMPLES),
        (run.run, run.EXAMPLES),
        (release.release, release.EXAMPLES),
        (crds.crds, ()),
    ]


def _epilog(examples: tuple[str, ...]) -> str:
    """Kept line by line, which the leading character asks for."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples) if examples else ""


def _show_version(wanted: bool) -> None:
    if wanted:
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
    """Ends the process: 0 when all went well, 1 with one line on stderr when it did not, 2 for wrong usage."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        app(name)(args=list(arguments), prog_name=name)
    except Forbidden as error:
        _fail(f"you may not {error.action}: {error.message}")
    except BallastError as error:
        _fail(str(error))
    sys.exit(0)


def _fail(message: str) -> NoReturn:
    first, *more = (line.strip() for line in message.splitlines() if line.strip())
    print(f"Error: {first}{' ' if more else ''}{'; '.join(more)}", file=sys.stderr)
    sys.exit(1)
