from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from pydantic import TypeAdapter

from ballast.model.reason import Reason
from ballast.shedding.avg_shedder_usage import UsageMemory, UsageResult, UsageSettings, avg_shedder_usage
from ballast.shedding.load import AnythingGoes, Suggestion, Terms, UsageNode, UsagePool
from ballast.shedding.victims_and_destination import Refused
from tests.unit.shedding.builders import usage_pool, used

AT_ONCE = UsageSettings(low_hits=1, high_hits=1, max_moves=10, max_moves_per_node=10)


@dataclass(frozen=True)
class Stated(AnythingGoes):
    """Terms in tables: who may not go where, what it costs, how much more traffic costs, how many a node takes."""

    refused: Mapping[tuple[str, str], Reason] = field(default_factory=dict)
    costs: Mapping[tuple[str, str], float] = field(default_factory=dict)
    dearer: Mapping[tuple[str, str], float] = field(default_factory=dict)
    room: Mapping[str, int] = field(default_factory=dict)

    def takes(self, executor: str, target: str) -> bool:
        return self.refusal(executor, target, ()) is None

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        if len(arriving) >= self.room.get(target, 1000):
            return Reason.NO_ROOM
        return self.refused.get((executor, target))

    def cost(self, executor: str, target: str) -> float:
        return self.costs.get((executor, target), 0.0)

    def locality_delta_ratio(self, executor: str, target: str) -> float:
        return self.dearer.get((executor, target), 0.0)


def one_pass(*nodes: UsageNode, settings: UsageSettings = AT_ONCE, terms: Terms | None = None) -> UsageResult:
    return avg_shedder_usage(usage_pool(*nodes), settings, UsageMemory(), now_seconds=0.0, terms=terms)


def moves(result: UsageResult) -> list[tuple[str, str | None]]:
    return [(suggestion.executor, suggestion.target) for suggestion in result.suggestions]


def reasons(result: UsageResult) -> dict[str, Reason]:
    return {each.executor or each.source: each.reason for each in result.refused}


def passes(pool: UsagePool, count: int, settings: UsageSettings, terms: Terms | None = None) -> list[UsageResult]:
    memory, made = UsageMemory(), []
    for index in range(count):
        result = avg_shedder_usage(pool, settings, memory, now_seconds=60.0 * index, terms=terms)
        memory = result.memory
        made.append(result)
    return made


