from __future__ import annotations

import pytest

from ballast.errors import InvalidField
from tests.reference.samza.by_locality import by_locality
from tests.reference.samza.by_previous_count import by_previous_count
from tests.reference.samza.dealing import dealt

THREE = {"p1": "A", "p2": "B", "p3": "C"}
SIX = [f"t{number}" for number in range(6)]
PAIRWISE = dict(zip(SIX, "AABBCC", strict=True))


def numbers(groups: dict[str, list[str]]) -> dict[str, list[int]]:
    return {process: [int(executor.lstrip("t")) for executor in executors] for process, executors in groups.items()}


@pytest.mark.parametrize(
    ("processes", "was_on", "groups"),
    [
        (THREE, PAIRWISE, {"p1": [0, 1], "p2": [2, 3], "p3": [4, 5]}),
        ({"p1": "A", "p2": "B"}, PAIRWISE, {"p1": [0, 1, 4], "p2": [2, 3, 5]}),
        (THREE | {"p4": "D"}, PAIRWISE, {"p1": [0, 3], "p2": [2, 5], "p3": [4], "p4": [1]}),
        (
            {"p1": "A", "p2": "A", "p3": "C"},
            dict(zip(SIX, "AAAACC", strict=True)),
            {"p1": [0, 1], "p2": [2, 3], "p3": [4, 5]},
        ),
    ],
)
def test_executors_return_up_to_the_floor_share(
    processes: dict[str, str], was_on: dict[str, str], groups: dict[str, list[int]]
) -> None:
    assert numbers(by_locality(SIX, processes, was_on)) == groups


def test_the_rest_goes_round_from_the_first_process() -> None:
    seven = [*SIX, "t6"]
    assert numbers(by_locality(seven, THREE, {})) == {"p1": [0, 1, 6], "p2": [2, 3], "p3": [4, 5]}


def test_processes_beyond_the_executors_are_left_out() -> None:
    assert by_locality(["t0", "t1"], THREE, {"t0": "C", "t1": "B"}) == {"p1": ["t0"], "p2": ["t1"]}


def test_dealing_goes_by_name_and_in_the_order_of_the_processes() -> None:
    assert dealt(["t2", "t0", "t1", "t4", "t3"], ["4", "2"]) == {"4": ["t0", "t2", "t4"], "2": ["t1", "t3"]}
    assert dealt(["t1", "t0"], ["c", "a", "b"]) == {"a": ["t0"], "b": ["t1"]}


NINE = [str(number) for number in range(9)]
ON_TWO = {name: str(int(name) % 2) for name in NINE}
ON_FOUR = {name: str(int(name) % 4) for name in NINE}


@pytest.mark.parametrize(
    ("count", "previous", "groups"),
    [
        (4, ON_TWO, {"0": [0, 2, 4], "1": [1, 3], "2": [8, 6], "3": [7, 5]}),
        (2, ON_FOUR, {"0": [0, 4, 8, 6, 2], "1": [1, 5, 7, 3]}),
        (3, ON_FOUR, {"0": [0, 4, 8], "1": [1, 5, 7], "2": [2, 6, 3]}),
        (2, ON_TWO | {"1": "0"}, {"0": [0, 1, 2, 4, 6, 8], "1": [3, 5, 7]}),
    ],
)
def test_a_changed_count_takes_from_the_end_of_those_with_too_many(
    count: int, previous: dict[str, str], groups: dict[str, list[int]]
) -> None:
    assert numbers(by_previous_count(NINE, count, previous)) == groups


@pytest.mark.parametrize(
    "previous",
    [
        {},
        dict.fromkeys(NINE, "0"),
        dict.fromkeys(NINE[:-1], "0") | {NINE[-1]: "2"},
        {name: str(int(name) % 2) for name in NINE[1:]},
        {name + "x": process for name, process in ON_TWO.items()},
    ],
)
def test_without_anything_usable_before_everyone_is_dealt_afresh(previous: dict[str, str]) -> None:
    assert by_previous_count(NINE, 2, previous) == dealt(NINE, ["0", "1"])


def test_executors_with_other_names_can_be_refused() -> None:
    renamed = {name + "x": process for name, process in ON_TWO.items()}
    with pytest.raises(InvalidField, match="previous"):
        by_previous_count(NINE, 3, renamed, refuse_renamed=True)


@pytest.mark.parametrize("count", [0, 10])
def test_a_count_that_leaves_processes_or_executors_without_the_other_is_an_error(count: int) -> None:
    with pytest.raises(InvalidField, match=f"count: {count}: choose one from 1 to 9"):
        by_previous_count(NINE, count, {})


def test_nobody_to_group_and_nothing_to_group_into_are_errors() -> None:
    with pytest.raises(InvalidField, match="executors"):
        dealt([], ["p"])
    with pytest.raises(InvalidField, match="processes"):
        by_locality(["t"], {}, {})
