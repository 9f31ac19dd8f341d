"""The lane: what may begin next, whatever was submitted and however late answers are; and its threads."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ballast.errors import BallastError
from ballast.tenancy.lane import Job, Lane, Limits, Queue, Rank
from tests.testbed.waiting import wait_until

LIMITS = Limits(workers=4, late_seconds=1.0, late=2, late_of_all=6, events=3)
PATIENCE_SECONDS = 60.0
NAMESPACES = ("a", "b", "c")


def job(namespace: str, key: str, rank: Rank = Rank.RELEASE) -> Job[None]:
    return Job(namespace, key, rank, lambda: None)


def put(queue: Queue, *names: str, rank: Rank = Rank.RELEASE) -> None:
    """Jobs whose namespace is the first letter."""
    for name in names:
        queue.put(job(name[0], name, rank))


def taken(queue: Queue, count: int, *, now: float = 0.0) -> list[str]:
    """The next ones, each over before the next begins."""
    found = []
    for _ in range(count):
        next_ = queue.take(now)
        if next_ is not None:
            queue.end(next_)
            found.append(next_.key)
    return found


def test_namespaces_take_turns_and_each_has_its_jobs_in_order() -> None:
    queue = Queue(LIMITS)
    put(queue, "a1", "a2", "a3", "b1", "b2", "c1")
    assert taken(queue, 6) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_release_comes_before_whatever_else_waits() -> None:
    queue = Queue(LIMITS)
    for rank in sorted(Rank, reverse=True):
        put(queue, f"a {rank.name}", rank=rank)
    assert taken(queue, 5) == [f"a {rank.name}" for rank in Rank]


def test_half_of_the_workers_serve_releases_alone() -> None:
    queue = Queue(LIMITS)
    put(queue, *(f"a{number}" for number in range(4)), rank=Rank.STATUS)
    assert [queue.take(0.0) is not None for _ in range(3)] == [True, True, False]
    put(queue, "b1", "b2", "b3")
    assert [queue.take(0.0) is not None for _ in range(3)] == [True, True, False]


def test_late_jobs_occupy_no_worker_and_hold_back_only_their_own_namespace_and_rank() -> None:
    queue = Queue(replace(LIMITS, late_of_all=4))
    put(queue, *(f"a{number}" for number in range(9)))
    assert [queue.take(0.0) is not None for _ in range(5)] == [True] * 4 + [False]
    put(queue, "b1", "b2")
    put(queue, "a status", rank=Rank.STATUS)
    assert queue.take(0.9) is None
    assert queue.next_late(0.9) == pytest.approx(0.1)
    assert taken(queue, 3, now=1.0) == ["b1", "b2", "a status"]
    assert queue.take(1.0) is None


def test_of_many_slow_namespaces_fewer_jobs_of_each_are_under_way() -> None:
    queue = Queue(Limits(workers=100, late_seconds=1.0, late=16, late_of_all=8))
    for namespace in "abcd":
        put(queue, *(f"{namespace}{number}" for number in range(10)))
    first = [queue.take(0.0) for _ in range(8)]
    assert all(first)
    assert Counter(each.namespace for each in first if each) == dict.fromkeys("abcd", 2)
    assert queue.take(1.0) is None, "two of each are late, and no more may be"
    put(queue, "e1")
    assert taken(queue, 1, now=1.0) == ["e1"]


def test_a_slow_namespace_alone_may_have_many_releases_under_way_and_leaves_half_of_the_workers() -> None:
    queue = Queue(LIMITS)
    put(queue, *(f"a{number}" for number in range(9)))
    assert sum(queue.take(now) is not None for now in (0.0,) * 5) == 4
    assert sum(queue.take(now) is not None for now in (1.0,) * 5) == 2, "two quick ones, of four workers"
    put(queue, "b1", "b2")
    assert taken(queue, 2, now=1.0) == ["b1", "b2"]


def test_late_jobs_of_other_ranks_hold_back_no_release() -> None:
    queue = Queue(LIMITS)
    for second, namespace in enumerate("abcdef"):
        put(queue, *(f"{namespace}{number}" for number in range(5)), rank=Rank.EVENT)
        while queue.take(float(second)) is not None:
            pass
    put(queue, "z1", "z2", "z3")
    assert taken(queue, 3, now=9.0) == ["z1", "z2", "z3"]
    put(queue, "y event", rank=Rank.EVENT)
    assert queue.take(9.0) is None, "so many are late that no other begins"


def test_what_waits_and_is_submitted_again_keeps_its_place() -> None:
    queue = Queue(LIMITS)
    put(queue, "a1", "a2", "a3")
    put(queue, "a1", "a2")
    assert taken(queue, 3) == ["a1", "a2", "a3"]


def test_a_job_that_waits_can_be_withdrawn() -> None:
    queue = Queue(LIMITS)
    first, second = job("a", "a1"), job("a", "a2")
    for each in (first, second):
        queue.put(each)
    assert queue.take(0.0) is first
    for each in (first, second):
        queue.withdraw(each)
    assert (first.over, second.over) == (False, True)
    assert queue.take(0.0) is None


def test_of_events_that_wait_the_oldest_are_dropped() -> None:
    queue = Queue(LIMITS)
    events = [job("a", f"event {number}", Rank.EVENT) for number in range(5)]
    for each in events:
        queue.put(each)
    assert [each.over for each in events] == [True, True, False, False, False]


class Anything(RuleBasedStateMachine):
    """Jobs are submitted, begin, end and get late in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.now = Queue(LIMITS), 0.0
        self.submitted: list[Job[Any]] = []
        self.running: list[Job[Any]] = []
        self.passed_over: Counter[tuple[Rank, str]] = Counter()
        """How often another namespace's job of the rank began since this one's last, while this one's could."""

    @rule(namespace=st.sampled_from(NAMESPACES), number=st.integers(0, 3), rank=st.sampled_from(Rank))
    def submit(self, namespace: str, number: int, rank: Rank) -> None:
        new = job(namespace, f"{namespace}{number}", rank)
        known = [each for each in self.submitted if each.key == new.key and not each.over]
        kept = self.queue.put(new)
        if any(each in self.running for each in known):
            assert kept in known, "the one that runs counts"
        else:
            assert kept is new
            assert all(each.over for each in known), "a newer one replaces one that waits"
            self.submitted.append(new)

    @rule()
    def begin(self) -> None:
        late = {(each.rank, each.namespace) for each in self.late()}
        waiting = [each for each in self.submitted if not each.over and each not in self.running]
        found = self.queue.take(self.now)
        if found is None:
            quick = len(self.running) - len(self.late())
            free = [each for each in waiting if each.rank is Rank.RELEASE and (each.rank, each.namespace) not in late]
            assert not free or quick >= LIMITS.workers or len(self.late()) >= LIMITS.late_of_all
            return
        assert found in waiting
        self.running.append(found)
        of_rank = {
            each.namespace for each in waiting if each.rank is found.rank and (each.rank, each.namespace) not in late
        }
        for namespace in of_rank - {found.namespace}:
            self.passed_over[found.rank, namespace] += 1
            assert self.passed_over[found.rank, namespace] < len(NAMESPACES), "each namespace has its turn"
        self.passed_over[found.rank, found.namespace] = 0
        lower = [each for each in waiting if each.rank < found.rank]
        assert all((each.rank, each.namespace) in late for each in lower), "no job overtakes one of a lower rank"

    @rule(number=st.integers(0, 20))
    def end(self, number: int) -> None:
        if self.running:
            ended = self.running.pop(number % len(self.running))
            self.queue.end(ended)
            self.passed_over.clear()

    @rule()
    def let_time_pass(self) -> None:
        self.now += 0.6
        self.passed_over.clear()

    @invariant()
    def holds(self) -> None:
        assert len({each.key for each in self.running}) == len(self.running), "one job a key at a time"
        quick = [each for each in self.running if each not in self.late()]
        assert len(quick) <= LIMITS.workers
        assert sum(each.rank is not Rank.RELEASE for each in quick) <= LIMITS.workers // 2

    def late(self) -> list[Job[Any]]:
        return [each for each in self.running if each.began is not None and self.now - each.began >= 1.0]


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_an_answer_is_what_the_work_returned_or_what_it_raised() -> None:
    lane = Lane()

    def fails() -> None:
        raise BallastError("no")

    one, failed = lane.submit("a", "one", Rank.MOVE, lambda: 1), lane.submit("a", "two", Rank.MOVE, fails)
    lane.wait([one, failed], late_too=True)
    assert one.answer() == 1
    with pytest.raises(BallastError, match="no"):
        failed.answer()