class TestHits:
    def test_a_gap_is_acted_on_with_its_eighth_hit(self) -> None:
        made = passes(usage_pool(used("hot", 90, [1.0]), used("cold", 70)), 15, UsageSettings())
        assert [bool(result.suggestions) for result in made] == [False] * 14 + [True]

    def test_a_wide_gap_is_acted_on_with_its_second_hit(self) -> None:
        made = passes(usage_pool(used("hot", 90, [1.0]), used("cold", 50)), 3, UsageSettings())
        assert [bool(result.suggestions) for result in made] == [False, False, True]

    def test_a_gap_below_the_least_hot_score_collects_no_hits(self) -> None:
        """Else the node would be acted on as soon as it became hot, however short that is."""
        lukewarm = passes(usage_pool(used("hot", 69, [1.0]), used("cold", 20)), 5, UsageSettings())[-1]
        assert [(pair.low_hits, pair.high_hits) for pair in lukewarm.pairs] == [(0, 0)]
        hot = usage_pool(used("hot", 90, [1.0]), used("cold", 20))
        first = avg_shedder_usage(hot, UsageSettings(), lukewarm.memory, now_seconds=300.0)
        assert not first.suggestions

    def test_a_suggestion_comes_again_until_the_gap_is_gone(self) -> None:
        settings = UsageSettings()
        result = passes(usage_pool(used("hot", 90, [1.0]), used("cold", 70)), 15, settings)[-1]
        again = avg_shedder_usage(
            usage_pool(used("hot", 90, [1.0]), used("cold", 70)), settings, result.memory, now_seconds=900.0
        )
        done = avg_shedder_usage(
            usage_pool(used("hot", 83.75), used("cold", 76.25)), settings, result.memory, now_seconds=900.0
        )
        assert moves(again) == moves(result)
        assert (done.suggestions, done.memory.streaks) == ((), ())

    def test_a_node_that_changes_sides_starts_again(self) -> None:
        settings = UsageSettings()
        before = passes(usage_pool(used("a", 90), used("b", 70)), 10, settings)[-1].memory
        after = avg_shedder_usage(usage_pool(used("a", 70), used("b", 90)), settings, before, now_seconds=600.0)
        assert {name: streak.low for name, streak in after.memory.streaks} == {"a": 1, "b": 1}

    def test_a_hot_node_among_equals_counts_whoever_its_partner_is(self) -> None:
        settings, memory = UsageSettings(), UsageMemory()
        for index in range(15):
            cold = [used(f"c{i}", 70.0 - (i == index % 3)) for i in range(3)]
            pool = usage_pool(used("hot", 90, [1.0]), *cold)
            result = avg_shedder_usage(pool, settings, memory, now_seconds=60.0 * index)
            memory = result.memory
        assert moves(result) == [("hot/0", "c2")]

    @pytest.mark.parametrize(
        ("silent", "meanwhile"),
        [("hot", {"hot": 3, "cold": 3}), ("cold", {"hot": 4, "mild": 1, "cold": 3})],
    )
    def test_hits_neither_grow_nor_vanish_while_a_node_of_the_pair_has_no_figures(
        self, silent: str, meanwhile: Mapping[str, int]
    ) -> None:
        nodes = {"hot": used("hot", 90), "mild": used("mild", 60), "cold": used("cold", 50)}
        seen = [passes(usage_pool(*nodes.values()), 5, UsageSettings())[-1].memory]
        others = tuple(node for name, node in nodes.items() if name != silent)
        for now, pool in ((600.0, UsagePool(others, frozenset({silent}))), (660.0, usage_pool(*nodes.values()))):
            seen.append(avg_shedder_usage(pool, UsageSettings(), seen[-1], now_seconds=now).memory)
        counted = [{name: streak.low for name, streak in memory.streaks} for memory in seen]
        assert counted == [{"hot": 3, "cold": 3}, meanwhile, {"hot": 4, "cold": 4}]

    def test_a_node_that_has_left_the_pool_is_forgotten(self) -> None:
        before = passes(usage_pool(used("hot", 90), used("cold", 50)), 3, UsageSettings())[-1].memory
        after = avg_shedder_usage(usage_pool(used("a", 50), used("b", 50)), UsageSettings(), before, now_seconds=600.0)
        assert after.memory.streaks == ()

    def test_a_node_is_remembered_with_how_far_out_it_was_on_its_side(self) -> None:
        memory = one_pass(used("hot", 90), used("mild", 50), used("cold", 30)).memory
        assert {name: streak.deviation for name, streak in memory.streaks} == {"hot": 40.0, "cold": 20.0}

    def test_of_many_nodes_those_farthest_out_are_remembered(self) -> None:
        nodes = [used(f"n{i:03d}", 60.0 + 0.2 * i) for i in range(150)]
        kept = dict(one_pass(*nodes).memory.streaks)
        assert sorted(kept) == [f"n{i:03d}" for i in (*range(32), *range(118, 150))]

    def test_memory_survives_as_json(self) -> None:
        memory = passes(usage_pool(used("a", 90), used("b", 50)), 5, UsageSettings())[-1].memory
        adapter = TypeAdapter(UsageMemory)
        assert adapter.validate_json(adapter.dump_json(memory)) == memory

    def test_memory_stays_small_in_a_large_pool(self) -> None:
        pool = usage_pool(*(used(f"ip-10-0-0-{i}.eu-central-1.compute.internal", 30.0 + i % 70) for i in range(1000)))
        memory = passes(pool, 3, UsageSettings())[-1].memory
        assert len(TypeAdapter(UsageMemory).dump_json(memory)) < 24 * 1024

    def test_passes_in_quick_succession_teach_nothing(self) -> None:
        pool = usage_pool(used("a", 90), used("b", 50))
        first = avg_shedder_usage(pool, UsageSettings(), UsageMemory(), now_seconds=0.0).memory
        second = avg_shedder_usage(pool, UsageSettings(), first, now_seconds=5.0).memory
        assert (second.noise, second.last_at_seconds) == (first.noise, 0.0)

    def test_a_clock_that_is_set_back_teaches_as_much_as_one_that_goes_on(self) -> None:
        pool = usage_pool(used("a", 90), used("b", 50))
        first = avg_shedder_usage(pool, UsageSettings(), UsageMemory(), now_seconds=7200.0).memory
        back = avg_shedder_usage(pool, UsageSettings(), first, now_seconds=0.0).memory
        on = avg_shedder_usage(pool, UsageSettings(), first, now_seconds=7320.0).memory
        assert (back.noise, back.last_at_seconds) == (on.noise, 0.0)

    def test_bursts_on_one_node_leave_the_gaps_of_others_to_be_leveled(self) -> None:
        memory, random = UsageMemory(), Random(1)
        for index in range(520):
            burst, hot = 45.0 + 50.0 * (index // 2 % 2), 72.0 if index >= 500 else 45.0
            scores = {"hot": hot, "bursty": burst, **{f"n{number}": 45.0 for number in range(8)}}
            nodes = (used(name, score + random.gauss(0.0, 1.0), [1.0]) for name, score in scores.items())
            result = avg_shedder_usage(usage_pool(*nodes), UsageSettings(), memory, now_seconds=120.0 * index)
            memory = result.memory
            if any(executor == "hot/0" for executor, _ in moves(result)):
                break
        assert index < 512


class TestPersistence:
    SETTINGS = UsageSettings(min_hot_score=60.0, persistent_hits=15)

    @pytest.mark.parametrize(
        ("hot", "cold", "acts"),
        [
            pytest.param(60.0, 51.0, True, id="a gap of 60 % of lowThreshold"),
            pytest.param(60.0, 51.1, False, id="a smaller one"),
            pytest.param(45.0, 20.0, True, id="a node at 75 % of minHotScore"),
            pytest.param(44.9, 20.0, False, id="a cooler one"),
        ],
    )
    def test_a_gap_too_small_for_hits_is_acted_on_once_it_has_persisted(
        self, hot: float, cold: float, acts: bool
    ) -> None:
        made = passes(usage_pool(used("hot", hot, [0.1]), used("cold", cold)), 31, self.SETTINGS)
        assert [bool(result.suggestions) for result in made] == [*[False] * 28, acts, acts, acts]
        assert not passes(usage_pool(used("hot", hot, [0.1]), used("cold", cold)), 99, UsageSettings())[-1].suggestions

    def test_a_break_starts_it_again(self) -> None:
        before = passes(usage_pool(used("hot", 60, [0.1]), used("cold", 50)), 28, self.SETTINGS)[-1].memory
        level = usage_pool(used("hot", 56, [0.1]), used("cold", 50))
        after = avg_shedder_usage(level, self.SETTINGS, before, now_seconds=1680.0).memory
        assert (len(before.streaks), after.streaks) == (2, ())

    def test_a_small_gap_waits_while_another_is_wide(self) -> None:
        small, wide = [used("h1", 62, [0.1]), used("c1", 50)], [used("h2", 70, [0.1]), used("c2", 40)]
        made = passes(usage_pool(*small, *wide), 31, self.SETTINGS)[-1]
        assert moves(made) == [("h2/0", "c2")]
        alone = avg_shedder_usage(usage_pool(*small), self.SETTINGS, made.memory, now_seconds=1860.0)
        assert moves(alone) == [("h1/0", "c1")]
        (suggestion,) = alone.suggestions
        assert suggestion.hits == 16

    def test_a_small_gap_does_not_wait_for_a_wide_one_that_nothing_can_level(self) -> None:
        """An idle node that is full, or has a taint that only an executor of another user tolerates."""
        hot, cold, idle = used("hot", 62, [0.1]), used("cold", 50), used("idle", 2)
        full = Stated(room={"idle": 0})
        made = passes(usage_pool(hot, cold, idle), 31, self.SETTINGS, full)
        assert [moves(each) for each in made[-4:]] == [
            [],
            [("hot/0", "cold")],
            [("hot/0", "cold")],
            [("hot/0", "cold")],
        ]
        (before,) = (each for each in made[10].pairs if each.cold.name == "idle")
        assert "nothing levels the two; has persisted for 6 of 15 windows" in before.detail

    @pytest.mark.parametrize("reason", [Reason.COOLDOWN, Reason.BUDGET, Reason.MAX_CONCURRENT])
    def test_it_waits_while_a_wide_one_waits_for_other_moves_but_no_more_than_once_again_as_long(
        self, reason: Reason
    ) -> None:
        """A user may keep such an executor on the hot node of each wide gap."""
        hot, cold = used("h1", 62, [0.1]), used("c1", 50)
        held, idle = used("h2", 70, [0.1], refusals={0: reason}), used("c2", 40)
        made = passes(usage_pool(hot, cold, held, idle), 61, self.SETTINGS)
        assert [moves(each) for each in made] == [*[[]] * 58, *[[("h1/0", "c2")]] * 3]
        (before,) = (each for each in made[30].pairs if each.hot.name == "h1")
        assert "has persisted for 16 of 30 windows" in before.detail

    def test_noise_has_to_be_half_as_large_as_for_a_wide_gap(self) -> None:
        """Ten points apart, five on each side of the middle."""
        before = passes(usage_pool(used("hot", 60, [0.1]), used("cold", 50)), 31, self.SETTINGS)[-1].memory
        pool = usage_pool(used("hot", 60, [0.1]), used("cold", 50))
        for extreme, acts in ((2.4, True), (2.6, False)):
            noisy = replace(before, noise=replace(before.noise, passes=999, extreme=extreme))
            result = avg_shedder_usage(pool, self.SETTINGS, noisy, now_seconds=1861.0)
            assert bool(result.suggestions) is acts, extreme

    def test_a_gap_that_persists_is_told(self) -> None:
        (pair,) = passes(usage_pool(used("hot", 58), used("cold", 50 - 8)), 5, self.SETTINGS)[-1].pairs
        assert (pair.reason, pair.detail) == (
            Reason.BELOW_MIN_HOT_SCORE,
            "at 58.0, below minHotScore 60; has persisted for 3 of 15 windows (persistentHits)",
        )


def test_a_hot_node_is_leveled_however_many_idle_nodes_are_farther_out() -> None:
    """Status must keep the hits of the few hot nodes, while another idle node is the coldest in each pass."""
    memory, chance, made = UsageMemory(), Random(1), 0
    for index in range(60):
        idle = (used(f"idle-{i:03}", 30.0 + chance.gauss(0.0, 1.0)) for i in range(90))
        usual = (used(f"usual-{i:03}", 52.0 + chance.gauss(0.0, 1.0), [1.0]) for i in range(109))
        pool, settings = usage_pool(*idle, *usual, used("hot", 65.0, [2.0])), UsageSettings(min_hot_score=60.0)
        result = avg_shedder_usage(pool, replace(settings, persistent_hits=15), memory, now_seconds=120.0 * index)
        memory = result.memory
        made += any(each.source == "hot" for each in result.suggestions)
    assert made
    assert len(memory.streaks) <= 64


def test_load_that_comes_and_goes_on_three_nodes_of_ten_keeps_no_other_gap_open() -> None:
    """One user's pods there come for ten minutes and go for ten: gaps of twenty points were never leveled."""
    memory, random, moved = UsageMemory(), Random(1), list[tuple[str, str]]()
    settings = UsageSettings(min_hot_score=60.0)
    for index in range(360):
        burst, step = 40.0 * (index // 5 % 2), 15.0 * (index >= 300)
        nodes = [used(f"b{number}", 45.0 + burst + random.gauss(0.0, 1.0)) for number in range(3)]
        nodes = [replace(node, foreign=node.score) for node in nodes]
        nodes += [used(f"h{number}", 50.0 + step + random.gauss(0.0, 1.0), [0.5] * 8) for number in range(2)]
        nodes += [used(f"c{number}", 45.0 + random.gauss(0.0, 1.0)) for number in range(5)]
        result = avg_shedder_usage(usage_pool(*nodes), settings, memory, now_seconds=120.0 * index)
        memory = result.memory
        moved += [(each.source[0], (each.target or "")[0]) for each in result.suggestions]
    assert ("h", "c") in moved
    assert all(source == "h" for source, _ in moved), moved


class TestPairs:
    def test_a_node_with_nothing_to_give_leaves_its_partner_to_the_next_hottest(self) -> None:
        foreign = replace(used("foreign", 90), gives=False)
        pairs = one_pass(foreign, used("hot", 80), used("cold", 10)).pairs
        assert [(pair.hot.name, pair.cold.name) for pair in pairs] == [("hot", "cold")]

    def test_one_that_takes_nothing_is_nobodys_cold_node(self) -> None:
        closed = used("closed", 5, receives=False)
        pairs = one_pass(used("hot", 80), closed, used("cold", 10)).pairs
        assert [(pair.hot.name, pair.cold.name) for pair in pairs] == [("hot", "cold")]

    @pytest.mark.parametrize(
        ("hot", "cold", "reason", "detail"),
        [
            (84.9, 70, Reason.BALANCED, "14.9 points apart, below lowThreshold 15"),
            (69.9, 20, Reason.BELOW_MIN_HOT_SCORE, "at 69.9, below minHotScore 70"),
            (85.0, 70, Reason.WAITING_FOR_HITS, "1 of 8 hits"),
        ],
    )
    def test_a_pair_left_alone_says_why(self, hot: float, cold: float, reason: Reason, detail: str) -> None:
        (pair,) = one_pass(used("hot", hot), used("cold", cold), settings=UsageSettings()).pairs
        assert (pair.reason, pair.detail) == (reason, detail)

    def test_the_figures_of_a_pair(self) -> None:
        (pair,) = one_pass(used("hot", 95), used("cold", 50), settings=UsageSettings()).pairs
        assert (pair.hot.name, pair.cold.name, pair.difference, pair.low_hits, pair.high_hits) == (
            "hot",
            "cold",
            45,
            1,
            1,
        )

    @pytest.mark.parametrize("nodes", [(), (used("alone", 100),)])
    def test_it_takes_two(self, nodes: tuple[UsageNode, ...]) -> None:
        assert one_pass(*nodes) == UsageResult((), (), (), UsageMemory())


class TestVictims:
    def test_the_gap_is_halved_not_crossed(self) -> None:
        """40 points on 16 cores each: 3.2 cores level them."""
        result = one_pass(used("hot", 90, [4.0, 2.0, 1.2, 0.5]), used("cold", 50))
        assert moves(result) == [("hot/1", "cold"), ("hot/2", "cold")]
        assert result.suggestions[-1].hot_after == pytest.approx(70)
        assert result.suggestions[-1].cold_after == pytest.approx(70)

    @pytest.mark.parametrize("cold", [40.0, 50.1, 61.7])
    def test_where_both_meet_the_hot_one_is_not_called_the_colder(self, cold: float) -> None:
        (made,) = one_pass(used("hot", 90, [(90 - cold) * 0.08]), used("cold", cold)).suggestions
        assert made.hot_after == pytest.approx((90 + cold) / 2)
        assert (made.hot_after or 0.0) >= (made.cold_after or 0.0)

    def test_too_large_an_executor_is_refused(self) -> None:
        result = one_pass(used("hot", 90, [8.0]), used("cold", 50))
        detail = "its 8.00 cores would make cold the hotter one; 3.20 would level them"
        assert moves(result) == []
        assert result.refused == (
            Refused("hot/0", "hot", "cold", Reason.OVERSHOOT, detail),
            Refused("", "hot", "cold", Reason.NO_DESTINATION, "no executor and node go together"),
        )

    def test_what_may_not_move_says_why(self) -> None:
        hot = used("hot", 90, [2.0, None, 0.0, 1.0], refusals={0: Reason.LARGE_STATE})
        result = one_pass(hot, used("cold", 50))
        assert moves(result) == [("hot/3", "cold")]
        assert reasons(result) == {
            "hot/0": Reason.LARGE_STATE,
            "hot/1": Reason.UNKNOWN_LOAD,
            "hot/2": Reason.NOTHING_TO_GAIN,
        }

    def test_no_more_than_the_budget_allows(self) -> None:
        settings = UsageSettings(low_hits=1, max_moves=3, max_moves_per_node=2)
        nodes = [used("h1", 95, [0.5] * 4), used("h2", 94, [0.5] * 4), used("h3", 93, [0.5] * 4)]
        result = one_pass(*nodes, used("c1", 50), used("c2", 51), used("c3", 52), settings=settings)
        assert [suggestion.source for suggestion in result.suggestions] == ["h1", "h1", "h2"]
        assert reasons(result) == {"h3": Reason.BUDGET}
        assert [(each.source, each.target, each.detail) for each in result.refused] == [
            ("h3", "c3", "later: the moves of this pass are used up")
        ]

    def test_with_a_smaller_share_less_leaves(self) -> None:
        settings = UsageSettings(low_hits=1, max_unload_ratio=0.25, max_moves=10, max_moves_per_node=10)
        result = one_pass(used("hot", 90, [0.8] * 5), used("cold", 50), settings=settings)
        assert len(result.suggestions) == 2  # half of the 3.2 cores that would level them

    def test_cheaper_ones_go_where_both_level(self) -> None:
        terms = Stated(costs={("hot/0", "cold"): 3.0})
        assert moves(one_pass(used("hot", 90, [2.0, 2.0, 9.0]), used("cold", 50), terms=terms, settings=one())) == [
            ("hot/1", "cold")
        ]


def one() -> UsageSettings:
    return UsageSettings(low_hits=1, high_hits=1, max_moves=1, max_moves_per_node=1)


class TestPrediction:
    def test_in_each_nodes_own_capacity(self) -> None:
        (made,) = one_pass(used("hot", 90, [2.0], cores=8.0), used("cold", 30, cores=32.0)).suggestions
        assert (made.hot_after, made.cold_after) == (65.0, 36.25)

    def test_a_slower_machine_is_busier_with_the_same_work(self) -> None:
        (made,) = one_pass(used("hot", 90, [2.0], speed=1.0), used("cold", 30, speed=0.5)).suggestions
        assert (made.hot_after, made.cold_after) == (77.5, 55.0)

    def test_of_several_each_begins_where_the_one_before_it_ends_the_largest_first(self) -> None:
        """40 points on 16 cores each: a core is worth 6.25 of them."""
        made = one_pass(used("hot", 90, [1.0, 2.0]), used("cold", 50)).suggestions
        figures = [(m.executor, m.hot_score, m.cold_score, m.difference, m.hot_after, m.cold_after) for m in made]
        assert figures == [("hot/1", 90, 50, 40, 77.5, 62.5), ("hot/0", 77.5, 62.5, 15, 71.25, 68.75)]

    def test_the_figures_behind_a_suggestion(self) -> None:
        (made,) = one_pass(used("hot", 90, [2.0]), used("cold", 50)).suggestions
        assert made == Suggestion("hot/0", "hot", "cold", 90, 50, 40, 1, 77.5, 62.5)


class TestTheSourceKeepsItsShare:
    """Four nodes at a level of 70: below 62.5, half a gap of 15 under it, the hot one would have to be filled again."""

    SETTINGS = UsageSettings(low_hits=1, high_hits=1, max_moves=5, max_moves_per_node=5)

    def left(self, *loads: float) -> list[str]:
        others = [used("warm", 85), used("warmer", 85), used("cold", 20)]
        return [name for name, _ in moves(one_pass(used("hot", 90, list(loads)), *others, settings=self.SETTINGS))]

    def test_less_than_half_the_gap_leaves_when_that_would_empty_it(self) -> None:
        assert len(self.left(*[1.0] * 8)) == 4, "6.25 points each, of the 27.5 above 62.5; half the gap is 35"

    def test_a_node_that_others_keep_hot_does_not_raise_the_level(self) -> None:
        foreign = replace(used("foreign", 100), gives=False)
        nodes = [used("hot", 80, [1.0] * 8), used("cold", 10)]
        found = one_pass(*nodes, foreign, settings=self.SETTINGS)
        assert len(moves(found)) == 5, "half the gap; with the 100 in the level it would be 3"

    def test_one_executor_may_take_it_below(self) -> None:
        assert len(self.left(5.2, 5.3)) == 1, "32.5 points: too many, but else nothing could ever move"

    def test_between_two_nodes_half_the_gap_is_the_level(self) -> None:
        result = one_pass(used("hot", 90, [1.0] * 8), used("cold", 40), settings=self.SETTINGS)
        assert len(moves(result)) == 4


class TestDestination:
    def test_the_coldest_with_room(self) -> None:
        terms = Stated(room={"c1": 0})
        result = one_pass(used("hot", 90, [2.0]), used("c1", 30), used("c2", 40), terms=terms)
        assert moves(result) == [("hot/0", "c2")]

    def test_one_that_receives_nothing_is_passed_over(self) -> None:
        result = one_pass(used("hot", 90, [2.0]), used("c1", 30, receives=False), used("c2", 40))
        assert moves(result) == [("hot/0", "c2")]

    @pytest.mark.parametrize(("one", "other"), [(0.05, 0.0), (0.0, -0.05)])
    def test_among_equally_leveling_ones_the_nearest(self, one: float, other: float) -> None:
        terms = Stated(dearer={("hot/0", "c1"): one, ("hot/0", "c2"): other})
        result = one_pass(used("hot", 90, [2.0]), used("c1", 40), used("c2", 41), terms=terms)
        assert moves(result) == [("hot/0", "c2")]

    def test_of_equally_near_ones_the_one_that_levels_more_though_more_executors_go_there(self) -> None:
        every = {(f"hot/{i}", node): 0.1 for i in range(4) for node in ("c1", "c2")}
        hot, cold = used("hot", 62.5, [0.6, 0.7, 0.7, 0.7]), [used("c1", 40), used("c2", 46)]
        warm = one_pass(hot, *cold, terms=Stated(costs=every, dearer=every), settings=replace(AT_ONCE, min_hot_score=0))
        assert {target for _, target in moves(warm)} == {"c1"}

    def test_a_near_one_that_hardly_levels_is_not_chosen(self) -> None:
        terms = Stated(dearer={("hot/0", "c1"): 0.05})
        result = one_pass(used("hot", 90, [2.0]), used("c1", 40), used("c2", 70), terms=terms)
        assert moves(result) == [("hot/0", "c1")]

    def test_room_is_counted_with_what_is_arriving(self) -> None:
        terms = Stated(room={"c1": 1})
        result = one_pass(used("hot", 90, [1.0, 1.0]), used("c1", 50), terms=terms)
        assert len(moves(result)) == 1
        assert set(reasons(result).values()) == {Reason.NO_ROOM}

    def test_a_second_pair_goes_elsewhere_than_the_first(self) -> None:
        result = one_pass(
            used("h1", 95, [2.0]), used("h2", 94, [2.0]), used("c1", 40), used("c2", 41), settings=AT_ONCE
        )
        assert moves(result) == [("h1/0", "c1"), ("h2/0", "c2")]

    def test_a_node_that_takes_gives_nothing_in_the_same_pass(self) -> None:
        """The hottest can only go to the second hottest, which would otherwise be next to give."""
        terms = Stated(room={"c1": 0, "c2": 0})
        nodes = [used("h1", 120, [1.0]), used("h2", 95, [1.0]), used("c1", 40), used("c2", 41)]
        result = one_pass(*nodes, terms=terms)
        assert moves(result) == [("h1/0", "h2")]

    def test_one_that_is_passed_over_keeps_nobody_else_from_giving(self) -> None:
        elsewhere = {("h1/0", name): Reason.NOT_ADMITTED for name in ("h3", "c1", "c2", "c3")}
        nodes = [used("h1", 120, [1.0]), used("h2", 95, [1.0]), used("h3", 90, [1.0])]
        result = one_pass(*nodes, used("c3", 45), used("c2", 41), used("c1", 40), terms=Stated(refused=elsewhere))
        assert moves(result) == [("h1/0", "h2"), ("h3/0", "c1")]

    @pytest.mark.parametrize("refused", [0, 1, 2])
    def test_one_that_a_node_refuses_keeps_no_other_from_going_there(self, refused: int) -> None:
        terms = Stated(refused={(f"hot/{refused}", "cold"): Reason.VOLUME_PINNED})
        settings = UsageSettings(low_hits=1, high_hits=1, max_moves=5, max_moves_per_node=5)
        result = one_pass(used("hot", 90, [1.0] * 3), used("cold", 50), terms=terms, settings=settings)
        assert len(moves(result)) == 2
        assert reasons(result) == {f"hot/{refused}": Reason.VOLUME_PINNED}

    def test_a_node_takes_from_one_other_in_a_pass(self) -> None:
        """Else it could end hotter than the first that it relieved."""
        terms = Stated(room={"c2": 0})
        nodes = [used("h1", 95, [1.0]), used("h2", 94, [1.0]), used("c1", 40), used("c2", 41)]
        result = one_pass(*nodes, terms=terms)
        assert moves(result) == [("h1/0", "c1")]
        assert reasons(result)["h2"] == Reason.NO_DESTINATION

    def test_without_any_nothing_moves(self) -> None:
        terms = Stated(refused={("hot/0", "cold"): Reason.VOLUME_PINNED})
        result = one_pass(used("hot", 90, [2.0]), used("cold", 50), terms=terms)
        assert reasons(result) == {"hot/0": Reason.VOLUME_PINNED, "hot": Reason.NO_DESTINATION}


class TestWhatHasNotLasted:
    """Points that come from executors which differ from their applications' means."""

    POOL = usage_pool(replace(used("hot", 90.0, [1.0] * 4), astray=30.0), used("cold", 50.0), used("other", 55.0))

    def test_a_burst_moves_nothing_and_says_so(self) -> None:
        found = avg_shedder_usage(self.POOL, AT_ONCE, UsageMemory(), now_seconds=0.0)
        assert not found.suggestions
        assert found.pairs[0].reason is Reason.WAITING_FOR_HITS
        assert found.pairs[0].detail == (
            "40.0 points apart, 29.5 of them by executors that differ from their applications' means, which has not "
            "lasted"
        )

    def test_in_time_it_counts(self) -> None:
        results = passes(self.POOL, 240, AT_ONCE)
        assert not results[30].suggestions
        assert results[-1].suggestions

    def test_passes_in_quick_succession_do_not_make_it_last(self) -> None:
        memory = UsageMemory()
        for index in range(240):
            found = avg_shedder_usage(self.POOL, AT_ONCE, memory, now_seconds=0.1 * index)
            memory = found.memory
        assert not found.suggestions
