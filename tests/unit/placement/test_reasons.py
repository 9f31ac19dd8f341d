"""What is said of an executor that found no node, and where it should rather go."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.model import (
    Anchor,
    Component,
    ComponentLimit,
    Constraints,
    Executor,
    Location,
    Memory,
    Node,
    PlacementPolicy,
    Reason,
    Requirement,
    Resources,
    Separation,
    Stream,
    Taint,
)
from ballast.placement.admission import Admission, refusal
from ballast.placement.placing import place
from ballast.placement.reasons import common_refusal, preferred_location, why_not
from tests.builders import GIB, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.unit.placement.situations import situation

NODES = (a_node("a1", zone="a"), a_node("a2", zone="a"), a_node("b1", zone="b", rack="r9"))
FULL = Resources(4.0, GIB, 1)
ON_SSD = Constraints(node_selector=(("disk", "ssd"),))


def why(*executors: Executor, **changes: Any) -> tuple[Reason, str]:
    pool, workload = situation(*executors, **{"nodes": NODES, **changes})
    return why_not(pool, workload, 0)


def test_where_no_node_admits_it_the_commonest_refusal_is_told() -> None:
    assert why(gated("e1", constraints=ON_SSD)) == (
        Reason.NOT_ADMITTED,
        "a1 does not match the pod's node selector or affinity; 3 of 3 nodes say the same",
    )


def test_where_none_has_room_it_says_how_many_would_admit_it() -> None:
    nodes = (a_node("a1", requested=FULL), a_node("a2", requested=FULL), a_node("a3", ready=False))
    assert why(gated("e1"), nodes=nodes) == (
        Reason.POOL_FULL,
        "none of 2 nodes that admit it has room for its requests; released, so that an autoscaler can provide one",
    )


def test_where_those_with_room_hold_enough_it_names_the_limit() -> None:
    nodes = (a_node("a1", requested=FULL), NODES[1])
    assert why(gated("e1"), an_executor("e2", node="a2"), nodes=nodes) == (
        Reason.SPREAD_LIMIT,
        "1 of 1 nodes with room: maxExecutorsPerNodePercent 25 allows 1 of 2 of ingest per node",
    )


def test_a_limit_of_the_component_itself_is_named_as_such() -> None:
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0, limits=(ComponentLimit("ingest", 1),))
    assert why(gated("e1"), an_executor("e2", node="a2"), nodes=(NODES[1],), policy=policy) == (
        Reason.SPREAD_LIMIT,
        "1 of 1 nodes with room: limits allow 1 of ingest per node",
    )


def test_a_zone_that_holds_enough_is_a_matter_of_spread_too() -> None:
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0, max_executors_per_zone_ratio=0.5)
    nodes = (*NODES[:2], a_node("b1", zone="b", requested=FULL))
    assert why(gated("e1"), an_executor("e2", node="a2"), nodes=nodes, policy=policy) == (
        Reason.SPREAD_LIMIT,
        "2 of 2 nodes with room: maxExecutorsPerZonePercent 50 allows 1 of 2 of ingest per zone",
    )


def test_what_bars_most_nodes_is_the_reason_and_the_rest_is_told() -> None:
    apart = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), "Zone"),))
    there = (an_executor("e2", node="b1"), an_executor("s1", node="a1", component="standby"))
    assert why(gated("e1"), *there, topologies=(apart,)) == (
        Reason.SEPARATED,
        (
            "1 of 3 nodes with room: maxExecutorsPerNodePercent 25 allows 1 of 2 of ingest per node; "
            "2 of 3 nodes with room: a component that must be kept apart from ingest is there"
        ),
    )


def test_nothing_is_blamed_where_a_node_would_take_it() -> None:
    assert why(gated("e1"))[0] is Reason.NO_DESTINATION


def test_separation_is_told_where_it_is_separation() -> None:
    apart = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), "Zone"),))
    standby = (an_executor("s1", node="a1", component="standby"), an_executor("s2", node="b1", component="standby"))
    assert why(gated("e1"), *standby, topologies=(apart,)) == (
        Reason.SEPARATED,
        "3 of 3 nodes with room: a component that must be kept apart from ingest is there",
    )


class TestCommonRefusal:
    def test_an_empty_pool_is_full(self) -> None:
        assert common_refusal(gated("e1"), [], Admission([])) == (Reason.POOL_FULL, "the pool has no nodes")

    def test_the_most_frequent_is_told_with_an_example_and_a_count(self) -> None:
        nodes = [
            a_node("n1", ready=False),
            a_node("n2", leaving="drained"),
            a_node("n3", leaving="drained"),
            a_node("n4"),
        ]
        assert common_refusal(gated("e1"), nodes, Admission(nodes)) == (
            Reason.NODE_LEAVING,
            "n2 is about to leave (drained); 2 of 4 nodes say the same",
        )

    def test_of_equally_frequent_ones_the_first_by_name_and_without_a_count(self) -> None:
        nodes = [a_node("n1", taints=(Taint("gpu", "", "NoSchedule"),)), a_node("n2", ready=False)]
        assert common_refusal(gated("e1"), nodes, Admission(nodes)) == (Reason.NODE_UNAVAILABLE, "n2 is not ready")

    def test_volumes_and_taints_are_told_after_what_the_pod_selects(self) -> None:
        taint = Taint("gpu", "", "NoSchedule")
        nodes = [a_node("n1", taints=(taint,)), a_node("n2", taints=(taint,)), a_node("n3")]
        elsewhere = Constraints(volume_terms=(((Requirement("disk", "In", ("far",)),),),))
        assert common_refusal(gated("e1", constraints=elsewhere), nodes, Admission(nodes)) == (
            Reason.VOLUME_PINNED,
            "a volume of the pod can't be mounted on n1; 3 of 3 nodes say the same",
        )
        assert common_refusal(gated("e1"), nodes, Admission(nodes))[0] is Reason.TAINTED
        unread = common_refusal(gated("e1", constraints=Constraints(unread="too much")), nodes, Admission(nodes))
        assert unread == (Reason.NOT_ADMITTED, "too much; 3 of 3 nodes say the same")

    def test_its_demands_are_not_looked_at_node_by_node(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A user may create a thousand executors, each with a hundred demands that no node meets."""
        asked = []

        def counted(executor: Executor, node: Node) -> tuple[Reason, str] | None:
            asked.append(node.name)
            return refusal(executor, node)

        monkeypatch.setattr("ballast.placement.reasons.refusal", counted)
        nodes = [a_node(f"n{number}") for number in range(50)]
        assert common_refusal(gated("e1", constraints=ON_SSD), nodes, Admission(nodes))[0] is Reason.NOT_ADMITTED
        assert asked == ["n0"]


