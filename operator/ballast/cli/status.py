"""`ballast status`: the pools as they are now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import (
    AS_TABLE,
    Format,
    OutputOption,
    bar,
    duration,
    heading,
    line,
    points,
    rounded,
    table,
)
from ballast.cli.report.pool import (
    MOVE,
    POLICY,
    TOPOLOGY,
    Naming,
    instant,
    move_document,
    move_table,
    open_moves,
    topology_document,
    topology_rows,
    topology_table,
    unplaced_document,
    unplaced_table,
    zone_and_rack,
)
from ballast.cli.situation import Situation
from ballast.cli.source import (
    SYSTEM_NAMESPACE,
    AllNamespacesOption,
    FileOption,
    PolicyOption,
    PrometheusOption,
    Seen,
    SystemOption,
    Where,
    one_namespace,
    problem_lines,
    source,
)
from ballast.cli.watch import EVERY_SECONDS, Answer, EveryOption, WatchOption, answer, pace
from ballast.model import Budget, MovePhase, NodeView, Plan, Policy, within
from ballast.moves import budget

EXAMPLES = (
    "kubectl ballast status",
    "kubectl ballast status -p streaming -o wide",
    "kubectl ballast status -n analytics",
    "kubectl ballast status --watch",
    "kubectl ballast status -n analytics -o name",
    "kubectl ballast status -o jsonpath='{.policies[*].nodes.items[?(@.score > 80)].name}'",
    "kubectl ballast status --prometheus http://localhost:9090",
)

COLUMNS = (
    "SCORE       usage of the node in percent: the largest of those that metrics.weights weighs",
    "PROJECTED   the score when everything that arrives or leaves has done so (-o wide)",
    "EXECUTORS   of a node: running and pending; of a topology: running, of how many it declares",
    "PAIR        the node at the other end of too wide a gap: executors would move from or to it",
    "HITS        how often in a row the gap was over the low and the high threshold, of how many",
    "GATED       executors that are gated until their set is placed",
    "TRAFFIC     what shares are of: measured, declared, or equal (weights, a rate is unknown)",
    "CROSS-ZONE  share of the topology's traffic between zones; likewise racks and nodes",
    "COST        mean distance that its traffic travels; AT BEST what it can't fall below (-o wide)",
    "CAUSE       why executors that opted in are not placed, or not as their pods ask for",
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
    everywhere: AllNamespacesOption = False,
    watch: WatchOption = False,
    every: EveryOption = EVERY_SECONDS,
    output: OutputOption = AS_TABLE,
    filename: FileOption = None,
    prometheus: PrometheusOption = None,
    system_namespace: SystemOption = SYSTEM_NAMESPACE,
    access: Access = ANYHOW,
) -> None:
    """Show each pool: its nodes with scores, executors, pairs and hits, its topologies and open moves."""
    only, every_seconds = one_namespace(namespace, everywhere=everywhere), pace(every, watch=watch, file=filename)
    with source(Where(filename, access, prometheus, system_namespace)) as look:
        answer(
            lambda: _answer(replace(look(policy), only_namespace=only), output.form),
            output,
            every_seconds=every_seconds,
        )


def _answer(seen: Seen, form: Format) -> Answer:
    return Answer(lambda: status_report(seen, form), lambda: status_document(seen), lambda: _names(seen))


def _names(seen: Seen) -> Iterator[str]:
    """Policies, declared topologies and open moves."""
    for each in seen.situations:
        yield f"{POLICY}/{each.policy.name}"
        for row in topology_rows(each, each.plan(), seen.only_namespace):
            if not row.implicit:
                yield f"{TOPOLOGY}/{row.key.rpartition('/')[2]}"
        for move in open_moves(each.snapshot, seen.only_namespace):
            yield f"{MOVE}/{move.name}"


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
        "policies": [pool_document(each, each.plan(), namespace=seen.only_namespace) for each in seen.situations],
        "problems": list(seen.problems),
    }


def pool_report(
    situation: Situation, form: Format = Format.TABLE, *, namespace: str | None = None
) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    decided, wide = situation.plan(), form is Format.WIDE
    naming = Naming.of(situation.snapshot.nodes, whole=wide)
    parts: list[RenderableType] = [*_header(situation, decided), heading("Nodes")]
    nodes = _nodes(decided)
    parts.append(
        _node_table(nodes, situation.policy, naming, wide=wide) if nodes else Text("none: see spec.nodeSelector")
    )
    if rows := topology_rows(situation, decided, namespace):
        parts += [heading("Topologies"), topology_table(rows, wide=wide)]
    if unplaced := within(decided.unplaced, namespace):
        parts += [heading("Executors that opted in and are not placed as they ask for"), unplaced_table(unplaced)]
    if moves := open_moves(situation.snapshot, namespace):
        parts += [heading("Open moves"), move_table(moves, situation.now, naming)]
        if any(move.phase is MovePhase.PROPOSED for move in moves):
            parts.append(Text("Approve one with `kubectl ballast approve MOVE -n NAMESPACE`.", style="dim"))
    return parts


def pool_document(situation: Situation, decided: Plan, *, namespace: str | None = None) -> dict[str, Any]:
    """`decided`: the situation's own plan."""
    pool, health = decided.pool, situation.snapshot.metrics
    return {
        "policy": situation.policy.name,
        "time": instant(situation.now),
        "modes": {"placement": situation.policy.placement.mode.value, "moves": situation.policy.moves.mode.value},
        "metrics": {"available": health.available, "reason": health.reason.value, "message": health.message},
        "nodes": {
            "total": pool.total,
            "eligible": pool.eligible,
            "stale": pool.stale,
            "mean": rounded(pool.mean),
            "stdDev": rounded(pool.std_dev),
            "gap": rounded(_gap(decided)),
            "hottest": pool.hottest,
            "coldest": pool.coldest,
            "items": [_node_document(node) for node in _nodes(decided)],
        },
        "balanced": pool.balanced,
        "budgets": [_budget_document(each, situation) for each in _in_force(situation)],
        "suggested": len(decided.moves),
        "topologies": [topology_document(row) for row in topology_rows(situation, decided, namespace)],
        "unplaced": unplaced_document(within(decided.unplaced, namespace)),
        "moves": [move_document(move) for move in open_moves(situation.snapshot, namespace)],
    }


