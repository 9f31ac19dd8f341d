"""How many a node or a zone may hold, and who keeps away from whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    ComponentLimit,
    Executor,
    Level,
    Levels,
    Memory,
    Node,
    PlacementPolicy,
    Separation,
)
from ballast.placement.limit import kept_away, most_per_node, node_limits, separations, zone_allowance, zone_limits
from ballast.placement.node_locations import NodeLocations, node_locations
from ballast.placement.workload import TopologyWorkload, workloads
from tests.builders import a_node, a_snapshot, a_topology, an_executor, gated

NODES = (a_node("a1", zone="a"), a_node("a2", zone="a"), a_node("a3", zone="a", rack="r2"), a_node("b1", zone="b"))
HOSTS = Levels((Level("kubernetes.io/hostname", 1.0),))


@pytest.mark.parametrize(
    ("total", "ratio", "most"),
    [(8, 0.25, 2), (7, 0.25, 1), (3, 0.25, 1), (0, 0.5, 1), (10, 0.3, 3), (10, 1.0, 10), (3, 0.0, 1)],
)
def test_a_share_of_the_total_is_rounded_down_but_one_may_always_be_there(
    total: float, ratio: float, most: int
) -> None:
    assert zone_allowance(total, ratio) == most


def workload(*executors: Executor, places: NodeLocations) -> TopologyWorkload:
    waiting = [e for e in executors if e.phase == "Gated"]
    snapshot = a_snapshot(*places.nodes, executors=executors)
    return next(workloads(snapshot, places, Memory(), gated=waiting, bound={}, sticky=True, loads={}))


def some(count: int, node: str | None = None, component: str = "ingest") -> list[Executor]:
    names = [f"{component}-{node}-{number}" for number in range(count)]
    if node is None:
        return [gated(name, component=component) for name in names]
    return [an_executor(name, node=node, component=component) for name in names]


EIGHT_AND_TWO = (*some(5), *some(2, "a1"), *some(1, "b1"), *some(1, None, "report"), *some(1, "a2", "report"))


def test_a_node_takes_what_its_share_and_the_components_limit_leave() -> None:
    places = node_locations(NODES, DEFAULT_LEVELS)
    policy = PlacementPolicy(
        max_executors_per_node_ratio=0.5,
        limits=(ComponentLimit("ingest", 3), ComponentLimit("report", 7), ComponentLimit("unheard-of", 0)),
    )
    assert node_limits(workload(*EIGHT_AND_TWO, places=places), policy).tolist() == [[1, 3, 3, 2], [1, 0, 1, 1]]
    assert node_limits(workload(*EIGHT_AND_TWO, places=places), PlacementPolicy()).tolist() == [
        [0, 2, 2, 1],
        [1, 0, 1, 1],
    ]


def test_a_zone_takes_what_its_share_leaves() -> None:
    places = node_locations(NODES, DEFAULT_LEVELS)
    policy = PlacementPolicy(max_executors_per_zone_ratio=0.5)
    assert zone_limits(workload(*EIGHT_AND_TWO, places=places), places, policy).tolist() == [[2, 3], [0, 1]]


def test_where_a_node_is_all_there_is_no_zone_is_limited() -> None:
    places = node_locations([a_node("a1", location=("a1",)), a_node("a2", location=("a2",))], HOSTS)
    limits = zone_limits(
        workload(*EIGHT_AND_TWO, places=places), places, PlacementPolicy(max_executors_per_zone_ratio=0.1)
    )
    assert limits.shape == (2, 2)
    assert (limits > 1_000_000).all()


def test_a_pool_in_one_zone_has_no_other_zone_to_keep_executors_in() -> None:
    places = node_locations(NODES[:3], DEFAULT_LEVELS)
    policy = PlacementPolicy(max_executors_per_zone_ratio=0.5)
    assert (zone_limits(workload(*EIGHT_AND_TWO, places=places), places, policy) > 1_000_000).all()


COMPONENTS = ("ingest", "report", "standby")


@pytest.mark.parametrize(
    ("levels", "by", "level"),
    [
        (DEFAULT_LEVELS, "Zone", 0),
        (DEFAULT_LEVELS, "Rack", 1),
        (DEFAULT_LEVELS, "Node", 2),
        (Levels(DEFAULT_LEVELS.ordered[::2]), "Zone", 0),
        (Levels(DEFAULT_LEVELS.ordered[::2]), "Rack", 1),
        (Levels(DEFAULT_LEVELS.ordered[::2]), "Node", 1),
        (HOSTS, "Zone", 0),
        (HOSTS, "Rack", 0),
        (HOSTS, "Node", 0),
        (Levels((*DEFAULT_LEVELS.ordered[:1], Level("row", 5.0), *DEFAULT_LEVELS.ordered[1:])), "Rack", 2),
    ],
)
def test_a_separation_is_by_its_level_or_the_next_nearer_one(levels: Levels, by: str, level: int) -> None:
    topology = a_topology(separate=(Separation(("standby", "ingest"), by),))
    ((found, members),) = separations(topology, COMPONENTS, node_locations(NODES, levels))
    assert (found, members.tolist()) == (level, [0, 2])


@pytest.mark.parametrize("names", [("ingest",), ("ingest", "nobody"), ("ingest", "ingest"), ()])
def test_a_separation_of_fewer_than_two_that_are_there_is_none(names: tuple[str, ...]) -> None:
    topology = a_topology(separate=(Separation(names), Separation(("report", "standby"))))
    assert [
        members.tolist() for _, members in separations(topology, COMPONENTS, node_locations(NODES, DEFAULT_LEVELS))
    ] == [[1, 2]]


def away(component: int, *apart: tuple[int, Any], nodes: tuple[Node, ...] = NODES) -> list[str]:
    """`ingest` is on a1, `report` on b1, `standby` on a3."""
    present = np.array([[1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 1, 0]])
    mask = kept_away(
        node_locations(nodes, DEFAULT_LEVELS),
        present,
        tuple((level, np.array(members)) for level, members in apart),
        component,
    )
    return [node.name for node, kept in zip(nodes, mask.tolist(), strict=True) if kept]


def test_who_is_there_keeps_the_others_off_its_node_rack_or_zone() -> None:
    assert away(1, (2, [0, 1])) == ["a1"]
    assert away(1, (1, [0, 1])) == ["a1", "a2"]
    assert away(1, (0, [0, 1])) == ["a1", "a2", "a3"]
    assert away(0, (2, [0, 1]), (2, [0, 2])) == ["a3", "b1"]
    assert away(0, (2, [0, 1, 2])) == ["a3", "b1"]


def test_who_falls_under_no_separation_is_kept_off_nothing() -> None:
    assert away(2, (0, [0, 1])) == []
    assert away(2) == []


@pytest.mark.parametrize(
    ("executors", "ratio", "most"),
    [(1, 0.25, 1), (2, 0.25, 1), (3, 0.25, 2), (6, 0.25, 2), (9, 0.25, 3), (6, 1.0, 6), (4, 0.9, 3), (40, 0.25, 10)],
)
def test_a_share_of_a_small_job_leaves_room_to_stay_together_but_never_for_all_of_it(
    executors: int, ratio: float, most: int
) -> None:
    assert most_per_node(PlacementPolicy(max_executors_per_node_ratio=ratio), "ingest", executors) == most


def test_an_allowance_is_a_whole_number_within_the_ratio_and_at_least_one() -> None:
    assert [zone_allowance(total, 0.25) for total in (1, 4, 7, 8, 12)] == [1, 1, 1, 2, 3]
    assert zone_allowance(3, 1.0) == 3
    assert zone_allowance(10, 0.3) == 3