def preferred(*executors: Executor, **changes: Any) -> Location:
    pool, workload = situation(*executors, **{"nodes": NODES, **changes})
    return preferred_location(pool, workload, 0)


def fed(*anchors: Anchor, driver: Anchor | None = None) -> dict[str, Any]:
    kafka, less = (
        Component("kafka", external=True, anchors=anchors[1:]),
        Component("x", external=True, anchors=anchors[:1]),
    )
    streams = (Stream("x", "ingest", bytes_per_second=1.0), Stream("kafka", "ingest", bytes_per_second=9.0))
    return {"topologies": (a_topology(kafka, less, Component("ingest"), streams=streams, driver=driver),)}


@pytest.mark.parametrize(
    ("others", "location"),
    [
        pytest.param({"ingest": ["a1", "b1", "b1"]}, ("b", "r9", None), id="where most of its component is"),
        pytest.param({"ingest": ["a1"], "report": ["b1"] * 3}, ("a", "r1", None), id="rather than of the others"),
        pytest.param({"report": ["a1", "b1", "b1"]}, ("b", "r9", None), id="else where most of its topology is"),
        pytest.param({"ingest": ["a1", "a3", "a4", "b1", "b1"]}, ("a", "r2", None), id="the rack within that zone"),
    ],
)
def test_it_should_rather_go_to_its_own_kind(others: dict[str, list[str]], location: Location) -> None:
    nodes = (*NODES, a_node("a3", zone="a", rack="r2"), a_node("a4", zone="a", rack="r2"))
    running = [
        an_executor(f"{component}-{number}", node=node, component=component)
        for component, places in others.items()
        for number, node in enumerate(places)
    ]
    assert preferred(gated("e1"), *running, nodes=nodes) == location


