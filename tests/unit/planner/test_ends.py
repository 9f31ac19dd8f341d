"""How far an executor is from what it talks to."""

from __future__ import annotations

from ballast.model import DEFAULT_LEVELS, Anchor, Component, Phase, Scope, Stream
from ballast.planner.explanation import EndKind, ends
from tests.builders import a_node, a_snapshot, a_topology, an_executor

NODES = (a_node("n1"), a_node("n2"), a_node("n3", rack="r2"), a_node("n4", zone="z2", rack="r4"))


def test_peers_are_counted_by_the_nearest_scope_that_holds_both() -> None:
    here = an_executor("e0", node="n1")
    others = [an_executor(f"e{i}", node=f"n{i}") for i in (1, 2, 3, 4)]
    (own,) = ends(here, a_snapshot(*NODES, executors=(here, *others)), DEFAULT_LEVELS)
    assert (own.name, own.kind) == ("ingest", EndKind.COMPONENT)
    assert own.distance == (0 + 1 + 3 + 10) / 4
    assert own.scopes == ((Scope.NODE, 0.25), (Scope.RACK, 0.25), (Scope.ZONE, 0.25), (Scope.CLUSTER, 0.25))


def test_external_ends_count_by_their_share_and_the_driver_comes_last() -> None:
    kafka = Component(
        "kafka", external=True, anchors=(Anchor(("z1", "r1", "n1"), 0.8), Anchor(("z2", None, None), 0.2))
    )
    driver = Anchor(("z1", "r2", "n3"), 1.0)
    topology = a_topology(kafka, Component("ingest"), streams=(Stream("kafka", "ingest"),), driver=driver)
    here = an_executor("e0", node="n1")
    found = ends(here, a_snapshot(*NODES, executors=(here,), topologies=(topology,)), DEFAULT_LEVELS)
    assert [(end.name, end.kind, end.distance) for end in found] == [
        ("kafka", EndKind.EXTERNAL, 2.0),
        ("driver", EndKind.DRIVER, 3.0),
    ]


def test_a_component_with_no_stream_between_is_no_end() -> None:
    topology = a_topology(Component("ingest"), Component("report"))
    here, other = an_executor("e0", node="n1"), an_executor("r0", node="n2", component="report")
    assert ends(here, a_snapshot(*NODES, executors=(here, other), topologies=(topology,)), DEFAULT_LEVELS) == ()


def test_one_that_is_nowhere_has_no_distances() -> None:
    here = an_executor("e0", node=None, phase=Phase.PENDING)
    other = an_executor("e1", node="n1")
    assert ends(here, a_snapshot(*NODES, executors=(here, other)), DEFAULT_LEVELS) == ()


def test_a_stream_to_a_component_that_runs_nowhere_and_stands_nowhere_is_no_end() -> None:
    topology = a_topology(Component("ingest"), Component("report"), streams=(Stream("ingest", "report"),))
    here = an_executor("e0", node="n1")
    assert ends(here, a_snapshot(*NODES, executors=(here,), topologies=(topology,)), DEFAULT_LEVELS) == ()


def test_executors_of_other_topologies_and_those_that_leave_are_no_peers() -> None:
    here = an_executor("e0", node="n1")
    others = (an_executor("s1", node="n1", topology="team/spark-7"), an_executor("e1", node="n1", phase=Phase.LEAVING))
    assert ends(here, a_snapshot(*NODES, executors=(here, *others)), DEFAULT_LEVELS) == ()
