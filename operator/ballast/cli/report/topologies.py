"""Topologies, declared and implicit, and how far their traffic travels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ballast.cli.output import percent, rounded, table
from ballast.cli.situation import Situation
from ballast.model import LocalityView, Phase, Plan, Topology


@dataclass(frozen=True, slots=True)
class TopologyRow:
    key: str
    implicit: bool
    running: int
    expected: int | None
    gated: int
    paused: bool
    locality: LocalityView | None


def topology_rows(situation: Situation, decided: Plan, namespace: str | None = None) -> list[TopologyRow]:
    """Those that a SparkTopology declares, and applications with executors, by key; of a namespace or of all."""
    locality = {view.topology: view for view in decided.locality}
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
            locality=locality.get(key),
        )
        for key, phases in sorted(members.items())
        if namespace in (None, key.split("/", 1)[0])
    ]


def _expected(topology: Topology | None) -> int | None:
    return sum(c.expected or 0 for c in topology.components) or None if topology else None


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
