"""Executors return to where they were."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from ballast.model import Component, Memory, Node, PlacementPolicy, Policy, Resources, Separation
from ballast.placement.placing import place
from tests.builders import GIB, a_node, a_snapshot, a_topology, gated
from tests.reference.samza.by_locality import by_locality

FREE = Policy("p", placement=PlacementPolicy(max_executors_per_node_ratio=1.0))


def four_nodes(**full: float) -> list[Node]:
    """A to D in one rack, with room for four executors less those that `full` gives away."""
    return [a_node(name, requested=Resources(full.get(name, 0.0), GIB, 1)) for name in "ABCD"]


def homes(
    counts: dict[str, int], before: dict[str, dict[str, int]], nodes: list[Node], **changes: Any
) -> dict[str, Counter[str | None]]:
    """Nodes by component of as many gated executors of each, which ran on `before`."""
    executors = tuple(gated(f"{name}-{n}", component=name) for name, count in counts.items() for n in range(count))
    memory = Memory(placements=tuple(("team/clicks", name, tuple(sorted(at.items()))) for name, at in before.items()))
    topology = a_topology(*(Component(name) for name in counts), **changes)
    snapshot = a_snapshot(*nodes, executors=executors, topologies=(topology,))
    placements = place(snapshot, FREE, memory, gated=executors).placements
    of = {executor.uid: executor.component for executor in executors}
    return {name: Counter(p.node for p in placements if of[p.uid] == name) for name in counts}


@pytest.mark.parametrize(
    ("count", "after"),
    [
        (6, {"A": 2, "B": 2, "C": 2}),
        (3, {"A": 1, "B": 1, "C": 1}),
        (2, {"A": 1, "B": 1}),
    ],
    ids=["as many", "half as many", "fewer than nodes"],
)
def test_as_many_as_there_are_return_and_stay_spread(count: int, after: dict[str, int]) -> None:
    assert homes({"x": count}, {"x": {"A": 2, "B": 2, "C": 2}}, four_nodes())["x"] == after


def test_more_than_before_leave_the_others_where_they_were() -> None:
    after = homes({"x": 7}, {"x": {"A": 2, "B": 2, "C": 2}}, four_nodes())["x"]
    assert all(after[node] >= 2 for node in "ABC")


def test_where_one_would_do_samza_moves_three_of_six_and_ours_one() -> None:
    before = {"A": 2, "B": 2, "C": 2}
    ours = homes({"x": 6}, {"x": before}, four_nodes(A=3.0))["x"]
    was_on = {f"x{number}": "AABBCC"[number] for number in range(6)}
    groups = by_locality(list(was_on), {f"p{node}": node for node in "ABCD"}, was_on)
    stayed = sum(was_on[name] == process[1:] for process, names in groups.items() for name in names)
    assert (6 - stayed, sum((before_counts(before) - ours).values())) == (3, 1)


def before_counts(before: dict[str, int]) -> Counter[str | None]:
    return Counter(dict(before.items()))


def test_a_place_is_returned_to_though_another_is_nearer() -> None:
    assert homes({"x": 2}, {"x": {"A": 1, "B": 1}}, four_nodes())["x"] == {"A": 1, "B": 1}


def test_no_more_return_to_a_place_than_fit() -> None:
    assert homes({"x": 3}, {"x": {"A": 5}}, four_nodes(A=2.0))["x"]["A"] == 2


def test_those_of_a_node_that_is_gone_are_the_only_ones_that_move() -> None:
    nodes = [node for node in four_nodes() if node.name != "C"]
    after = homes({"x": 6}, {"x": {"A": 2, "B": 2, "C": 2}}, nodes)["x"]
    assert after["A"] >= 2
    assert after["B"] >= 2


@pytest.mark.parametrize("by", ["Node", "Rack"])
def test_a_standby_does_not_return_next_to_what_it_stands_by_for(by: str) -> None:
    nodes = [a_node("A", rack="r1"), a_node("B", rack="r1"), a_node("C", rack="r2")]
    before = {"live": {"A": 1}, "standby": {"A": 1}}
    after = homes({"live": 1, "standby": 1}, before, nodes, separate=(Separation(("live", "standby"), by),))
    assert after["live"] == {"A": 1}
    assert after["standby"] == ({"C": 1} if by == "Rack" else after["standby"])
    assert "A" not in after["standby"]


def test_one_that_has_least_choice_returns_first() -> None:
    before = {"many": {"A": 1, "B": 1}, "one": {"A": 1}}
    after = homes({"many": 1, "one": 1}, before, four_nodes(A=3.0))
    assert (after["many"], after["one"]) == ({"B": 1}, {"A": 1})


def test_nobody_returns_where_the_policy_does_not_want_it() -> None:
    executor = gated("x")
    nodes = [a_node("A", zone="z1"), a_node("B", zone="z1", cores=16.0)]
    memory = Memory(placements=(("team/clicks", "ingest", (("A", 1),)),))

    def home(*, sticky: bool) -> str | None:
        policy = replace(FREE, placement=replace(FREE.placement, sticky=sticky))
        return place(a_snapshot(*nodes, executors=(executor,)), policy, memory, gated=[executor]).placements[0].node

    assert (home(sticky=True), home(sticky=False)) == ("A", "B")
