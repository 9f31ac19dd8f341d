"""What a policy that only recommends says of its topologies' placement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.api.topology_status import Locality
from ballast.controller.cluster_objects import ClusterObjects, Read
from ballast.controller.context import Context
from ballast.controller.observe import Lists
from ballast.controller.status.topology import AT_ONCE, Adviser, in_status
from ballast.model import Executor, LocalityView, Memory, Node, PlacementMode, Resources, Topology
from ballast.planner.release import MOST_KINDS
from ballast.prometheus import Reading
from tests.builders import a_node, a_policy, a_snapshot, a_topology, an_executor
from tests.unit.controller.crowd import policy_resource

NODES = (a_node("a1", zone="a"), a_node("a2", zone="a", rack="r2"), a_node("b1", zone="b", rack="r3"))


def apart(topology: str = "team/clicks") -> tuple[Executor, ...]:
    """Two executors in each of two zones."""
    return tuple(
        an_executor(f"{topology[5:]}-{number}", node=node, topology=topology)
        for number, node in enumerate(("a1", "a1", "b1", "b1"))
    )


def context(
    *topologies: Topology,
    mode: PlacementMode = PlacementMode.RECOMMEND,
    executors: tuple[Executor, ...] = (),
    nodes: tuple[Node, ...] = NODES,
) -> Context:
    """At most half of a component may be on one node."""
    placement = replace(a_policy().placement, mode=mode, max_executors_per_node_ratio=0.5)
    return Context(
        read=Read({}, policy_resource()),
        policy=a_policy(placement=placement),
        objects=ClusterObjects(Lists((), ()), (), (), ()),
        snapshot=a_snapshot(*nodes, executors=executors, topologies=topologies),
        memory=Memory(),
        reading=Reading(),
        findings=(),
        pods={},
    )


def test_it_says_where_executors_would_be_and_what_that_would_bring() -> None:
    (found,) = Adviser().recommendations(context(a_topology(), executors=apart()), renew=True).values()
    assert found.placement == {"ingest": {"a1": 2, "a2": 2}}
    assert isinstance(found.locality, Locality)
    assert found.locality.cross_zone_ratio == 0.0


@pytest.mark.parametrize("mode", [PlacementMode.DISABLED, PlacementMode.ENFORCE])
def test_only_a_policy_that_recommends_does(mode: PlacementMode) -> None:
    assert Adviser().recommendations(context(a_topology(), mode=mode, executors=apart()), renew=True) == {}


def test_a_topology_without_executors_or_that_nobody_declared_gets_none() -> None:
    implicit = replace(a_topology(), key="team/spark-1", implicit=True)
    seen = context(a_topology(), implicit, executors=apart("team/spark-1"))
    assert Adviser().recommendations(seen, renew=True) == {}


def test_many_topologies_have_their_turns_with_new_figures() -> None:
    keys = [f"team/t{number}" for number in range(AT_ONCE + 2)]
    executors = tuple(executor for key in keys for executor in apart(key))
    seen = context(*(replace(a_topology(), key=key) for key in keys), executors=executors)
    adviser = Adviser()
    assert sorted(adviser.recommendations(seen, renew=True)) == keys[:AT_ONCE]
    assert sorted(adviser.recommendations(seen, renew=False)) == keys[:AT_ONCE]
    assert sorted(adviser.recommendations(seen, renew=True)) == keys


def test_executors_of_thousands_of_sizes_take_no_more_time_than_a_pass_has() -> None:
    """Executors at the gates of another policy would wait for them."""
    sizes = {"mallory/most": MOST_KINDS, "mallory/many": MOST_KINDS - 1, "mallory/more": MOST_KINDS - 1}
    members = tuple(
        an_executor(
            f"{key[8:]}-{number}",
            namespace="mallory",
            node="a1",
            topology=key,
            requests=Resources(0.001 + number * 1e-6, 1.0, 0.0),
        )
        for key, count in sizes.items()
        for number in range(count)
    )
    topologies = [replace(a_topology(), key=key, namespace="mallory") for key in sizes]
    seen, adviser = context(*topologies, executors=members), Adviser()
    assert set(adviser.recommendations(seen, renew=True)) == {"mallory/many"}
    assert set(adviser.recommendations(seen, renew=True)) == {"mallory/many", "mallory/more"}


def test_a_status_has_every_value_of_a_topologys_locality_rounded() -> None:
    view = LocalityView("team/clicks", 0.12345, 0.23456, 1.00001, 1234.5, cost=3.45678, lower_bound=2.34567)
    assert in_status(view) == Locality(
        cross_zone_ratio=0.123,
        cross_rack_ratio=0.235,
        cross_node_ratio=1.0,
        cross_zone_bytes_per_second=1234.5,
        cost=3.457,
        lower_bound=2.346,
    )


def test_of_a_topology_that_has_lost_its_executors_nothing_is_said_any_more() -> None:
    adviser = Adviser()
    assert adviser.recommendations(context(a_topology(), executors=apart()), renew=True)
    assert adviser.recommendations(context(a_topology()), renew=True) == {}


def test_what_is_gone_is_forgotten() -> None:
    adviser = Adviser()
    adviser.recommendations(context(a_topology(), executors=apart()), renew=True)
    assert adviser.recommendations(context(), renew=False) == {}
