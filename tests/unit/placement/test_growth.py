"""Where executors wait for nodes."""

from __future__ import annotations

import pytest

from ballast.model import DEFAULT_LEVELS, Constraints, Executor, Levels, Node, Phase, Requirement
from ballast.placement.growth import GROUP_LABELS, awaited_zones, awaiting_nodes
from tests.builders import a_node, a_snapshot, an_executor, gated

ZONE = "topology.kubernetes.io/zone"
Term = tuple[Requirement, ...]


def in_zones(*zones: str) -> Term:
    return (Requirement("disk", "Exists"), Requirement(ZONE, "In", zones))


def waiting(name: str, *terms: Term) -> Executor:
    return an_executor(name, phase=Phase.PENDING, node=None, constraints=Constraints(affinity_terms=terms))


@pytest.mark.parametrize(
    ("executors", "zone"),
    [
        pytest.param([waiting("e1", in_zones("a"))], "a", id="the one that is required"),
        pytest.param([waiting(f"e{i}", in_zones(z)) for i, z in enumerate("abb")], "b", id="that of most"),
        pytest.param([waiting("e1", in_zones("a"), in_zones("a"))], "a", id="of every term"),
        pytest.param([waiting("e1", in_zones("a", "b"))], None, id="not two"),
        pytest.param([waiting("e1", in_zones("a"), (Requirement("disk", "Exists"),))], None, id="not of some terms"),
        pytest.param([waiting("e1")], None, id="nothing is required"),
        pytest.param([gated("e1", constraints=Constraints(affinity_terms=(in_zones("a"),)))], None, id="it is gated"),
    ],
)
def test_executors_that_have_no_node_yet_tell_by_what_they_require(executors: list[Executor], zone: str | None) -> None:
    expected = {("team/clicks", "ingest"): zone} if zone else {}
    assert awaited_zones(executors, DEFAULT_LEVELS) == expected


def test_without_a_level_above_the_node_there_are_no_zones() -> None:
    assert awaited_zones([waiting("e1", in_zones("a"))], Levels(())) == {}


def grown(name: str, zone: str, *, cores: float) -> Node:
    labels = {"kubernetes.io/hostname": name, ZONE: zone, GROUP_LABELS[0]: "general"}
    return a_node(name, zone=zone, labels=labels, cores=cores)


@pytest.mark.parametrize(
    ("terms", "others", "awaits"),
    [
        pytest.param([(Requirement(ZONE, "In", ("a",)),)], "full", True, id="no other zone has room"),
        pytest.param([(Requirement(ZONE, "In", ("a",)),)], "empty", False, id="a new pod could go to another zone"),
        pytest.param(
            [(Requirement(ZONE, "In", ("a",)), Requirement(ZONE, "In", ("a",)))],
            "empty",
            True,
            id="its template allows no other zone",
        ),
    ],
)
def test_an_executor_waits_for_a_node_where_a_new_pod_would_have_no_room_either(
    terms: list[Term], others: str, awaits: bool
) -> None:
    executor = waiting("e1", *terms)
    tied = an_executor("e1", phase=Phase.PENDING, node=None, constraints=executor.constraints, pinned=True)
    snapshot = a_snapshot(
        grown("n1", "a", cores=0.5), grown("n2", "b", cores=0.5 if others == "full" else 4.0), executors=(tied,)
    )
    assert (tied.uid in awaiting_nodes(snapshot, DEFAULT_LEVELS, [tied], unbound={})) is awaits
