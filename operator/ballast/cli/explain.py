"""`ballast explain`: one executor, the executors of a topology, or the fields of a policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ballast.api import BalancingPolicy
from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import AS_TABLE, Format, OutputOption, heading, percent, points, rounded, table
from ballast.cli.report.policy_fields import policy_document, policy_named, policy_report
from ballast.cli.report.pool import POLICY, TOPOLOGY, Naming, move_document, move_table, zone_and_rack
from ballast.cli.situation import Situation
from ballast.cli.source import (
    SYSTEM_NAMESPACE,
    AllNamespacesOption,
    FileOption,
    NamespaceOption,
    PolicyOption,
    PrometheusOption,
    Seen,
    SystemOption,
    Where,
    one_namespace,
    source,
)
from ballast.cli.watch import EVERY_SECONDS, Answer, EveryOption, WatchOption, answer, pace
from ballast.model import Cause, Node, Scope
from ballast.moves.eligibility import pressure_words
from ballast.planner.capacity import ADVICE, UNEVEN_REMEDIES, Capacities, UnknownTopologyError, capacities
from ballast.planner.explanation import Alternative, End, Explanation, UnknownExecutorError
from ballast.planner.explanation import explain as explanation

EXAMPLES = (
    "kubectl ballast explain pod/clickstream-exec-3 -n analytics",
    "kubectl ballast explain clickstream-exec-3 -o yaml",
    "kubectl ballast explain topology/clickstream -n analytics --watch",
    "kubectl ballast explain policy/streaming -o json",
    "kubectl ballast explain pod/clickstream-exec-3 -o jsonpath='{.grounds[0]}'",
    "ballast explain clickstream-exec-3 -f snapshot.yaml",
)

COLUMNS = (
    "DISTANCE    mean distance to what it talks to, by the policy's spec.levels",
    "SCORE       usage of the node in percent; AFTER: with the executor (its own: without)",
    "TRAFFIC     change of what the topology's traffic costs if it were there: +5% is more expensive",
    "MOVE THERE  possible, or the reason why not",
    "CAPACITY    share of the executor's task slots' time in which they run tasks",
    "LOAD        share of its cores (task slots, or its CPU request where that is less) that it uses",
)

_PODS = ("pod", "pods", "po")
_POLICIES = ("policy", "balancingpolicy", "balancingpolicies", "bpol")
_TOPOLOGIES = ("topology", "sparktopology", "sparktopologies", "stopo")


@reads_cluster
def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="POD|topology/NAME|policy/NAME",
            help="An executor's pod (NAME or pod/NAME), a topology, or a policy; or TYPE NAME.",
            show_default=False,
        ),
    ],
    namespace: NamespaceOption = None,
    everywhere: AllNamespacesOption = False,
    policy: PolicyOption = None,
    watch: WatchOption = False,
    every: EveryOption = EVERY_SECONDS,
    output: OutputOption = AS_TABLE,
    filename: FileOption = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Explain why an executor is where it is, why it is or isn't moved, and where it could go, node by node.

    Of a topology: how busy each of its executors is (capacity), how much of its cores it uses (load), and what follows.
    Of a policy: every field with its value, and whether it comes from the spec, the profile or the default. There, -f
    names a file with BalancingPolicies.
    """
    only = one_namespace(namespace, everywhere=everywhere)
    if len(words) > 2:
        raise typer.BadParameter(f"{' '.join(words)!r}: write TYPE/NAME or TYPE NAME", param_hint="POD")
    what = "/".join(words)
    kind, _, name = what.rpartition("/")
    kind = kind.lower().removesuffix(".ballast.dev")
    every_seconds = pace(every, watch=watch, file=filename)
    if kind in _POLICIES and name:
        answer(lambda: _policy(policy_named(name, filename, access)), output, every_seconds=every_seconds)
        return
    if kind not in _TOPOLOGIES or not name:
        kind, name = "pod", pod_name(what)
    explained = _executor if kind == "pod" else _topology
    with source(Where(filename, access, prometheus, system_namespace)) as look:

        def ask() -> Answer:
            seen = look(policy)
            return explained(replace(seen, namespace=None) if everywhere else seen, name, only, output.form)

        answer(ask, output, every_seconds=every_seconds)


def _executor(seen: Seen, pod: str, namespace: str | None, form: Format) -> Answer:
    situation, key = located(seen, pod, namespace)
    found = explanation(situation.snapshot, situation.policy, situation.memory, situation.now, executor=key)
    return Answer(
        lambda: explanation_report(found, situation, form),
        lambda: explanation_document(found),
        lambda: [f"pod/{pod}"],
    )


