"""Of equally near nodes, executors fill the fullest one that stays below the hot score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import (
    Component,
    Executor,
    Memory,
    Node,
    Packing,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.placement.placing import place
from tests.builders import GIB, a_node, gated
from tests.examples import examples

HOT_SCORE = 70.0
"""Of a default policy, while some node is below 55."""


def node(name: str, *, rack: str = "r1", zone: str = "z", used: float = 0.0) -> Node:
    return replace(a_node(name, zone=zone, rack=rack, cores=8.0), requested=Resources(used, used * GIB, int(used)))


def some(count: int, topology: str = "app", cores: float = 1.0) -> list[Executor]:
    requests = Resources(cores, GIB, 1)
    waiting = [gated(f"{topology}-{n}", requests=requests) for n in range(count)]
    return [replace(each, topology=f"team/{topology}", component="default") for each in waiting]


def homes(
    nodes: Sequence[Node], executors: Sequence[Executor], *, packing: Packing = Packing.PACK, **changes: Any
) -> Counter[str | None]:
    topologies, scores, loads = (changes.pop(name, {}) for name in ("topologies", "scores", "loads"))
    rules = PlacementPolicy(
        mode=PlacementMode.ENFORCE, packing=packing, **{"max_executors_per_node_ratio": 1, **changes}
    )
    snapshot = Snapshot(0.0, tuple(nodes), tuple(executors), topologies=tuple(topologies))
    policy = Policy("p", placement=rules)
    placed = place(snapshot, policy, Memory(), gated=executors, scores=scores, loads=loads)
    return Counter(placement.node for placement in placed.placements)


HALF_USED = (node("n1"), node("n2", used=4.0), node("n3", used=2.0), node("n4"))


def test_a_set_fills_the_fullest_node_first() -> None:
    assert homes(HALF_USED, some(6)) == {"n2": 4, "n3": 2}


def test_without_packing_it_spreads() -> None:
    assert max(homes(HALF_USED, some(4), packing=Packing.SPREAD).values()) == 1


def test_a_node_is_not_filled_above_the_hot_score() -> None:
    scores = {"n1": 0.0, "n2": 45.0, "n3": 20.0, "n4": 0.0}
    # A core of eight is 12.5 points: one more executor leaves n2 below 70, a second one would not.
    assert homes(HALF_USED, some(4), scores=scores) == {"n2": 1, "n3": 3}


def test_expected_load_counts_and_not_what_is_requested() -> None:
    scores, executors = {"n1": 0.0, "n2": 45.0, "n3": 20.0, "n4": 0.0}, some(4)
    assert homes(HALF_USED, executors, scores=scores, loads={e.uid: 0.1 for e in executors}) == {"n2": 4}


def test_where_the_rack_would_get_hot_the_set_stays_spread() -> None:
    nodes = (node("n1"), node("n2", used=1.0))
    assert homes(nodes, some(10), scores={"n1": 10.0, "n2": 10.0}) == {"n1": 5, "n2": 5}


def test_limits_on_a_node_hold() -> None:
    assert max(homes(HALF_USED, some(8), max_executors_per_node_ratio=0.25).values()) == 2


def test_a_set_stays_in_one_rack_where_a_fuller_node_is_in_another() -> None:
    nodes = (node("n1"), node("n2"), node("n3", rack="r2", used=7.0), node("n4", rack="r3", used=6.0))
    found = homes(nodes, some(8))
    assert found == {"n1": 8}


def test_several_sets_share_nodes() -> None:
    nodes = [node(f"n{n}") for n in range(4)]
    found = homes(nodes, [*some(3, "one"), *some(3, "two")])
    assert found == {"n0": 6}


def test_declared_components_are_packed_only_where_that_costs_nothing() -> None:
    declared = Topology("team/app", "team", "app", (Component("default", exchange_bytes_per_second=1e6),))
    holes = [node(f"n{n}", used=7.0) for n in range(4)]
    assert homes([*holes, node("n9")], some(4), topologies=(declared,)) == {"n9": 4}
    fuller = node("n8", used=4.0)
    assert homes([*holes, fuller, node("n9")], some(4), topologies=(declared,)) == {"n8": 4}


POOLS = st.lists(
    st.tuples(st.sampled_from(["za", "zb"]), st.sampled_from(["1", "2"]), st.integers(0, 8)), min_size=1, max_size=8
)


def a_pool(drawn: list[tuple[str, str, int]]) -> list[Node]:
    return [
        node(f"n{index}", zone=zone, rack=f"{zone}{rack}", used=float(used))
        for index, (zone, rack, used) in enumerate(drawn)
    ]


def crossing(nodes: Sequence[Node], found: Counter[str | None], level: int) -> float:
    """Pairs of executors that are in two zones (level 0) or racks (level 1)."""
    where = {each.name: each.location[: level + 1] for each in nodes}
    places = Counter[Any]()
    for name, count in found.items():
        if name is not None:
            places[where[name]] += count
    return float(places.total() ** 2 - sum(count**2 for count in places.values()))


@examples(50)
@given(POOLS, st.integers(1, 12))
def test_no_more_pairs_cross_zones_or_racks_than_without(drawn: list[tuple[str, str, int]], count: int) -> None:
    nodes = a_pool(drawn)
    packed, spread = (homes(nodes, some(count), packing=packing) for packing in (Packing.PACK, Packing.SPREAD))

    assert packed[None] == spread[None]
    assert [crossing(nodes, packed, level) for level in (0, 1)] <= [crossing(nodes, spread, level) for level in (0, 1)]


@examples(50)
@given(POOLS, st.integers(1, 12), st.data())
def test_packing_makes_no_node_hot(drawn: list[tuple[str, str, int]], count: int, data: st.DataObject) -> None:
    nodes = a_pool(drawn)
    scores = {each.name: data.draw(st.floats(0.0, HOT_SCORE - 1.0)) for each in nodes}
    packed, spread = (
        homes(nodes, some(count), packing=packing, scores=scores) for packing in (Packing.PACK, Packing.SPREAD)
    )

    limit = max(HOT_SCORE, min(scores.values()) + 15.0)
    above = [max(0.0, score + 12.5 * packed[name] - limit) for name, score in scores.items()]
    as_before = [max(0.0, score + 12.5 * spread[name] - limit) for name, score in scores.items()]
    assert sum(above) <= sum(as_before) + 1e-6


@pytest.mark.parametrize("favored", ["n1", "n4"])
def test_favored_nodes_come_first(favored: str) -> None:
    assert homes(HALF_USED, some(2), favored_nodes=(favored,)) == {favored: 2}
