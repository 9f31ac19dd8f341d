"""The demonstration's nodes: eight of two sizes in two zones and three racks, and one outside of the pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.testbed.nodes import NodeSpec

POOL_LABEL = "pool"
POOL = "streaming"
SYSTEM = "system"
LARGE_CORES, SMALL_CORES = 0.4, 0.2
RACK_MEGABITS, ZONE_MEGABITS = 40.0, 5.0
"""What the link of each rack and of each zone carries each way: slow, as the nodes' CPUs are."""
_RESERVED = {"key": "demo/reserved", "value": SYSTEM, "effect": "NoSchedule"}
TOLERATIONS = ({"key": "demo/reserved", "operator": "Exists"},)


def nodes() -> list[NodeSpec]:
    """Two racks of two small machines in zone a, one rack of four large machines in zone b.

    Drivers and Ballast itself run on a machine outside of the pool, in zone b.
    """
    small = [_node(f"small-a{rack}-{number}", f"a{rack}", cores=SMALL_CORES) for rack in (1, 2) for number in (1, 2)]
    large = [_node(f"large-b1-{number}", "b1", cores=LARGE_CORES) for number in (1, 2, 3, 4)]
    system = NodeSpec(
        SYSTEM, zone="zone-b", rack="rack-b0", cpu="2", memory="8Gi", labels={POOL_LABEL: SYSTEM}, taints=[_RESERVED]
    )
    return [*small, *large, system]


def _node(name: str, rack: str, *, cores: float) -> NodeSpec:
    return NodeSpec(
        name=name,
        zone=f"zone-{rack[0]}",
        rack=f"rack-{rack}",
        cpu=f"{cores * 1000:.0f}m",
        memory="5Gi",
        cpu_quota_cores=cores,
        labels={POOL_LABEL: POOL},
    )


def pool_nodes() -> list[NodeSpec]:
    return [node for node in nodes() if node.labels[POOL_LABEL] == POOL]


def cores_of(name: str) -> float:
    """What the pods of a node of the pool may use together."""
    return next(spec.cpu_quota_cores or 1.0 for spec in pool_nodes() if spec.name == name)


@dataclass(frozen=True, slots=True)
class Spread:
    """How far executors that all exchange with each other are apart.

    With a share p of them in each zone, 1 − Σ p² of what they exchange crosses zones; racks likewise.
    """

    cross_zone_ratio: float
    cross_rack_ratio: float
    per_node: Mapping[str, int]


def spread(placed: Iterable[str], specs: Sequence[NodeSpec]) -> Spread:
    """Of executors on these nodes, one name each."""
    counts = Counter(placed)
    zones, racks = Counter[str](), Counter[str]()
    by_name = {spec.name: spec for spec in specs}
    for name, count in counts.items():
        zones[by_name[name].zone] += count
        racks[by_name[name].rack] += count
    return Spread(_crossing(zones), _crossing(racks), dict(sorted(counts.items())))


def _crossing(counts: Counter[str]) -> float:
    total = counts.total()
    return 1.0 - sum((count / total) ** 2 for count in counts.values()) if total else 0.0
