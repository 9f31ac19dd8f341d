"""`ballast plan`: what would be done now, changing nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import AS_TABLE, Format, OutputOption, heading, line, percent, points, rounded, table
from ballast.cli.report.pool import (
    BASES,
    Naming,
    cause,
    instant,
    locality_document,
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
from ballast.errors import BallastError
from ballast.model import Hold, MovesMode, Objection, Phase, Placement, Plan, PlannedMove, Reason, Refusal
from ballast.placement.aside import never_placed
from ballast.planner.replan import ReplannedTopology
from ballast.report.names import application_names
from ballast.report.traffic import PlacedTopology, together

EXAMPLES = (
    "kubectl ballast plan",
    "kubectl ballast plan clickstream -n analytics",
    "kubectl ballast plan -p streaming -o yaml",
    "kubectl ballast plan --watch",
    "kubectl ballast plan -o jsonpath='{.plans[*].moves[*].executor}'",
    "ballast plan -f snapshot.yaml",
)

COLUMNS = (
    "WHY         load, or the taint by which the node is about to go, so that it is emptied",
    "GAIN        points by which the gap between the scores of the two nodes narrows",
    "HOT, COLD   the two nodes' scores, now -> afterwards",
    "TRAFFIC     change of what the topology's traffic costs: +5% costs more (farther apart)",
    "HITS        how often in a row the gap was too wide (-o wide)",
    "SLOWNESS    its seconds per task by those of its application's fastest quarter (-o wide)",
    "CORES       CPU cores that go with it (-o wide)",
    "TRAFFIC     of a topology: what shares are of: measured, declared, or equal (weights)",
    "PIN         the level that the executor is tied to, nearer ones being preferred",
    "CROSS-ZONE  share of the topology's traffic between zones; likewise racks and nodes",
    "COST        mean distance that its traffic travels (-o wide)",
    "RELOCATED   executors that would be on another node if all were placed again",
    "NO PLACE    executors that no node would take then, with the first one's reason",
    "CAUSE       why executors that opted in are not placed, or not as their pods ask for",
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
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Only topologies of it. Default: all; with NAME, that of the context.",
            metavar="NAMESPACE",
        ),
    ] = None,
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
    """Show what would be done now: moves from -> to with their gain, placements, and what is refused and why.

    For each topology: how much of its traffic crosses zones and racks, and how much would if it were placed again.
    Changes nothing.
    """
    only, every_seconds = one_namespace(namespace, everywhere=everywhere), pace(every, watch=watch, file=filename)
    with source(Where(filename, access, prometheus, system_namespace)) as look:
        answer(lambda: _answer(look(policy), name, only, output.form), output, every_seconds=every_seconds)


def _answer(seen: Seen, name: str | None, namespace: str | None, form: Format) -> Answer:
    found = chosen(seen, name, namespace)

    def report() -> Iterator[RenderableType]:
        for position, each in enumerate(found):
            yield from [Text()] if position else []
            yield from plan_report(each, form)
        yield from problem_lines(seen)

    return Answer(
        report,
        lambda: {"plans": [plan_document(each) for each in found], "problems": list(seen.problems)},
        lambda: (f"pod/{move.executor.rpartition('/')[2]}" for each in found for move in each.decided.moves),
    )


def chosen(seen: Seen, name: str | None, namespace: str | None) -> list[Planned]:
    """The plans that a name asks for. Raises NothingOfThatNameError with the names that there are."""
    if name is None:
        return [planned(each, namespace=namespace) for each in seen.situations]
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
    names = application_names(e for each in seen.situations for e in each.snapshot.executors)
    called = {key: {key, key.split("/", 1)[1], (own := names.get(key, key)), own.split("/", 1)[1]} for key in known}
    matching = [key for key in known if name in called[key]]
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


_MOST_ROWS = 20
"""Of placements, holds and refusals, unless all are asked for."""
_MOVES = {
    MovesMode.RECOMMEND: "Moves that would help now: the policy only recommends",
    MovesMode.APPROVE: "Moves that a pass would propose now",
    MovesMode.ENFORCE: "Moves that a pass would make now",
}
_MOST_REPLANNED = 20
"""Topologies that are shown, as they are and placed again."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, narrowed to one topology where that was asked for."""

    situation: Situation
    decided: Plan
    replanned: tuple[PlacedTopology, ...]
    left_out: int = 0
    """Topologies that are not shown placed again."""
    aside: Mapping[Objection, int] = field(default_factory=dict)
    """Executors that are never placed, by why."""


