"""Executors that found no node take one from others, which find another."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from ballast.model import (
    Component,
    Constraints,
    Executor,
    Memory,
    Node,
    PlacementPolicy,
    Requirement,
    Resources,
    Separation,
)
from ballast.placement.placing import place
from ballast.placement.repair import Assignment, Limits, repairable
from tests.builders import GIB, a_node, a_policy, a_snapshot, a_topology, gated

ALL_OF_IT = PlacementPolicy(max_executors_per_node_ratio=1.0)


def only(node: str) -> Constraints:
    """A volume that is on this node."""
    return Constraints(volume_terms=(((Requirement("metadata.name", "In", (node,), on_field=True),),),))


def homes(
    *executors: Executor, nodes: tuple[Node, ...], policy: PlacementPolicy = ALL_OF_IT, **changes: Any
) -> Counter[str | None]:
    snapshot = a_snapshot(*nodes, executors=executors, **changes)
    scores = {node.name: 95.0 for node in nodes if node.name.startswith("hot")}
    found = place(snapshot, a_policy(placement=policy), Memory(), gated=executors, scores=scores).placements
    return Counter(placement.node for placement in found)


def test_one_that_may_go_anywhere_leaves_the_cool_node_to_one_that_may_not() -> None:
    nodes = (a_node("cool", cores=1.0), a_node("hot", cores=1.0))
    waiting = (gated("a"), gated("b", topology="team/other", constraints=only("cool")))
    assert homes(*waiting, nodes=nodes) == {"cool": 1, "hot": 1}


@pytest.mark.parametrize("large", [1, 2])
def test_small_ones_make_room_for_a_large_one(large: int) -> None:
    nodes = tuple(a_node(f"n{number}", cores=2.0) for number in range(3))
    small = tuple(gated(f"s{number}", topology=f"team/t{number}") for number in range(6 - 2 * large))
    big = tuple(gated(f"z{n}", topology=f"team/z{n}", requests=Resources(2.0, GIB, 1)) for n in range(large))
    assert homes(*small, *big, nodes=nodes)[None] == 0


def test_a_chain_of_three_finds_everyone_a_node() -> None:
    nodes = tuple(
        a_node(f"n{number}", cores=1.0, labels={f"l{number}": "", f"l{number - 1}": ""}) for number in range(4)
    )
    waiting = tuple(
        gated(f"e{number}", topology=f"team/t{number}", constraints=Constraints(node_selector=((f"l{number}", ""),)))
        for number in range(3)
    )
    last = gated("z", topology="team/z", constraints=only("n1"), requests=Resources(1.0, GIB, 1))
    assert homes(*waiting, last, nodes=nodes)[None] == 0


def test_limits_and_separations_hold_for_those_that_go_elsewhere() -> None:
    apart = a_topology(Component("ingest"), Component("sink"), separate=(Separation(("ingest", "sink"), "Node"),))
    nodes = (a_node("n0", cores=1.0), a_node("n1", cores=2.0))
    waiting = (gated("a"), gated("b", component="sink", constraints=only("n0")))
    assert homes(*waiting, nodes=nodes, topologies=(apart,)) == {"n0": 1, "n1": 1}
    none_left = (gated("a", constraints=only("n0")), gated("b", component="sink", constraints=only("n0")))
    assert homes(*none_left, nodes=nodes, topologies=(apart,))[None] == 1


def test_where_nothing_helps_the_others_stay_where_they_are() -> None:
    nodes = (a_node("n0", cores=2.0), a_node("n1", cores=2.0))
    waiting = tuple(gated(f"e{number}") for number in range(5))
    assert homes(*waiting, nodes=nodes) == {"n0": 2, "n1": 2, None: 1}


def test_one_that_has_returned_keeps_its_place_where_giving_it_up_places_no_more() -> None:
    waiting = (gated("a", component="sink"), gated("b"), gated("c"))
    snapshot = a_snapshot(a_node("n0", cores=1.0), executors=waiting)
    memory = Memory(placements=(("team/clicks", "ingest", (("n0", 1),)),))
    found = place(snapshot, a_policy(placement=ALL_OF_IT), memory, gated=waiting).placements
    assert [placement.executor for placement in found if placement.node] in (["team/b"], ["team/c"])


def test_executors_that_no_node_can_take_cost_no_other_executor_its_place() -> None:
    """Executors of one user must not use up the steps of the pass."""
    nodes = (a_node("n0", zone="z0", cores=4.0), a_node("n1", zone="z1", cores=3.0))
    own = (
        gated("e-0", component="a"),
        gated("e-1", component="b", requests=Resources(1.5, GIB, 1), constraints=only("n0")),
        gated("e-2", component="c", requests=Resources(3.0, GIB, 1)),
    )
    others = tuple(
        gated(
            f"o-{number}",
            namespace="other",
            topology=f"other/{number}",
            application=f"other-{number}",
            requests=Resources(8.0 + number / 1000, 0.0, 1),
            constraints=only("n0"),
        )
        for number in range(300)
    )
    alone = homes(*own, nodes=nodes)
    assert alone.total() - alone[None] == len(own)
    assert homes(*own, *others, nodes=nodes) == alone + Counter({None: len(others)})


@pytest.mark.parametrize("others", [0, 500])
def test_each_namespace_has_its_part_of_the_steps(others: int) -> None:
    """Executors of the other namespaces are harder to place, and nothing helps them."""
    assignment = Assignment(
        codes=np.array([[0, 0]]),
        rows=[*range(2 + others)],
        demand=np.array([[1.0], [2.0], *([2.5] for _ in range(others))]),
        allowed=np.array([[True, True], [True, False], *([True, False] for _ in range(others))]),
        placed=np.array([[1, 0], *([0, 0] for _ in range(1 + others))]),
        missing=np.array([0, *(1 for _ in range(1 + others))]),
        free=np.array([[1.0], [1.0]]),
        slack=np.array([1e-6]),
        limits=Limits(
            node_left=np.full((2 + others, 2), 9),
            zone_left=np.full((2 + others, 1), 9),
            present=np.array([[1, 0], *([0, 0] for _ in range(1 + others))]),
            apart=(),
        ),
        owners=["team", "team", *("other" for _ in range(others))],
    )
    assignment.improve(100, Random(1))
    assert assignment.missing[1] == 0
    assert assignment.placed[:2].tolist() == [[0, 1], [1, 0]]


def test_a_pass_that_is_too_large_is_repaired_for_those_with_the_fewest_executors() -> None:
    few, many = [gated(f"e-{number}") for number in range(3)], [gated(f"o-{n}", namespace="other") for n in range(9)]
    assert repairable([*many, *few], nodes=1) == [*many, *few]
    assert repairable([*many, *few], nodes=100_000) == few
    assert repairable([*many, *few], nodes=1_000_000) == []


@pytest.mark.soak
def test_very_many_kinds_that_must_be_kept_apart_take_no_time() -> None:
    kinds, nodes = 4000, 40
    placed = np.zeros((kinds, nodes), dtype=np.int64)
    placed[np.arange(1, kinds), np.arange(1, kinds) % nodes] = 1
    assignment = Assignment(
        codes=np.arange(nodes)[None, :] // 10,
        rows=[kind % 100 for kind in range(kinds)],
        demand=np.full((kinds, 1), 0.01),
        allowed=np.ones((kinds, nodes), dtype=np.bool_),
        placed=placed,
        missing=np.array([1] + [0] * (kinds - 1)),
        free=np.ones((nodes, 1)),
        slack=np.array([1e-6]),
        limits=Limits(
            node_left=np.full((100, nodes), 100),
            zone_left=np.full((100, 4), 1000),
            present=np.array([placed[row::100].sum(axis=0) for row in range(100)]),
            apart=tuple((0, np.arange(first, first + 90)) for first in range(10)),
        ),
    )
    before = time.process_time()
    assignment.improve(3, Random(1))
    assert time.process_time() - before < 4.0, "a pass waits for it, and with it the executors of all users"