def _topology(seen: Seen, name: str, namespace: str | None, form: Format) -> Answer:
    situation, key = topology_located(seen, name, namespace)
    found = capacities(situation.snapshot, key)
    return Answer(
        lambda: capacity_report(found, situation.snapshot.nodes, wide=form is Format.WIDE),
        lambda: capacity_document(found),
        lambda: [f"{TOPOLOGY}/{name}"],
    )


def _policy(resource: BalancingPolicy) -> Answer:
    return Answer(
        lambda: policy_report(resource),
        lambda: policy_document(resource),
        lambda: [f"{POLICY}/{resource.metadata.name}"],
    )


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
            f"{text!r}: only pods, topologies and policies can be explained: write pod/, topology/ or policy/NAME",
            param_hint="POD",
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
    if seen.view is not None:
        return f"{pod}: no pool has an executor of that name: say its namespace with -n to learn why"
    return f"{pod}: the file has no executor of that name" + (f" in namespace {namespace}" if namespace else "")


_MOST_NODES = 12

_WITHIN = {
    Scope.PROCESS: "in its process",
    Scope.NODE: "on its node",
    Scope.RACK: "in its rack",
    Scope.ZONE: "in its zone",
    Scope.CLUSTER: "in other zones",
}


def explanation_report(found: Explanation, situation: Situation, form: Format = Format.TABLE) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    wide = form is Format.WIDE
    naming = Naming.of(situation.snapshot.nodes, whole=wide)
    parts: list[RenderableType] = [
        *_header(found),
        heading("Why it is there"),
        *(Text(f"- {ground}", overflow="fold") for ground in found.grounds),
    ]
    if found.ends:
        parts.append(_end_table(found.ends))
    parts += [heading("Now it"), Text(found.verdict, style="bold", overflow="fold")]
    if found.objections:
        parts.append(table(["reason", "why"], [list(each) for each in found.objections], wrap=["why"]))
    parts += [heading("Where it could go"), *_destination(found)]
    if found.alternatives:
        parts += _alternative_parts(found, naming, wide=wide)
    if found.past:
        parts += [heading("Moves of it and of its component"), move_table(list(found.past), situation.now, naming)]
    return parts


