from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.model.reason import Reason
from ballast.shedding import victims_and_destination
from ballast.shedding.load import AnythingGoes, Suggestion, UsageExecutor, UsageNode
from ballast.shedding.victims_and_destination import (
    Combination,
    Item,
    Leveling,
    Refused,
    Search,
    closest,
    completed,
)
from tests.unit.shedding.builders import usage_pool, used


def names(combination: Combination) -> list[str]:
    return sorted(combination.names)


def items(*loads: float) -> list[Item]:
    return [Item(f"e{index}", load) for index, load in enumerate(loads)]


@pytest.mark.parametrize(
    ("loads", "wanted", "most", "chosen"),
    [
        ((3.0, 2.0, 2.0), 4.0, 2, ["e1", "e2"]),
        ((3.0, 2.0, 2.0), 4.0, 1, ["e0"]),
        ((5.0, 4.5), 4.0, 3, []),
        ((4.0, 2.0, 2.0), 4.0, 3, ["e0"]),
        ((0.0, 1.0), 4.0, 3, ["e1"]),
        ((), 4.0, 3, []),
        ((1.0,), 4.0, 0, []),
    ],
    ids=[
        "not the largest first",
        "within the number allowed",
        "never more than wanted",
        "fewer moves where both level",
        "idle ones change nothing",
        "nobody there",
        "no move allowed",
    ],
)
def test_the_closest_combination(loads: tuple[float, ...], wanted: float, most: int, chosen: list[str]) -> None:
    assert names(closest(items(*loads), wanted=wanted, most=most, slack=0.0)) == chosen


def test_within_the_slack_the_cheaper_one_goes() -> None:
    offered = [Item("near", 4.0, cost=5.0), Item("nearly", 3.8, cost=1.0), Item("far", 2.0, cost=0.0)]
    assert names(closest(offered, wanted=4.0, most=1, slack=0.5)) == ["nearly"]


def test_within_the_slack_one_dear_move_is_better_than_two_cheap_ones() -> None:
    offered = [Item("a", 3.8, cost=5.0), Item("b", 2.0), Item("c", 2.0)]
    assert names(closest(offered, wanted=4.0, most=2, slack=0.5)) == ["a"]


@given(
    st.lists(st.floats(0.1, 10.0), max_size=7),
    st.floats(0.5, 20.0),
    st.integers(1, 4),
)
def test_no_combination_comes_much_closer(loads: list[float], wanted: float, most: int) -> None:
    """Sums are told apart in 256 steps; that is how much closer another one may be, once for each item."""
    offered = items(*loads)
    found = closest(offered, wanted=wanted, most=most, slack=0.0)
    sums = [sum(item.load for item in group) for size in range(1, most + 1) for group in combinations(offered, size)]
    best = max((total for total in sums if total <= wanted), default=0.0)
    assert found.load <= wanted * (1 + 1e-9)
    assert found.load >= best - wanted * most / 256
    assert len(found.items) <= most
    assert found.load == pytest.approx(sum(item.load for item in found.items))


@given(st.permutations(items(3.0, 2.0, 2.0, 1.5, 0.5)))
def test_the_order_decides_nothing(offered: list[Item]) -> None:
    assert closest(offered, wanted=4.2, most=3, slack=0.1) == closest(
        items(3.0, 2.0, 2.0, 1.5, 0.5), wanted=4.2, most=3, slack=0.1
    )


