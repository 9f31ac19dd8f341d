"""Topologies, declared and implicit, and how far their traffic travels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ballast.cli.output import percent, rounded, table
from ballast.cli.situation import Situation
from ballast.model import LocalityView, Phase, Plan


@dataclass(frozen=True, slots=True)
class TopologyRow:
    key: str
    implicit: bool
    running: int
    expected: int | None
    gated: int
    paused: bool
    locality: LocalityView | None


def topology_rows(situation: Situation, decided: Plan) -> list[TopologyRow]:
    """Those that a SparkTopology declares, and applications with executors, by key."""
    locality = {view.topology: view for view in decided.locality}
    declared = {topology.key: topology for topology in situation.snapshot.topologies}
    live = [e for e in situation.snapshot.executors if e.phase is not Phase.ENDED]
    rows = []
    for key in sorted(declared.keys() | {executor.topology for executor in live}):
        topology = declared.get(key)
        expected = [c.expected for c in topology.components if c.expected] if topology else []
        members = [executor for executor in live if executor.topology == key]
        rows.append(
            TopologyRow(
                key=key,
                implicit=topology is None or topology.implicit,
                running=sum(executor.phase is Phase.RUNNING for executor in members),
                expected=sum(expected) if expected else None,
                gated=sum(executor.phase is Phase.GATED for executor in members),
                paused=key in decided.paused,
                locality=locality.get(key),
            )
        )
    return rows


def topology_table(rows: list[TopologyRow], *, wide: bool) -> Table:
    columns = ["topology", "kind", "executors", "gated", "cross-zone", "cross-rack"]
    columns += ["cross-node", "cost", "at best"] if wide else []
    return table([*columns, "moves"], [_cells(row, wide=wide) for row in rows], right=columns[2:], cut=["topology"])


def _cells(row: TopologyRow, *, wide: bool) -> list[str]:
    view = row.locality
    cells = [
        row.key,
        "application" if row.implicit else "declared",
        f"{row.running}/{row.expected}" if row.expected else str(row.running),
        str(row.gated),
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
        "implicit": row.implicit,
        "executors": {"running": row.running, "expected": row.expected, "gated": row.gated},
        "movesPaused": row.paused,
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
