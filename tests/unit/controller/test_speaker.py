"""Of several policies that could, one speaks of a topology."""

from __future__ import annotations

import pytest

from ballast.controller.ends import Finding
from ballast.controller.speaker import Voice, speaker
from ballast.controller.status import Outlook
from ballast.model import Memory
from ballast.planner.plan import plan
from tests.builders import NOW, a_policy, a_snapshot

STALLS = Finding("team/clicks", "SelectorMatchesDriver", "mend it", stalls=True)


def voice(policy: str, at_home: int, stalls: Finding | None = None) -> Voice:
    snapshot, settings = a_snapshot(), a_policy(name=policy)
    decided, memory = plan(snapshot, settings, Memory(), NOW)
    return Voice(Outlook(snapshot, settings, decided, memory, NOW), at_home, stalls)


@pytest.mark.parametrize(
    ("at_home", "last", "speaks"),
    [
        pytest.param({}, "old", None, id="nobody is there"),
        pytest.param({"old": 1, "new": 9}, "old", "old", id="who spoke last and has some at home"),
        pytest.param({"old": 9, "new": 1}, "new", "new", id="who spoke last, though it is younger"),
        pytest.param({"old": 1, "new": 2}, None, "new", id="who has most at home"),
        pytest.param({"old": 2, "new": 2}, None, "old", id="of equals the oldest"),
        pytest.param({"old": 0, "new": 1}, "old", "new", id="who spoke last has none at home any more"),
        pytest.param({"old": 0, "new": 0}, "new", "new", id="who spoke last, where nobody has any"),
        pytest.param({"old": 0, "new": 0}, None, "old", id="the oldest, where nobody has any or has spoken"),
        pytest.param({"old": 0, "new": 0}, "other", None, id="who spoke last has no voice now"),
        pytest.param({"old": 0, "new": 1}, "other", "new", id="who has some while the last one has no voice"),
    ],
)
def test_one_policy_speaks(at_home: dict[str, int], last: str | None, speaks: str | None) -> None:
    found = speaker([voice(policy, count) for policy, count in at_home.items()], last=last)
    assert (found.policy if found else None) == speaks


def test_a_topology_that_stalls_is_told_of_whoever_is_at_home() -> None:
    found = speaker([voice("old", 3), voice("new", 0, STALLS)], last="old")
    assert found is not None
    assert found.stalls is STALLS
