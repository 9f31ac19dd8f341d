from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from ballast.grouping.place import Place
from ballast.grouping.shares import Flow
from ballast.spark.routing.chooser import UNKNOWN, Chooser, Reading, RoutingError, Target, sender
from ballast.spark.routing.executors import Counted, Senders

HERE = Place(node="n1", process=1, zone="a")
NEAR = Place(node="n2", process="kafka", zone="a")
FAR = Place(node="n3", process="kafka", zone="b")
IDLE, BUSY = 0.0, 1.0


@dataclass(eq=False)
class Scripted:
    """Answers with the next of its lists of targets; the last one stays."""

    answers: Sequence[Sequence[Target] | Exception]
    reads: int = 0
    flow: Flow | None = None

    def __str__(self) -> str:
        return "topic out"

    def read(self, at_seconds: float) -> Reading:
        answer = self.answers[min(self.reads, len(self.answers) - 1)]
        self.reads += 1
        if isinstance(answer, Exception):
            raise answer
        return Reading(answer, flow=self.flow)


@dataclass
class Later(Executor):
    """Runs what was submitted when the test says so."""

    waiting: list[Any] = field(default_factory=list)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.waiting.append(fn)
        return Future()

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop()()


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Routed:
    answers: list[Sequence[Target] | Exception]
    clock: Clock = field(default_factory=Clock)
    flow: Flow | None = None
    later: Later = field(default_factory=Later)

    def __post_init__(self) -> None:
        self.source = Scripted(self.answers, flow=self.flow)
        random = np.random.default_rng(1)
        self.chooser = Chooser(self.source, HERE, background=self.later, clock=self.clock, random=random)

    def shares(self, records: int = 1000, senders: Senders = UNKNOWN) -> Counter[int]:
        return Counter(self.chooser.choose(records, senders).tolist())

    def a_second_later(self) -> None:
        """The choice that asks for a refresh, and the refresh."""
        self.clock.now += 1.0
        self.chooser.choose(1)
        self.later.run()


def targets(near: float | None, far: float | None) -> list[Target]:
    return [Target(4, NEAR, near), Target(7, FAR, far)]


def test_records_stay_in_the_sender_s_zone_while_its_targets_keep_up() -> None:
    assert Routed([targets(IDLE, IDLE)]).shares() == {4: 1000}


def test_they_go_farther_when_the_near_ones_are_loaded_and_come_back_when_these_idle() -> None:
    routed = Routed([targets(IDLE, IDLE), targets(BUSY, IDLE), targets(BUSY, IDLE), targets(IDLE, IDLE)])
    routed.a_second_later()
    assert set(routed.shares()) == {4, 7}
    for _ in range(60):
        routed.a_second_later()
    assert routed.shares() == {4: 1000}


def test_without_loads_they_stay_near() -> None:
    assert Routed([targets(None, None)]).shares() == {4: 1000}


def test_a_lost_target_gets_nothing_and_the_others_keep_their_weights() -> None:
    three = [Target(1, NEAR, BUSY), Target(2, NEAR, IDLE), Target(3, NEAR, IDLE)]
    routed = Routed([three, three, three, [target for target in three if target.id != 2]])
    for _ in range(2):
        routed.a_second_later()
    before = routed.shares(1500)
    assert before[1] < before[3]
    routed.a_second_later()
    after = routed.shares(1500)
    assert set(after) == {1, 3}
    assert after[1] < after[3] * 0.8


def test_when_all_of_a_zone_are_lost_the_others_take_over() -> None:
    routed = Routed([targets(IDLE, IDLE), [Target(7, FAR, IDLE)]])
    routed.a_second_later()
    assert routed.shares() == {7: 1000}


def test_no_target_at_all_is_an_error_that_names_the_topic_until_one_is_back() -> None:
    with pytest.raises(RoutingError, match="topic out: there is no target"):
        Routed([[]])
    routed = Routed([targets(IDLE, IDLE), [], targets(IDLE, IDLE)])
    routed.a_second_later()
    with pytest.raises(RoutingError, match="topic out: there is no target"):
        routed.chooser.choose(1)
    routed.clock.now += 1.0
    with pytest.raises(RoutingError):
        routed.chooser.choose(1)
    routed.later.run()
    assert routed.shares() == {4: 1000}


def test_targets_are_read_at_most_once_a_second_and_never_by_the_thread_that_chooses() -> None:
    routed = Routed([targets(IDLE, IDLE)])
    for _ in range(12):
        routed.clock.now += 0.25
        routed.chooser.choose(10)
        routed.later.run()
    assert routed.source.reads == 1 + 3
    slow = Routed([targets(IDLE, IDLE)])
    slow.clock.now = 1.0
    slow.chooser.choose(1)
    slow.clock.now = 5.0
    slow.chooser.choose(1)
    assert len(slow.later.waiting) == 1