def planned(situation: Situation, topology: str | None = None, *, namespace: str | None = None) -> Planned:
    """One topology, by its key, or those of a namespace. Default: all of them."""
    decided, members = situation.plan(), situation.snapshot.executors
    if topology is not None or namespace is not None:
        members = tuple(each for each in members if topology in (None, each.topology))
        members = tuple(each for each in members if namespace in (None, each.topology.split("/", 1)[0]))
        decided = _narrowed(decided, {each.key for each in members}, {each.node for each in members})
    keys = _dearest(decided, {each.topology for each in members})
    again = together(situation.snapshot, situation.policy, keys[:_MOST_REPLANNED])
    schedulers = situation.policy.placement.scheduler_names
    alive = (each for each in members if each.phase is not Phase.ENDED)
    aside = Counter(why for each in alive if (why := never_placed(each, schedulers)) is not None)
    return Planned(situation, decided, again, max(0, len(keys) - _MOST_REPLANNED), dict(sorted(aside.items())))


def _dearest(decided: Plan, keys: set[str]) -> list[str]:
    """First those whose traffic costs most beyond what it must."""
    excess = {view.topology: view.cost - view.lower_bound for view in decided.locality}
    return sorted(keys, key=lambda key: (-excess.get(key, 0.0), key))


def _narrowed(decided: Plan, members: set[str], nodes: set[str | None]) -> Plan:
    """What concerns these executors or the nodes that they are on; reasons of the whole pool stay."""
    everything = {node.name for node in decided.pool.nodes}

    def concerns(refusal: Refusal) -> bool:
        return refusal.subject in members if "/" in refusal.subject else refusal.subject not in everything - nodes

    return replace(
        decided,
        placements=tuple(each for each in decided.placements if each.executor in members),
        holds=tuple(each for each in decided.holds if each.executor in members),
        replacements=tuple(each for each in decided.replacements if each.executor in members),
        unplaced=tuple(each for each in decided.unplaced if each.executor in members),
        moves=tuple(each for each in decided.moves if each.executor in members),
        refusals=tuple(each for each in decided.refusals if concerns(each)),
    )


def plan_report(plan: Planned, form: Format = Format.TABLE) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    decided, wide = plan.decided, form is Format.WIDE
    naming = Naming.of(plan.situation.snapshot.nodes, whole=wide)
    policy = plan.situation.policy
    parts: list[RenderableType] = [_header(plan), heading(_MOVES.get(policy.moves.mode, "Moves"))]
    parts.append(_move_table(decided.moves, naming, wide=wide) if decided.moves else Text("none"))
    waiting = [*_placement_rows(decided, plan.situation.now)]
    if waiting:
        columns = ["executor", "goes to", "zone", "rack", "pin", "reason", "why"]
        parts += [heading("Waiting executors"), *_cut(columns, waiting, naming, wide=wide)]
    if decided.unplaced:
        title = "Executors that opted in and are not placed as they ask for"
        parts += [heading(title), unplaced_table(decided.unplaced)]
    if plan.replanned:
        names = application_names(plan.situation.snapshot.executors)
        parts += [
            heading("Topologies, as they are -> placed again, all together"),
            _replanned_table(plan.replanned, names, wide=wide),
        ]
    parts += [Text(each, style="yellow", overflow="fold") for each in _aside(plan.aside)]
    if plan.left_out:
        parts.append(Text(f"... and {plan.left_out} more: name one to see it", style="dim"))
    if refusals := _refusals(decided, wide=wide):
        rows = [[r.subject, r.reason.value, _detail(r)] for r in refusals]
        parts += [heading("Not done, and why"), *_cut(["subject", "reason", "why"], rows, naming, wide=wide)]
    return parts


