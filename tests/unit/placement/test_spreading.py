"""Executors of an application of which nothing is declared spread over the nodes of a rack."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Executor, Memory, Node, PlacementMode, PlacementPolicy, Policy, Resources, Snapshot, Topology
from ballast.placement.placing import place
from ballast.placement.problem import Layout, Problem, construct
from ballast.placement.spreading import leveled, spread
from tests.builders import GIB, a_node, an_executor, gated
from tests.unit.placement.problems import a_problem

NODES = tuple(a_node(f"{rack}-{n}", zone="z", rack=rack, cores=8.0) for rack in ("r1", "r2") for n in range(4))


def homes(nodes: tuple[Node, ...], *executors: Executor, **changes: Any) -> Counter[str | None]:
    topologies, running = changes.pop("topologies", ()), changes.pop("running", ())
    scores = changes.pop("scores", {})
    placement = PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=0.5, **changes)
    snapshot = Snapshot(0.0, nodes, (*running, *executors), topologies=topologies)
    placed = place(snapshot, Policy("p", placement=placement), Memory(), gated=executors, scores=scores)
    return Counter(placement.node for placement in placed.placements)


def some(count: int) -> list[Executor]:
    requests = Resources(1.0, GIB, 1)
    return [replace(gated(f"e-{n}", requests=requests), topology="team/app", component="default") for n in range(count)]


def test_a_set_uses_the_nodes_of_its_rack_evenly() -> None:
    found = homes(NODES, *some(10))
    assert sorted(found.values()) == [2, 2, 3, 3]
    assert len({str(node).split("-")[0] for node in found}) == 1


def test_it_stays_together_where_its_topology_is_declared() -> None:
    declared = Topology("team/app", "team", "app", components=())
    assert sorted(homes(NODES, *some(10), topologies=(declared,)).values()) == [5, 5]


def test_what_runs_already_counts() -> None:
    running = replace(an_executor("e-9", node="r1-0"), topology="team/app", component="default")
    found = homes(NODES, *some(3), running=(running,))
    assert found == {"r1-1": 1, "r1-2": 1, "r1-3": 1}


def test_a_hotter_node_is_not_used_for_it() -> None:
    scores = {node.name: 60.0 if node.name.endswith("-3") else 10.0 for node in NODES}
    found = homes(NODES, *some(6), scores=scores)
    assert not any(str(node).endswith("-3") for node in found)
    assert sorted(found.values()) == [2, 2, 2]


def test_one_of_several_templates_stays_where_it_fits() -> None:
    large = [replace(e, name=f"l-{e.name}", uid=f"l-{e.uid}", requests=Resources(2.0, GIB, 1)) for e in some(2)]
    found = homes(NODES, *some(4), *large)
    assert found[None] == 0
    assert found.total() == 6


def test_without_racks_the_whole_zone_is_one() -> None:
    layout = Layout(one_level(4, counts=[6]))
    construct(layout, [0] * 6)
    spread(layout, 1.0)
    assert sorted(layout.placed[0].tolist()) == [1, 1, 2, 2]


def one_level(nodes: int, *, counts: list[int]) -> Problem:
    """Nodes without racks and zones, each with room for four."""
    return a_problem(
        0,
        nodes=np.arange(nodes),
        places=np.arange(nodes)[None, :],
        near=np.eye(nodes),
        weights=np.array([[1.0]]),
        pull=np.zeros((1, nodes)),
        settled=np.zeros((1, nodes), dtype=np.int64),
        component=np.array([0]),
        counts=np.array(counts),
        demand=np.array([[1.0, 0.0]]),
        allowed=np.ones((1, nodes), dtype=np.bool_),
        room=np.full((nodes, 2), 4.0),
        node_limit=np.full((1, nodes), 4),
        zone_limit=np.full((1, nodes), 9),
        preference=np.zeros(nodes),
    )


AMOUNTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8)


@given(AMOUNTS, st.data())
def test_the_most_that_a_node_holds_is_least(amounts: list[tuple[int, int]], data: st.DataObject) -> None:
    held, room = (np.array(column) for column in zip(*amounts, strict=True))
    count = data.draw(st.integers(0, int(room.sum())))

    given_ = leveled(held, room, count)

    assert given_.sum() == count
    assert (given_ >= 0).all()
    assert (given_ <= room).all()
    least = next(level for level in range(13) if np.clip(level - held, 0, room).sum() >= count)
    assert (held + given_)[given_ > 0].max(initial=0) <= max(least, 0)


def test_of_nodes_that_are_equally_full_the_tightest_gets_less() -> None:
    assert leveled(np.array([0, 0, 0]), np.array([2, 5, 3]), 4).tolist() == [1, 2, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_and_one_are_spread_too(count: int) -> None:
    assert leveled(np.array([1, 0]), np.array([1, 1]), count).tolist() == [0, count]
