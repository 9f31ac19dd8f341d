from __future__ import annotations

import pytest

from ballast.model.shedders import TrafficSettings
from ballast.shedding.load import NodeLoad, PoolLoad, Suggestion
from ballast.shedding.pulsar_shedders import HitCounts, Hits, avg_shedder_traffic, pairs
from tests.unit.shedding.builders import MIB, busy, pool


def passes(load: PoolLoad, settings: TrafficSettings, count: int) -> list[tuple[Suggestion, ...]]:
    memory, made = HitCounts(), []
    for _ in range(count):
        result = avg_shedder_traffic(load, settings, memory)
        memory = result.memory
        made.append(result.suggestions)
    return made


def three() -> PoolLoad:
    """The first example of the class's own tests: eleven executors of 900 on the hot node, which has 18 000 more."""
    return pool(busy("b1", 80, [900.0] * 11, rate=20_000), busy("b2", 30, rate=2_000), busy("b3", 50, rate=10_000))


def test_a_wide_gap_is_acted_on_at_the_second_pass() -> None:
    first, second = passes(three(), TrafficSettings(), 2)
    assert first == ()
    assert [(s.source, s.target) for s in second] == [("b1", "b2")] * 10


def test_a_narrow_gap_needs_more_hits() -> None:
    load = pool(busy("b1", 60, [900.0] * 11, rate=20_000), busy("b2", 40, rate=2_000), busy("b3", 50, rate=10_000))
    made = passes(load, TrafficSettings(low_threshold=20, low_hits=6), 6)
    assert [len(each) for each in made] == [0, 0, 0, 0, 0, 10]


def test_two_pairs_are_leveled_at_once() -> None:
    def hot(name: str, score: float) -> NodeLoad:
        return busy(name, score, [900.0] * 11, rate=20_000)

    load = pool(hot("b1", 80), busy("b2", 30, rate=2_000), hot("b3", 75), busy("b4", 35, rate=2_000))
    _, second = passes(load, TrafficSettings(), 2)
    assert {(s.source, s.target) for s in second} == {("b1", "b2"), ("b3", "b4")}
    assert len(second) == 20


def test_the_largest_that_fit_go_and_smaller_ones_fill_up() -> None:
    load = pool(busy("hot", 90, [6_000.0, 3_000.0, 1_700.0, 300.0, 0.0], rate=11_400), busy("cold", 40, rate=1_400))
    _, second = passes(load, TrafficSettings(), 2)
    assert [s.executor for s in second] == ["hot/1", "hot/2", "hot/3"]  # need: (11 400 − 1 400) / 2 = 5 000


def test_bytes_decide_where_records_are_few() -> None:
    load = pool(busy("hot", 90, volumes=[4 * MIB, 3 * MIB]), busy("cold", 40, volume=0))
    _, second = passes(load, TrafficSettings(), 2)
    assert [s.executor for s in second] == ["hot/1"]


@pytest.mark.parametrize("difference", [2_000.0, 1_999.0])
def test_a_need_at_the_minimum_is_not_worth_it(difference: float) -> None:
    load = pool(busy("hot", 90, [100.0], rate=difference), busy("cold", 40, rate=0))
    assert passes(load, TrafficSettings(), 3) == [(), (), ()]


def test_hits_are_kept_while_nothing_can_be_shed() -> None:
    load = pool(busy("hot", 90, rate=0), busy("cold", 40, rate=0))
    settings, memory = TrafficSettings(), HitCounts()
    for _ in range(3):
        memory = avg_shedder_traffic(load, settings, memory).memory
    assert dict(memory.by_node) == {"hot": Hits(3, 3), "cold": Hits(3, 3)}


def test_hits_are_lost_in_vain_as_in_pulsar_when_asked_for() -> None:
    load = pool(busy("hot", 90, rate=0), busy("cold", 40, rate=0))
    settings, memory = TrafficSettings(forget_in_vain=True), HitCounts()
    for _ in range(2):
        memory = avg_shedder_traffic(load, settings, memory).memory
    assert memory == HitCounts()


def test_a_node_that_left_is_forgotten() -> None:
    settings = TrafficSettings()
    before = avg_shedder_traffic(
        pool(busy("a", 90), busy("b", 40), busy("c", 60), busy("d", 70)), settings, HitCounts()
    )
    after = avg_shedder_traffic(pool(busy("a", 90), busy("c", 60)), settings, before.memory)
    assert [name for name, _ in after.memory.by_node] == ["a", "c"]


def test_a_node_that_left_is_remembered_as_in_pulsar_when_asked_for() -> None:
    settings = TrafficSettings(keep_departed=True)
    before = HitCounts((("gone", Hits(1, 0)),))
    after = avg_shedder_traffic(pool(busy("a", 90), busy("c", 60)), settings, before)
    assert dict(after.memory.by_node)["gone"] == Hits(1, 0)


def test_a_narrower_gap_resets_the_high_count_only() -> None:
    before = HitCounts((("a", Hits(1, 1)), ("b", Hits(1, 1))))
    after = avg_shedder_traffic(pool(busy("a", 70), busy("b", 50)), TrafficSettings(), before)
    assert dict(after.memory.by_node) == {"a": Hits(2, 0), "b": Hits(2, 0)}


def test_a_balanced_pool_forgets_everything() -> None:
    before = HitCounts((("a", Hits(1, 1)), ("b", Hits(1, 1))))
    assert avg_shedder_traffic(pool(busy("a", 54), busy("b", 50)), TrafficSettings(), before).memory == HitCounts()


def test_the_figures_behind_a_suggestion() -> None:
    _, second = passes(three(), TrafficSettings(), 2)
    only = second[0]
    assert (only.hot_score, only.cold_score, only.difference, only.hits) == (80, 30, 50, 2)


def names(*scores: float, middle: bool = False) -> list[tuple[str, str]]:
    nodes = [busy(f"n{index}", score) for index, score in enumerate(scores)]
    return [(pair.cold.name, pair.hot.name) for pair in pairs(pool(*nodes), middle=middle)]


def test_the_coldest_meets_the_hottest_and_so_on_inwards() -> None:
    assert names(80, 20, 51, 80, 52, 80) == [("n1", "n5"), ("n2", "n3"), ("n4", "n0")]


def test_the_middle_one_has_no_partner() -> None:
    assert names(10, 50, 90) == [("n0", "n2")]


def test_the_middle_one_meets_itself_when_asked_for() -> None:
    assert names(10, 50, 90, middle=True) == [("n0", "n2"), ("n1", "n1")]


def test_one_node_makes_no_pair() -> None:
    assert names(10) == []


def test_the_difference_is_in_points() -> None:
    (pair,) = pairs(pool(busy("a", 30.5), busy("b", 80.0)))
    assert pair.difference == 49.5