class FullNodes(AnythingGoes):
    """Each of these nodes has no room; the others take one executor a pass."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def takes(self, executor: str, target: str) -> bool:
        return self.refusal(executor, target, ()) is None

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        del executor
        return Reason.NO_ROOM if target in self.names or arriving else None


def unload(executor: str, target: str | None = None) -> Suggestion:
    return Suggestion(executor, executor.split("/", maxsplit=1)[0], target, 90)


HOT = used("hot", 90, [2.0, 2.0])


def test_the_coldest_node_takes_it() -> None:
    (made,), refused = completed([unload("hot/0")], usage_pool(HOT, used("a", 60), used("b", 40)), AnythingGoes())
    assert (made.target, made.hot_after, made.cold_after, made.cold_score, made.difference) == ("b", 77.5, 52.5, 40, 50)
    assert refused == ()


def test_the_next_one_when_that_has_no_room() -> None:
    (made,), _ = completed([unload("hot/0")], usage_pool(HOT, used("a", 60), used("b", 40)), FullNodes("b"))
    assert made.target == "a"


def test_each_counts_on_those_before_it() -> None:
    pool = usage_pool(HOT, used("a", 45), used("b", 40))
    made, _ = completed([unload("hot/0"), unload("hot/1")], pool, AnythingGoes())
    assert [(each.target, each.hot_score, each.hot_after) for each in made] == [("b", 90, 77.5), ("a", 77.5, 65.0)]


def test_nobody_counts_on_what_is_not_followed() -> None:
    cold, busy = used("a", 30), used("also", 88, [2.0])
    asked: list[Suggestion] = []

    def ruling(suggestion: Suggestion) -> tuple[Reason, str] | None:
        asked.append(suggestion)
        return None if suggestion.executor == "also/0" else (Reason.COOLDOWN, "hot rests")

    suggestions = [unload("hot/0"), unload("hot/1"), unload("also/0")]
    (made,), refused = completed(suggestions, usage_pool(HOT, busy, cold), FullNodes(), ruling=ruling)
    assert (made.hot_score, made.cold_score, made.hot_after, made.cold_after) == (88, 30, 75.5, 42.5)
    assert refused == tuple(Refused(f"hot/{i}", "hot", "a", Reason.COOLDOWN, "hot rests") for i in range(2))
    assert [(each.executor, each.target, each.hot_after) for each in asked] == [
        ("hot/0", "a", 77.5),
        ("hot/1", "a", 77.5),
        ("also/0", "a", 75.5),
    ]


def test_what_the_coldest_node_says_is_why_nobody_takes_it() -> None:
    _, (refused,) = completed([unload("hot/0")], usage_pool(HOT, used("a", 60), used("b", 85)), FullNodes("a"))
    assert (refused.target, refused.reason) == ("a", Reason.NO_ROOM)


def leveled(source: UsageNode, *targets: UsageNode) -> Leveling | None:
    scores = {node.name: node.score for node in (source, *targets)}
    search = Search(scores, AnythingGoes(), low_threshold=15.0, max_unload_ratio=0.5, floor=0.0)
    return search.best(source, targets, 1)[0]


@pytest.mark.parametrize(
    ("loads", "targets", "chosen"),
    [
        pytest.param([5.0], [used("large", 50, cores=64)], ("small/0", "large"), id="all that fills it"),
        pytest.param([6.0, 5.0], [used("large", 50, cores=64)], ("small/1", "large"), id="the lighter one"),
        pytest.param([5.0, 1.0], [used("large", 50, cores=64)], ("small/1", "large"), id="what stops short of it"),
        pytest.param([5.0], [used("alike", 50, cores=8)], None, id="not to a node alike"),
        pytest.param(
            [2.0],
            [used("alike", 50, cores=8), used("large", 50, cores=64)],
            ("small/0", "large"),
            id="to the one that feels it less",
        ),
    ],
)
def test_an_executor_leaves_a_small_node_that_it_fills_for_a_large_one(
    loads: list[float], targets: list[UsageNode], chosen: tuple[str, str] | None
) -> None:
    found = leveled(used("small", 100, loads, cores=8), *targets)
    assert (found and (found.chosen.names[0], found.target.name)) == chosen


@pytest.mark.parametrize("over", [2e-8, 5e-7])
def test_where_both_meet_rounding_makes_no_overshoot(over: float) -> None:
    (made,), _ = completed([unload("hot/0")], usage_pool(HOT, used("a", 65 + over)), AnythingGoes())
    assert (made.hot_after, made.cold_after) == pytest.approx((77.5, 77.5))


def test_a_named_target_is_kept() -> None:
    (made,), _ = completed([unload("hot/0", "a")], usage_pool(HOT, used("a", 60), used("b", 40)), AnythingGoes())
    assert made.target == "a"


@pytest.mark.parametrize(
    ("executor", "target", "nodes", "reason"),
    [
        ("hot/0", "a", [HOT, used("a", 60)], Reason.NO_ROOM),
        ("hot/0", None, [HOT, used("a", 60)], Reason.NO_ROOM),
        ("hot/0", None, [HOT, used("b", 85)], Reason.OVERSHOOT),
        ("hot/0", None, [HOT], Reason.NO_DESTINATION),
        ("hot/0", "gone", [HOT], Reason.NO_DESTINATION),
        ("hot/0", "b", [HOT, used("b", 10, receives=False)], Reason.NODE_UNAVAILABLE),
        ("hot/9", None, [HOT, used("b", 10)], Reason.UNKNOWN_LOAD),
        ("hot/0", None, [used("hot", 90, [None]), used("b", 10)], Reason.UNKNOWN_LOAD),
        ("hot/0", None, [used("hot", 90, [1.0], refusals={0: Reason.TOO_YOUNG}), used("b", 10)], Reason.TOO_YOUNG),
    ],
)
def test_what_can_not_be_followed_is_refused(
    executor: str, target: str | None, nodes: list[UsageNode], reason: Reason
) -> None:
    made, (refused,) = completed([unload(executor, target)], usage_pool(*nodes), FullNodes("a"))
    assert (made, refused.executor, refused.reason) == ((), executor, reason)


def test_a_refusal_names_everything() -> None:
    pool = usage_pool(used("hot", 90, [None, 1.0], refusals={1: Reason.TOO_YOUNG}), used("a", 60))
    _, refused = completed([unload("hot/0", "a"), unload("hot/1", "a")], pool, AnythingGoes())
    assert refused == (
        Refused("hot/0", "hot", "a", Reason.UNKNOWN_LOAD, "its use of CPU is not known"),
        Refused("hot/1", "hot", "a", Reason.TOO_YOUNG),
    )


def test_a_full_target_is_named_in_the_refusal() -> None:
    _, refused = completed([unload("hot/0", "a")], usage_pool(HOT, used("a", 60)), FullNodes("a"))
    assert refused == (Refused("hot/0", "hot", "a", Reason.NO_ROOM),)


def test_a_target_that_the_strategy_named_must_not_end_hotter_either() -> None:
    made, (refused,) = completed([unload("hot/0", "a")], usage_pool(HOT, used("a", 85)), AnythingGoes())
    assert made == ()
    assert refused == Refused("hot/0", "hot", "a", Reason.OVERSHOOT, "a would end at 97.5, above 77.5")


def test_what_a_swap_would_bring_back_stays_and_nobody_counts_on_it() -> None:
    pool = usage_pool(HOT, used("cold", 20, [1.0]), used("b", 64))
    swap = [unload("hot/0", "cold"), unload("cold/0", "hot"), unload("hot/1")]
    made, (refused,) = completed(swap, pool, AnythingGoes())
    assert (refused.executor, refused.reason) == ("cold/0", Reason.OVERSHOOT)
    assert [(each.hot_after, each.cold_after) for each in made] == [(77.5, 32.5), (65.0, 45.0)]


def test_predictions_start_from_what_the_pool_shows_not_from_a_smoothed_score() -> None:
    smoothed = Suggestion("hot/0", "hot", "a", 99.0)
    (made,), _ = completed([smoothed], usage_pool(HOT, used("a", 60)), AnythingGoes())
    assert (made.hot_score, made.hot_after) == (90, 77.5)


def test_equal_scores_are_no_overshoot() -> None:
    (made,), _ = completed([unload("hot/0")], usage_pool(HOT, used("a", 65)), AnythingGoes())
    assert (made.hot_after, made.cold_after) == pytest.approx((77.5, 77.5))


NAMES = [f"full{index}" for index in range(30)]
FULL = [used(name, 40.0 + index / 10) for index, name in enumerate(NAMES)]
"""Idle pods of one user may use up the requests of any number of nodes."""


def search(*nodes: UsageNode, full: list[str]) -> str | None:
    """The name of the destination that is found for the hot node."""
    scores = {node.name: node.score for node in (HOT, *nodes)}
    terms = FullNodes(*full)
    best, _ = Search(scores, terms, low_threshold=15.0, max_unload_ratio=0.5, floor=0.0).best(HOT, nodes, 1)
    return None if best is None else best.target.name


def test_where_the_coldest_eight_take_nothing_one_that_has_room_is_found() -> None:
    free = used("free", 60)
    (made,), _ = completed([unload("hot/0")], usage_pool(HOT, *FULL, free), FullNodes(*NAMES))
    assert made.target == "free"
    assert search(*FULL, free, full=NAMES) == "free"


class Fussy(FullNodes):
    """Executors of `many` go nowhere, although nodes have room for them."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.asked = 0

    def takes(self, executor: str, target: str) -> bool:
        return executor.startswith("many/") or super().takes(executor, target)

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        many = executor.startswith("many/")
        self.asked += many
        return Reason.LOCALITY_LOSS if many else super().refusal(executor, target, arriving)


