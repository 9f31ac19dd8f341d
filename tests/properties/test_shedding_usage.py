"""What holds for AvgShedder with unit Usage on any pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ballast.model.reason import Reason
from ballast.shedding.avg_shedder_usage import UsageMemory, UsageResult, UsageSettings, avg_shedder_usage
from ballast.shedding.load import AnythingGoes, Suggestion, Terms, UsageExecutor, UsageNode, UsagePool
from tests.examples import examples

ROUNDING = 1e-6


@st.composite
def pools(draw: st.DrawFn) -> UsagePool:
    """Unequal machines; scores come from the executors and from what else runs there."""
    count = draw(st.integers(2, 8))
    nodes = []
    for index in range(count):
        cores = draw(st.sampled_from([4.0, 8.0, 16.0, 64.0]))
        loads = draw(st.lists(st.one_of(st.none(), st.floats(0.0, cores / 2)), max_size=8))
        nodes.append(
            UsageNode(
                name=f"n{index}",
                score=draw(st.floats(0.0, 130.0)),
                capacity_cores=cores,
                speed=draw(st.sampled_from([0.5, 1.0, 2.0])),
                receives=draw(st.booleans()) or draw(st.booleans()),
                executors=tuple(
                    UsageExecutor(f"n{index}/{i}", load, draw(st.sampled_from([None, None, None, Reason.LARGE_STATE])))
                    for i, load in enumerate(loads)
                ),
            )
        )
    return UsagePool(tuple(nodes))


budgets = st.builds(
    lambda moves, per_node, ratio: UsageSettings(
        low_hits=1,
        high_hits=1,
        min_hot_score=0.0,
        max_unload_ratio=ratio,
        max_moves=moves,
        max_moves_per_node=per_node,
    ),
    st.integers(0, 6),
    st.integers(1, 4),
    st.sampled_from([0.2, 0.5, 1.0]),
)


class Grudging(AnythingGoes):
    """Refuses by a rule that looks arbitrary, and prices likewise."""

    def takes(self, executor: str, target: str) -> bool:
        return self.refusal(executor, target, ()) is None

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        return Reason.NO_ROOM if (len(executor) + int(target[1:]) + len(arriving)) % 3 == 0 else None

    def cost(self, executor: str, target: str) -> float:
        return float((int(executor[-1]) + int(target[1:])) % 4)

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        return self.cost(executor, target) - 2.0


def one_pass(pool: UsagePool, chosen: UsageSettings, terms: Terms | None = None) -> UsageResult:
    return avg_shedder_usage(pool, chosen, UsageMemory(), now_seconds=0.0, terms=terms)


def scores_after(pool: UsagePool, suggestions: Sequence[Suggestion]) -> dict[str, float]:
    """Worked out from capacities alone, not from what the suggestions claim."""
    nodes = {node.name: node for node in pool.nodes}
    loads = {executor.name: executor.load_cores or 0.0 for node in pool.nodes for executor in node.executors}
    scores = {node.name: node.score for node in pool.nodes}
    for made in suggestions:
        source, target = nodes[made.source], nodes[made.target or ""]
        load = loads[made.executor]
        scores[source.name] -= 100.0 * load / source.capacity_cores
        scores[target.name] += 100.0 * load * source.speed / target.speed / target.capacity_cores
    return scores


@given(pools(), budgets)
def test_every_move_leads_elsewhere_and_to_a_node_that_receives(pool: UsagePool, chosen: UsageSettings) -> None:
    homes = {executor.name: node.name for node in pool.nodes for executor in node.executors}
    open_nodes = {node.name for node in pool.nodes if node.receives}
    for made in one_pass(pool, chosen).suggestions:
        assert made.source == homes[made.executor]
        assert made.target in open_nodes - {made.source}


@given(pools(), budgets)
def test_a_target_ends_hotter_than_its_source_only_if_that_cools_the_hotter_by_half_of_their_gap(
    pool: UsagePool, chosen: UsageSettings
) -> None:
    result = one_pass(pool, chosen)
    before, after = scores_after(pool, ()), scores_after(pool, result.suggestions)
    for made in result.suggestions:
        source, target = made.source, made.target or ""
        half = (before[source] - before[target]) / 2.0
        stops = after[source] >= after[target] - ROUNDING
        assert stops or before[source] - after[target] >= half - ROUNDING


@given(pools(), budgets)
def test_predictions_are_what_capacities_say(pool: UsagePool, chosen: UsageSettings) -> None:
    suggestions = one_pass(pool, chosen).suggestions
    for count, made in enumerate(suggestions, start=1):
        before, after = scores_after(pool, suggestions[: count - 1]), scores_after(pool, suggestions[:count])
        source, target = made.source, made.target or ""
        said = (made.hot_score, made.cold_score, made.hot_after, made.cold_after)
        assert said == pytest.approx((before[source], before[target], after[source], after[target]), abs=ROUNDING)


@given(pools(), budgets)
def test_budgets_hold_and_nothing_moves_twice(pool: UsagePool, chosen: UsageSettings) -> None:
    made = one_pass(pool, chosen).suggestions
    per_node: dict[str, int] = defaultdict(int)
    for each in made:
        per_node[each.source] += 1
    assert len(made) <= chosen.max_moves
    assert all(count <= chosen.max_moves_per_node for count in per_node.values())
    assert len({each.executor for each in made}) == len(made)


@given(pools(), budgets)
def test_what_may_not_move_does_not(pool: UsagePool, chosen: UsageSettings) -> None:
    executors = {executor.name: executor for node in pool.nodes for executor in node.executors}
    for made in one_pass(pool, chosen).suggestions:
        assert executors[made.executor].refusal is None
        assert executors[made.executor].load_cores


@given(pools(), budgets)
def test_terms_are_kept_for_the_set_as_a_whole(pool: UsagePool, chosen: UsageSettings) -> None:
    terms = Grudging()
    arriving: dict[str, tuple[str, ...]] = {}
    for made in one_pass(pool, chosen, terms).suggestions:
        target = made.target or ""
        assert terms.refusal(made.executor, target, arriving.get(target, ())) is None
        arriving[target] = (*arriving.get(target, ()), made.executor)


@given(pools(), budgets)
@examples(200)
def test_once_moved_nothing_is_moved_back(pool: UsagePool, chosen: UsageSettings) -> None:
    first = one_pass(pool, chosen)
    after = scores_after(pool, first.suggestions)
    moved = {made.executor: made for made in first.suggestions}
    nodes = {node.name: node for node in pool.nodes}
    homes: dict[str, list[UsageExecutor]] = {name: [] for name in nodes}
    for node in pool.nodes:
        for executor in node.executors:
            homes[(moved[executor.name].target or "") if executor.name in moved else node.name].append(executor)
    leveled = UsagePool(
        tuple(replace(node, score=after[node.name], executors=tuple(homes[node.name])) for node in pool.nodes)
    )
    second = avg_shedder_usage(leveled, chosen, first.memory, now_seconds=120.0)
    for made in second.suggestions:
        before = moved.get(made.executor)
        assert before is None or made.target != before.source


@given(pools(), budgets, st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_and_executors_were_read_decides_nothing(
    pool: UsagePool, chosen: UsageSettings, random: Random
) -> None:
    nodes = []
    for node in pool.nodes:
        executors = list(node.executors)
        random.shuffle(executors)
        nodes.append(replace(node, executors=tuple(executors)))
    random.shuffle(nodes)
    terms = Grudging()
    ours, theirs = one_pass(pool, chosen, terms), one_pass(UsagePool(tuple(nodes)), chosen, terms)
    assert ours.suggestions == theirs.suggestions
    assert ours.memory == theirs.memory


@given(pools(), budgets)
def test_other_names_of_nodes_change_only_the_names(pool: UsagePool, chosen: UsageSettings) -> None:
    """Where no scores tie; ties go by name."""
    assume(len({round(node.score, 6) for node in pool.nodes}) == len(pool.nodes))
    renamed = {node.name: f"x{len(pool.nodes) - index}" for index, node in enumerate(pool.nodes)}
    other = UsagePool(tuple(replace(node, name=renamed[node.name]) for node in pool.nodes))
    ours = [
        (each.executor, renamed[each.source], renamed[each.target or ""]) for each in one_pass(pool, chosen).suggestions
    ]
    theirs = [(each.executor, each.source, each.target) for each in one_pass(other, chosen).suggestions]
    assert ours == theirs


@given(pools(), budgets)
def test_every_pair_left_alone_and_every_hot_node_that_keeps_all_has_a_reason(
    pool: UsagePool, chosen: UsageSettings
) -> None:
    result = one_pass(pool, chosen)
    unloaded = {made.source for made in result.suggestions}
    explained = {each.source for each in result.refused}
    taking = {made.target for made in result.suggestions}
    for pair in result.pairs:
        if pair.reason is None:
            assert pair.hot.name in unloaded | explained | taking
        else:
            assert pair.detail
