"""Executors one after the other, each where a strategy says."""

from __future__ import annotations

from ballast.model import Component, PlacementPolicy, Separation
from ballast.model.arrays import IntArray
from ballast.placement.strategy import one_by_one
from tests.builders import a_node, a_topology, an_executor, gated
from tests.unit.placement.situations import the_view

FREELY = PlacementPolicy(max_executors_per_node_ratio=1.0)
NODES = tuple(a_node(f"n{number}", cores=2.0) for number in range(3))


def last(able: IntArray, _row: int) -> int:
    return int(able[-1])


def test_the_strategy_chooses_among_those_that_can_still_take_one() -> None:
    view = the_view(*(gated(f"e-{n}") for n in range(7)), nodes=NODES, policy=FREELY)
    offered: list[list[int]] = []

    def choose(able: IntArray, row: int) -> int:
        offered.append(able.tolist())
        return last(able, row)

    assert one_by_one(view, [0] * 7, choose) == [[2, 2, 1, 1, 0, 0]]
    assert offered == [[0, 1, 2], [0, 1, 2], [0, 1], [0, 1], [0], [0]]


def test_favored_nodes_are_offered_alone_while_they_have_room() -> None:
    policy = PlacementPolicy(max_executors_per_node_ratio=1.0, favored_nodes=("n1", "gone"))
    view = the_view(*(gated(f"e-{n}") for n in range(3)), nodes=NODES, policy=policy)
    assert one_by_one(view, [0] * 3, last) == [[1, 1, 2]]


def test_the_order_of_turns_is_kept_where_nobody_must_be_apart() -> None:
    waiting = [gated(f"{name}-{n}", component=name) for name in ("a", "b") for n in range(2)]
    view = the_view(*waiting, nodes=NODES, policy=FREELY, topologies=(a_topology(Component("a"), Component("b")),))
    rows: list[int] = []

    def choose(able: IntArray, row: int) -> int:
        rows.append(row)
        return last(able, row)

    one_by_one(view, [1, 1, 0, 0], choose)
    assert rows == [1, 1, 0, 0]


def test_who_must_be_apart_takes_turns_and_who_has_no_place_yet_goes_first() -> None:
    running = an_executor("a-9", component="a", node="n0")
    waiting = [gated(f"{name}-{n}", component=name) for name in ("a", "b") for n in range(2)]
    topology = a_topology(Component("a"), Component("b"), separate=(Separation(("a", "b"), "Node"),))
    view = the_view(running, *waiting, nodes=NODES[:2], policy=FREELY, topologies=(topology,))
    assert one_by_one(view, [0, 0, 1, 1], last) == [[0, 0], [1, 1]]
