"""How much the load of others comes and goes, and that gaps have to be wider by as much."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.shedding.unrest import Unrest, experienced

_PASS_SECONDS = 60.0
_HOUR_PASSES = 60


def after(passes: int, foreign: dict[str, float], before: Unrest | None = None) -> Unrest:
    unrest = Unrest() if before is None else before
    for _ in range(passes):
        unrest = experienced(unrest, foreign, silent=(), elapsed_seconds=_PASS_SECONDS)
    return unrest


def test_load_that_stays_is_no_unrest() -> None:
    assert after(10 * _HOUR_PASSES, {"a": 40.0, "b": 0.0}).points == 0.0


def test_load_that_comes_is_unrest_until_it_has_lasted() -> None:
    quiet = after(_HOUR_PASSES, {"a": 0.0, "b": 0.0, "c": 0.0})
    soon = after(_HOUR_PASSES // 2, {"a": 30.0, "b": 30.0, "c": 0.0}, quiet)
    late = after(12 * _HOUR_PASSES, {"a": 30.0, "b": 30.0, "c": 0.0}, soon)
    assert soon.points > 8.0
    assert late.points < 1.1


def test_what_happens_on_one_node_alone_is_no_unrest() -> None:
    quiet = after(_HOUR_PASSES, {"a": 0.0, "b": 0.0, "c": 0.0})
    assert after(_HOUR_PASSES, {"a": 30.0, "b": 0.0, "c": 0.0}, quiet).points == 0.0


def test_load_that_comes_and_goes_every_hour_keeps_a_pool_restless() -> None:
    unrest, seen = Unrest(), []
    for hour in range(24):
        here, there = 30.0 * (hour % 2), 30.0 * ((hour + 1) % 2)
        unrest = after(_HOUR_PASSES, {"a": here, "b": there, "c": here}, unrest)
        seen.append(unrest.points)
    assert min(seen[12:]) > 10.0


def test_a_node_that_joins_is_taken_to_be_as_usual() -> None:
    quiet = after(_HOUR_PASSES, {"a": 0.0, "b": 0.0})
    assert after(1, {"a": 0.0, "b": 0.0, "new": 50.0, "other": 50.0}, quiet).points == 0.0


def test_a_silent_node_keeps_its_average_and_teaches_nothing() -> None:
    known = after(_HOUR_PASSES, {"a": 0.0, "b": 30.0, "c": 30.0})
    silent = experienced(known, {"a": 0.0, "c": 30.0}, silent={"b"}, elapsed_seconds=_PASS_SECONDS)
    assert silent.points == 0.0
    assert dict(silent.averages)["b"] == 30.0
    assert after(1, {"a": 0.0, "b": 0.0, "c": 0.0}, silent).points > 0.0


def test_a_node_that_is_gone_is_forgotten() -> None:
    known = after(5, {"a": 0.0, "gone": 30.0})
    assert dict(after(1, {"a": 0.0}, known).averages) == {"a": 0.0}


@pytest.mark.parametrize("elapsed_seconds", [0.0, -3600.0])
def test_a_clock_that_stepped_backwards_teaches_nothing(elapsed_seconds: float) -> None:
    known = after(5, {"a": 0.0, "b": 10.0})
    assert experienced(known, {"a": 50.0, "b": 0.0}, silent=(), elapsed_seconds=elapsed_seconds) == known


@given(
    st.lists(
        st.dictionaries(st.sampled_from([f"n-{i}" for i in range(100)]), st.floats(0.0, 100.0), max_size=100),
        min_size=1,
        max_size=6,
    ),
    st.floats(1.0, 7200.0),
)
def test_it_stays_small_and_never_exceeds_what_was_seen(passes: list[dict[str, float]], elapsed_seconds: float) -> None:
    unrest = Unrest()
    for before, foreign in pairwise([{}, *passes]):
        unrest = experienced(unrest, foreign, silent=before.keys() - foreign.keys(), elapsed_seconds=elapsed_seconds)
        assert len(unrest.averages) <= 64
        assert 0.0 <= unrest.points <= 100.0