def _aside(aside: Mapping[Objection, int]) -> Iterator[str]:
    """A line for each reason, with one example: every gang has its own words."""
    by_reason: dict[Reason, dict[str, int]] = {}
    for (reason, why), count in aside.items():
        by_reason.setdefault(reason, {})[why] = count
    for reason, counts in by_reason.items():
        example, others = next(iter(counts)), len(counts) - 1
        because = (
            f"because {example}" if not others else f"for {len(counts)} causes ({reason.value}), such as: {example}"
        )
        yield f"Left out: {sum(counts.values())} executors, {because}"


def _header(plan: Planned) -> Text:
    policy = plan.situation.policy
    modes = line(("  placement", policy.placement.mode.value), ("moves", policy.moves.mode.value))
    return Text.assemble(("Policy ", "dim"), (policy.name, "bold")).append_text(modes)


def _move_table(moves: tuple[PlannedMove, ...], naming: Naming, *, wide: bool) -> Table:
    columns = ["executor", "from", "to", "why", "gain", "hot", "cold", "traffic"]
    more = ["hits", "slowness", "pressure", "cores", "strategy"] if wide else []
    rows = [
        [
            move.executor if wide else move.pod,
            naming.short(move.source),
            f"-> {naming.short(move.target)}",
            cause(move.taint),
            *(_scores(move) if move.scored else ["-", "-", "-"]),
            f"{move.locality_delta_ratio:+.0%}",
            *(_why(move) if wide else []),
        ]
        for move in moves
    ]
    right = ["gain", "traffic", "hits", "slowness", "pressure", "cores"]
    return table([*columns, *more], rows, right=right, cut=["executor", "from", "to", "why"])


def _scores(move: PlannedMove) -> list[str]:
    hot, cold = f"{move.hot_score:.0f} -> {move.hot_after:.0f}", f"{move.cold_score:.0f} -> {move.cold_after:.0f}"
    return [points(move.gain), hot, cold]


def _why(move: PlannedMove) -> list[str]:
    cores = f"{move.load_cores:.2f}"
    return [str(move.hits), _ratio(move.slowness), percent(move.pressure_ratio), cores, move.strategy]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _placement_rows(decided: Plan, now: float) -> list[list[str]]:
    rows = [_placement_row(each) for each in (*decided.placements, *decided.replacements)]
    return [*rows, *(_hold_row(each, now) for each in decided.holds)]


def _placement_row(each: Placement) -> list[str]:
    zone, rack = zone_and_rack(each.location)
    goes = each.node or "anywhere"
    return [each.executor, goes, zone, rack, each.pin.value, each.reason.value if each.reason else "", each.detail]


def _hold_row(each: Hold, now: float) -> list[str]:
    until = "" if each.until is None else f"{max(0.0, each.until - now):.0f} s more"
    return [each.executor, "held", "", "", "", each.reason.value, until]


def _replanned_table(every: tuple[PlacedTopology, ...], names: Mapping[str, str], *, wide: bool) -> Table:
    columns = ["topology", "executors", "traffic", "cross-zone", "cross-rack"]
    more = ["cross-node", "cost"] if wide else []
    rows = []
    for each in every:
        before, after = each.placed.before, each.placed.after
        rows.append(
            [
                names.get(each.placed.topology, each.placed.topology),
                str(each.placed.executors),
                BASES[each.basis],
                _change(before.cross_zone_ratio, after.cross_zone_ratio),
                _change(before.cross_rack_ratio, after.cross_rack_ratio),
                *([_change(before.cross_node_ratio, after.cross_node_ratio)] if wide else []),
                *([f"{before.cost:.2f} -> {after.cost:.2f}"] if wide else []),
                str(each.placed.relocated),
                _unplaced(each.placed),
            ]
        )
    return table([*columns, *more, "relocated", "no place"], rows, right=["executors", "relocated"], cut=["topology"])


def _change(before: float | None, after: float | None) -> str:
    return f"{percent(before)} -> {percent(after)}"


def _unplaced(each: ReplannedTopology) -> str:
    if not each.unplaced:
        return ""
    reason = each.unplaced[0].reason
    return f"{len(each.unplaced)} ({reason.value})" if reason else str(len(each.unplaced))


