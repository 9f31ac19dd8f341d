"""Very many topologies without executors delay no executor at its gate."""

from __future__ import annotations

from ballast.api import SparkTopology
from ballast.controller.topology_turns import AGAIN_SECONDS, MOST, MOST_WHILE_GATED, TopologyTurns
from ballast.model import Memory

NOW = 1e9


def topology(namespace: str, number: int, *, generation: int = 1) -> SparkTopology:
    return SparkTopology.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "SparkTopology",
            "metadata": {"name": f"t{number:04}", "namespace": namespace, "generation": generation},
            "spec": {"components": [{"name": "ingest"}]},
        }
    )


JUNK = [topology("junk", number) for number in range(10 * MOST)]


def coming(turns: TopologyTurns, topologies: list[SparkTopology], *, now: float = NOW) -> frozenset[str]:
    turns.begin(topologies, now)
    return turns.coming(Memory())


def test_every_topology_has_its_turn_although_each_reconcile_looks_at_a_few() -> None:
    turns = TopologyTurns()
    found = [key for each in range(10) for key in coming(turns, JUNK, now=NOW + each)]
    assert len(found) == len(set(found)) == len(JUNK)


def test_a_topology_that_a_user_changes_does_not_wait_behind_those_that_were_looked_at() -> None:
    turns = TopologyTurns()
    for _ in range(10):
        coming(turns, JUNK)
    changed = topology("junk", 7, generation=2)
    assert "junk/t0007" in coming(turns, [changed, *(each for each in JUNK if each.metadata.name != "t0007")])


def test_few_topologies_come_in_every_reconcile_and_call_for_none() -> None:
    turns = TopologyTurns()
    assert len(coming(turns, JUNK[:MOST])) == MOST
    assert turns.again_at(NOW) is None
    assert len(coming(turns, JUNK[:MOST])) == MOST


def test_those_without_a_turn_are_looked_at_at_once_the_first_time_and_later_again() -> None:
    turns, two_turns = TopologyTurns(), JUNK[: 2 * MOST]
    coming(turns, two_turns)
    assert turns.again_at(NOW) == NOW
    coming(turns, two_turns, now=NOW + 5.0)
    assert turns.again_at(NOW + 5.0) == NOW + AGAIN_SECONDS


def test_a_clock_that_is_set_back_puts_nothing_off() -> None:
    turns, two_turns = TopologyTurns(), JUNK[: 2 * MOST]
    for _ in range(2):
        coming(turns, two_turns)
    coming(turns, two_turns, now=NOW - 3600.0)
    again = turns.again_at(NOW - 3600.0)
    assert again is not None
    assert again <= NOW - 3600.0 + AGAIN_SECONDS


def test_where_executors_were_is_not_forgotten_while_they_are_away() -> None:
    turns = TopologyTurns()
    turns.begin(JUNK, NOW)
    memory = Memory(
        placements=(("mine/t0000", "ingest", (("node-a", 3),)),), scopes=(("mine/t0001", "ingest", "Rack"),)
    )
    assert {"mine/t0000", "mine/t0001"} <= turns.coming(memory)


def test_while_executors_are_gated_fewer_come() -> None:
    turns = TopologyTurns()
    turns.begin(JUNK, NOW, gated=True)
    assert len(turns.coming(Memory())) == MOST_WHILE_GATED
