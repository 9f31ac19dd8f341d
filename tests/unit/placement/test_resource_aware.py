"""Storm's order of nodes as a policy's strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ballast.model import Executor, Memory, Node, Phase, PlacementPolicy, Policy, Resources
from ballast.placement.placing import place
from ballast.placement.resource_aware import Availability, Layout, NodeRule
from ballast.placement.strategies import PlacementState
from tests.builders import GIB, a_node, a_snapshot, an_executor, gated
from tests.reference.storm.node_order import level_shares, node_order, rack_order

GPU = "nvidia.com/gpu"


def homes(
    pool: Sequence[Node], waiting: Sequence[Executor], *others: Executor, sent: tuple[tuple[str, str], ...] = ()
) -> list[str | None]:
    """In the order of the executors' names."""
    policy = Policy("p", placement=PlacementPolicy(strategy="ResourceAware", max_executors_per_node_ratio=1.0))
    snapshot = a_snapshot(*pool, executors=(*waiting, *others), topologies=())
    placed = place(snapshot, policy, Memory(), gated=waiting, state=PlacementState(sent=sent))
    return [placement.node for placement in placed.placements]


def many(count: int, **changes: Any) -> list[Executor]:
    return [gated(f"e-{number}", **changes) for number in range(count)]


def busy(name: str, cores: float, **changes: Any) -> Node:
    """A node with so many of its four cores taken."""
    return a_node(name, requested=Resources(cores, GIB, 1), **changes)


def test_one_executor_goes_where_the_largest_part_is_free() -> None:
    assert homes([busy("n1", 2.0), busy("n2", 1.0), busy("n3", 3.0)], many(1)) == ["n2"]


def test_the_next_follows_the_one_before_until_the_node_is_full() -> None:
    placed = homes([busy("n1", 2.0), busy("n2", 1.0), busy("n3", 3.0)], many(6))
    assert placed == ["n2", "n2", "n2", "n1", "n1", "n3"]


def test_the_rack_with_most_of_the_topology_comes_before_the_one_with_most_room() -> None:
    pool = [busy("a1", 4.0, rack="a"), busy("a2", 3.0, rack="a"), a_node("b1", rack="b"), a_node("b2", rack="b")]
    assert homes(pool, many(1)) == ["b1"]
    assert homes(pool, many(2), an_executor("r", node="a1")) == ["a2", "b1"]


def test_racks_are_compared_as_a_whole() -> None:
    pool = [busy("a1", 1.0, rack="a"), busy("b1", 2.0, rack="b"), busy("b2", 2.0, rack="b")]
    assert homes(pool, many(1)) == ["b1"]


def test_executors_of_other_topologies_draw_nobody() -> None:
    pool = [busy("n1", 1.0), a_node("n2")]
    assert homes(pool, many(1), an_executor("r", node="n1", topology="team/other")) == ["n2"]


def test_those_sent_before_that_are_not_bound_yet_draw_others() -> None:
    on_its_way = an_executor("p", node=None, phase=Phase.PENDING)
    pool = [busy("n1", 2.5), a_node("n2")]
    assert homes(pool, many(1), on_its_way, sent=((on_its_way.uid, "n1"),)) == ["n1"]
    elsewhere = an_executor("p", node=None, phase=Phase.PENDING, topology="team/other")
    assert homes(pool, many(1), elsewhere, sent=((elsewhere.uid, "n1"),)) == ["n2"]


def with_gpus(name: str, count: float) -> Node:
    return a_node(name, allocatable=Resources(4.0, 16 * GIB, 110, ((GPU, count),)))


def test_a_gpu_repels_those_that_ask_for_none_and_attracts_those_that_do() -> None:
    pool = [with_gpus("g", 2.0), busy("n", 3.0)]
    assert homes(pool, many(2)) == ["n", "g"]
    requests = Resources(1.0, GIB, 1, ((GPU, 1.0),))
    assert homes(pool, many(3, requests=requests)) == ["g", "g", None]


def test_a_gpu_that_was_given_away_attracts_nobody_any_more() -> None:
    pool = [with_gpus("g1", 1.0), with_gpus("g2", 1.0), busy("n", 3.5)]
    wanting = gated("e-0", requests=Resources(0.5, GIB, 1, ((GPU, 1.0),)), topology="team/other")
    plain = gated("f-0", requests=Resources(0.25, GIB, 1))
    assert homes(pool, [wanting, plain]) == ["g1", "g1"]


def test_what_every_node_offers_and_nobody_asks_for_decides_nothing() -> None:
    disk = "ephemeral-storage"
    pool = [
        a_node(name, allocatable=Resources(4.0, 16 * GIB, 110, ((disk, size),)), requested=Resources(cores, GIB, 1))
        for name, size, cores in (("n1", 1e9, 2.0), ("n2", 1e12, 1.0))
    ]
    assert homes(pool, many(1)) == ["n2"]


def test_what_every_node_offers_decides_nothing_for_those_that_do_not_ask_for_it() -> None:
    disk = "ephemeral-storage"
    pool = [
        a_node(name, allocatable=Resources(4.0, 16 * GIB, 110, ((disk, size),)), requested=Resources(cores, GIB, 1))
        for name, size, cores in (("n1", 1e9, 2.0), ("n2", 1e12, 1.0))
    ]
    asking = gated("f-0", requests=Resources(1.0, GIB, 1, ((disk, 1e8),)), topology="team/other")
    assert homes(pool, [*many(1), asking])[0] == "n2"


def test_how_many_pods_a_node_may_run_speaks_for_none() -> None:
    pool = [a_node("n1", allocatable=Resources(4.0, 16 * GIB, 500)), a_node("n2", cores=5.0)]
    assert homes(pool, many(1)) == ["n2"]


