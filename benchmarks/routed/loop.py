"""A closed loop of senders, partitions and readers in discrete time: what a rule sends piles up, and is seen late."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from ballast.grouping.lags import LagHistory, Offsets
from ballast.grouping.place import Place
from ballast.grouping.shares import Flow, Measured, Sender, turns
from tests.reference.storm.shuffle import Loads, RemoteLoad, Shuffle

STEP_SECONDS = 0.5
STEPS_PER_REFRESH = 2
STEPS_PER_BATCH = 2
"""Senders write once a second, as micro-batches do."""
RECORDS_PER_SECOND = 200.0
"""What a reader of a partition handles, on average."""
STORMS_LAG_AT_FULL = 10_000
ZONES = "abc"

View = Literal["commits", "late", "batches"]
Counts = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """`busy`: what comes in, as a share of what all readers handle. `age_seconds`: of what is seen of the commits.

    With `commits` readers commit every `age_seconds`; with `late` they commit at once, and it is seen so late;
    with `batches` senders look so seldom, and go by what they read the time before.
    """

    targets: int
    busy: float
    age_seconds: float
    view: View = "commits"
    speeds: tuple[float, ...] = (1.0,)
    """Repeated over the targets."""
    senders: str = ""
    """The zone of each; none of them knows its zone if empty."""
    told: str | None = None
    """The zones of the senders that they are told of: their own, unless this says otherwise; empty if none."""
    seconds: float = 400.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    backlog: float
    """Records that wait, over all partitions, in the mean."""
    near: float
    """Share of the records in the sender's own zone."""


@dataclass
class Look:
    """What all senders see at a refresh; it is `age_seconds` old as a whole."""

    seen: Offsets
    age_seconds: float
    history: LagHistory

    @cached_property
    def measured(self) -> Measured:
        measured = self.history.add(self.seen)
        return replace(measured, age_seconds=measured.age_seconds + self.age_seconds)


class Rule(Protocol):
    def choose(self, n: int) -> npt.NDArray[np.int32]: ...

    def look(self, at: Look) -> None:
        """What is known at a refresh."""


class RoundRobin:
    def __init__(self, targets: int, first: int) -> None:
        self._targets, self._next = targets, first

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        chosen = (self._next + np.arange(n, dtype=np.int32)) % self._targets
        self._next = (self._next + n) % self._targets
        return chosen

    def look(self, at: Look) -> None:
        pass


class Storm:
    """Storm's rule; a partition with `STORMS_LAG_AT_FULL` records of lag is full."""

    def __init__(self, source: Place, places: Sequence[Place], random: np.random.Generator) -> None:
        self._shuffle = Shuffle(source, range(len(places)), places, random=random)

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        return self._shuffle.choose(n)

    def look(self, at: Look) -> None:
        """Storm's rule knows no age."""
        lags = {part: (at.seen.ends[part] - done) / STORMS_LAG_AT_FULL for part, done in at.seen.committed.items()}
        self._shuffle.refresh(Loads(remote={part: RemoteLoad(min(max(lag, 0.0), 1.0)) for part, lag in lags.items()}))


class Ours:
    """`senders`: what each of them is told of how many there are in each zone."""

    def __init__(
        self, source: Place, places: Sequence[Place], random: np.random.Generator, senders: Mapping[str, float]
    ) -> None:
        self.sender = Sender(source, range(len(places)), places, random=random)
        self.sender.senders_are(senders)
        self.sender.measured(Measured(flow=Flow()), seconds=0.0)
        self._last = 0.0

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        return self.sender.choose(n)

    def look(self, at: Look) -> None:
        self.sender.measured(at.measured, seconds=at.seen.at_seconds - self._last)
        self._last = at.seen.at_seconds


class Split:
    """`near` of the messages to the own zone, evenly, and the others evenly to the other zones, whatever waits."""

    def __init__(self, near: float, source: Place, places: Sequence[Place], random: np.random.Generator) -> None:
        mine = np.array([place.zone == source.zone for place in places])
        shares = np.where(mine, near / mine.sum(), (1.0 - near) / (~mine).sum())
        self._ring, self._next = turns(np.round(shares * 10_000).astype(np.int64), random), 0

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        chosen = self._ring[(self._next + np.arange(n)) % self._ring.size]
        self._next = (self._next + n) % self._ring.size
        return chosen

    def look(self, at: Look) -> None:
        pass


