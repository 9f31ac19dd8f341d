"""`ballast status`: the pools as they are now."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import Format, OutputOption, console, plain, show, structured
from ballast.cli.report.pool import pool_document, pool_report
from ballast.cli.source import (
    SYSTEM_NAMESPACE,
    FileOption,
    Look,
    PolicyOption,
    PrometheusOption,
    Seen,
    SystemOption,
    Where,
    problem_lines,
    source,
)
from ballast.errors import BallastError

EXAMPLES = (
    "kubectl ballast status",
    "kubectl ballast status -p streaming -o wide",
    "kubectl ballast status -n analytics",
    "kubectl ballast status --watch",
    "kubectl ballast status --prometheus http://localhost:9090",
)

COLUMNS = (
    "SCORE       usage of the node in percent: the largest of those that metrics.weights weighs",
    "PROJECTED   the score when everything that arrives or leaves has done so (-o wide)",
    "EXECUTORS   of a node: running and pending; of a topology: running, of how many it declares",
    "PAIR        the node at the other end of too wide a gap: executors would move from or to it",
    "HITS        how often in a row the gap was over the low and the high threshold, of how many",
    "GATED       executors that are held until their set is placed",
    "CROSS-ZONE  share of the topology's traffic between zones; likewise racks and nodes",
    "COST        mean distance that its traffic travels; AT BEST what it can't fall below (-o wide)",
    "MOVES       paused, when the topology's last moves all failed or did not help",
    "HELPED      whether the move made things better, once that has been judged",
)


@reads_cluster
def status(
    policy: PolicyOption = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Only topologies and moves of it. Default: all.", metavar="NAME"),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Topologies and moves of all namespaces, as without -n.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option(help="Seconds between two looks of --watch.", min=0.5, metavar="SECONDS")
    ] = 5.0,
    output: OutputOption = Format.TABLE,
    filename: FileOption = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Show each pool: its nodes with scores, executors, pairs and hits, its topologies and open moves."""
    if watch and output.for_programs:
        raise typer.BadParameter("--watch draws for people: leave out -o, or say -o wide", param_hint="--watch")
    if everywhere and namespace is not None:
        raise typer.BadParameter("say -n or -A, not both", param_hint="--all-namespaces")
    with source(Where(filename, access, prometheus, system_namespace)) as look:
        if watch:
            with contextlib.suppress(KeyboardInterrupt):
                _watch(_within(look, namespace), policy, output, every_seconds=every)
            return
        seen = _within(look, namespace)(policy)
    if output.for_programs:
        typer.echo(structured(status_document(seen), output))
    else:
        show(*status_report(seen, output), form=output)


def _within(look: Look, namespace: str | None) -> Look:
    """Looks as `look`, and shows what is of that namespace; nodes are of none."""
    return lambda policy: replace(look(policy), only_namespace=namespace)


def status_report(seen: Seen, form: Format) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for situation in seen.situations:
        report = pool_report(situation, form, namespace=seen.only_namespace)
        parts += [Text(), *report] if parts else report
    return [*parts, *_unled(seen), *problem_lines(seen)]


def _unled(seen: Seen) -> list[RenderableType]:
    if seen.operator_runs is not False:
        return []
    words = (
        f"its lease in namespace {seen.system_namespace} is not held. "
        "Is the operator in another namespace? Set --system-namespace."
    )
    return [Text(), Text.assemble(("No operator runs: ", "red"), words, overflow="fold")]


def status_document(seen: Seen) -> dict[str, Any]:
    """`operatorRuns` is null for a file, and where leases may not be read."""
    return {
        "operatorRuns": seen.operator_runs,
        "policies": [pool_document(each, namespace=seen.only_namespace) for each in seen.situations],
        "problems": list(seen.problems),
    }


def _watch(look: Look, policy: str | None, form: Format, *, every_seconds: float) -> None:
    """In a terminal the picture is redrawn in its place, elsewhere one follows the other."""
    out = console(form)
    if not out.is_terminal:
        while True:
            typer.echo(f"{plain(*status_report(look(policy), form))}\n")
            time.sleep(every_seconds)
    with Live(console=out, auto_refresh=False, screen=True, vertical_overflow="ellipsis") as live:
        while True:
            live.update(Group(*_picture(look, policy, form)), refresh=True)
            time.sleep(every_seconds)


def _picture(look: Look, policy: str | None, form: Format) -> list[RenderableType]:
    stamp = Text(time.strftime("%H:%M:%S"), style="dim")
    try:
        return [stamp, *status_report(look(policy), form)]
    except BallastError as error:
        return [stamp, Text(f"Error: {error}", style="red", overflow="fold")]
