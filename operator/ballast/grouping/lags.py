"""How far the readers of partitions are behind, from offsets that they commit only now and then.

The lag of a partition grows between two commits of a reader that keeps up. The least lag since the commit before is
what really waits; how long commits take is the age of the measurement. What even the best partition shows can't be
told from commits that are seen late, and could not be helped: a reader is behind if it is more so than the best one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ballast.grouping.shares import MEAN_SECONDS, Flow, Measured

WINDOW_SECONDS = 120.0
RESOLUTION_SECONDS = 1.0
"""Offsets are read once a second: what came in between a commit and its reading does not wait for certain."""
BEHIND_SECONDS = 3.0
"""A reader that is this far behind works as fast as it can: what it commits is what it can handle."""
BUSIEST = 0.95
"""How much of what its reader can handle a partition is sent, since no queue is short just below that."""
DRAIN_SECONDS = 60.0
EASILY = 0.5
"""How busy the readers of near partitions may be if less than an even share would keep them so."""
_SPEED_UP_PER_SECOND = 0.01 / 60.0
"""How fast a learned speed is forgotten: a reader may have become faster since."""
_SHORTEST_SPEED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Offsets:
    """The ends of partitions and what the readers' group has committed, read at `at_seconds`."""

    at_seconds: float
    ends: Mapping[int, int]
    committed: Mapping[int, int]

    def lag(self, part: int) -> int:
        return max(self.ends.get(part, 0) - self.committed.get(part, 0), 0)


@dataclass(slots=True)
class _Commits:
    """The commits of one partition: when each was first seen, and its offset."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)
    gaps: deque[tuple[float, float]] = field(default_factory=deque)
    """When a commit was seen, and how long after the one before it, or after a time at which nothing waited."""
    waits_since: float = -math.inf
    moved: bool = False
    """Whether a commit was seen as it came; the first offset is older than its reading."""

    def add(self, at: float, offset: int, *, idle: bool) -> None:
        if self.seen and self.seen[-1][1] == offset:
            if idle:
                self.waits_since = at
            return
        if self.moved:
            self.gaps.append((at, at - max(self.seen[-1][0], self.waits_since)))
        self.moved = bool(self.seen)
        self.seen.append((at, offset))

    def forget(self, before: float) -> None:
        while len(self.seen) > 1 and self.seen[0][0] < before:
            self.seen.popleft()
        while self.gaps and self.gaps[0][0] < before:
            self.gaps.popleft()

    def per_second(self, since: float, now: float, gap_seconds: float) -> float | None:
        """Records committed from `since` on; None if that is too short a time to tell."""
        seen = [each for each in self.seen if each[0] >= since]
        if now - max(since, seen[-1][0] if seen else since) > max(2.0 * gap_seconds, _SHORTEST_SPEED_SECONDS):
            return 0.0
        if len(seen) < 2 or seen[-1][0] - seen[0][0] < _SHORTEST_SPEED_SECONDS:
            return None
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


@dataclass(slots=True)
class LagHistory:
    """The offsets of the last minutes. For one thread."""

    _read: deque[Offsets] = field(default_factory=deque)
    _commits: dict[int, _Commits] = field(default_factory=dict)
    _speeds: dict[int, float] = field(default_factory=dict)
    """What the reader of a partition can handle a second, where it has been behind."""
    _behind_since: dict[int, float] = field(default_factory=dict)

    def add(self, now: Offsets, *, handled_per_second: float = 0.0) -> Measured:
        """What is known with this reading. `handled_per_second` records of a partition a reader handles, if known."""
        since_last = now.at_seconds - self._read[-1].at_seconds if self._read else 0.0
        self._remember(now)
        rates = self._rates(MEAN_SECONDS)
        all_rates = sum(rates.values())
        gap = max((gap for each in self._commits.values() for _, gap in each.gaps), default=math.inf)
        window = [each for each in self._read if now.at_seconds - each.at_seconds <= gap + since_last]
        waiting = _more_than_the_best({part: _least(window, part) for part in now.committed}, rates)
        rate = all_rates / len(rates) if rates else 0.0
        self._learn(now.at_seconds, waiting, rate, gap, since_last)
        age = now.at_seconds - window[0].at_seconds
        # What comes in batches would look like more than readers handle just after one.
        lasting = min(all_rates, sum(self._rates(WINDOW_SECONDS).values()))
        drain = max(DRAIN_SECONDS, 2.0 * age)
        flow = Flow(
            got={part: each / all_rates for part, each in rates.items()} if all_rates else {},
            can={
                part: max(BUSIEST * speed - waiting[part] / drain, 0.0) / lasting
                for part, speed in self._speeds.items()
                if part in waiting and lasting
            },
            easily=EASILY * handled_per_second / lasting
            if lasting
            else float(handled_per_second > 0.0 and bool(rates)),
            messages=all_rates * MEAN_SECONDS,
        )
        return Measured(age_seconds=age, flow=flow)

    def _remember(self, now: Offsets) -> None:
        self._read.append(now)
        before = now.at_seconds - WINDOW_SECONDS
        while self._read[0].at_seconds < before:
            self._read.popleft()
        for part, offset in now.committed.items():
            commits = self._commits.setdefault(part, _Commits())
            commits.add(now.at_seconds, offset, idle=now.lag(part) == 0)
            commits.forget(before)

    def _rates(self, seconds: float) -> dict[int, float]:
        """Records that came in a second over the last `seconds`, or since the reading before."""
        now = self._read[-1]
        first = next(each for each in self._read if now.at_seconds - each.at_seconds <= seconds or each is now)
        if first is now and len(self._read) > 1:
            first = self._read[-2]
        passed = now.at_seconds - first.at_seconds
        if passed <= 0.0:
            return {}
        return {part: (end - first.ends[part]) / passed for part, end in now.ends.items() if part in first.ends}

    def _learn(self, at: float, waiting: Mapping[int, float], rate: float, gap: float, seconds: float) -> None:
        for part, records in waiting.items():
            if records <= rate * BEHIND_SECONDS:
                self._behind_since.pop(part, None)
                # A reader that had stopped and has caught up since was never seen at work.
                if speed := self._speeds.pop(part, None):
                    self._speeds[part] = speed * (1.0 + _SPEED_UP_PER_SECOND * seconds)
                continue
            since = self._behind_since.setdefault(part, at)
            if (found := self._commits[part].per_second(since, at, gap)) is not None:
                self._speeds[part] = found


def _least(window: Iterable[Offsets], part: int) -> int:
    return min(each.lag(part) for each in window if part in each.committed)


def _more_than_the_best(waiting: Mapping[int, int], rates: Mapping[int, float]) -> dict[int, float]:
    """What waits, less what came in since offsets were read, and less what waits as long in every partition."""
    lately = {part: max(records - rates.get(part, 0.0) * RESOLUTION_SECONDS, 0.0) for part, records in waiting.items()}
    late = min((records / rates[part] for part, records in lately.items() if rates.get(part)), default=0.0)
    return {part: max(records - rates.get(part, 0.0) * late, 0.0) for part, records in lately.items()}