def _refusals(decided: Plan, *, wide: bool) -> list[Refusal]:
    """Once each, without those of waiting executors; the rarest reasons first, so that no crowd hides them."""
    told = {placement.executor for placement in decided.placements}
    unique = list(dict.fromkeys(each for each in decided.refusals if each.subject not in told))
    counts = Counter(refusal.reason for refusal in unique)
    return unique if wide else sorted(unique, key=lambda r: (counts[r.reason], r.reason.value))


def _detail(refusal: Refusal) -> str:
    """With the destination, where the words do not name it."""
    if refusal.target is None or refusal.target in refusal.detail:
        return refusal.detail
    return f"{refusal.detail}; towards {refusal.target}" if refusal.detail else f"towards {refusal.target}"


def _cut(columns: list[str], rows: list[list[str]], naming: Naming, *, wide: bool) -> list[RenderableType]:
    shown = rows if wide else rows[:_MOST_ROWS]
    cells = [[naming.short(cell) for cell in row] for row in shown]
    cut = ["executor", "subject", "goes to", "zone", "rack"]
    parts: list[RenderableType] = [table(columns, cells, cut=cut, wrap=["why"])]
    if len(shown) < len(rows):
        parts.append(Text(f"... and {len(rows) - len(shown)} more: see -o wide", style="dim"))
    return parts


def plan_document(plan: Planned) -> dict[str, Any]:
    decided, policy = plan.decided, plan.situation.policy
    names = application_names(plan.situation.snapshot.executors)
    return {
        "policy": policy.name,
        "time": instant(plan.situation.now),
        "modes": {"placement": policy.placement.mode.value, "moves": policy.moves.mode.value},
        "moves": [_move_document(move) for move in decided.moves],
        "placements": [_placement_document(each) for each in (*decided.placements, *decided.replacements)],
        "holds": [
            {"executor": each.executor, "reason": each.reason.value, "until": instant(each.until)}
            for each in decided.holds
        ],
        "topologies": [_replanned_document(each, names) for each in plan.replanned],
        "moreTopologies": plan.left_out,
        "leftOut": [
            {"reason": reason.value, "why": why, "executors": count} for (reason, why), count in plan.aside.items()
        ],
        "unplaced": unplaced_document(decided.unplaced),
        "refusals": [
            {"subject": each.subject, "reason": each.reason.value, "detail": each.detail, "to": each.target}
            for each in decided.refusals
        ],
    }


def _move_document(move: PlannedMove) -> dict[str, Any]:
    return {
        "executor": move.executor,
        "topology": move.topology,
        "component": move.component,
        "from": move.source,
        "to": move.target,
        "strategy": move.strategy,
        "taint": move.taint or None,
        "hits": move.hits,
        "scores": {"from": rounded(move.hot_score), "to": rounded(move.cold_score)} if move.scored else None,
        "predicted": _predicted(move) if move.scored else None,
        "loadCores": rounded(move.load_cores),
        "slowness": rounded(move.slowness),
        "pressure": rounded(move.pressure_ratio),
    }


def _predicted(move: PlannedMove) -> dict[str, Any]:
    return {
        "hotAfter": rounded(move.hot_after),
        "coldAfter": rounded(move.cold_after),
        "gain": rounded(move.gain),
        "localityDelta": rounded(move.locality_delta_ratio),
    }


def _placement_document(each: Placement) -> dict[str, Any]:
    zone, rack = zone_and_rack(each.location)
    return {
        "executor": each.executor,
        "node": each.node,
        "zone": zone or None,
        "rack": rack or None,
        "pin": each.pin.value,
        "reason": each.reason.value if each.reason else None,
        "detail": each.detail,
    }


def _replanned_document(each: PlacedTopology, names: Mapping[str, str]) -> dict[str, Any]:
    placed = each.placed
    return {
        "topology": placed.topology,
        "name": names.get(placed.topology, placed.topology),
        "executors": placed.executors,
        "traffic": each.basis.value,
        "locality": {"before": locality_document(placed.before), "after": locality_document(placed.after)},
        "relocated": placed.relocated,
        "unplaced": [_placement_document(placement) for placement in placed.unplaced],
    }
