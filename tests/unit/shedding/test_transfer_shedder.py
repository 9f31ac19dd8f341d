from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest

from ballast.model.shedders import TransferQuirks, TransferSettings
from ballast.shedding.load import Suggestion
from ballast.shedding.transfer_pool import Average, TopExecutor, TransferNode, TransferPool, smoothed
from ballast.shedding.transfer_shedder import Cause, Outcome, TransferMemory, TransferResult, transfer_shedder

MB = 1_000_000.0
AT_ONCE = TransferSettings(hits=0)


def node(name: str, score: float, *volumes: float, own: float = 1.0) -> TransferNode:
    """Executors `NAME1`, `NAME2`… of these megabytes a second; the node's own figure is theirs and `own` bytes."""
    top = tuple(TopExecutor(f"{name.upper()}{i}", volume * MB) for i, volume in enumerate(volumes, start=1))
    return TransferNode(name, score, own + MB * sum(volumes), top=top)


def pool(*nodes: TransferNode, registered: frozenset[str] | None = None) -> TransferPool:
    return TransferPool(nodes, frozenset(each.name for each in nodes) if registered is None else registered)


def five(second: float = 4) -> TransferPool:
    """The set-up of the class's own tests."""
    return pool(
        node("a", 2, 1, 2), node("b", second, 1, 3), node("c", 6, 2, 4), node("d", 80, 2, 6), node("e", 90, 2, 7)
    )


def run(
    load: TransferPool, settings: TransferSettings = AT_ONCE, memory: TransferMemory | None = None
) -> TransferResult:
    return transfer_shedder(load, settings, memory or TransferMemory(), allowed=lambda *_: True)


def moves(result: TransferResult) -> set[tuple[str, str | None]]:
    return {(suggestion.executor, suggestion.target) for suggestion in result.suggestions}


def test_the_hottest_give_to_the_coldest_until_the_deviation_is_on_target() -> None:
    result = run(five())
    assert moves(result) == {("E1", "a"), ("D1", "b")}
    assert result.mean_ratio == pytest.approx(0.364)
    assert result.std_ratio == pytest.approx(0.24377, abs=1e-5)
    assert {suggestion.cause for suggestion in result.suggestions} == {Cause.OVERLOADED}


def test_without_transfer_no_destination_is_named() -> None:
    assert {target for _, target in moves(run(five(), replace(AT_ONCE, transfer=False)))} == {None}


def test_one_node_in_a_pass_when_so_limited() -> None:
    assert moves(run(five(), replace(AT_ONCE, max_nodes=1))) == {("E1", "a")}


def test_the_condition_must_hold_in_a_row() -> None:
    memory, outcomes = TransferMemory(), []
    for _ in range(4):
        result = run(five(), TransferSettings(hits=3), memory)
        memory = result.memory
        outcomes.append(result.outcome)
    assert outcomes == [Outcome.WAITING_FOR_HITS] * 3 + [Outcome.SUGGESTED]
    assert memory.hits == 0


def test_a_level_pool_forgets_its_hits() -> None:
    level = pool(node("a", 10, 1, 1), node("b", 20, 1, 1), node("c", 30, 1, 1))
    result = run(level, TransferSettings(), TransferMemory(hits=2))
    assert (result.outcome, result.memory.hits) == (Outcome.WAITING_FOR_HITS, 0)
    assert result.std_ratio == pytest.approx(0.0816496580927726)


@pytest.mark.parametrize(("last", "hits"), [(0.9, 2), (0.15, 0)])
def test_hits_wait_for_a_silent_node_only_where_it_was_too_far_from_the_others(last: float, hits: int) -> None:
    level = TransferPool((node("a", 10, 1, 1), node("b", 20, 1, 1)), frozenset({"a", "b"}), frozenset({"c"}))
    before = TransferMemory((("c", Average(last, 2 * MB)),), hits=2)
    memory = run(level, TransferSettings(), before).memory
    assert (memory.hits, dict(memory.averages)["c"]) == (hits, Average(last, 2 * MB))