def test_else_to_its_driver_else_to_where_most_traffic_comes_from() -> None:
    near, far = Anchor(("a", "r1", "a1"), 1.0), Anchor(("b", None, "b1"), 1.0)
    assert preferred(gated("e1"), **fed(near, far, driver=near)) == ("a", "r1", None)
    assert preferred(gated("e1"), **fed(near, far)) == ("b", None, None)
    assert preferred(gated("e1"), **fed(near, Anchor(("c",), 1.0))) == ("c", None, None)


@pytest.mark.parametrize(
    ("nodes", "zone"),
    [
        (NODES, "a"),
        ((*NODES, a_node("b2", zone="b"), a_node("b3", zone="b")), "b"),
        ((*NODES, a_node("c1", zone="c", ready=False), a_node("c2", zone="c", schedulable=False)), "a"),
        ((a_node("n1", zone=None, rack=None),), None),
        ((a_node("c1", zone="c", ready=False),), None),
        ((), None),
    ],
)
def test_else_to_the_zone_with_most_nodes_that_admit_it_so_that_its_set_comes_to_one(
    nodes: tuple[Node, ...], zone: str | None
) -> None:
    assert preferred(gated("e1"), nodes=nodes) == (zone, None, None)


class TestSplitBy:
    def details(self, count: int, *nodes: Node, **changes: Any) -> set[str]:
        waiting = tuple(gated(f"e{number}") for number in range(count))
        policy = a_policy(placement=PlacementPolicy(**changes))
        found = place(a_snapshot(*nodes, executors=waiting), policy, Memory(), gated=waiting).placements
        return {placement.detail for placement in found}

    def test_it_names_the_limit_except_for_which_one_zone_would_hold_the_set(self) -> None:
        nodes = (a_node("a1", zone="a", cores=8.0), a_node("b1", zone="b", cores=8.0))
        words = "split over 2 zones: maxExecutorsPerNodePercent 50 allows 2 of 4 of ingest per node"
        assert self.details(4, *nodes, max_executors_per_node_ratio=0.5) == {words}

    def test_racks_are_told_where_the_zone_is_one(self) -> None:
        nodes = (a_node("a1", rack="r1", cores=8.0), a_node("a2", rack="r2", cores=8.0))
        words = "split over 2 racks: maxExecutorsPerNodePercent 50 allows 2 of 4 of ingest per node"
        assert self.details(4, *nodes, max_executors_per_node_ratio=0.5) == {words}

    def test_the_limit_of_a_zone_is_told_as_well(self) -> None:
        nodes = tuple(a_node(f"{zone}{n}", zone=zone, cores=8.0) for zone in "ab" for n in range(4))
        words = "split over 2 zones: maxExecutorsPerZonePercent 50 allows 2 of 4 of ingest per zone"
        assert self.details(4, *nodes, max_executors_per_zone_ratio=0.5) == {words}

    def test_nothing_is_told_where_room_splits_it_or_it_is_together(self) -> None:
        small = (a_node("a1", zone="a", cores=2.0), a_node("b1", zone="b", cores=2.0))
        assert self.details(4, *small, max_executors_per_node_ratio=1.0) == {""}
        assert self.details(3, *(a_node(f"a{n}") for n in range(3))) == {""}
