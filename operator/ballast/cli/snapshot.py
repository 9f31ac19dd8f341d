"""`ballast snapshot`: one pool as a file, for `plan -f`, `explain -f` and bug reports."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ballast.cli.access import ANYHOW, Access, reads_cluster
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
    "kubectl ballast snapshot > snapshot.yaml",
    "kubectl ballast snapshot -p streaming --output-file streaming.yaml",
    "kubectl ballast snapshot -p streaming -o json | ballast plan -f -",
)


class Written(StrEnum):
    YAML = "yaml"
    JSON = "json"


@reads_cluster
def snapshot(
    policy: PolicyOption = None,
    output: Annotated[
        Written | None,
        typer.Option("--output", "-o", help="How to write it; yaml by default, unless the file ends in .json."),
    ] = None,
    output_file: Annotated[
        Path | None, typer.Option(help="File to write. Default: standard output.", metavar="FILE", callback=writable)
    ] = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Write one policy's pool as YAML: its nodes, executors, topologies, moves, metrics and hits as they are now.

    JSON is quicker where there are thousands of executors.

    It holds names, labels, requests and metrics; no secrets, no environment, no logs.
    """
    seen = look_once(Where(None, access, prometheus, system_namespace), policy)
    situation = only(seen)
    text = dump(situation, as_json=_is_json(output, output_file))
    if output_file is None:
        typer.echo(text, nl=False)
        return
    saved(output_file, text, field="--output-file")
    nodes, executors = len(situation.snapshot.nodes), len(situation.snapshot.executors)
    typer.echo(f"policy {situation.policy.name}: {nodes} nodes, {executors} executors", err=True)


def _is_json(output: Written | None, file: Path | None) -> bool:
    if output is not None:
        return output is Written.JSON
    return file is not None and file.suffix == ".json"


def only(seen: Seen) -> Situation:
    """Raises NotThatPolicyError when there are several."""
    if len(seen.situations) > 1:
        names = ", ".join(each.policy.name for each in seen.situations)
        raise NotThatPolicyError(f"a file holds one policy's pool; name one with -p: {names}")
    return seen.situations[0]
