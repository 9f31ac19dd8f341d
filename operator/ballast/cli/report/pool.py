"""What several commands print of a pool: its topologies, its open moves, names of nodes and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from ballast.cli.output import duration, percent, rounded, table
from ballast.cli.situation import Situation
from ballast.model import (
    Executor,
    LocalityView,
    Location,
    Move,
    Node,
    Phase,
    Plan,
    Snapshot,
    Topology,
    Unplaced,
    by_cause,
)
from ballast.planner.replan import members_by_topology
from ballast.report.names import application_names
from ballast.report.traffic import Basis, ShownTraffic, shown_traffic, view_of

POLICY, TOPOLOGY = "balancingpolicy.ballast.dev", "sparktopology.ballast.dev"
MOVE = "executormove.ballast.dev"
"""Types as `-o name` writes them, and kubectl reads them."""


@dataclass(frozen=True, slots=True)
class TopologyRow:
    key: str
    implicit: bool
    running: int
    expected: int | None
    gated: int
    paused: bool
    locality: LocalityView | None
    """Of the traffic that all commands show."""
    basis: Basis
    name: str
    """The key, with an application's own name in place of its id."""


def topology_rows(situation: Situation, decided: Plan, namespace: str | None = None) -> list[TopologyRow]:
    """Those that a SparkTopology declares, and applications with executors, by key; of a namespace or of all."""
    snapshot = situation.snapshot
    shown, names = shown_traffic(snapshot), application_names(snapshot.executors)
    placed = members_by_topology(snapshot.executors)
    declared = {topology.key: topology for topology in situation.snapshot.topologies}
    members: dict[str, Counter[Phase]] = {key: Counter() for key in declared}
    for executor in situation.snapshot.executors:
        if executor.phase is not Phase.ENDED:
            members.setdefault(executor.topology, Counter())[executor.phase] += 1
    return [
        TopologyRow(
            key=key,
            implicit=key not in declared or declared[key].implicit,
            running=phases[Phase.RUNNING],
            expected=_expected(declared.get(key)),
            gated=phases[Phase.GATED],
            paused=key in decided.paused,
            locality=_view(shown.get(key), placed.get(key, ()), situation),
            basis=shown[key].basis if key in shown else Basis.EQUAL_WEIGHTS,
            name=names.get(key, key),
        )
        for key, phases in sorted(members.items())
        if namespace in (None, key.split("/", 1)[0])
    ]


def _view(shown: ShownTraffic | None, executors: Sequence[Executor], situation: Situation) -> LocalityView | None:
    """None where none of its executors is on a node of the pool."""
    found = None if shown is None else view_of(shown, executors, situation.snapshot, situation.policy)
    return None if found is None or found.cross_node_ratio is None else found


BASES = {Basis.MEASURED: "measured", Basis.DECLARED: "declared", Basis.EQUAL_WEIGHTS: "equal"}


def _expected(topology: Topology | None) -> int | None:
    return sum(c.expected or 0 for c in topology.components) or None if topology else None


def topology_table(rows: list[TopologyRow], *, wide: bool) -> Table:
    columns = ["topology", "kind", "executors", "gated", "traffic", "cross-zone", "cross-rack"]
    columns += ["cross-node", "cost", "at best"] if wide else []
    return table(
        [*columns, "moves"],
        [_cells(row, wide=wide) for row in rows],
        right=[each for each in columns[2:] if each != "traffic"],
        cut=["topology"],
    )


def _cells(row: TopologyRow, *, wide: bool) -> list[str]:
    view = row.locality
    cells = [
        row.name,
        "application" if row.implicit else "declared",
        f"{row.running}/{row.expected}" if row.expected else str(row.running),
        str(row.gated),
        BASES[row.basis] if view else "-",
        percent(view.cross_zone_ratio if view else None),
        percent(view.cross_rack_ratio if view else None),
    ]
    if wide:
        cells.append(percent(view.cross_node_ratio if view else None))
        cells += [f"{view.cost:.2f}", f"{view.lower_bound:.2f}"] if view else ["-", "-"]
    return [*cells, "paused" if row.paused else ""]