def test_racks_of_two_zones_may_have_one_name_and_nodes_may_lack_labels() -> None:
    pool = [a_node("a", zone="z1"), a_node("b", zone="z2"), a_node("c", zone=None, rack=None, cores=8.0)]
    assert Counter(homes(pool, many(9))) == {"c": 8, "a": 1}


CPU_AND_MEMORY = [(400.0, 8000.0), (200.0, 4000.0), (0.0, 8000.0), (10.0, 20000.0), (610.0, 1000.0)]
"""Free per node, of five racks of ten nodes each: figures of Storm's own tests."""


def five_racks() -> tuple[Layout, Availability]:
    paths = [(f"rack{rack}", f"node{rack}-{number}") for rack in range(5) for number in range(10)]
    free = np.repeat(np.array(CPU_AND_MEMORY), 10, axis=0)
    return Layout(paths), room(free)


def room(free: object, placed: object = None, rare: object = None) -> Availability:
    amounts = np.array(free, dtype=float)
    return Availability(
        free=amounts,
        placed=np.zeros(len(amounts), dtype=np.int64) if placed is None else np.array(placed),
        rare=np.zeros(amounts.shape[1], dtype=bool) if rare is None else np.array(rare),
    )


@pytest.mark.parametrize(
    ("rule", "racks"),
    [(NodeRule.COMMON, [4, 0, 3, 1, 2]), (NodeRule.GENERIC, [4, 0, 3, 1, 2]), (NodeRule.DEFAULT, [0, 1, 4, 3, 2])],
)
def test_racks_are_ordered_by_their_part_of_what_is_free(rule: NodeRule, racks: list[int]) -> None:
    layout, free = five_racks()
    assert rack_order(layout, free, requested=None, rule=rule) == racks


def test_an_item_is_judged_by_its_mean_and_its_scarcest_share() -> None:
    layout, free = five_racks()
    shares = level_shares(layout, free, 0, requested=None, rule=NodeRule.COMMON)
    assert shares.mean_percent == pytest.approx([26.1495, 13.0748, 9.7561, 24.8001, 26.2195], abs=5e-5)
    assert shares.scarcest_percent == pytest.approx([19.5122, 9.7561, 0.0, 0.8197, 2.4390], abs=5e-5)


def test_nodes_come_rack_by_rack() -> None:
    layout, free = five_racks()
    order = node_order(layout, free, requested=None)
    assert [node // 10 for node in order] == sorted((node // 10 for node in order), key=[4, 0, 3, 1, 2].index)


def test_where_the_topology_runs_already_goes_before_what_is_free() -> None:
    layout = Layout([("a", "a1"), ("a", "a2"), ("b", "b1")])
    assert node_order(layout, room([[9.0], [9.0], [1.0]], placed=[0, 0, 1]), requested=None) == [2, 0, 1]
    assert node_order(layout, room([[9.0], [1.0], [1.0]], placed=[0, 1, 0]), requested=None) == [1, 0, 2]


def two_kinds_of_nodes() -> tuple[Layout, Availability]:
    layout = Layout([(f"rack{node // 4}", f"node{node}") for node in range(8)])
    return layout, room([[400.0, 8000.0, 0.0]] * 4 + [[400.0, 8000.0, 1.0]] * 4, rare=[False, False, True])


@pytest.mark.parametrize(
    ("wants_gpu", "racks", "mean", "scarcest"),
    [(False, [0, 1], [100 / 3, 0.0], [0.0, -100.0]), (True, [1, 0], [100 / 3, 200 / 3], [0.0, 50.0])],
)
def test_rare_resources_draw_who_needs_them_and_repel_the_others(
    *, wants_gpu: bool, racks: list[int], mean: list[float], scarcest: list[float]
) -> None:
    layout, free = two_kinds_of_nodes()
    requested = np.array([True, True, wants_gpu])
    shares = level_shares(layout, free, 0, requested=requested, rule=NodeRule.COMMON)
    assert shares.mean_percent == pytest.approx(mean)
    assert shares.scarcest_percent == pytest.approx(scarcest)
    assert rack_order(layout, free, requested=requested, rule=NodeRule.COMMON) == racks


def test_the_default_rule_takes_rare_resources_like_all_others() -> None:
    layout, free = two_kinds_of_nodes()
    order = rack_order(layout, free, requested=np.array([True, True, False]), rule=NodeRule.DEFAULT)
    assert order == [1, 0]


def test_a_resource_that_is_nowhere_free_is_passed_over() -> None:
    layout = Layout([("a",), ("b",)])
    shares = level_shares(layout, room([[0.0, 1.0], [0.0, 3.0]]), 0, requested=None, rule=NodeRule.COMMON)
    assert shares.mean_percent.tolist() == [25.0, 75.0]


def test_where_nothing_is_free_all_are_alike_and_names_decide() -> None:
    layout = Layout([("b",), ("a",)])
    shares = level_shares(layout, room([[0.0], [0.0]]), 0, requested=None, rule=NodeRule.COMMON)
    assert shares.mean_percent.tolist() == shares.scarcest_percent.tolist() == [100.0, 100.0]
    assert node_order(layout, room([[0.0], [0.0]]), requested=None) == [1, 0]


def test_racks_of_two_zones_may_have_one_name() -> None:
    layout = Layout([("z1", "r", "a"), ("z2", "r", "b"), ("z1", "r", "c")])
    assert layout.names[1] == ["r", "r"]
    assert node_order(layout, room([[1.0], [9.0], [2.0]]), requested=None) == [1, 2, 0]


def test_no_node_at_all_gives_an_empty_order() -> None:
    assert node_order(Layout([]), room(np.zeros((0, 1))), requested=None) == []
