"""Where the nodes of a pool are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ballast.model import DEFAULT_LEVELS, Anchor, Level, Levels, Location
from ballast.placement.node_locations import NodeLocations, node_locations
from tests.builders import a_node

HOSTS_ALONE = Levels((Level("kubernetes.io/hostname", 2.0),))
FOUR_LEVELS = Levels((Level("zone", 20.0), Level("row", 9.0), Level("rack", 4.0), Level("host", 1.0)))

NODES = (
    a_node("n4", zone="b", rack="r1"),
    a_node("n1", zone="a", rack="r1"),
    a_node("n2", zone="a", rack="r2"),
    a_node("n3", zone="a", rack=None),
    a_node("n5", zone=None, rack=None),
    a_node("n6", location=("b", "r1")),
)


def places(found: NodeLocations) -> list[list[str]]:
    """The nodes of each place, level by level, in the order of the places."""
    return [
        [
            " ".join(node.name for node, code in zip(found.nodes, codes, strict=True) if code == place)
            for place in range(size)
        ]
        for codes, size in zip(found.codes.tolist(), found.sizes, strict=True)
    ]


def test_a_place_contains_those_nearer_than_it_and_the_unnamed_are_one_place_of_their_own() -> None:
    found = node_locations(NODES, DEFAULT_LEVELS)
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert found.index == {"n1": 0, "n2": 1, "n3": 2, "n4": 3, "n5": 4, "n6": 5}
    assert places(found) == [
        ["n5", "n1 n2 n3", "n4 n6"],
        ["n5", "n3", "n1", "n2", "n4 n6"],
        ["n5", "n3", "n1", "n2", "n4", "n6"],
    ]
    assert found.last == 2


def test_the_steps_add_up_to_the_distances() -> None:
    assert node_locations(NODES, DEFAULT_LEVELS).steps.tolist() == [7.0, 2.0, 1.0]
    assert node_locations(NODES, HOSTS_ALONE).steps.tolist() == [2.0]


def test_a_policy_without_levels_tells_nodes_apart_that_cost_nothing_to_leave() -> None:
    found = node_locations([a_node("n2", location=()), a_node("n1", location=())], Levels(()))
    assert (found.codes.tolist(), found.sizes, found.steps.tolist(), found.last) == ([[0, 1]], (2,), [0.0], 0)


def test_a_location_longer_than_the_levels_is_cut() -> None:
    found = node_locations(
        [a_node("n1", location=("a", "r1", "n1")), a_node("n2", location=("a", "r2", "n2"))], HOSTS_ALONE
    )
    assert places(found) == [["n1 n2"]]


def test_an_empty_pool_has_no_places() -> None:
    found = node_locations([], DEFAULT_LEVELS)
    assert (found.nodes, found.codes.shape, found.sizes) == ((), (3, 0), (0, 0, 0))


ENDS: list[Location] = [
    ("a", "r1", "n1"),
    ("a", "r2", None),
    ("a", None, None),
    ("b", None, "n4"),
    ("c", "r1", "n1"),
    (None, "r1", None),
    (None, None, None),
    ("b",),
    (),
]


@pytest.mark.parametrize("end", ENDS, ids=str)
@pytest.mark.parametrize("levels", [DEFAULT_LEVELS, HOSTS_ALONE, FOUR_LEVELS], ids=["three", "one", "four"])
def test_the_distance_to_a_fixed_end_is_that_of_the_levels(levels: Levels, end: Location) -> None:
    found = node_locations(NODES, levels)
    expected = [levels.distance(node.location, end) for node in found.nodes]
    assert found.anchor_distance(Anchor(end, 1.0)).tolist() == expected


def test_an_end_on_a_node_of_the_pool_is_where_that_node_is() -> None:
    found = node_locations(NODES, DEFAULT_LEVELS)
    there = found.anchor_distance(Anchor((None, None, None), 1.0, node="n4"))
    assert there.tolist() == [10.0, 10.0, 10.0, 0.0, 1.0, 0.0]
    elsewhere = found.anchor_distance(Anchor(("a", None, None), 1.0, node="gone"))
    assert elsewhere.tolist() == [0.0, 0.0, 0.0, 10.0, 0.0, 10.0]


_LABELS = [(None, "a", "b", "x"), (None, "r1", "r2", "x"), (None, "n1", "n2", "x")]
_ENDS = st.lists(
    st.builds(
        Anchor,
        st.one_of(st.tuples(*map(st.sampled_from, _LABELS)), st.just(("a",)), st.just(())),
        st.just(1.0),
        st.sampled_from([None, "n3", "n4", "gone"]),
    ),
    max_size=6,
)


@given(ends=_ENDS, levels=st.sampled_from([DEFAULT_LEVELS, HOSTS_ALONE, Levels(())]), data=st.data())
def test_distances_to_many_ends_are_the_sum_of_those_to_each(
    ends: list[Anchor], levels: Levels, data: st.DataObject
) -> None:
    depth = len(levels.ordered)
    found = node_locations([replace(node, location=node.location[:depth]) for node in NODES], levels)
    ends = [replace(end, location=end.location[:depth]) for end in ends]
    weights = data.draw(arrays(np.float64, (2, len(ends)), elements=st.floats(0.0, 1e6)))
    expected = np.zeros((2, len(NODES)))
    for weight, end in zip(weights.T, ends, strict=True):
        expected += np.outer(weight, found.anchor_distance(end))
    assert found.distances_to(ends, weights) == pytest.approx(expected, abs=1e-6)


def test_nodes_that_are_alike_are_equally_far_to_the_last_bit() -> None:
    """Otherwise rounding, and not what makes them differ, would decide between them."""
    nodes = [a_node(f"n{index}", zone="a", rack=f"r{index % 3}") for index in range(9)]
    found = node_locations([*nodes, a_node("far", zone="b")], DEFAULT_LEVELS)
    ends = [Anchor(("b", "r1", None), 0.1), *(Anchor(("b", None, f"e{index}"), 0.1 * index) for index in range(1, 7))]
    weights = np.array([[end.share / 3 for end in ends]])
    far, *others = found.distances_to(ends, weights)[0].tolist()
    assert len(set(others)) == 1
    assert far < others[0]