def test_one_far_below_the_others_is_reason_enough() -> None:
    nodes = [node(f"n{i:02d}", 98, 1, 1, 1) for i in range(98)]
    result = run(pool(*nodes, node("hot", 99, 1, 1, 1), node("cold", 1)))
    assert {s.cause for s in result.suggestions} == {Cause.UNDERLOADED}
    assert {s.target for s in result.suggestions} == {"cold"}


@pytest.mark.parametrize(
    ("load", "outcome"),
    [
        (pool(), Outcome.NO_NODES),
        (pool(replace(node("a", 50), receives=False)), Outcome.NO_NODES),
        (pool(replace(node("a", 50), age_seconds=1801)), Outcome.STALE),
        (pool(replace(node("a", 50), since_unload_seconds=179), node("b", 1)), Outcome.COOLING_DOWN),
        (pool(node("a", 50), registered=frozenset({"a", "b"})), Outcome.NO_FIGURES),
        (pool(node("a", 90), node("b", 1)), Outcome.NO_FIGURES),
        (pool(node("a", 90, 5), node("b", 1)), Outcome.NO_EXECUTORS),
        (pool(node("a", 90, 0, 0), node("b", 1)), Outcome.NO_EXECUTORS),
    ],
    ids=[
        "nobody",
        "nobody who takes",
        "outdated",
        "unloaded just now",
        "silent node",
        "no report",
        "a sole executor",
        "no traffic",
    ],
)
def test_a_pass_that_can_do_nothing_says_why(load: TransferPool, outcome: Outcome) -> None:
    assert run(load).outcome == outcome


def test_a_cooldown_that_is_over_is_reported() -> None:
    assert run(pool(replace(node("a", 50), since_unload_seconds=180), node("b", 50))).cooled == {"a"}


def test_what_must_stay_stays() -> None:
    hot = node("e", 90, 2, 3, 4)
    held = replace(hot, top=(replace(hot.top[0], movable=False), replace(hot.top[1], owned=False), hot.top[2]))
    assert moves(run(pool(node("a", 2, own=0), held))) == {("E3", "a")}


class TestOneThatTakesNothing:
    def closed(self, name: str, score: float, *volumes: float) -> TransferNode:
        return replace(node(name, score, *volumes), receives=False)

    def test_sets_the_others_not_apart_while_it_has_less_to_do_than_they(self) -> None:
        level = [node("a", 50, 1, 1), node("b", 52, 1, 1)]
        result = run(pool(*level, self.closed("idle", 0, 1)))
        assert (result.outcome, result.memory.hits) == (Outcome.WAITING_FOR_HITS, 0)
        assert result.mean_ratio == pytest.approx(0.51)

    def test_gives_while_it_has_more(self) -> None:
        assert moves(run(pool(node("a", 2, 1, 2), self.closed("e", 90, 2, 7)))) == {("E1", "a")}

    def test_is_passed_over_for_the_next_coldest(self) -> None:
        """It lies above the mean of 51.8, and colder than the third that is too hot."""
        cold, closed = [node("a", 2, 1, 2), node("b", 4, 1, 3)], self.closed("c", 60, 1, 1)
        hot = [node("d", 80, 0.5, 6), node("e", 90, 2, 7), node("f", 83, 2, 6)]
        result = run(pool(*cold, closed, *hot), replace(AT_ONCE, target_std_ratio=0.01))
        assert {target for _, target in moves(result)} == {"a", "b"}

    def test_gets_nothing_back_in_a_swap(self) -> None:
        cold, hot = node("a", 48, 2.4, 2.4, own=0), node("b", 100, 5, 5, own=0)
        assert moves(run(pool(cold, hot))) == {("B1", "a"), ("A1", "b")}
        assert moves(run(pool(cold, replace(hot, receives=False)))) == set()


def test_executors_are_swapped_where_none_is_small_enough() -> None:
    load = pool(node("a", 48, 2.4, 2.4, own=0), node("b", 100, 5, 5, own=0))
    result = run(load)
    assert moves(result) == {("B1", "a"), ("A1", "b")}
    assert result.std_ratio == pytest.approx(0.0, abs=1e-7)


