"""`ballast explain`: one executor, or the executors of a topology."""

from __future__ import annotations

from typing import Annotated

import typer

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import Format, OutputOption, show, structured
from ballast.cli.report.explained import (
    capacity_document,
    capacity_report,
    explanation_document,
    explanation_report,
)
from ballast.cli.situation import Situation
from ballast.cli.source import (
    SYSTEM_NAMESPACE,
    FileOption,
    NamespaceOption,
    PolicyOption,
    PrometheusOption,
    Seen,
    SystemOption,
    Where,
    look_once,
)
from ballast.planner.capacity import UnknownTopologyError, capacities
from ballast.planner.explanation import UnknownExecutorError
from ballast.planner.explanation import explain as explanation

EXAMPLES = (
    "kubectl ballast explain pod/clickstream-exec-3 -n analytics",
    "kubectl ballast explain clickstream-exec-3 -o yaml",
    "kubectl ballast explain topology/clickstream -n analytics",
    "ballast explain clickstream-exec-3 -f snapshot.yaml",
)

COLUMNS = (
    "DISTANCE    mean distance to what it talks to, by the policy's spec.levels",
    "SCORE       usage of the node in percent; AFTER: with the executor on it",
    "TRAFFIC     change of what the topology's traffic costs if it were there: +5% is more expensive",
    "MOVE THERE  possible, or the reason why not",
    "CAPACITY    share of the executor's task slots' time in which they run tasks",
    "LOAD        share of its cores (task slots, or its CPU request where that is less) that it uses",
)

_PODS = ("pod", "pods", "po")
_TOPOLOGIES = ("topology", "sparktopology", "sparktopologies", "stopo")


@reads_cluster
def explain(
    what: Annotated[
        str, typer.Argument(metavar="POD|topology/NAME", help="An executor's pod (NAME or pod/NAME), or a topology.")
    ],
    namespace: NamespaceOption = None,
    policy: PolicyOption = None,
    output: OutputOption = Format.TABLE,
    filename: FileOption = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Say why an executor is where it is, why it is or isn't moved, and where it could go, node by node.

    Of a topology: how busy each of its executors is (capacity), how much of its cores it uses (load), and what follows.
    """
    where = Where(filename, access, prometheus, system_namespace)
    kind, _, name = what.rpartition("/")
    if kind.lower() in _TOPOLOGIES and name:
        _topology(look_once(where, policy), name, namespace, output)
        return
    pod = pod_name(what)
    seen = look_once(where, policy)
    situation, key = located(seen, pod, namespace)
    found = explanation(situation.snapshot, situation.policy, situation.memory, situation.now, executor=key)
    if output.for_programs:
        typer.echo(structured(explanation_document(found), output))
    else:
        show(*explanation_report(found, situation, output), form=output)


def _topology(seen: Seen, name: str, namespace: str | None, output: Format) -> None:
    situation, key = topology_located(seen, name, namespace)
    found = capacities(situation.snapshot, key)
    if output.for_programs:
        typer.echo(structured(capacity_document(found), output))
    else:
        show(*capacity_report(found, situation.snapshot.nodes, wide=output is Format.WIDE), form=output)


def topology_located(seen: Seen, name: str, namespace: str | None) -> tuple[Situation, str]:
    """The situation that has the topology's executors, and its key. Raises UnknownTopologyError with what to do."""
    wanted = namespace or seen.namespace
    found = {
        executor.topology: situation
        for situation in seen.situations
        for executor in situation.snapshot.executors
        if executor.topology.rpartition("/")[2] == name and wanted in (None, executor.namespace)
    }
    if len(found) > 1:
        raise UnknownTopologyError(
            f"{name}: there are several: {', '.join(sorted(found))}; say which namespace with -n"
        )
    if not found:
        where = "" if wanted is None else f" in namespace {wanted}: say which namespace with -n"
        raise UnknownTopologyError(f"{name}: no executor belongs to a topology of that name{where}")
    key, situation = next(iter(found.items()))
    return situation, key


def pod_name(text: str) -> str:
    """Of `NAME` or `pod/NAME`. Raises BadParameter for another kind."""
    kind, _, name = text.rpartition("/")
    if (kind and kind.lower() not in _PODS) or not name:
        raise typer.BadParameter(
            f"{text!r}: only pods and topologies can be explained: write pod/NAME or topology/NAME", param_hint="POD"
        )
    return name


def located(seen: Seen, pod: str, namespace: str | None) -> tuple[Situation, str]:
    """The situation in whose pool the executor is, and its key. Raises UnknownExecutorError with what to do."""
    wanted = namespace or seen.namespace
    found = [
        (situation, executor)
        for situation in seen.situations
        for executor in situation.snapshot.executors
        if executor.name == pod and wanted in (None, executor.namespace)
    ]
    keys = sorted({executor.key for _, executor in found})
    if len(keys) > 1:
        raise UnknownExecutorError(f"{pod}: there are several: {', '.join(keys)}; say which namespace with -n")
    if not found:
        raise UnknownExecutorError(_absent(seen, pod, wanted))
    at_home = [(s, e) for s, e in found if e.node in {node.name for node in s.snapshot.nodes}]
    situation, executor = (at_home or found)[0]
    return situation, executor.key


def _absent(seen: Seen, pod: str, namespace: str | None) -> str:
    if seen.view is not None and namespace is not None:
        return seen.view.why_absent(namespace, pod)
    return f"{pod}: the file has no executor of that name" + (f" in namespace {namespace}" if namespace else "")