def topology_document(row: TopologyRow) -> dict[str, Any]:
    return {
        "topology": row.key,
        "name": row.name,
        "implicit": row.implicit,
        "executors": {"running": row.running, "expected": row.expected, "gated": row.gated},
        "movesPaused": row.paused,
        "traffic": row.basis.value if row.locality else None,
        "locality": locality_document(row.locality) if row.locality else None,
    }


def locality_document(view: LocalityView) -> dict[str, Any]:
    return {
        "crossZoneRatio": rounded(view.cross_zone_ratio),
        "crossRackRatio": rounded(view.cross_rack_ratio),
        "crossNodeRatio": rounded(view.cross_node_ratio),
        "crossZoneBytesPerSecond": rounded(view.cross_zone_bytes_per_second),
        "cost": rounded(view.cost),
        "lowerBound": rounded(view.lower_bound),
    }


def unplaced_table(rows: Sequence[Unplaced]) -> Table:
    """By cause, with one example each."""
    cells = [[each.cause.value, str(each.executors), each.first.executor, each.first.detail] for each in by_cause(rows)]
    return table(["cause", "executors", "such as", "because"], cells, right=["executors"], wrap=["because"])


def unplaced_document(rows: Sequence[Unplaced]) -> list[dict[str, Any]]:
    return [
        {
            "cause": each.cause.value,
            "executors": each.executors,
            "executor": each.first.executor,
            "detail": each.first.detail,
        }
        for each in by_cause(rows)
    ]


def open_moves(snapshot: Snapshot, namespace: str | None = None) -> list[Move]:
    """The oldest first; of a namespace or of all."""
    found = [move for move in snapshot.moves if not move.phase.ended and namespace in (None, move.namespace)]
    return sorted(found, key=lambda move: (move.started_at, move.namespace, move.name))


def move_table(moves: list[Move], now: float, naming: Naming) -> Table:
    return table(
        ["namespace", "move", "executor", "from", "to", "why", "phase", "helped", "age"],
        [
            [
                move.namespace,
                move.name,
                move.executor_name.rsplit("/", 1)[-1],
                naming.short(move.source),
                naming.short(move.target),
                cause(move.taint, by_hand=move.by_hand),
                move.phase.value,
                {None: "", True: "yes", False: "no"}[move.helped],
                duration(now - move.started_at),
            ]
            for move in moves
        ],
        right=["age"],
        cut=["namespace", "move", "executor", "from", "to", "why"],
    )


def cause(taint: str, *, by_hand: bool = False) -> str:
    """Of a move, in a word or two: of a taint's key only the name, since its prefix is long."""
    return taint.rpartition("/")[2] or ("by hand" if by_hand else "load")


def move_document(move: Move) -> dict[str, Any]:
    return {
        "namespace": move.namespace,
        "name": move.name,
        "topology": move.topology,
        "component": move.component,
        "executor": move.executor_name.rsplit("/", 1)[-1],
        "from": move.source,
        "to": move.target,
        "taint": move.taint or None,
        "phase": move.phase.value,
        "started": instant(move.started_at),
        "ended": instant(move.ended_at),
        "helped": move.helped,
    }


def zone_and_rack(location: Location) -> tuple[str, str]:
    """The farthest level and those between it and the node; empty where there is no label."""
    between = [value for value in location[1:-1] if value is not None]
    zone = location[0] if len(location) > 1 else None
    return zone or "", "/".join(between)


@dataclass(frozen=True, slots=True)
class Naming:
    """Nodes, by themselves and within sentences, without the domain that all of them share."""

    domain: str = ""

    @classmethod
    def of(cls, nodes: Iterable[Node], *, whole: bool = False) -> Naming:
        """`whole`: leave names as they are."""
        domains = {node.name.partition(".")[2] for node in nodes}
        return cls() if whole or len(domains) != 1 else cls(domains.pop())

    def short(self, text: str) -> str:
        return text.replace(f".{self.domain}", "") if self.domain else text


def instant(at: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339, in whole seconds."""
    if at is None:
        return None
    return datetime.fromtimestamp(round(at), UTC).isoformat().replace("+00:00", "Z")
