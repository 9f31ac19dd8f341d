"""`ballast snapshot`: one pool as a file, for `plan -f`, `explain -f` and bug reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ballast.cli.access import ContextOption, KubeconfigOption
from ballast.cli.output import saved, writable
from ballast.cli.situation import Situation, dump
from ballast.cli.source import (
    SYSTEM_NAMESPACE,
    NotThatPolicyError,
    PolicyOption,
    PrometheusOption,
    Seen,
    SystemOption,
    Where,
    look_once,
)

EXAMPLES = (
    "kubectl ballast snapshot -o snapshot.yaml",
    "kubectl ballast snapshot -p streaming > streaming.yaml",
)


def snapshot(
    policy: PolicyOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write. Default: standard output.", metavar="FILE", callback=writable
        ),
    ] = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Write one policy's pool as YAML: its nodes, executors, topologies, moves, figures and hits as they are now.

    A file that ends in .json gets JSON, which is quicker where there are thousands of executors.

    It holds names, labels, requests and figures; no secrets, no environment, no logs.
    """
    seen = look_once(Where(None, kubeconfig, context, prometheus, system_namespace), policy)
    situation = only(seen)
    text = dump(situation, as_json=output is not None and output.suffix == ".json")
    if output is None:
        typer.echo(text, nl=False)
        return
    saved(output, text, field="--output")
    nodes, executors = len(situation.snapshot.nodes), len(situation.snapshot.executors)
    typer.echo(f"policy {situation.policy.name}: {nodes} nodes, {executors} executors", err=True)


def only(seen: Seen) -> Situation:
    """Raises NotThatPolicyError when there are several."""
    if len(seen.situations) > 1:
        names = ", ".join(each.policy.name for each in seen.situations)
        raise NotThatPolicyError(f"a file holds one policy's pool; say which with -p: {names}")
    return seen.situations[0]
