"""What holds of stickiness whatever was where, and how it compares with Samza's grouper."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.policy_placement import PlacementStrategy
from ballast.model import Component, Memory, PlacementPolicy, Policy, Resources, Separation
from ballast.placement.placing import place
from tests.builders import GIB, a_node, a_snapshot, a_topology, gated
from tests.reference.samza.by_locality import by_locality

STRATEGIES = tuple(map(str, PlacementStrategy))
NODES = "ABCDE"
nodes = st.sampled_from(NODES)
held_counts = st.dictionaries(nodes, st.integers(1, 4), min_size=1)
strategies = st.sampled_from(STRATEGIES)


def settled(
    strategy: str,
    counts: dict[str, int],
    before: dict[str, dict[str, int]],
    limits: dict[str, int],
    *,
    separate: tuple[Separation, ...] = (),
) -> dict[str, Counter[str]]:
    """Where gated executors of each component go that ran on `before`, with room for `limits` on each node."""
    pool = [
        a_node(name, rack=f"r{index % 2}", cores=8.0, requested=Resources(8.0 - limits.get(name, 0), GIB, 1))
        for index, name in enumerate(NODES)
    ]
    executors = tuple(gated(f"{name}-{n}", component=name) for name, count in counts.items() for n in range(count))
    topology = a_topology(*(Component(name) for name in counts), separate=separate)
    policy = Policy("p", placement=PlacementPolicy(strategy=strategy, max_executors_per_node_ratio=1.0))
    memory = Memory(placements=tuple(("team/clicks", name, tuple(sorted(at.items()))) for name, at in before.items()))
    snapshot = a_snapshot(*pool, executors=executors, topologies=(topology,))
    of = {executor.uid: executor.component for executor in executors}
    result: dict[str, Counter[str]] = {name: Counter() for name in counts}
    for placement in place(snapshot, policy, memory, gated=executors).placements:
        if placement.node is not None:
            result[of[placement.uid]][placement.node] += 1
    return result


@given(strategies, st.integers(0, 12), held_counts, st.dictionaries(nodes, st.integers(0, 5)))
def test_as_many_return_as_there_are_and_as_there_is_room_for(
    strategy: str, count: int, before: dict[str, int], limits: dict[str, int]
) -> None:
    after = settled(strategy, {"x": count}, {"x": before}, limits)["x"]
    returned = sum(min(before.get(node, 0), here) for node, here in after.items())
    assert returned == min(count, sum(min(held, limits.get(node, 0)) for node, held in before.items()))


@given(strategies, st.integers(0, 12), held_counts, st.dictionaries(nodes, st.integers(0, 5)))
def test_nobody_is_missing_while_there_is_room(
    strategy: str, count: int, before: dict[str, int], limits: dict[str, int]
) -> None:
    after = settled(strategy, {"x": count}, {"x": before}, limits)["x"]
    assert after.total() == min(count, sum(limits.values()))


@given(
    strategies,
    st.fixed_dictionaries({"live": st.integers(1, 5), "standby": st.integers(1, 5)}),
    st.fixed_dictionaries({"live": held_counts, "standby": held_counts}),
    st.sampled_from(["Node", "Rack"]),
)
def test_a_component_and_its_standby_never_share_a_place(
    strategy: str, counts: dict[str, int], before: dict[str, dict[str, int]], by: str
) -> None:
    limits = dict.fromkeys(NODES, 6)
    after = settled(strategy, counts, before, limits, separate=(Separation(("live", "standby"), by),))
    assert not places(after["live"], by) & places(after["standby"], by)


def places(homes: Counter[str], by: str) -> set[str]:
    return {node if by == "Node" else f"r{NODES.index(node) % 2}" for node in homes}


@given(strategies, st.integers(1, 5), st.integers(1, 5), st.sampled_from(["Node", "Rack"]), st.booleans())
def test_neither_a_component_nor_its_standby_takes_all_places(
    strategy: str, live: int, standby: int, by: str, known: bool
) -> None:
    before = {"live": {"A": 1, "C": 1}} if known else {}
    separate = (Separation(("live", "standby"), by),)
    after = settled(strategy, {"live": live, "standby": standby}, before, dict.fromkeys(NODES, 6), separate=separate)
    assert after["live"].total() == live
    assert after["standby"].total() == standby


@given(st.integers(1, 12), st.data())
def test_ours_never_moves_more_than_samza(count: int, data: st.DataObject) -> None:
    executors = [f"x{number:02}" for number in range(count)]
    used = sorted(data.draw(st.sets(nodes, min_size=1, max_size=min(5, count))))
    was_on = {name: data.draw(st.sampled_from(used)) for name in executors}
    groups = by_locality(executors, {f"p{node}": node for node in used}, was_on)
    moved = sum(was_on[name] != process[1:] for process, names in groups.items() for name in names)
    before = Counter(was_on.values())
    room = {node: max(before[node], len(groups.get(f"p{node}", ()))) for node in used}
    after = settled("Proximity", {"x": count}, {"x": dict(before)}, room)["x"]
    assert (before - after).total() <= moved


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_more_node_moves_nobody(strategy: str) -> None:
    before = {"A": 2, "B": 2, "C": 2}
    after = settled(strategy, {"x": 6}, {"x": before}, dict.fromkeys(NODES, 4))["x"]
    assert after == before


@given(
    st.dictionaries(st.sampled_from("xyz"), st.integers(1, 5), min_size=1),
    st.fixed_dictionaries({name: st.dictionaries(nodes, st.integers(1, 3)) for name in "xyz"}),
    st.dictionaries(nodes, st.integers(0, 4)),
)
def test_where_room_is_short_the_fewest_possible_do_not_return(
    counts: dict[str, int], before: dict[str, dict[str, int]], limits: dict[str, int]
) -> None:
    after = settled("Proximity", counts, {name: before[name] for name in counts}, limits)
    returned = sum(min(before[name].get(node, 0), here) for name in counts for node, here in after[name].items())
    assert returned == most_that_can_return(counts, before, limits)


def most_that_can_return(counts: dict[str, int], before: dict[str, dict[str, int]], limits: dict[str, int]) -> int:
    """The least cut between components and nodes: some nodes are the limit, elsewhere places or executors are."""
    return min(
        sum(limits.get(node, 0) for node in full)
        + sum(
            min(count, sum(n for node, n in before[name].items() if node not in full)) for name, count in counts.items()
        )
        for size in range(len(NODES) + 1)
        for full in combinations(NODES, size)
    )
