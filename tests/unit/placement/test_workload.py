"""Who is there, who is to come, and which places are vacant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    Anchor,
    Component,
    Constraints,
    Executor,
    Memory,
    MovePhase,
    Phase,
    Resources,
    Stream,
)
from ballast.placement.expectation import Expectation
from ballast.placement.node_locations import node_locations
from ballast.placement.workload import TopologyWorkload, traffic, workloads
from tests.builders import GIB, a_move, a_node, a_snapshot, a_topology, an_executor, gated

NODES = (a_node("n1"), a_node("n2"), a_node("n3"))
BIG = Resources(4.0, GIB, 1)

PARTS = ("ingest", "sessions")


def found(
    *executors: Executor, memory: Memory | None = None, sticky: bool = True, **changes: Any
) -> list[TopologyWorkload]:
    """Of those that are gated, with the others around them."""
    bound: Mapping[str, str] = changes.pop("bound", {})
    loads: Mapping[str, float] = changes.pop("loads", {})
    placed_now: tuple[str, ...] | None = changes.pop("placed_now", None)
    held = [e for e in executors if e.phase is Phase.GATED and e.uid not in bound]
    waiting = [e for e in held if placed_now is None or e.name in placed_now]
    snapshot = a_snapshot(*NODES, executors=executors, **changes)
    places = node_locations(NODES, DEFAULT_LEVELS)
    return list(workloads(snapshot, places, memory or Memory(), gated=waiting, bound=bound, sticky=sticky, loads=loads))


def workload(*executors: Executor, **changes: Any) -> TopologyWorkload:
    (only,) = found(*executors, **changes)
    return only


def remembered(**counts: int) -> Memory:
    return Memory(placements=(("team/clicks", "ingest", tuple(counts.items())),))


def test_there_is_a_crew_for_every_topology_that_waits_the_largest_demand_first() -> None:
    waiting = (
        gated("a-1", topology="team/a"),
        gated("b-1", topology="team/b", requests=BIG),
        gated("c-1", topology="team/c", requests=Resources(2.0)),
        gated("c-2", topology="team/c", requests=Resources(3.0)),
        an_executor("d-1", node="n1", topology="team/d", requests=BIG),
        gated("e-1", topology="team/e"),
    )
    assert [each.topology.key for each in found(*waiting)] == ["team/c", "team/b", "team/a", "team/e"]


def test_an_application_that_nobody_described_is_a_topology_by_itself() -> None:
    topology = workload(gated("a-1", topology="team/spark-7"), topologies=()).topology
    assert (topology.key, topology.namespace, topology.name) == ("team/spark-7", "team", "spark-7")
    assert (topology.components, topology.implicit) == ((), True)


def test_those_that_run_and_those_that_are_bound_are_present() -> None:
    only = workload(
        gated("e-1"),
        an_executor("e-2", node="n1"),
        an_executor("e-3", node="n3", phase=Phase.PENDING),
        an_executor("e-4", node="n3", phase=Phase.LEAVING),
        an_executor("e-5", node="elsewhere"),
        an_executor("e-6", node=None, phase=Phase.PENDING),
        an_executor("r-1", node="n2", component="report"),
        an_executor("s-1", node="n2", topology="team/other"),
    )
    assert only.components == ("ingest", "report")
    assert only.present.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert only.totals.tolist() == [5.0, 1.0]


def test_what_the_pass_has_placed_already_is_present_where_it_was_placed() -> None:
    only = workload(gated("e-1"), gated("e-2"), bound={"uid-e-2": "n2"})
    assert (only.present.tolist(), only.totals.tolist()) == ([[0, 1, 0]], [2.0])


@pytest.mark.parametrize(
    ("phase", "there"),
    [(MovePhase.APPROVED, "n2"), (MovePhase.LEAVING, "n2"), (MovePhase.PROPOSED, "n1"), (MovePhase.SETTLING, "n1")],
)
def test_one_that_a_move_takes_away_is_present_where_it_takes_it(phase: MovePhase, there: str) -> None:
    move = a_move(executor_uid="uid-e-2", phase=phase, ended_at=None, source="n1", target="n2")
    only = workload(gated("e-1"), an_executor("e-2", node="n1"), moves=(move,))
    assert only.present.tolist() == [[int(node.name == there) for node in NODES]]
    assert only.totals.tolist() == [2.0]


@pytest.mark.parametrize(
    ("phase", "leaving"),
    [
        (MovePhase.LEAVING, [an_executor("e-2", node="n1")]),
        (MovePhase.LEAVING, [an_executor("e-2", node="n1", phase=Phase.LEAVING)]),
        (MovePhase.ARRIVING, []),
    ],
)
def test_a_replacement_at_the_gate_is_present_where_its_move_will_send_it(
    phase: MovePhase, leaving: list[Executor]
) -> None:
    replacement = gated("e-3")
    move = a_move(executor_uid="uid-e-2", phase=phase, ended_at=None, target="n2", replacement_uid=replacement.uid)
    only = workload(gated("e-1"), replacement, *leaving, placed_now=("e-1",), moves=(move,))
    assert only.present.tolist() == [[0, 1, 0]]


def test_a_replacement_that_is_placed_without_its_move_is_not_present_yet() -> None:
    move = a_move(phase=MovePhase.ARRIVING, ended_at=None, target="n2", replacement_uid="uid-e-1")
    assert workload(gated("e-1"), moves=(move,)).present.sum() == 0


def test_a_component_is_as_large_as_it_is_expected_to_become() -> None:
    few, many = (a_topology(Component("ingest", expected=count)) for count in (1, 9))
    assert workload(gated("e-1"), gated("e-2"), topologies=(few,)).totals.tolist() == [2.0]
    assert workload(gated("e-1"), gated("e-2"), topologies=(many,)).totals.tolist() == [9.0]


def test_limits_are_not_shares_of_executors_that_are_promised_by_a_label_alone() -> None:
    executors = gated("e-1"), gated("e-2")
    snapshot = a_snapshot(*NODES, executors=executors, topologies=(a_topology(Component("ingest")),))
    expected = {(executors[0].topology, "ingest"): Expectation(to_come=98)}
    (only,) = workloads(
        snapshot,
        node_locations(NODES, DEFAULT_LEVELS),
        Memory(),
        gated=executors,
        bound={},
        sticky=False,
        loads={},
        expected=expected,
    )
    assert (only.totals.tolist(), only.sizes.tolist(), only.growing) == ([2.0], [100.0], True)


def test_vacant_is_what_was_taken_and_is_not_now() -> None:
    memory = remembered(n1=2, n2=1, gone=3)
    assert workload(gated("e-1"), memory=memory).vacancies.tolist() == [[2, 1, 0]]
    running = (an_executor("e-2", node="n1"), an_executor("e-3", node="n2"), an_executor("e-4", node="n2"))
    assert workload(gated("e-1"), *running, memory=memory).vacancies.tolist() == [[1, 0, 0]]
    assert workload(gated("e-1"), memory=memory, sticky=False).vacancies.tolist() == [[0, 0, 0]]


def test_places_of_a_component_that_is_not_here_are_none_of_its_business() -> None:
    memory = Memory(placements=(("team/clicks", "report", (("n1", 1),)), ("team/other", "ingest", (("n2", 1),))))
    assert workload(gated("e-1"), memory=memory).vacancies.tolist() == [[0, 0, 0]]


def test_a_place_that_a_move_has_just_given_up_is_not_returned_to() -> None:
    moves = (a_move("m1", phase=MovePhase.ARRIVING, ended_at=None, source="n1"), a_move("m2", source="n2"))
    only = workload(gated("e-1"), memory=remembered(n1=2, n2=1), moves=moves)
    assert only.vacancies.tolist() == [[1, 1, 0]]


def test_executors_of_one_template_are_one_group_with_the_largest_expected_load() -> None:
    ssd = Constraints(node_selector=(("disk", "ssd"),))
    only = workload(
        gated("e-3"),
        gated("e-1"),
        gated("e-2", constraints=ssd),
        gated("d-1", requests=BIG),
        gated("a-1", component="report"),
        loads={"uid-e-3": 0.25, "uid-e-1": 0.5},
    )
    assert [([e.name for e in g.executors], g.component, g.load_cores) for g in only.groups] == [
        (["d-1"], 0, 4.0),
        (["e-1", "e-3"], 0, 0.5),
        (["e-2"], 0, 1.0),
        (["a-1"], 1, 1.0),
    ]
    assert [(g.requests, g.constraints) for g in only.groups[:3]] == [
        (BIG, Constraints()),
        (Resources(1.0, GIB, 1), Constraints()),
        (Resources(1.0, GIB, 1), ssd),
    ]


def test_what_nobody_declared_weighs_like_the_mean_of_what_was_declared() -> None:
    topology = a_topology(
        Component("ingest", exchange_bytes_per_second=10.0),
        Component("sessions"),
        streams=(Stream("ingest", "sessions", bytes_per_second=30.0),),
    )
    assert traffic(topology, PARTS).between.tolist() == [[10.0, 30.0], [30.0, 20.0]]


def test_where_nothing_was_declared_everything_weighs_one() -> None:
    topology = a_topology(Component("ingest"), Component("sessions"), streams=(Stream("ingest", "sessions"),))
    assert traffic(topology, PARTS).between.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_declared_nothing_weighs_nothing() -> None:
    topology = a_topology(Component("ingest", exchange_bytes_per_second=0.0))
    assert traffic(topology, ("ingest",)).total == 0.0


def test_a_component_that_the_topology_does_not_know_exchanges_among_its_own() -> None:
    assert traffic(a_topology(), ("stray",)).between.tolist() == [[1.0]]


def test_external_traffic_is_shared_out_over_its_anchors() -> None:
    near, far = Anchor(("a", None, None), 0.75), Anchor(("b", None, None), 0.25)
    kafka = Component("kafka", external=True, anchors=(near, far))
    topology = a_topology(kafka, Component("ingest"), streams=(Stream("kafka", "ingest", bytes_per_second=8.0),))
    flows = traffic(topology, ("ingest",))
    assert flows.ends == (near, far)
    assert flows.pulls.tolist() == [[6.0, 2.0]]
    assert flows.total == 16.0


def test_what_flows_out_pulls_as_what_flows_in() -> None:
    there = Anchor(("a", None, None), 1.0)
    sink = Component("sink", external=True, anchors=(there,))
    topology = a_topology(sink, Component("ingest"), streams=(Stream("ingest", "sink", bytes_per_second=8.0),))
    flows = traffic(topology, ("ingest",))
    assert flows.ends == (there,)
    assert flows.pulls.tolist() == [[8.0]]


def test_streams_to_one_place_pull_together() -> None:
    here, there = Anchor(("a", None, None), 1.0), Anchor(("b", None, None), 1.0)
    kafka, store = (Component(name, external=True, anchors=(here, there)) for name in ("kafka", "store"))
    streams = (Stream("kafka", "ingest", bytes_per_second=8.0), Stream("ingest", "store", bytes_per_second=2.0))
    flows = traffic(a_topology(kafka, store, Component("ingest"), streams=streams), ("ingest",))
    assert flows.ends == (here, there)
    assert flows.pulls.tolist() == [[10.0, 10.0]]


def test_rates_are_known_only_when_all_of_them_are() -> None:
    declared = Component("ingest", exchange_bytes_per_second=1.0)
    assert traffic(a_topology(declared), ("ingest",)).known
    assert not traffic(a_topology(), ("ingest",)).known


@pytest.mark.parametrize("split", [(4, 0), (3, 1), (2, 2)])
def test_pairs_in_two_places_carry_what_the_shares_leave(split: tuple[int, int]) -> None:
    weight = float(traffic(a_topology(), ("ingest",)).per_pair(np.array([4.0]))[0, 0])
    crossing = weight * split[0] * split[1]
    assert crossing == pytest.approx(1 - sum((part / 4) ** 2 for part in split))
