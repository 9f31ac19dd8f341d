"""The real carrying out of moves (`Movers`, with its reading, revalidating and writing), whatever departs from the fair
course.

A play is one course of events, from the order to rest. At every request of the operator, and between its reconciles,
something may happen: the process ends before or after the request, or loses the lease while the request is on its way,
which then comes after the next leader has begun; what it reads is a change older than what is there, in its pods, its
moves or both; and the troubles of the scenario. Every play with one departure is tried, and a sample of
those with two or three. Two leaders never act at the same time here, but for that one request: the lease sees to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.properties.carried.play import ENDED, Choices, Play, Scenario
from tests.properties.carried.server import Stored

JSON = dict[str, Any]
AHEAD = {
    "": {"Proposed", "Approved", "Expired", "Refused"},
    "Proposed": {"Proposed", "Approved", "Expired", "Refused"},
    "Approved": {"Approved", "Leaving", "Refused", "Expired"},
    "Leaving": {"Leaving", "Arriving", "Refused", "Failed"},
    "Arriving": {"Arriving", "Settling", "Succeeded", "Failed"},
    "Settling": {"Settling", "Succeeded", "Failed"},
}
GOING = ("Leaving", "Arriving", "Settling")
UNTOUCHED = ("Proposed", "Approved", "Refused", "Expired")

SCENARIOS = (
    Scenario("one move"),
    Scenario("blocked", troubles=("evictions are blocked",)),
    Scenario("an executor that goes by itself", troubles=("the executor goes by itself",)),
    Scenario("no replacement", troubles=("Spark needs one less",)),
    Scenario("little patience", limits={"leaveTimeout": "5s"}),
    Scenario("no room", troubles=("a replacement finds no room",)),
    Scenario("blocked, then switched off", troubles=("evictions are blocked", "moves are switched off")),
    Scenario("a crash", troubles=("an executor crashes",)),
    Scenario("two moves", moved=(1, 2), executors=3),
    Scenario("one at a time", moved=(1, 2), executors=3, limits={"maxConcurrent": 1}),
)
ALWAYS = ("one move", "little patience")
BY_RUN = tuple(
    pytest.param(each, marks=[] if each.name in ALWAYS else [pytest.mark.soak], id=each.name) for each in SCENARIOS
)

SAMPLE = 25
"""Plays with two or three departures that are tried of each scenario."""


class Rules:
    """What must hold after every change."""

    def __init__(self, scenario: Scenario) -> None:
        self._most = scenario.limits.get("maxConcurrent", 2)

    def __call__(self, before: Stored, after: Stored) -> None:
        for name, move in after.moves.items():
            old = before.moves.get(name, move)
            if old is not move:
                self._check_transition(name, old.get("status") or {}, move["status"])
        going = [move["status"] for move in after.moves.values() if _phase(move) in GOING]
        assert len(going) <= self._most, f"{len(going)} moves are under way"
        placed = Counter((each.get("replacement") or {}).get("uid") for each in going if each["phase"] == "Settling")
        assert all(count == 1 for uid, count in placed.items() if uid), "two moves count on one replacement"
        for name, pod in after.pods.items():
            self._check_pod(before.pods.get(name), pod, after)

    def _check_transition(self, name: str, old: JSON, new: JSON) -> None:
        phase = old.get("phase", "")
        assert phase not in ENDED, f"{name} changed after its end"
        assert new["phase"] in AHEAD[phase], f"{name} went from {phase} to {new['phase']}"

    def _check_pod(self, old: JSON | None, pod: JSON, after: Stored) -> None:
        if old is None or old is pod:
            return
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"] and "deletionTimestamp" not in old["metadata"]:
            orders = [(_phase(move), move["spec"]["executor"]) for move in after.moves.values()]
            assert ("Leaving", {"pod": name, "uid": uid}) in orders, f"{name} was evicted for no open move: {orders}"
        if old["spec"].get("schedulingGates") and not pod["spec"].get("schedulingGates"):
            nominated = pod["status"].get("nominatedNodeName")
            assert not nominated or pod["spec"].get("affinity"), (
                f"{name} was released as it is, nominated to {nominated}"
            )
        if pod["spec"].get("affinity") and not old["spec"].get("affinity"):
            claims = [_claim(move) for move in after.moves.values() if _phase(move) == "Arriving"]
            assert uid in claims, f"{name} was placed for no move"


def _phase(move: JSON) -> str:
    return str((move.get("status") or {}).get("phase", ""))


def _claim(move: JSON) -> str:
    return str((move["status"].get("replacement") or {}).get("uid", ""))


def played(scenario: Scenario, other: dict[int, int]) -> tuple[Play, Choices]:
    choices = Choices(other)
    try:
        play = Play(scenario, choices, checked=Rules(scenario))
        play.run()
        assert_true_end(play)
    except Exception as error:
        raise AssertionError(f"{error!r}, after {' → '.join(choices.made) or 'nothing else'} ({other})") from error
    return play, choices


def assert_true_end(play: Play) -> None:
    evicted = Counter(play.server.evicted)
    assert all(count == 1 for count in evicted.values()), evicted
    for move in play.server.stored.moves.values():
        gone = move["spec"]["executor"]["uid"] in evicted
        assert not (gone and _phase(move) in UNTOUCHED), f"it evicted its executor and is {_phase(move)}"


def departures(choices: Choices, after: int = -1) -> Iterator[tuple[int, int]]:
    for at, options in enumerate(choices.offered):
        if at > after:
            yield from ((at, option) for option in range(1, len(options)))


@pytest.mark.parametrize("scenario", BY_RUN)
def test_whatever_departs_once_from_the_fair_course_every_move_comes_to_its_end(scenario: Scenario) -> None:
    _, fair = played(scenario, {})
    singles = list(departures(fair))
    for at, option in singles:
        played(scenario, {at: option})
    print(f"\n{scenario.name}: {len(fair.offered)} points, {len(singles)} plays with one departure")


@pytest.mark.soak
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_whatever_departs_several_times_every_move_comes_to_its_end(scenario: Scenario) -> None:
    chance = Random(scenario.name)
    for _ in range(SAMPLE):
        other: dict[int, int] = {}
        _, choices = played(scenario, other)
        for _ in range(chance.choice((2, 2, 3))):
            further = list(departures(choices, max(other, default=-1)))
            if not further:
                break
            at, option = chance.choice(further)
            other = {**other, at: option}
            _, choices = played(scenario, other)