Make = Callable[[Place, Sequence[Place], np.random.Generator, Mapping[str, float]], Rule]


def split(near: float) -> Make:
    return lambda source, places, random, _: Split(near, source, places, random)


ROUND_ROBIN, STORM, OURS = "round robin", "Storm", "ours"
RULES: dict[str, Make] = {
    ROUND_ROBIN: lambda _, places, random, __: RoundRobin(len(places), int(random.integers(len(places)))),
    STORM: lambda source, places, random, _: Storm(source, places, random),
    OURS: Ours,
}


def run(case: Case, make: Make) -> Outcome:
    random = np.random.default_rng(case.seed)
    steps = round(case.seconds / STEP_SECONDS)
    zones = [ZONES[target % len(ZONES)] for target in range(case.targets)]
    speeds = np.resize(np.array(case.speeds), case.targets)
    speeds = speeds / speeds.mean() * RECORDS_PER_SECOND
    served_by_step = random.poisson(speeds * STEP_SECONDS, size=(steps, case.targets)).astype(float)
    phases = random.random(case.targets) * max(case.age_seconds, 1e-9)
    places = [Place(f"broker-{target}", "kafka", zone=zone) for target, zone in enumerate(zones)]
    sources = [Place(f"executor-{number}", zone=zone) for number, zone in enumerate(case.senders)]
    sources = sources or [Place("executor-0"), Place("executor-1")]
    told = Counter(case.senders if case.told is None else case.told)
    rules = [make(source, places, random, told) for source in sources]
    near = np.array([[source.zone == zone for zone in zones] for source in sources])
    per_step = case.busy * speeds.sum() * STEP_SECONDS / len(sources)
    ends, done = np.zeros(case.targets), np.zeros(case.targets)
    committed = np.zeros(case.targets)
    past: deque[tuple[Counts, Counts]] = deque(maxlen=round(case.age_seconds / STEP_SECONDS) + 1)
    owed, waited, stayed, sent_all = 0.0, 0.0, 0.0, 0.0
    waiting_for: Offsets | None = None
    history = LagHistory()
    history.add(Offsets(0.0, *(dict.fromkeys(range(case.targets), 0) for _ in range(2))))
    batch = round(case.age_seconds / STEP_SECONDS) if case.view == "batches" else 0
    every = max(STEPS_PER_REFRESH, batch)
    for step in range(steps):
        now = step * STEP_SECONDS
        owed += per_step
        records = int(owed) if step % STEPS_PER_BATCH == 0 else 0
        owed -= records
        for number, rule in enumerate(rules):
            sent = np.bincount(rule.choose(records), minlength=case.targets)
            ends += sent
            stayed += float(sent[near[number]].sum())
            sent_all += records
        before = ends - done
        done += np.minimum(served_by_step[step], before)
        waited += float((ends - done).sum())
        past.append((ends.copy(), done.copy()))
        if case.view == "commits" and case.age_seconds:
            rounds = np.floor((now + phases) / case.age_seconds)
            due = rounds > np.floor((now - STEP_SECONDS + phases) / case.age_seconds)
            committed = np.where(due, done, committed)
        else:
            committed = (past[0] if case.view == "late" else past[-1])[1]
        if (step + 1) % every:
            continue
        at_ends, at_commits = ends.astype(int).tolist(), committed.astype(int).tolist()
        seen: Offsets | None = Offsets(now, dict(enumerate(at_ends)), dict(enumerate(at_commits)))
        if case.view == "batches" and case.age_seconds:
            seen, waiting_for = waiting_for, seen
        if seen is not None:
            look = Look(seen, case.age_seconds if case.view == "batches" else 0.0, history)
            for rule in rules:
                rule.look(look)
    return Outcome(waited / steps, stayed / max(sent_all, 1.0))
