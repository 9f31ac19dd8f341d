"""The lane: one queue of writes, in which no release waits behind another namespace's slow request.

Any request may take half a minute, because webhooks of its namespace look at it. So a request that is not answered
within LATE_SECONDS is *late*: it no longer occupies a worker. That is why a namespace may use all workers as long as
its requests are quick (1 000 executors of one set are released in about a second). One that is known to be slow gets
half of them at most.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, TypeVar

from ballast.errors import BallastError

_LOG = logging.getLogger(__name__)
T = TypeVar("T")

LATE_SECONDS = 0.5


class Rank(IntEnum):
    """A job waits until none of a lower rank can begin."""

    RELEASE = 0
    MOVE = 1
    CREATE = 2
    STATUS = 3
    EVENT = 4


BEHIND_RELEASES = (Rank.MOVE, Rank.CREATE, Rank.STATUS, Rank.EVENT)


@dataclass(frozen=True, slots=True)
class Limits:
    workers: int = 32
    """Jobs under way, late ones aside. Half of them serve releases alone."""
    late_seconds: float = LATE_SECONDS
    late: int = 16
    """Late jobs of one namespace and rank, releases aside, after which no other begins."""
    late_of_all: int = 256
    """Late releases of all namespaces, and late jobs of other ranks, each of which takes a thread and a connection: of
    many slow namespaces, fewer of each. One alone may have them all, so that a webhook that takes two seconds for each
    pod holds up a large set of its own namespace no longer than one that takes one second.
    """
    events: int = 64
    """Events of one namespace that wait. With one more, the oldest is dropped."""


@dataclass(eq=False, slots=True)
class Job(Generic[T]):
    """What was submitted, and what came of it."""

    namespace: str
    key: str
    rank: Rank
    work: Callable[[], T]
    began: float | None = None
    """Monotonic seconds."""
    over: bool = False
    """It was answered, or a newer one of its key came before it began, or it was dropped."""
    _answer: T | None = field(default=None, repr=False)
    _error: BaseException | None = field(default=None, repr=False)

    def answer(self) -> T | None:
        """What the work returned; None if there is no answer yet, or will be none. Raises what the work raised."""
        if self._error is not None:
            raise self._error
        return self._answer

    def run(self) -> None:
        try:
            self._answer = self.work()
        except BaseException as error:  # noqa: BLE001 -- it is raised where the answer is asked for
            self._error = error
            if not isinstance(error, BallastError):
                _LOG.exception("%s failed", self.key)


_Line = tuple[Rank, str]
"""Jobs of one rank and namespace."""


class Queue:
    """Which job begins next. Not safe for threads. Times are monotonic seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[Rank, OrderedDict[str, OrderedDict[str, Job[Any]]]] = {rank: OrderedDict() for rank in Rank}
        """By rank, namespace (the one that was served last comes last) and key."""
        self._running: dict[str, Job[Any]] = {}
        """By key."""

    def put(self, job: Job[Any]) -> Job[Any]:
        """Returns the job that runs under the same key, whose answer counts; one that waits is replaced and over."""
        if (running := self._running.get(job.key)) is not None:
            return running
        line = self._waiting[job.rank].setdefault(job.namespace, OrderedDict())
        if job.key in line:
            # In its place: what has waited longest is not put behind what came later.
            line[job.key].over = True
        else:
            self._drop(job.key, job.namespace)
        line[job.key] = job
        if job.rank is Rank.EVENT and len(line) > self._limits.events:
            _, oldest = line.popitem(last=False)
            oldest.over = True
        return job

    def take(self, now: float) -> Job[Any] | None:
        """The next job, which begins now; None if none can."""
        late = self._late(now)
        quick = [job for job in self._running.values() if not self._is_late(job, now)]
        if len(quick) >= self._limits.workers:
            return None
        half = self._limits.workers // 2
        others = sum(job.rank is not Rank.RELEASE for job in quick)
        slow = sum((job.rank, job.namespace) in late for job in quick)
        for rank, lines in self._waiting.items():
            if rank is not Rank.RELEASE and others >= self._limits.workers - half:
                return None
            for namespace, line in lines.items():
                # What is known to be slow leaves half of the workers to others.
                occupies = slow >= half and (rank, namespace) in late
                if not occupies and not self._held_back((rank, namespace), late):
                    key, job = line.popitem(last=False)
                    lines.move_to_end(namespace)
                    self._tidy(lines, namespace)
                    self._running[key] = job
                    job.began = now
                    return job
        return None

    def withdraw(self, job: Job[Any]) -> None:
        """Drop it if it waits."""
        if job.began is None and not job.over:
            self._drop(job.key, job.namespace)

    def end(self, job: Job[Any]) -> None:
        job.over = True
        del self._running[job.key]

    def forget(self, ranks: Iterable[Rank]) -> None:
        for rank in ranks:
            for line in self._waiting[rank].values():
                for job in line.values():
                    job.over = True
            self._waiting[rank].clear()

    def holds(self, key: str, namespace: str) -> bool:
        """Whether a job of this key runs or waits."""
        return key in self._running or any(key in lines.get(namespace, ()) for lines in self._waiting.values())

    def is_slow(self, job: Job[Any], now: float) -> bool:
        """Whether nothing tells how long the job takes: it is late, or waits for late ones."""
        if job.began is not None:
            return self._is_late(job, now)
        return self._held_back((job.rank, job.namespace), self._late(now))

    def next_late(self, now: float) -> float | None:
        """Seconds until another job will be late, and others may begin in its place."""
        ends = (self._quick_seconds(job, now) for job in self._running.values())
        return min((seconds for seconds in ends if seconds > 0), default=None)

    @property
    def idle(self) -> bool:
        return not self._running and not any(self._waiting.values())

    def _is_late(self, job: Job[Any], now: float) -> bool:
        return self._quick_seconds(job, now) <= 0

    def _quick_seconds(self, job: Job[Any], now: float) -> float:
        """Until the job is late."""
        return self._limits.late_seconds - (now - (now if job.began is None else job.began))

    def _late(self, now: float) -> Counter[_Line]:
        return Counter((job.rank, job.namespace) for job in self._running.values() if self._is_late(job, now))

    def _held_back(self, line: _Line, late: Counter[_Line]) -> bool:
        """Whether no job of the line may begin before one that is under way is answered."""
        releases = line[0] is Rank.RELEASE
        alike = [count for (rank, _), count in late.items() if (rank is Rank.RELEASE) is releases]
        if sum(alike) >= self._limits.late_of_all:
            # One at a time, to learn whether its requests are quick; of other ranks none.
            return not releases or any((job.rank, job.namespace) == line for job in self._running.values())
        most = max(1, self._limits.late_of_all // max(1, len(alike)))
        return late[line] >= (most if releases else min(self._limits.late, most))

    def _drop(self, key: str, namespace: str) -> None:
        """What waits under this key, whatever its rank."""
        for lines in self._waiting.values():
            if (line := lines.get(namespace)) is not None and (older := line.pop(key, None)) is not None:
                older.over = True
                self._tidy(lines, namespace)

    def _tidy(self, lines: OrderedDict[str, OrderedDict[str, Job[Any]]], namespace: str) -> None:
        if not lines[namespace]:
            del lines[namespace]


class Lane:
    """Safe for threads, which end with the process. `monotonic`: seconds that are never set back."""

    def __init__(self, limits: Limits | None = None, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._monotonic = limits or Limits(), monotonic
        self._queue = Queue(self._limits)
        self._rests: dict[str, float] = {}
        """Until when no job of a key is submitted."""
        self._changed = threading.Condition()
        self._watches = False

    def submit(self, namespace: str, key: str, rank: Rank, work: Callable[[], T], *, anyway: bool = False) -> Job[T]:
        """Have `work` called by a worker. It replaces a job of the same key that waits; one that runs is returned.

        `anyway`: although its key rests after a back-off.
        """
        job = Job(namespace, key, rank, work)
        with self._changed:
            if not anyway and self._resting(key):
                job.over = True
                return job
            job = self._queue.put(job)
            self._begin()
        return job

    def withdraw(self, jobs: Iterable[Job[Any]]) -> None:
        """Drop those that have not begun."""
        with self._changed:
            for job in jobs:
                self._queue.withdraw(job)
            self._changed.notify_all()

    def back_off(self, key: str, seconds: float) -> None:
        """Submit nothing of this key for so long: it would be refused again."""
        with self._changed:
            self._rests[key] = self._monotonic() + seconds

    def rests(self, key: str) -> bool:
        with self._changed:
            return self._resting(key)

    def holds(self, key: str, namespace: str) -> bool:
        """Whether a job of this key is under way or waits."""
        with self._changed:
            return self._queue.holds(key, namespace)

    def wait(self, jobs: Iterable[Job[Any]], *, seconds: float | None = None, late_too: bool = False) -> None:
        """Until each of them is over, or turns out to be late, or waits for late ones of its namespace.

        `seconds`: at most so long. `late_too`: until all are over.
        """
        left, until = list(jobs), None if seconds is None else self._monotonic() + seconds
        with self._changed:
            while left:
                now = self._monotonic()
                if left[-1].over or (not late_too and self._queue.is_slow(left[-1], now)):
                    left.pop()
                elif until is not None and now >= until:
                    return
                else:
                    ends = [end for end in (self._queue.next_late(now), None if until is None else until - now) if end]
                    self._changed.wait(min(ends, default=None))

    def forget(self, ranks: Iterable[Rank] = BEHIND_RELEASES) -> None:
        """Drop what waits of these ranks: another replica leads, and decides for itself."""
        with self._changed:
            self._queue.forget(ranks)
            self._changed.notify_all()

    def drain(self, seconds: float) -> None:
        """Wait until nothing waits or runs, at most so long."""
        until = self._monotonic() + seconds
        with self._changed:
            while not self._queue.idle and (left := until - self._monotonic()) > 0:
                self._changed.wait(left)

    def _resting(self, key: str) -> bool:
        now = self._monotonic()
        if self._rests and self._rests.get(key, now) <= now:
            self._rests = {each: until for each, until in self._rests.items() if until > now}
        return key in self._rests

    def _begin(self) -> None:
        """Start workers for jobs that can begin."""
        began = False
        while (job := self._queue.take(self._monotonic())) is not None:
            began = True
            try:
                threading.Thread(target=self._serve, args=(job,), name="lane", daemon=True).start()
            except RuntimeError:
                # The machine has no thread left. It is asked for again as if its answer had not come.
                _LOG.exception("%s can't begin", job.key)
                self._queue.end(job)
                break
        if not self._watches and not self._queue.idle:
            self._watches = True
            try:
                threading.Thread(target=self._watch, name="lane watch", daemon=True).start()
            except RuntimeError:
                self._watches = False
        if began:
            # When the next one will be late has changed.
            self._changed.notify_all()

    def _serve(self, job: Job[Any] | None) -> None:
        while job is not None:
            job.run()
            with self._changed:
                self._queue.end(job)
                job = self._queue.take(self._monotonic())
                self._changed.notify_all()

    def _watch(self) -> None:
        """Let others begin in place of jobs that become late."""
        with self._changed:
            while not self._queue.idle:
                self._changed.wait(self._queue.next_late(self._monotonic()))
                self._begin()
            self._watches = False
