"""What holds of stickiness whatever was where, and how it compares with Samza's grouper."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from ballast.placement.samza.by_locality import by_locality
from ballast.placement.stickiness import Apart, Settled, even_shares, settled

NODES = "ABCDE"
nodes = st.sampled_from(NODES)
held_counts = st.dictionaries(nodes, st.integers(0, 6), min_size=1)
components = st.dictionaries(st.integers(0, 20).map(str), st.sampled_from(["live", "standby", "other"]), max_size=12)
homes = st.dictionaries(st.integers(0, 20).map(str), nodes, max_size=12)
limits_of_nodes = st.dictionaries(nodes, st.integers(0, 6))
racks = st.dictionaries(nodes, st.sampled_from(["r1", "r2", "r3"]))


@given(st.integers(0, 30), held_counts)
def test_shares_are_even_and_add_up(count: int, held: dict[str, int]) -> None:
    shares = even_shares(count, held)
    assert shares.keys() == held.keys()
    assert sum(shares.values()) == count
    assert max(shares.values()) - min(shares.values()) <= 1


@given(st.integers(0, 30), held_counts)
def test_no_even_shares_move_fewer(count: int, held: dict[str, int]) -> None:
    def staying(shares: dict[str, int]) -> int:
        return sum(min(held[node], share) for node, share in shares.items())

    floor, extra = divmod(count, len(held))
    every_way = ({node: floor + (node in more) for node in held} for more in combinations(held, extra))
    assert staying(even_shares(count, held)) == max(staying(shares) for shares in every_way)


@given(components, homes, limits_of_nodes, racks)
def test_limits_and_separation_are_kept_and_nobody_is_lost(
    components: dict[str, str], was_on: dict[str, str], limits: dict[str, int], places: dict[str, str]
) -> None:
    after = settled(components, was_on, limits, apart=[Apart(frozenset({"live", "standby"}), places)])
    assert sorted([*after.nodes, *after.missing]) == sorted(components)
    assert all(count <= limits[node] for node, count in Counter(after.nodes.values()).items())
    assert not claimed(after, components, places, "live") & claimed(after, components, places, "standby")


def claimed(after: Settled, components: dict[str, str], places: dict[str, str], component: str) -> set[str]:
    return {places[node] for name, node in after.nodes.items() if components[name] == component and node in places}


@given(components, homes, limits_of_nodes)
def test_as_many_return_as_there_is_room_for(
    components: dict[str, str], was_on: dict[str, str], limits: dict[str, int]
) -> None:
    after = settled(components, was_on, limits)
    had = Counter(node for name, node in was_on.items() if name in components)
    returned = sum(after.nodes.get(name) == node for name, node in was_on.items())
    assert returned == sum(min(count, limits.get(node, 0)) for node, count in had.items())


@given(components, homes, limits_of_nodes)
def test_nobody_is_missing_while_there_is_room(
    components: dict[str, str], was_on: dict[str, str], limits: dict[str, int]
) -> None:
    assert len(settled(components, was_on, limits).missing) == max(0, len(components) - sum(limits.values()))


@given(components, homes, limits_of_nodes, racks)
def test_settling_again_moves_nobody(
    components: dict[str, str], was_on: dict[str, str], limits: dict[str, int], places: dict[str, str]
) -> None:
    apart = [Apart(frozenset({"live", "standby"}), places)]
    once = settled(components, was_on, limits, apart=apart)
    placed = {name: components[name] for name in once.nodes}
    assert settled(placed, once.nodes, limits, apart=apart).nodes == once.nodes


def moves_of_samza(executors: list[str], was_on: dict[str, str], used: list[str]) -> int:
    groups = by_locality(executors, {f"p{node}": node for node in used}, was_on)
    now = {name: process[1:] for process, names in groups.items() for name in names}
    return sum(now[name] != node for name, node in was_on.items())


@given(st.integers(1, 14), st.data())
def test_ours_never_moves_more_than_samza(count: int, data: st.DataObject) -> None:
    executors = [f"x{number:02}" for number in range(count)]
    used = sorted(data.draw(st.sets(nodes, min_size=1, max_size=min(5, count))))
    was_on = data.draw(st.dictionaries(st.sampled_from(executors), nodes))
    held = {node: sum(home == node for home in was_on.values()) for node in used}
    ours = settled(dict.fromkeys(executors, "x"), was_on, even_shares(count, held))
    assert len(ours.moved(was_on)) <= moves_of_samza(executors, was_on, used)


def test_where_samza_moves_three_of_six_ours_moves_one() -> None:
    was_on = {f"x{number}": "AABBCC"[number] for number in range(6)}
    ours = settled(dict.fromkeys(was_on, "x"), was_on, even_shares(6, {"A": 2, "B": 2, "C": 2, "D": 0}))
    assert (moves_of_samza(list(was_on), was_on, list("ABCD")), len(ours.moved(was_on))) == (3, 1)
