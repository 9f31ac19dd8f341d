from __future__ import annotations

import numpy as np
import pytest

from ballast.placement.node_order import (
    Availability,
    Layout,
    NodeRule,
    level_order,
    level_shares,
    node_order,
    with_favorites,
)

CPU_AND_MEMORY = [(400.0, 8000.0), (200.0, 4000.0), (0.0, 8000.0), (10.0, 20000.0), (610.0, 1000.0)]
"""Free per node, of five racks of ten nodes each: figures of Storm's own tests."""


def five_racks() -> tuple[Layout, Availability]:
    paths = [(f"rack{rack}", f"node{rack}-{number}") for rack in range(5) for number in range(10)]
    free = np.repeat(np.array(CPU_AND_MEMORY), 10, axis=0)
    return Layout(paths), room(free)


def room(free: object, placed: object = None, rare: object = None) -> Availability:
    amounts = np.array(free, dtype=float)
    return Availability(
        free=amounts,
        placed=np.zeros(len(amounts), dtype=np.int64) if placed is None else np.array(placed),
        rare=np.zeros(amounts.shape[1], dtype=bool) if rare is None else np.array(rare),
    )


@pytest.mark.parametrize(
    ("rule", "racks"),
    [(NodeRule.COMMON, [4, 0, 3, 1, 2]), (NodeRule.GENERIC, [4, 0, 3, 1, 2]), (NodeRule.DEFAULT, [0, 1, 4, 3, 2])],
)
def test_racks_are_ordered_by_their_part_of_what_is_free(rule: NodeRule, racks: list[int]) -> None:
    layout, free = five_racks()
    assert level_order(layout, free, 0, requested=None, rule=rule) == racks


def test_an_item_is_judged_by_its_mean_and_its_scarcest_share() -> None:
    layout, free = five_racks()
    shares = level_shares(layout, free, 0, requested=None, rule=NodeRule.COMMON)
    assert shares.mean_percent == pytest.approx([26.1495, 13.0748, 9.7561, 24.8001, 26.2195], abs=5e-5)
    assert shares.scarcest_percent == pytest.approx([19.5122, 9.7561, 0.0, 0.8197, 2.4390], abs=5e-5)


def test_nodes_come_rack_by_rack() -> None:
    layout, free = five_racks()
    order = node_order(layout, free, requested=None)
    assert [node // 10 for node in order] == sorted((node // 10 for node in order), key=[4, 0, 3, 1, 2].index)


def test_where_the_topology_runs_already_goes_before_what_is_free() -> None:
    layout = Layout([("a", "a1"), ("a", "a2"), ("b", "b1")])
    assert node_order(layout, room([[9.0], [9.0], [1.0]], placed=[0, 0, 1]), requested=None) == [2, 0, 1]
    assert node_order(layout, room([[9.0], [1.0], [1.0]], placed=[0, 1, 0]), requested=None) == [1, 0, 2]


def with_gpus() -> tuple[Layout, Availability]:
    layout = Layout([(f"rack{node // 4}", f"node{node}") for node in range(8)])
    return layout, room([[400.0, 8000.0, 0.0]] * 4 + [[400.0, 8000.0, 1.0]] * 4, rare=[False, False, True])


@pytest.mark.parametrize(
    ("wants_gpu", "racks", "mean", "scarcest"),
    [(False, [0, 1], [100 / 3, 0.0], [0.0, -100.0]), (True, [1, 0], [100 / 3, 200 / 3], [0.0, 50.0])],
)
def test_rare_resources_draw_who_needs_them_and_repel_the_others(
    *, wants_gpu: bool, racks: list[int], mean: list[float], scarcest: list[float]
) -> None:
    layout, free = with_gpus()
    requested = np.array([True, True, wants_gpu])
    shares = level_shares(layout, free, 0, requested=requested, rule=NodeRule.COMMON)
    assert shares.mean_percent == pytest.approx(mean)
    assert shares.scarcest_percent == pytest.approx(scarcest)
    assert level_order(layout, free, 0, requested=requested, rule=NodeRule.COMMON) == racks


def test_the_default_rule_takes_rare_resources_like_all_others() -> None:
    layout, free = with_gpus()
    order = level_order(layout, free, 0, requested=np.array([True, True, False]), rule=NodeRule.DEFAULT)
    assert order == [1, 0]


def test_a_resource_that_is_nowhere_free_is_passed_over() -> None:
    layout = Layout([("a",), ("b",)])
    shares = level_shares(layout, room([[0.0, 1.0], [0.0, 3.0]]), 0, requested=None, rule=NodeRule.COMMON)
    assert shares.mean_percent.tolist() == [25.0, 75.0]


def test_where_nothing_is_free_all_are_alike_and_names_decide() -> None:
    layout = Layout([("b",), ("a",)])
    shares = level_shares(layout, room([[0.0], [0.0]]), 0, requested=None, rule=NodeRule.COMMON)
    assert shares.mean_percent.tolist() == shares.scarcest_percent.tolist() == [100.0, 100.0]
    assert node_order(layout, room([[0.0], [0.0]]), requested=None) == [1, 0]


def test_favored_nodes_go_first_unfavored_ones_last() -> None:
    assert with_favorites(range(5), favored=[3, 1], unfavored=[0]) == [3, 1, 2, 4, 0]


def test_a_node_both_favored_and_unfavored_is_favored_and_one_that_goes_last_is_neither() -> None:
    assert with_favorites(range(4), favored=[2, 3], unfavored=[2, 1], last=[3]) == [2, 0, 1, 3]


def test_racks_of_two_zones_may_have_one_name() -> None:
    layout = Layout([("z1", "r", "a"), ("z2", "r", "b"), ("z1", "r", "c")])
    assert layout.names[1] == ["r", "r"]
    assert node_order(layout, room([[1.0], [9.0], [2.0]]), requested=None) == [1, 2, 0]


def test_no_node_at_all_gives_an_empty_order() -> None:
    assert node_order(Layout([]), room(np.zeros((0, 1))), requested=None) == []
