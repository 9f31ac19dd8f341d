"""Where it is looked for nodes, in pools of all shapes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from ballast.model import (
    Anchor,
    Component,
    Levels,
    Memory,
    Node,
    Placement,
    PlacementPolicy,
    Policy,
    Resources,
    Separation,
    Stream,
    Topology,
)
from ballast.placement.placing import place
from ballast.placement.proximity import Effort
from tests.builders import GIB, a_node, a_policy, a_snapshot, a_topology, an_executor, gated


def large_pool(*, zones: int = 3, racks: int = 1, per_rack: int = 300, cores: float = 2.0) -> list[Node]:
    """More nodes in a rack than a search looks at."""
    return [
        a_node(f"z{zone}-r{rack}-{number:04d}", zone=f"z{zone}", rack=f"r{rack}", cores=cores)
        for zone in range(zones)
        for rack in range(racks)
        for number in range(per_rack)
    ]


def placed(nodes: list[Node], count: int, *, topology: Topology | None = None, **changes: Any) -> list[Placement]:
    components = [c.name for c in (topology or a_topology()).components if not c.external]
    executors = [gated(f"{name}-{number}", component=name) for name in components for number in range(count)]
    memory = changes.pop("memory", Memory())
    running = changes.pop("running", ())
    effort = changes.pop("effort", Effort(steps=20, thorough=False))
    policy = a_policy(placement=replace(PlacementPolicy(), **changes))
    snapshot = a_snapshot(*nodes, executors=(*executors, *running), topologies=(topology or a_topology(),))
    return place(snapshot, policy, memory, gated=executors, effort=effort).placements


def zones(placements: list[Placement]) -> Counter[str | None]:
    return Counter(p.location[0] for p in placements if p.node is not None)


@pytest.mark.parametrize("thorough", [True, False])
def test_a_set_in_a_very_large_pool_stays_in_one_zone(thorough: bool) -> None:
    assert len(zones(placed(large_pool(), 20, effort=Effort(steps=20, thorough=thorough)))) == 1


def test_a_zone_limit_is_kept_by_using_the_other_zones_of_a_very_large_pool() -> None:
    assert sorted(zones(placed(large_pool(), 12, max_executors_per_zone_ratio=0.34)).values()) == [4, 4, 4]


@pytest.mark.parametrize(("by", "level"), [("Zone", 1), ("Rack", 2)])
def test_separated_components_find_places_apart_in_a_very_large_pool(by: str, level: int) -> None:
    topology = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), by),))
    topology = replace(topology, streams=(Stream("ingest", "standby"),))
    placements = placed(large_pool(zones=2, racks=2), 4, topology=topology)
    homes = {(p.executor.split("/")[1].split("-")[0], p.location[:level]) for p in placements if p.node is not None}
    assert len([p for p in placements if p.node is not None]) == 8
    assert not {place for name, place in homes if name == "ingest"} & {
        place for name, place in homes if name != "ingest"
    }


def test_a_set_too_large_for_any_zone_is_spread_over_as_few_as_hold_it() -> None:
    small = [a_node(f"z{zone}-{number}", zone=f"z{zone}", cores=2.0) for zone in range(4) for number in range(4)]
    assert sorted(zones(placed(small, 16, max_executors_per_node_ratio=1.0)).values()) == [8, 8]


def test_components_drawn_to_two_zones_are_parted_where_that_is_cheaper() -> None:
    ends = [Component(f"kafka-{z}", external=True, anchors=(Anchor((z, None, None), 1.0),)) for z in ("z0", "z1")]
    topology = a_topology(
        *ends,
        Component("ingest", exchange_bytes_per_second=1.0),
        Component("sessions", exchange_bytes_per_second=1.0),
        streams=(
            Stream("kafka-z0", "ingest", bytes_per_second=100.0),
            Stream("kafka-z1", "sessions", bytes_per_second=100.0),
            Stream("ingest", "sessions", bytes_per_second=1.0),
        ),
    )
    placements = placed(large_pool(zones=2, per_rack=10), 4, topology=topology)
    homes = {(p.executor.split("/")[1].split("-")[0], p.location[0]) for p in placements}
    assert homes == {("ingest", "z0"), ("sessions", "z1")}


def test_vacant_places_are_found_again_among_very_many() -> None:
    memory = Memory(placements=(("team/clicks", "ingest", (("z1-r0-0299", 1), ("z1-r0-0007", 1))),))
    nodes = {p.node for p in placed(large_pool(), 2, memory=memory)}
    assert nodes == {"z1-r0-0299", "z1-r0-0007"}


def test_a_place_next_to_those_that_run_is_found_among_very_many() -> None:
    running = tuple(an_executor(f"old-{number}", node="z2-r0-0123") for number in range(1))
    (placement,) = placed(large_pool(), 1, running=running, max_executors_per_node_ratio=1.0)
    assert placement.node == "z2-r0-0123"


def test_what_runs_outside_the_nodes_looked_at_still_counts() -> None:
    full = Resources(2.0, GIB, 1)
    pool = [replace(node, requested=full) if node.name == "z1-r0-0005" else node for node in large_pool()]
    running = (an_executor("old-0", node="z1-r0-0005"),)
    (placement,) = placed(pool, 1, running=running)
    assert placement.location[0] == "z1"


def test_the_driver_may_be_named_by_its_node() -> None:
    topology = a_topology(driver=Anchor((None, None, None), 1.0, node="z2-r0-0001"))
    assert zones(placed(large_pool(per_rack=5), 3, topology=topology)) == {"z2": 3}


def test_a_policy_without_levels_places_within_limits_all_the_same() -> None:
    nodes = [replace(a_node(f"n{number}"), location=()) for number in range(4)]
    executors = [gated(f"e-{number}") for number in range(4)]
    policy = Policy("p", levels=Levels(()))
    placements = place(a_snapshot(*nodes, executors=tuple(executors)), policy, Memory(), gated=executors).placements
    assert max(Counter(p.node for p in placements).values()) == 2, "of four at most two are on one node"
    assert all(p.node for p in placements)