def test_what_is_known_counts_while_the_source_does_not_answer() -> None:
    routed = Routed([targets(IDLE, IDLE), OSError("no broker"), [Target(7, FAR, IDLE)]])
    routed.a_second_later()
    assert routed.shares() == {4: 1000}
    routed.a_second_later()
    assert routed.shares() == {7: 1000}


@dataclass(eq=False)
class Seen:
    """Executors of each zone, as they are at the time."""

    by_zone: dict[str, float]
    reads: int = 0
    at_once: ClassVar[bool] = False

    def read(self) -> dict[str, float]:
        self.reads += 1
        return self.by_zone


def test_where_messages_wait_near_targets_get_what_senders_of_the_zone_may_send_there() -> None:
    routed = Routed([targets(None, None)], flow=Flow())
    assert routed.shares() == {4: 500, 7: 500}
    assert routed.shares(senders=Counted((("a", 1.0), ("b", 1.0)))) == {4: 1000}
    assert routed.shares(senders=Counted((("a", 2.0),))) == {4: 500, 7: 500}


def test_executors_that_come_and_go_are_counted_again_twice_a_minute() -> None:
    routed, seen = Routed([targets(None, None)], flow=Flow()), Seen({"a": 1.0, "b": 1.0})
    routed.shares(senders=seen)
    routed.later.run()
    assert routed.shares(senders=seen) == {4: 1000}
    seen.by_zone = {"a": 3.0, "b": 1.0}
    for _ in range(70):
        routed.clock.now += 1.0
        routed.shares(1, senders=seen)
        routed.later.run()
    assert seen.reads == 1 + 2
    assert routed.shares(3000, senders=seen)[4] == pytest.approx(2000, abs=10)


def test_no_batch_waits_for_executors_to_be_counted() -> None:
    routed, seen = Routed([targets(None, None)], flow=Flow()), Seen({"a": 1.0, "b": 1.0})
    for _ in range(3):
        assert routed.shares(senders=seen) == {4: 500, 7: 500}
    assert (seen.reads, len(routed.later.waiting)) == (0, 1)
    routed.later.run()
    assert routed.shares(senders=seen) == {4: 1000}


def test_executors_that_can_t_be_told_are_asked_for_ever_more_seldom_until_they_are() -> None:
    routed, seen = Routed([targets(None, None)], flow=Flow()), Seen({})

    def asked_at(seconds: int) -> list[int]:
        """The seconds from now at which they were asked for."""
        found = []
        for second in range(seconds):
            before = seen.reads
            routed.shares(1, senders=seen)
            routed.later.run()
            found += [second] if seen.reads > before else []
            routed.clock.now += 1.0
        return found

    assert asked_at(240) == [0, 30, 90, 210]
    seen.by_zone = {"a": 1.0}
    assert asked_at(300) == [210, 240, 270]


def test_what_was_asked_of_others_does_not_count_for_the_senders_of_now() -> None:
    routed, seen = Routed([targets(None, None)], flow=Flow()), Seen({"a": 1.0, "b": 1.0})
    routed.shares(senders=seen)

    def replaced() -> dict[str, float]:
        routed.shares(senders=Counted((("a", 2.0),)))
        return seen.by_zone

    seen.read = replaced  # type: ignore[method-assign]
    routed.later.run()
    assert routed.shares(senders=Counted((("a", 2.0),))) == {4: 500, 7: 500}


def test_senders_that_can_t_be_told_any_more_are_those_known_last() -> None:
    routed, seen = Routed([targets(None, None)], flow=Flow()), Seen({"a": 1.0, "b": 1.0})
    routed.shares(senders=seen)
    routed.later.run()
    seen.by_zone = {}
    for _ in range(40):
        routed.clock.now += 1.0
        routed.shares(1, senders=seen)
        routed.later.run()
    assert routed.shares(senders=seen) == {4: 1000}


def test_the_sender_s_place_comes_from_the_environment() -> None:
    place = sender({"BALLAST_NODE": "n1", "BALLAST_ZONE": "a", "BALLAST_RACK": ""})
    assert (place.node, place.rack, place.zone) == ("n1", None, "a")
    assert sender({}).node


@pytest.mark.parametrize("load", [1e308, -1e308, float("inf"), float("nan")])
def test_loads_that_are_none_count_as_the_nearest_that_is_one(load: float) -> None:
    """Their sum overflowed, and failed the task."""
    targets = [Target(number, NEAR, load) for number in range(3)]
    chooser = Chooser(Scripted([targets]), HERE, background=Later())
    assert set(chooser.choose(3000).tolist()) == {0, 1, 2}