def _header(found: Explanation) -> list[RenderableType]:
    where = f"on {found.node}" if found.node else "on no node"
    facts = [
        ("topology", f"{found.topology}, component {found.component}"),
        ("policy", found.policy),
        ("node score", "no metrics" if found.score is None else points(found.score)),
        ("node speed", "" if found.speed == 1.0 else f"{found.speed:g} x the pool's ordinary machine"),
        ("pair", _pair(found)),
        ("slowness", "no task metrics" if found.slowness is None else f"{found.slowness:.2f} x the fastest quarter"),
        ("pressure", "" if found.pressure_ratio is None else pressure_words(found.pressure_ratio)),
        ("load", "not known" if found.load_cores is None else f"{found.load_cores:.2f} cores go with it"),
    ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in facts:
        if value:
            grid.add_row(label, Text(value))
    return [Text.assemble((found.executor, "bold"), f"  {found.phase} {where}", overflow="fold"), grid]


def _pair(found: Explanation) -> str:
    if found.pair is None:
        return ""
    return f"{found.pair}; hits low {found.low_hits}, high {found.high_hits}"


def _end_table(ends: tuple[End, ...]) -> Table:
    rows = [
        [end.name, end.kind.value, f"{end.distance:.1f}", ", ".join(f"{s:.0%} {_WITHIN[w]}" for w, s in end.scopes)]
        for end in ends
    ]
    return table(["talks to", "kind", "distance", "how far"], rows, right=["distance"], wrap=["how far"])


def _destination(found: Explanation) -> list[RenderableType]:
    if found.unplaced is not None and found.unplaced.cause in (Cause.FOREIGN_SCHEDULER, Cause.GANG):
        whose = "of that scheduler" if found.unplaced.cause is Cause.FOREIGN_SCHEDULER else "of a gang"
        return [Text(f"nowhere, as far as Ballast is concerned: it never places executors {whose}")]
    if found.destination is None:
        return [Text("placed now, it would find no place within the limits")]
    same = " (where it is)" if found.destination == found.node else ""
    return [Text(f"placed now, it would go to {found.destination}{same}", overflow="fold")]


def _alternative_parts(found: Explanation, naming: Naming, *, wide: bool) -> list[RenderableType]:
    shown = found.alternatives if wide else found.alternatives[:_MOST_NODES]
    parts: list[RenderableType] = [_alternative_table(shown, naming)]
    if len(shown) < len(found.alternatives):
        more = len(found.alternatives) - len(shown)
        parts.append(Text(f"... and {more} more nodes: see -o wide", style="dim"))
    return parts


def _alternative_table(every: tuple[Alternative, ...], naming: Naming) -> Table:
    rows = [
        [
            *zone_and_rack(each.location),
            naming.short(each.node),
            points(each.score),
            points(each.score_after),
            "" if each.here else f"{each.locality_delta_ratio:+.0%}",
            naming.short(_possible(each)),
        ]
        for each in every
    ]
    columns = ["zone", "rack", "node", "score", "after", "traffic", "move there"]
    return table(columns, rows, right=["score", "after", "traffic"], cut=["zone", "rack", "node"], wrap=["move there"])


def _possible(each: Alternative) -> str:
    if each.here:
        return "it is here"
    if each.reason is None:
        return "possible"
    return f"{each.reason}: {each.detail}" if each.detail else each.reason


def explanation_document(found: Explanation) -> dict[str, Any]:
    return {
        "executor": found.executor,
        "policy": found.policy,
        "phase": found.phase,
        "node": found.node,
        "topology": found.topology,
        "component": found.component,
        "score": rounded(found.score),
        "speed": found.speed,
        "pair": found.pair,
        "hits": {"low": found.low_hits, "high": found.high_hits},
        "slowness": rounded(found.slowness),
        "pressure": rounded(found.pressure_ratio),
        "loadCores": rounded(found.load_cores),
        "unplaced": None
        if found.unplaced is None
        else {"cause": found.unplaced.cause.value, "detail": found.unplaced.detail},
        "grounds": list(found.grounds),
        "ends": [_end_document(end) for end in found.ends],
        "verdict": found.verdict,
        "objections": [{"reason": reason, "detail": detail} for reason, detail in found.objections],
        "destination": found.destination,
        "nodes": [_alternative_document(each) for each in found.alternatives],
        "neighbors": dict(found.neighbors),
        "moves": [move_document(move) for move in found.past],
    }


def _end_document(end: End) -> dict[str, Any]:
    return {
        "name": end.name,
        "kind": end.kind.value,
        "distance": rounded(end.distance),
        "scopes": {scope.value: rounded(share) for scope, share in end.scopes},
    }


def _alternative_document(each: Alternative) -> dict[str, Any]:
    zone, rack = zone_and_rack(each.location)
    return {
        "name": each.node,
        "zone": zone or None,
        "rack": rack or None,
        "here": each.here,
        "score": rounded(each.score),
        "scoreAfter": rounded(each.score_after),
        "localityDelta": rounded(each.locality_delta_ratio),
        "possible": each.reason is None and not each.here,
        "reason": each.reason,
        "detail": each.detail,
    }


def capacity_report(found: Capacities, nodes: tuple[Node, ...], *, wide: bool = False) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    naming = Naming.of(nodes, whole=wide)
    rows = [
        [
            each.executor.component,
            each.executor.name,
            naming.short(each.executor.node or ""),
            percent(each.capacity),
            percent(each.load),
            each.combination.value,
        ]
        for each in found.standings
    ]
    columns = ["component", "executor", "node", "capacity", "load", "combination"]
    parts: list[RenderableType] = [
        Text(found.topology, style="bold"),
        table(columns, rows, right=["capacity", "load"], cut=["component", "executor", "node"]),
    ]
    for combination in found.combinations:
        words = ADVICE[combination]
        parts += [heading(combination.value), Text(words.meaning, overflow="fold"), *_bullets(words.remedies)]
    if found.uneven:
        parts.append(heading("Uneven"))
        parts.append(
            Text(
                f"Some executors of {', '.join(found.uneven)} have a high capacity, and others hardly any.",
                overflow="fold",
            )
        )
        parts += _bullets(UNEVEN_REMEDIES)
    return parts


def _bullets(remedies: tuple[str, ...]) -> list[RenderableType]:
    return [Text(f"- {remedy}", overflow="fold") for remedy in remedies]


def capacity_document(found: Capacities) -> dict[str, Any]:
    return {
        "topology": found.topology,
        "executors": [
            {
                "executor": each.executor.key,
                "component": each.executor.component,
                "node": each.executor.node,
                "capacity": rounded(each.capacity),
                "load": rounded(each.load),
                "combination": each.combination.value,
            }
            for each in found.standings
        ],
        "explanations": [
            {
                "combination": each.value,
                "meaning": ADVICE[each].meaning,
                "remedies": list(ADVICE[each].remedies),
            }
            for each in found.combinations
        ],
        "uneven": {"components": list(found.uneven), "remedies": list(UNEVEN_REMEDIES) if found.uneven else []},
    }