def test_a_swap_that_relieves_too_little_is_left() -> None:
    assert (
        moves(
            run(
                pool(node("a", 50, 1, 500, own=0), node("b", 100, 500, 500, own=0)),
                replace(AT_ONCE, target_std_ratio=0.2),
            )
        )
        == set()
    )


def test_averages_follow_slowly_and_are_full_before_the_first_report() -> None:
    first = smoothed(pool(node("a", 200, own=3)), {}, 0.75)
    second = smoothed(pool(node("a", 150, own=11)), first, 0.75)
    silent = smoothed(pool(replace(node("a", 0), reported=False), replace(node("b", 9), reported=False)), second, 0.75)
    assert first == {"a": Average(2.0, 3.0)}
    assert second == {"a": Average(1.875, 5.0)}
    assert silent == {**second, "b": Average(1.0, 0.0)}


class TestQuirks:
    def test_nodes_that_are_not_alive_take_part_only_when_asked_for(self) -> None:
        load = pool(node("a", 2, own=0), node("e", 90, 2, 7, own=0), registered=frozenset({"a"}))
        assert moves(run(load)) == set()
        assert moves(run(load, replace(AT_ONCE, quirks=TransferQuirks(unregistered_too=True)))) != set()

    def test_outdated_nodes_take_part_only_when_asked_for(self) -> None:
        load = pool(replace(node("a", 2, own=0), age_seconds=9999), node("b", 10, 1, 1), node("e", 90, 2, 7, own=0))
        assert {target for _, target in moves(run(load))} == {"b"}
        asked = replace(AT_ONCE, quirks=TransferQuirks(outdated_too=True))
        assert {target for _, target in moves(run(load, asked))} == {"a"}

    def test_a_node_without_load_gives_up_executors_only_when_asked_for(self) -> None:
        load = pool(node("a", 0, own=0), node("b", 0, 1, 1, own=0))
        assert moves(run(load)) == set()
        assert moves(run(load, replace(AT_ONCE, quirks=TransferQuirks(idle_moves=True)))) == {("B1", "a")}

    def test_the_deviation_is_a_number(self) -> None:
        load = pool(*(node(f"n{i}", 64.1, 1, 1) for i in range(3)))
        theirs = run(load, replace(AT_ONCE, quirks=TransferQuirks(negative_variance=True)))
        assert run(load).std_ratio == pytest.approx(0.0, abs=1e-7)
        assert isnan(theirs.std_ratio) or theirs.std_ratio == pytest.approx(0.0, abs=1e-7)

    def test_what_comes_back_is_checked_unless_asked_not_to(self) -> None:
        cold = node("a", 48, 2.4, 2.4, own=0)
        cold = replace(cold, top=(replace(cold.top[0], movable=False), cold.top[1]))
        load = pool(cold, node("b", 100, 5, 5, own=0))
        asked = replace(AT_ONCE, quirks=TransferQuirks(swap_anything=True))
        assert moves(run(load)) == {("B1", "a"), ("A2", "b")}
        assert moves(run(load, asked)) == {("B1", "a"), ("A1", "b")}


def test_the_figures_behind_each_suggestion() -> None:
    load = pool(node("a", 48, 2.4, 2.4, own=0), node("b", 100, 5, 5, own=0))
    there, back = run(load).suggestions
    assert there == Suggestion("B1", "b", "a", 100, 48, 52, 1, cause=Cause.OVERLOADED)
    assert back == replace(there, executor="A1", source="a", target="b")


def test_just_enough_load_is_overloaded() -> None:
    """Above 85 percent, and above the mean by the target; one of both is not enough."""
    settings = TransferSettings(hits=0, target_std_ratio=0.2)
    many = [node(f"n{index}", 70, 1, 1, 1) for index in range(9)]
    assert run(pool(*many, node("hot", 95, 0.1, 0.1, 5)), settings).suggestions[0].cause == Cause.OVERLOADED
    assert run(pool(*many, node("hot", 90, 0.1, 0.1, 5)), settings).suggestions == ()
    assert (
        run(pool(*[replace(each, score=60) for each in many], node("hot", 85, 0.1, 0.1, 5)), settings).suggestions == ()
    )