def test_quick_jobs_are_waited_for_and_slow_ones_are_not() -> None:
    let = threading.Event()
    lane = Lane(Limits(workers=2, late_seconds=0.05, late_of_all=16))
    slow = [lane.submit("slow", f"slow {n}", Rank.RELEASE, lambda: let.wait(PATIENCE_SECONDS)) for n in range(30)]
    quick = [lane.submit("team", f"team {n}", Rank.RELEASE, lambda: "done") for n in range(200)]
    lane.wait([*slow, *quick])
    assert not any(each.over for each in slow), "none was waited for"
    wait_until(
        lambda: all(each.over for each in quick), what="the others are released", timeout_seconds=PATIENCE_SECONDS
    )
    assert sum(each.began is not None for each in slow) <= 18
    let.set()
    lane.wait(slow, late_too=True)
    assert all(each.answer() for each in slow)


def test_others_begin_in_place_of_those_that_become_late_also_while_an_older_one_is_late() -> None:
    let = threading.Event()
    lane = Lane(Limits(workers=4, late_seconds=0.05))

    def hang() -> None:
        let.wait(PATIENCE_SECONDS)

    first = lane.submit("old", "old", Rank.RELEASE, hang)
    lane.wait([first])
    slow = [lane.submit("slow", f"slow {n}", Rank.RELEASE, hang) for n in range(8)]
    quick = [lane.submit("team", f"team {n}", Rank.RELEASE, lambda: "done") for n in range(4)]
    lane.wait(quick)
    assert [each.answer() for each in quick] == ["done"] * 4
    assert not any(each.over for each in (first, *slow))
    let.set()
    lane.wait([first, *slow], late_too=True)


def test_nothing_of_a_key_is_submitted_while_it_backs_off() -> None:
    now = [0.0]
    lane = Lane(monotonic=lambda: now[0])
    lane.back_off("refused", 60.0)
    assert lane.submit("a", "refused", Rank.RELEASE, lambda: 1).over
    assert lane.rests("refused")
    now[0] = 60.0
    again = lane.submit("a", "refused", Rank.RELEASE, lambda: 1)
    lane.wait([again], late_too=True)
    assert again.answer() == 1


def test_what_waits_is_dropped_when_another_replica_leads_except_releases() -> None:
    let = threading.Event()
    lane = Lane(Limits(workers=2))
    lane.submit("a", "first", Rank.MOVE, lambda: let.wait(PATIENCE_SECONDS))
    move = lane.submit("a", "second", Rank.MOVE, lambda: True)
    lane.forget()
    assert move.over
    release = lane.submit("a", "third", Rank.RELEASE, lambda: True)
    let.set()
    lane.drain(PATIENCE_SECONDS)
    assert (move.answer(), release.answer()) == (None, True)
