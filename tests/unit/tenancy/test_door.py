from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.tenancy.door import KEPT_BYTES, SHAPES, ByValue, Guest, Kept, Limit, Takes, Tally, Usage, turned_away

FEW = Limit("things", 3, 12)
ONE = Takes(((FEW, 1),))


def guests(namespace: str, count: int, *, first: float = 0.0, takes: Takes = ONE) -> list[Guest[str]]:
    return [Guest(f"{namespace}-{number}", namespace, (first + number, str(number)), takes) for number in range(count)]


@given(st.permutations(guests("a", 5) + guests("b", 2)))
def test_the_oldest_of_a_namespace_come_in_whatever_the_order_in_which_they_were_read(read: list[Guest[str]]) -> None:
    assert turned_away(read) == [("a-3", FEW), ("a-4", FEW)]


def test_an_object_that_takes_much_of_another_limit_is_turned_away_and_smaller_ones_come_in() -> None:
    parts = Limit("parts", 10, 100)
    large = Takes(((FEW, 1), (parts, 11)))
    assert turned_away([*guests("a", 1, takes=large), *guests("a", 3, first=1.0)]) == [("a-0", parts)]


def test_objects_of_one_shape_take_one_shape_together() -> None:
    same = guests("a", 200, takes=Takes(shape="same"))
    others = [Guest(f"other-{n}", "a", (1000.0 + n, str(n)), Takes(shape=("other", n))) for n in range(SHAPES.each)]
    assert turned_away([*same, *others]) == [(f"other-{SHAPES.each - 1}", SHAPES)]
    assert not turned_away([*same, *others[:-1], *guests("b", 1, takes=Takes(shape="one more"))])


def test_a_key_by_value_is_hashed_once_and_equal_to_those_of_equal_values() -> None:
    hashed: list[None] = []

    @dataclass(frozen=True)
    class Long:
        text: str

        def __hash__(self) -> int:
            hashed.append(None)
            return hash(self.text)

    key = ByValue(Long("a"))
    assert {key: 1}[key] == {key: 1}[ByValue(Long("a"))] == 1
    assert len(hashed) == 2
    assert key not in {ByValue(Long("b")): 1, Long("a"): 1}


def test_beyond_what_all_may_have_each_namespace_still_gets_half_of_its_equal_part() -> None:
    usage = Usage(FEW)
    for namespace in range(4):
        usage.add(str(namespace), 3)
    assert usage.fits("another", 1)
    assert not usage.fits("another", 2)
    assert not usage.fits("0", 1)


def test_what_came_and_went_leaves_nothing_behind() -> None:
    tally, kept = Tally(), Kept()
    for namespace, number in product("ab", range(5)):
        tally.add(namespace, Takes(ONE.amounts, number))
        kept.add(namespace, number, 10)
    assert tally.crowded() == {"a", "b"}
    for namespace, number in product("ab", range(5)):
        tally.remove(namespace, Takes(ONE.amounts, number))
        kept.remove(namespace, number)
        kept.remove(namespace, number)
    assert not tally.crowded()
    assert not tally._shapes
    assert not any(usage._used or usage._total for usage in (*tally._usages.values(), kept._usage))
    assert not (kept._sizes)
    assert not (kept._holders)


def test_all_namespaces_are_looked_at_where_they_take_too_much_together() -> None:
    tally = Tally()
    for number in range(FEW.all + 1):
        tally.add(f"n{number}", ONE)
    assert len(tally.crowded()) == FEW.all + 1


@pytest.mark.parametrize("size", [KEPT_BYTES.each, KEPT_BYTES.each // 4])
def test_what_is_shared_counts_once_and_what_is_replaced_counts_no_more(size: int) -> None:
    kept, count = Kept(), KEPT_BYTES.each // size
    for number in range(count):
        kept.add("a", number, size)
        kept.add("a", number, size)
    assert kept.fits("a", 0, size)
    assert not kept.fits("a", "another", 1)
    assert not kept.replace("b", "mine", KEPT_BYTES.each + 1)
    assert kept.replace("b", "mine", KEPT_BYTES.each)
    assert kept.replace("b", "mine", KEPT_BYTES.each - 1)


def test_a_limit_says_how_much_it_is() -> None:
    assert str(FEW) == "3 things"
    assert str(KEPT_BYTES) == "2 MiB of what is kept of their specs"
