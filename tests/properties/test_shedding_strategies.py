"""What holds for every strategy that looks at traffic, on any pool and over several passes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ballast.model.shedders import (
    OverloadSettings,
    ShedderSettings,
    ThresholdSettings,
    TrafficSettings,
    TransferSettings,
    UniformSettings,
)
from ballast.shedding.load import (
    AnythingGoes,
    ExecutorLoad,
    NodeLoad,
    PoolLoad,
    Suggestion,
    UsageExecutor,
    UsageNode,
    UsagePool,
)
from ballast.shedding.strategies import STRATEGIES, Shed, shed
from ballast.shedding.victims_and_destination import completed

EAGER: dict[str, ShedderSettings] = {
    "AvgShedder": TrafficSettings(low_hits=2, high_hits=1, min_rate_per_second=0.0, min_bytes_per_second=0.0),
    "ThresholdShedder": ThresholdSettings(history_ratio=0.2, min_bytes_per_second=0.0, lower_boundary=True),
    "OverloadShedder": OverloadSettings(threshold=60.0),
    "UniformLoadShedder": UniformSettings(min_rate_per_second=0.0, min_bytes_per_second=0.0, max_unload_ratio=0.5),
    "TransferShedder": TransferSettings(hits=0, target_std_ratio=0.05),
}
PASSES = 3

figures = st.one_of(st.none(), st.floats(0.0, 1e6))


@st.composite
def pools(draw: st.DrawFn) -> PoolLoad:
    nodes = []
    for index in range(draw(st.integers(0, 7))):
        executors = tuple(
            ExecutorLoad(f"n{index}/{i}", records, volume, movable=draw(st.booleans()))
            for i, (records, volume) in enumerate(draw(st.lists(st.tuples(figures, figures), max_size=6)))
        )
        nodes.append(
            NodeLoad(
                f"n{index}",
                draw(st.floats(0.0, 150.0)),
                sum(each.rate_per_second or 0.0 for each in executors),
                sum(each.bytes_per_second or 0.0 for each in executors),
                executors=executors,
            )
        )
    return PoolLoad.of(nodes)


def passes(name: str, load: PoolLoad) -> list[Shed]:
    state, made = "", []
    for _ in range(PASSES):
        result = shed(name, load, EAGER[name], state)
        state = result.state
        made.append(result)
    return made


def homes(load: PoolLoad) -> dict[str, NodeLoad]:
    return {executor.name: node for node in load.nodes for executor in node.executors}


@pytest.mark.parametrize("name", STRATEGIES)
@given(pools())
def test_only_what_may_move_leaves_and_only_from_where_it_is(name: str, load: PoolLoad) -> None:
    where = homes(load)
    for result in passes(name, load):
        for made in result.suggestions:
            assert made.source == where[made.executor].name
            assert made.executor in {executor.name for executor in where[made.executor].candidates()}
            assert made.target != made.source
        assert len({made.executor for made in result.suggestions}) == len(result.suggestions)


@pytest.mark.parametrize("name", STRATEGIES)
@given(pools(), st.randoms(use_true_random=False))
def test_the_order_in_which_nodes_were_read_decides_nothing(name: str, load: PoolLoad, random: Random) -> None:
    nodes = list(load.nodes)
    random.shuffle(nodes)
    assert passes(name, PoolLoad.of(nodes)) == passes(name, load)


@pytest.mark.parametrize("name", STRATEGIES)
@given(pools())
def test_a_pool_of_equals_is_left_alone(name: str, load: PoolLoad) -> None:
    """Every node like the first one, below every threshold."""
    assume(load.nodes)
    first = load.nodes[0]
    executors = tuple(replace(executor, name=executor.name.split("/")[1]) for executor in first.executors)
    equals = PoolLoad.of(
        NodeLoad(
            f"n{index}",
            min(first.score, 55.0),
            first.rate_per_second,
            first.bytes_per_second,
            executors=tuple(replace(executor, name=f"n{index}/{executor.name}") for executor in executors),
        )
        for index in range(4)
    )
    assert [result.suggestions for result in passes(name, equals)] == [()] * PASSES


@pytest.mark.parametrize("name", STRATEGIES)
@given(pools())
def test_an_idle_node_that_takes_nothing_changes_nothing(name: str, load: PoolLoad) -> None:
    idle = PoolLoad.of([*load.nodes, NodeLoad("closed", 0.0, receives=False)])
    assert [each.suggestions for each in passes(name, idle)] == [each.suggestions for each in passes(name, load)]


@st.composite
def partly_closed(draw: st.DrawFn) -> PoolLoad:
    return PoolLoad.of(replace(node, receives=draw(st.booleans())) for node in draw(pools()).nodes)


@pytest.mark.parametrize("name", STRATEGIES)
@given(partly_closed())
def test_nothing_is_sent_to_a_node_that_takes_nothing(name: str, load: PoolLoad) -> None:
    takers = {node.name for node in load.nodes if node.receives}
    for result in passes(name, load):
        assert {made.target for made in result.suggestions} <= {None, *takers}
        assert takers or name == "OverloadShedder" or not result.suggestions


@given(pools())
def test_avg_shedder_never_takes_more_than_its_share_of_the_difference(load: PoolLoad) -> None:
    nodes = {node.name: node for node in load.nodes}
    where = homes(load)
    for result in passes("AvgShedder", load):
        for source in {made.source for made in result.suggestions}:
            made = [each for each in result.suggestions if each.source == source]
            hot, cold = nodes[source], nodes[made[0].target or ""]
            executors = [next(e for e in where[each.executor].executors if e.name == each.executor) for each in made]
            records = sum(executor.rate_per_second or 0.0 for executor in executors)
            volume = sum(executor.bytes_per_second or 0.0 for executor in executors)
            by_records = records <= 0.5 * (hot.rate_per_second - cold.rate_per_second) + 1e-6
            by_volume = volume <= 0.5 * (hot.bytes_per_second - cold.bytes_per_second) + 1e-6
            assert by_records or by_volume


@st.composite
def unloads(draw: st.DrawFn) -> tuple[list[Suggestion], UsagePool]:
    nodes = []
    for index in range(draw(st.integers(1, 6))):
        loads = draw(st.lists(st.floats(0.1, 8.0), max_size=4))
        executors = tuple(UsageExecutor(f"n{index}/{i}", load) for i, load in enumerate(loads))
        nodes.append(UsageNode(f"n{index}", draw(st.floats(0.0, 120.0)), 16.0, executors=executors))
    everything = [(executor.name, node) for node in nodes for executor in node.executors]
    chosen = draw(st.lists(st.sampled_from(everything), unique_by=lambda each: each[0])) if everything else []
    return [Suggestion(name, node.name, None, node.score) for name, node in chosen], UsagePool(tuple(nodes))


@given(unloads())
def test_a_destination_found_later_is_no_hotter_than_what_it_relieves(case: tuple[list[Suggestion], UsagePool]) -> None:
    asked, pool = case
    made, refused = completed(asked, pool, AnythingGoes())
    assert [each.executor for each in asked if each.executor in {m.executor for m in made}] == [
        m.executor for m in made
    ]
    assert len(made) + len(refused) == len(asked)
    for each in made:
        assert each.target not in (None, each.source)
        assert (each.cold_after or 0.0) <= (each.hot_after or 0.0)