def test_executors_that_go_nowhere_are_tried_so_many_times_and_keep_no_others_from_being_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(victims_and_destination, "_MOST_TRIED", 60)
    full = [used(f"full{number:02}", 10.0) for number in range(40)]
    nodes = (*full, used("free", 60))
    own, many = UsageExecutor("own/0", 1.0), tuple(UsageExecutor(f"many/{number}", 1.0) for number in range(5))
    hot, terms = replace(HOT, executors=(*many, own)), Fussy(*(node.name for node in full))
    scores = {node.name: node.score for node in (hot, *nodes)}
    best, _ = Search(scores, terms, low_threshold=15.0, max_unload_ratio=0.5, floor=0.0).best(hot, nodes, 1)
    assert best is not None
    assert (best.target.name, best.chosen.names) == ("free", ("own/0",))
    assert terms.asked == 8 * len(many) + 60
    terms.asked = 0
    wanted = [Suggestion(each.name, "hot", None, 90) for each in (*many, own)]
    made, _ = completed(wanted, usage_pool(hot, *nodes), terms)
    assert [each.executor for each in made] == ["own/0"]
    assert terms.asked == 8 * len(many) + 60


class Far(FullNodes):
    """Executors of `many` are near none of the nodes."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.asked: list[tuple[str, str]] = []

    def is_near(self, executor: str, target: str) -> bool:
        del target
        return not executor.startswith("many/")

    def takes(self, executor: str, target: str) -> bool:
        return target not in self.names

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        self.asked.append((executor, target))
        return super().refusal(executor, target, arriving)


def test_beyond_the_coldest_eight_only_nodes_are_tried_that_are_near_one_of_the_executors() -> None:
    others = [used(f"other{number:02}", 50.0) for number in range(40)]
    terms = Far(*NAMES)
    hot = replace(HOT, executors=tuple(UsageExecutor(f"many/{number}", 1.0) for number in range(5)))
    nodes = (hot, *FULL, *others)
    scores = {node.name: node.score for node in nodes}
    best, _ = Search(scores, terms, low_threshold=15.0, max_unload_ratio=0.5, floor=0.0).best(hot, nodes, 1)
    assert best is None
    assert {target for _, target in terms.asked} == {node.name for node in FULL[:8]}


def test_where_one_of_the_coldest_eight_takes_it_no_other_is_compared_with_it() -> None:
    """All would level equally well, and the name decides."""
    nodes = [used(name, 40.0) for name in NAMES[:9]]
    for full, chosen in ((NAMES[:7], NAMES[7]), (NAMES[:8], NAMES[8])):
        assert search(*nodes, full=full) == chosen
