"""Which executors come first where there is not room for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from ballast.model import DEFAULT_LEVELS, Constraints, Executor, Memory, Node, Policy, Reason, Resources
from ballast.placement.admission import Admission
from ballast.placement.fallback import fallback
from ballast.placement.node_locations import node_locations
from ballast.placement.placing import place
from ballast.placement.repair import Assignment, Limits
from ballast.placement.room import Room, kinds
from ballast.placement.shortage import rounds, short_of_room
from benchmarks.load.large_pools import ENFORCED
from tests.builders import GIB, a_node, a_snapshot, gated

NODES = tuple(a_node(f"{zone}{number}", zone=zone, cores=4.0) for zone in "ab" for number in range(2))


def of(namespace: str, count: int, cores: float = 1.0) -> list[Executor]:
    settings: dict[str, Any] = {"namespace": namespace, "topology": f"{namespace}/app", "application": namespace}
    return [gated(f"{namespace}-{n:03}", requests=Resources(cores, GIB, 1), **settings) for n in range(count)]


def names(part: Sequence[Executor]) -> list[str]:
    return [executor.name for executor in part]


def in_rounds(*executors: Executor, nodes: Sequence[Node] = NODES) -> list[list[str]]:
    places = node_locations(nodes, DEFAULT_LEVELS)
    space = Room(places, kinds(executor.requests for executor in executors))
    return [names(part.executors) for part in rounds(executors, space, Admission(places.nodes))]


def test_where_there_is_room_for_all_there_is_one_round() -> None:
    everyone = [*of("a", 8), *of("b", 8)]
    assert in_rounds(*everyone) == [names(everyone)]


def test_executors_of_one_namespace_are_one_round() -> None:
    everyone = of("a", 30)
    assert in_rounds(*everyone) == [names(everyone)]


def test_what_a_namespace_asks_for_beyond_its_share_comes_last() -> None:
    small, large, larger = of("small", 2), of("large", 10), of("larger", 20)
    assert in_rounds(*larger, *large, *small) == [
        names(small),
        [*names(large[:7]), *names(larger[:7])],
        names(large[7:]),
        names(larger[7:]),
    ]


@pytest.mark.parametrize("many", [4, 400])
def test_executors_that_ask_for_all_room_keep_none_from_a_user_who_asks_for_little(many: int) -> None:
    """They may never use it: they need not even be bindable, and may be created again in every second."""
    own, others = of("team", 4), of("other", many, cores=4.0)
    snapshot = a_snapshot(*NODES, executors=(*own, *others), topologies=())
    placed = {each.executor: each for each in place(snapshot, ENFORCED, Memory(), gated=(*own, *others)).placements}
    assert len({placed[each.key].location[0] for each in own if placed[each.key].node is not None}) == 1
    assert all(placed[each.key].node is not None for each in own)
    late = {each.executor: each for each in fallback(snapshot, Policy("streaming"), gated=[*others, *own])}
    assert {late[each.key].reason for each in own} == {Reason.GATE_TIMEOUT}
    assert len({late[each.key].location for each in own}) == 1


def test_executors_that_no_node_could_take_do_not_count_when_room_is_shared() -> None:
    large, wide, other = of("large", 12), of("wide", 2, cores=5.0), of("other", 4)
    assert in_rounds(*wide, *large, *other) == [names([*large, *other]), names(wide)]


def on(node: str, executors: Sequence[Executor]) -> list[Executor]:
    only = Constraints(node_selector=(("kubernetes.io/hostname", node),))
    return [replace(executor, constraints=only) for executor in executors]


@pytest.mark.parametrize("asked", [0.0, 0.001, 1.0])
def test_an_executor_that_only_a_nearly_full_node_takes_does_not_break_up_the_sets_of_others(asked: float) -> None:
    """These sets need not share what is free on that node."""
    full, cool, *others = NODES
    nodes = [
        replace(full, requested=Resources(4.0 - asked, GIB, 1)),
        replace(cool, requested=Resources(2.5, GIB, 1)),
        *others,
    ]
    own, bait = of("team", 4), on(full.name, of("other", 1, cores=asked))
    assert set(names(own)) <= set(in_rounds(*own, *bait, nodes=nodes)[-1])
    scores = {full.name: 50.0, cool.name: 10.0} | {node.name: 50.0 for node in others}
    snapshot = a_snapshot(*nodes, executors=(*own, *bait), topologies=())
    placed = place(snapshot, ENFORCED, Memory(), gated=(*own, *bait), scores=scores).placements
    assert {each.location[0] for each in placed if each.executor.startswith("team/")} == {"b"}


def test_namespaces_whose_nodes_have_room_for_all_are_placed_as_if_there_were_no_others() -> None:
    """Those that ask for least came first, one by one."""
    full, *others = NODES
    nodes = [replace(full, requested=Resources(3.999, GIB, 1)), *others]
    small, large, bait = of("small", 2), of("large", 6), on(full.name, of("other", 1, cores=0.001))
    assert in_rounds(*bait, *small, *large, nodes=nodes) == [names(bait), names([*large, *small])]


def test_what_a_namespace_with_few_nodes_asks_for_comes_before_what_others_ask_for_that_have_all() -> None:
    few, all_over = on("a0", of("few", 3)), of("wide", 10)
    assert in_rounds(*few, *all_over) == [names(few[:2]), names(few[2:]), names(all_over)]


def test_what_others_ask_for_beyond_their_share_does_not_break_up_a_set_that_waits() -> None:
    snapshot = a_snapshot(*NODES, topologies=())
    found = short_of_room(snapshot, DEFAULT_LEVELS, [of("other", 40), of("team", 4)], reserved={}, unbound={})
    assert found == (True, False)


@pytest.mark.parametrize(("owners", "large"), [(("team", "team"), 0), (("other", "team"), 1)])
def test_two_that_are_missing_take_the_place_of_one_only_in_their_own_namespace(
    owners: tuple[str, str], large: int
) -> None:
    assignment = Assignment(
        codes=np.array([[0]]),
        rows=[0, 1],
        demand=np.array([[2.0, 0.0], [4.0, 0.0]]),
        allowed=np.ones((2, 1), dtype=np.bool_),
        placed=np.array([[0], [1]]),
        missing=np.array([2, 0]),
        free=np.zeros((1, 2)),
        slack=np.array([1e-6, 1.0]),
        limits=Limits(np.full((2, 1), 9), np.full((2, 1), 9), np.array([[0], [1]]), ()),
        owners=owners,
    )
    assignment.improve(400, Random(1))
    assert assignment.placed[1, 0] == large
