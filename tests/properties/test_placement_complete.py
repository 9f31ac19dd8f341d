"""Whatever can be placed is placed, as an exact solver tells; and what is not placed says what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Memory, Placement, Policy, Reason, Snapshot
from ballast.placement.admission import constraint_refusal
from ballast.placement.limit import most_per_node, zone_allowance
from ballast.placement.placing import place
from benchmarks.quality.small_pools import most_placed, small_pool
from tests.examples import examples

SEEDS = st.integers(0, 1 << 20)
SECONDS = 20.0


def placed(snapshot: Snapshot, policy: Policy, scores: dict[str, float]) -> list[Placement]:
    return place(snapshot, policy, Memory(), gated=snapshot.executors, scores=scores).placements


@examples(40)
@given(SEEDS)
def test_all_are_placed_where_all_fit_and_a_reason_names_what_is_missing(seed: int) -> None:
    """Both are asked of one placement: each takes half a second."""
    snapshot, policy, scores = small_pool(seed)
    found = placed(snapshot, policy, scores)
    if any(placement.node is None for placement in found):
        most = most_placed(snapshot, policy, seconds=SECONDS)
        assert most is None or most < len(snapshot.executors)
    assert_reasons(snapshot, policy, found)


@pytest.mark.soak
def test_where_not_all_fit_about_as_many_are_placed_as_can_be() -> None:
    """To place the most may mean to give up the whole of one component for another: that is not looked for."""
    ours = best = 0
    for seed in range(30):
        snapshot, policy, scores = small_pool(seed)
        ours += sum(placement.node is not None for placement in placed(snapshot, policy, scores))
        most = most_placed(snapshot, policy, seconds=SECONDS)
        assert most is not None
        best += most
    assert ours >= 0.995 * best


def assert_reasons(snapshot: Snapshot, policy: Policy, found: Sequence[Placement]) -> None:
    executors = {executor.uid: executor for executor in snapshot.executors}
    free = {node.name: node.free for node in snapshot.nodes}
    on_node: Counter[tuple[str, str, str]] = Counter()
    for placement in found:
        if placement.node is not None:
            executor = executors[placement.uid]
            free[placement.node] = free[placement.node].minus(executor.requests)
            on_node[executor.topology, executor.component, placement.node] += 1
    for placement in found:
        executor = executors[placement.uid]
        admitting = [node for node in snapshot.nodes if constraint_refusal(executor.constraints, node) is None]
        roomy = [node for node in admitting if executor.requests.fits_in(free[node.name])]
        if placement.node is not None:
            assert placement.reason is None
        elif not admitting:
            assert placement.reason in (Reason.NOT_ADMITTED, Reason.VOLUME_PINNED)
        elif not roomy:
            assert placement.reason is Reason.POOL_FULL
        else:
            assert placement.reason in (Reason.SPREAD_LIMIT, Reason.SEPARATED)
            limited = [node for node in roomy if _is_full(snapshot, policy, on_node, executor.uid, node.name)]
            assert (placement.reason is Reason.SEPARATED) <= bool(_separated(snapshot, executor.topology))
            assert (placement.reason is Reason.SPREAD_LIMIT) <= bool(limited)


def _separated(snapshot: Snapshot, topology: str) -> bool:
    return any(each.separate for each in snapshot.topologies if each.key == topology)


def _is_full(snapshot: Snapshot, policy: Policy, on_node: Counter[tuple[str, str, str]], uid: str, name: str) -> bool:
    """Whether the node, or its zone, holds as many of the executor's component as it may."""
    executor = next(each for each in snapshot.executors if each.uid == uid)
    key = executor.topology, executor.component
    zone = next(node.location[0] for node in snapshot.nodes if node.name == name)
    inside = sum(on_node[*key, node.name] for node in snapshot.nodes if node.location[0] == zone)
    topology = next(each for each in snapshot.topologies if each.key == executor.topology)
    component = topology.component(executor.component)
    waiting = sum((each.topology, each.component) == key for each in snapshot.executors)
    total = max(waiting, (component.expected if component else None) or 0)
    per_zone = zone_allowance(total, policy.placement.max_executors_per_zone_ratio)
    return on_node[*key, name] >= most_per_node(policy.placement, key[1], total) or inside >= per_zone


@pytest.mark.parametrize("seed", range(3))
def test_the_same_question_has_the_same_answer(seed: int) -> None:
    assert placed(*small_pool(seed)) == placed(*small_pool(seed))