def _header(situation: Situation, decided: Plan) -> list[RenderableType]:
    policy, pool, health = situation.policy, decided.pool, situation.snapshot.metrics
    balance = {None: "unknown", True: "yes", False: "no"}[pool.balanced]
    stale = f", {pool.stale} without metrics" if pool.stale else ""
    lines = [
        Text.assemble(("Policy ", "dim"), (policy.name, "bold")).append_text(
            line(("  placement", policy.placement.mode.value), ("moves", policy.moves.mode.value))
        ),
        line(
            ("Nodes", f"{pool.total}{stale}"),
            ("mean", points(pool.mean)),
            ("std", points(pool.std_dev)),
            ("gap", points(_gap(decided))),
            ("balanced", balance),
        ),
        *(line(("Budget", _budget_words(each, situation))) for each in _in_force(situation)),
    ]
    if decided.moves:
        lines.append(line(("Moves", f"{len(decided.moves)} suggested now: see `kubectl ballast plan`")))
    if not health.available:
        words = f"{health.reason}: {health.message}" if health.message else health.reason
        lines.append(Text.assemble(("No metrics ", "yellow"), words, overflow="fold"))
    return list(lines)


def _gap(decided: Plan) -> float | None:
    score = {node.name: node.score for node in decided.pool.nodes}
    hottest, coldest = score.get(decided.pool.hottest or ""), score.get(decided.pool.coldest or "")
    return hottest - coldest if hottest is not None and coldest is not None and decided.pool.eligible > 1 else None


def _nodes(decided: Plan) -> list[NodeView]:
    """By zone, rack and name."""
    return sorted(decided.pool.nodes, key=lambda node: (*zone_and_rack(node.location), node.name))


def _node_table(nodes: list[NodeView], policy: Policy, naming: Naming, *, wide: bool) -> Table:
    score = {node.name: node.projected or 0.0 for node in nodes}
    rows: list[list[str | Text]] = [
        [
            *zone_and_rack(node.location),
            naming.short(node.name),
            bar(node.score, cells=20 if wide else 10),
            *([points(node.projected), f"{node.speed:g}"] if wide else []),
            str(node.executors),
            naming.short(_pair(node, score)),
            _hits(node, policy),
        ]
        for node in nodes
    ]
    projected = ["projected", "speed"] if wide else []
    columns = ["zone", "rack", "node", "score", *projected, "executors", "pair", "hits"]
    return table(columns, rows, right=["executors", *projected], cut=["zone", "rack", "node", "pair"])


def _pair(node: NodeView, score: dict[str, float]) -> str:
    """A move goes from the hot end of a pair to the cold one."""
    if node.pair is None:
        return ""
    hot = score.get(node.name, 0.0) >= score.get(node.pair, 0.0)
    return f"{'to' if hot else 'from'} {node.pair}"


def _hits(node: NodeView, policy: Policy) -> str:
    shedder = policy.shedding.avg_shedder
    counts = (("low", node.low_hits, shedder.low_hits), ("high", node.high_hits, shedder.high_hits))
    return " ".join(f"{name} {count}/{needed}" for name, count, needed in counts if count)


def _node_document(node: NodeView) -> dict[str, Any]:
    zone, rack = zone_and_rack(node.location)
    return {
        "name": node.name,
        "zone": zone or None,
        "rack": rack or None,
        "score": rounded(node.score),
        "projected": rounded(node.projected),
        "speed": node.speed,
        "executors": node.executors,
        "pair": node.pair,
        "lowHits": node.low_hits,
        "highHits": node.high_hits,
    }


def _in_force(situation: Situation) -> list[Budget]:
    return [each for each in situation.policy.moves.budgets if budget.active(each, situation.now)]


def _budget_words(each: Budget, situation: Situation) -> str:
    moves, now = situation.snapshot.moves, situation.now
    span = f"per {duration(each.per_seconds)}" if each.per_seconds is not None else "while the window is open"
    where = "" if each.scope == "Pool" else f" and {each.scope.lower()}"
    if each.scope != "Pool":
        share = f" (or {each.percent} % of its executors)" if each.percent else ""
        return f"{each.moves} moves{share} {span}{where}"
    reset = budget.next_reset(each, moves, now)
    again = f", next one free in {duration(reset - now)}" if reset is not None else ""
    most = budget.allowed(each, budget.ExecutorCounts.of(situation.snapshot.executors).pool)
    return f"{budget.used(each, moves, now)} of {most} moves used {span}{again}"


def _budget_document(each: Budget, situation: Situation) -> dict[str, Any]:
    moves, now = situation.snapshot.moves, situation.now
    return {
        "scope": each.scope,
        "moves": each.moves,
        "percent": each.percent or None,
        "perSeconds": each.per_seconds,
        "schedule": each.schedule or None,
        "used": budget.used(each, moves, now) if each.scope == "Pool" else None,
        "nextReset": instant(budget.next_reset(each, moves, now)) if each.scope == "Pool" else None,
    }
