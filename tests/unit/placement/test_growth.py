"""Where executors wait for nodes."""

from __future__ import annotations

import pytest

from ballast.model import DEFAULT_LEVELS, Constraints, Executor, Levels, Phase, Requirement
from ballast.placement.growth import awaited_zones
from tests.builders import an_executor, gated

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
