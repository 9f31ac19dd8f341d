"""`ballast` and `kubectl ballast`: one program under two names."""

from __future__ import annotations

import sys

import typer

from ballast.cli import approve, crds, explain, plan, release, run, snapshot, status
from ballast.errors import BallastError

EPILOG = "Examples:  kubectl ballast status  ·  kubectl ballast plan -o yaml  ·  ballast plan -f snapshot.yaml"


def app(name: str) -> typer.Typer:
    """The program, as it is called."""
    program = typer.Typer(
        name=name,
        help="Keep Spark executors close to what they talk to, and the nodes under them level.",
        epilog=EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in (status.status, plan.plan, explain.explain, snapshot.snapshot, approve.approve):
        program.command()(command)
    for command in (run.run, release.release, crds.crds):
        program.command()(command)
    return program


def main() -> None:
    _called("ballast")


def kubectl() -> None:
    _called("kubectl ballast")


def _called(name: str) -> None:
    try:
        app(name)()
    except BallastError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)
