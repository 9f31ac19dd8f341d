"""Storm's order of nodes as a policy's strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ballast.model import Executor, Memory, Node, Phase, PlacementPolicy, Policy, Resources
from ballast.placement.placing import place
from ballast.placement.state import PlacementState
from tests.builders import GIB, a_node, a_snapshot, an_executor, gated

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
