"""In a large pool everything that fits is placed, and what does not fit says what is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ballast.model import Memory, Reason, Resources, Snapshot
from ballast.placement.placing import place
from benchmarks.large_pools import CASES, ENFORCED, apart, chain, pool


def reasons(snapshot: Snapshot) -> Counter[Reason | None]:
    found = place(snapshot, ENFORCED, Memory(), gated=snapshot.executors).placements
    requests = {executor.uid: executor.requests for executor in snapshot.executors}
    used = {node.name: node.requested for node in snapshot.nodes}
    for placement in found:
        if placement.node is not None:
            used[placement.node] = used[placement.node].plus(requests[placement.uid])
    assert all(used[node.name].fits_in(node.allocatable) for node in snapshot.nodes)
    return Counter(placement.reason for placement in found)


@pytest.mark.parametrize("zones", [1, 3, 15])
def test_many_components_are_all_placed_where_the_nodes_of_one_are_not_enough(zones: int) -> None:
    assert reasons(chain(pool(600, cores=4.0, zones=zones), components=8, executors=200)) == {None: 1600}


def test_a_pool_that_is_just_large_enough_is_filled_to_the_last_core() -> None:
    assert reasons(chain(pool(400, cores=4.0), components=8, executors=200)) == {None: 1600}


def test_what_is_left_in_a_full_pool_misses_room_and_nothing_else() -> None:
    assert reasons(chain(pool(390, cores=4.0), components=8, executors=200)) == {None: 1560, Reason.POOL_FULL: 40}


def test_many_topologies_that_keep_apart_are_all_placed() -> None:
    assert reasons(apart(pool(100, cores=16.0), topologies=200)) == {None: 1000}


def test_nodes_that_are_in_use_are_looked_at_too() -> None:
    """Where the first nodes are nearly full, enough of them are looked at all the same."""
    nodes = tuple(replace(node, requested=Resources(3.0, 0.0, 3)) for node in pool(700, cores=4.0))
    assert reasons(chain(nodes, components=6, executors=100)) == {None: 600}


@pytest.mark.parametrize("case", CASES)
def test_the_largest_cases_are_placed_entirely(case: str) -> None:
    snapshot = CASES[case]()
    assert reasons(snapshot) == {None: len(snapshot.executors)}
