"""`ballast plan`: what would be done now, changing nothing."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import Format, OutputOption, show, structured
from ballast.cli.report.planned import Planned, plan_document, plan_report, planned
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
    problem_lines,
)
from ballast.errors import BallastError

EXAMPLES = (
    "kubectl ballast plan",
    "kubectl ballast plan clickstream -n analytics",
    "kubectl ballast plan -p streaming -o yaml",
    "ballast plan -f snapshot.yaml",
)

COLUMNS = (
    "GAIN        points by which the gap between the scores of the two nodes narrows",
    "HOT, COLD   the two nodes' scores, now -> afterwards",
    "TRAFFIC     change of what the topology's traffic costs: +5% costs more (farther apart)",
    "HITS        how often in a row the gap was too wide (-o wide)",
    "SLOWNESS    its seconds per task by those of its application's fastest quarter (-o wide)",
    "CORES       CPU cores that go with it (-o wide)",
    "PIN         the level that the executor is tied to, nearer ones being preferred",
    "CROSS-ZONE  share of the topology's traffic between zones; likewise racks and nodes",
    "COST        mean distance that its traffic travels (-o wide)",
    "RELOCATED   executors that would be on another node if all were placed again",
    "NO PLACE    executors that no node would take then, with the first one's reason",
    "SUBJECT     the executor, the node or the policy that the reason is about",
)


class NothingOfThatNameError(BallastError):
    """Neither a topology nor a policy, or several topologies."""


@reads_cluster
def plan(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A topology (name, or namespace/name) or a BalancingPolicy. Default: all."),
    ] = None,
    namespace: NamespaceOption = None,
    policy: PolicyOption = None,
    output: OutputOption = Format.TABLE,
    filename: FileOption = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Show what would be done now: moves from -> to with their gain, placements, and what is refused and why.

    For each topology: how much of its traffic crosses zones and racks, and how much would if it were placed again.
    Changes nothing.
    """
    seen = look_once(Where(filename, access, prometheus, system_namespace), policy)
    found = chosen(seen, name, namespace)
    if output.for_programs:
        typer.echo(
            structured({"plans": [plan_document(each) for each in found], "problems": list(seen.problems)}, output)
        )
        return
    for position, each in enumerate(found):
        show(*([Text()] if position else []), *plan_report(each, output), form=output)
    show(*problem_lines(seen), form=output)


def chosen(seen: Seen, name: str | None, namespace: str | None) -> list[Planned]:
    """The plans that a name asks for. Raises NothingOfThatNameError with the names that there are."""
    if name is None:
        return [planned(each) for each in seen.situations]
    by_policy = [planned(each) for each in seen.situations if each.policy.name == name]
    if by_policy:
        return by_policy
    key = _topology_key(seen, name, namespace)
    found = [planned(each, key) for each in seen.situations]
    # A topology that several policies may steer belongs to the pool that its executors are in.
    return [each for each in found if each.replanned] or found[:1]


def _topology_key(seen: Seen, name: str, namespace: str | None) -> str:
    known = sorted(
        {t.key for each in seen.situations for t in each.snapshot.topologies}
        | {e.topology for each in seen.situations for e in each.snapshot.executors}
    )
    matching = [key for key in known if name in (key, key.split("/", 1)[1])]
    preferred = namespace or seen.namespace
    if len(matching) > 1 or namespace is not None:
        matching = [key for key in matching if key.split("/", 1)[0] == preferred] or ([] if namespace else matching)
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise NothingOfThatNameError(f"{name}: several topologies are called that: {', '.join(matching)}; say -n")
    policies = ", ".join(each.policy.name for each in seen.situations)
    listed = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
    raise NothingOfThatNameError(
        f"{name}: no topology or BalancingPolicy; topologies: {listed or 'none'}; policies: {policies}"
    )
