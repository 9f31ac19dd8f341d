"""Junk floods: topologies that nobody runs, created by the thousand, delay neither gates nor other namespaces'."""

from __future__ import annotations

from ballast.api import SparkTopology
from ballast.controller.rota import AGAIN_SECONDS, MOST, MOST_WHILE_GATED, Rota
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


def coming(rota: Rota, topologies: list[SparkTopology], *, now: float = NOW) -> frozenset[str]:
    rota.begin(topologies, now)
    return rota.coming(Memory())


def test_a_flood_in_one_namespace_does_not_keep_another_namespaces_topology_from_its_turn() -> None:
    found = coming(Rota(), [*JUNK, topology("mine", 0)])
    assert len(found) == MOST
    assert "mine/t0000" in found


def test_every_topology_has_its_turn_although_each_reconcile_looks_at_a_few() -> None:
    rota = Rota()
    found = [key for each in range(10) for key in coming(rota, JUNK, now=NOW + each)]
    assert len(found) == len(set(found)) == len(JUNK)


def test_a_topology_that_a_user_changes_does_not_wait_behind_those_that_were_looked_at() -> None:
    rota = Rota()
    for _ in range(10):
        coming(rota, JUNK)
    changed = topology("junk", 7, generation=2)
    assert "junk/t0007" in coming(rota, [changed, *(each for each in JUNK if each.metadata.name != "t0007")])


def test_few_topologies_come_in_every_reconcile_and_call_for_none() -> None:
    rota = Rota()
    assert len(coming(rota, JUNK[:MOST])) == MOST
    assert rota.again_at(NOW) is None
    assert len(coming(rota, JUNK[:MOST])) == MOST


def test_those_without_a_turn_are_looked_at_at_once_the_first_time_and_later_again() -> None:
    rota, two_turns = Rota(), JUNK[: 2 * MOST]
    coming(rota, two_turns)
    assert rota.again_at(NOW) == NOW
    coming(rota, two_turns, now=NOW + 5.0)
    assert rota.again_at(NOW + 5.0) == NOW + AGAIN_SECONDS


def test_a_clock_that_is_set_back_puts_nothing_off() -> None:
    rota, two_turns = Rota(), JUNK[: 2 * MOST]
    for _ in range(2):
        coming(rota, two_turns)
    coming(rota, two_turns, now=NOW - 3600.0)
    again = rota.again_at(NOW - 3600.0)
    assert again is not None
    assert again <= NOW - 3600.0 + AGAIN_SECONDS


def test_where_executors_were_is_not_forgotten_while_they_are_away() -> None:
    rota = Rota()
    rota.begin(JUNK, NOW)
    memory = Memory(
        placements=(("mine/t0000", "ingest", (("node-a", 3),)),), scopes=(("mine/t0001", "ingest", "Rack"),)
    )
    assert {"mine/t0000", "mine/t0001"} <= rota.coming(memory)


def test_while_executors_are_gated_fewer_come_and_those_of_each_namespace_in_turn() -> None:
    rota, mine = Rota(), topology("mine", 0)
    rota.begin([*JUNK, mine], NOW, gated=True)
    assert len(rota.coming(Memory())) == MOST_WHILE_GATED
    assert "mine/t0000" in rota.coming(Memory())
