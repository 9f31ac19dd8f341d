"""Waiting for something, and watching that nothing happens."""

from __future__ import annotations

from itertools import chain, count, repeat

import pytest

from tests.testbed.errors import TestbedError
from tests.testbed.waiting import stays, wait_until


def test_it_returns_what_the_condition_gives_as_soon_as_it_gives_something() -> None:
    answers = iter(["", "", "here", "later"])
    assert wait_until(lambda: next(answers), what="an answer", poll_seconds=0.0) == "here"


def test_in_vain_it_says_for_what_and_how_things_stand() -> None:
    with pytest.raises(TestbedError, match="rain: not within 0 s\nthe sky is blue"):
        wait_until(lambda: False, what="rain", timeout_seconds=0.0, poll_seconds=0.0, explain=lambda: "the sky is blue")


def test_what_stays_is_watched_to_the_end() -> None:
    looks = count(1)
    stays(lambda: next(looks), what="calm", seconds=0.02, poll_seconds=0.001)
    assert next(looks) > 2


def test_what_does_not_stay_is_told_at_once() -> None:
    answers = chain([True, True], repeat(False))
    with pytest.raises(TestbedError, match=r"calm: not any more after \d+\.\d s of 60 s"):
        stays(lambda: next(answers), what="calm", seconds=60, poll_seconds=0.0)
