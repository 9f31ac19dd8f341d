"""The chooser of one Python worker: its state lives as long as the worker, over tasks and micro-batches."""

from __future__ import annotations

import functools
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ballast.errors import BallastError
from ballast.grouping.place import Place
from ballast.grouping.shares import Flow, Measured, Sender
from ballast.spark.routing.executors import Counted, Senders

REFRESH_SECONDS = 1.0
COUNT_SECONDS = 30.0
"""Executors are counted so seldom, since each Python worker asks for itself."""
SELDOM_SECONDS = 1800.0
"""After failures they are counted ever more seldom, down to this."""
UNKNOWN = Counted(())
_LOG = logging.getLogger(__name__)


class RoutingError(BallastError):
    """There is no target to route to."""


@dataclass(frozen=True, slots=True)
class Target:
    """One place that records can go to. `load`: 0…1; `place` and `load` are None if unknown."""

    id: int
    place: Place | None = None
    load: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The targets that take records now; the other fields are those of `ballast.grouping.shares.Measured`."""

    targets: Sequence[Target]
    age_seconds: float = 0.0
    flow: Flow | None = None


class Targets(Protocol):
    """Where the targets come from. Hashable: equal sources share a chooser."""

    def __str__(self) -> str: ...

    def __hash__(self) -> int: ...

    def read(self, at_seconds: float) -> Reading:
        """May take as long as a server's answer. `at_seconds` is the time, of a clock that only goes forward."""


def sender(environment: Mapping[str, str]) -> Place:
    """Where this process runs, by BALLAST_NODE, BALLAST_RACK and BALLAST_ZONE."""
    return Place(
        node=environment.get("BALLAST_NODE") or socket.gethostname(),
        process=os.getpid(),
        rack=environment.get("BALLAST_RACK") or None,
        zone=environment.get("BALLAST_ZONE") or None,
    )


class Chooser:
    """Chooses among the targets of `source`, which it reads at most once a second, in `background`."""

    def __init__(
        self,
        source: Targets,
        place: Place,
        *,
        background: Executor,
        clock: Callable[[], float] = time.monotonic,
        random: np.random.Generator | None = None,
    ) -> None:
        """Reads the targets once. Raises RoutingError if there is none, and what `source` raises."""
        self._source, self._background, self._clock = source, background, clock
        self._lock = threading.Lock()
        reading = source.read(clock())
        self._ids = _ids(reading)
        self._asked_at, self._reading, self._read_at = clock(), False, clock()
        self._senders: Senders = UNKNOWN
        self._count_at, self._pause_seconds, self._counting = math.inf, COUNT_SECONDS, False
        if not self._ids.size:
            raise self._no_target()
        self._sender = Sender(place, self._ids.tolist(), _places(reading), random=random or np.random.default_rng())
        self._known = _measured(reading, 0.0)
        self._sender.measured(self._known, seconds=0.0)

    def choose(self, records: int, senders: Senders = UNKNOWN) -> npt.NDArray[np.int32]:
        """The id of a target for each record. `senders` count from the next call after they were read, or `at_once`.

        Raises RoutingError if there is no target.
        """
        with self._lock:
            now = self._clock()
            if senders != self._senders:
                self._senders, self._pause_seconds = senders, COUNT_SECONDS
                self._count_at = math.inf if senders.at_once else now
                self._senders_are(senders.read() if senders.at_once else {})
            due = not self._reading and now - self._asked_at >= REFRESH_SECONDS
            if due:
                self._asked_at, self._reading = now, True
            count = not self._counting and now >= self._count_at
            self._counting = self._counting or count
            chosen = self._ids[self._sender.choose(records)] if self._ids.size else None
        if due:
            self._background.submit(self._refresh)
        if count:
            self._background.submit(self._count)
        if chosen is None:
            raise self._no_target()
        return chosen

    def _refresh(self) -> None:
        try:
            reading = self._source.read(self._clock())
        except Exception as error:  # noqa: BLE001 -- of any client; what is known is used until it answers again
            _LOG.warning("routing: %s can't be read: %s", self._source, error)
        else:
            with self._lock:
                self._take(reading)
        finally:
            with self._lock:
                self._reading = False

    def _take(self, reading: Reading) -> None:
        now = self._clock()
        seconds, self._read_at = now - self._read_at, now
        ids = _ids(reading)
        self._ids = ids
        if not ids.size:
            return
        self._sender.targets_are(ids.tolist(), _places(reading))
        self._known = _measured(reading, seconds)
        self._sender.measured(self._known, seconds=seconds)

    def _count(self) -> None:
        """Executors come and go. Where they can't be told any more, those known last count."""
        senders = self._senders
        counted: Mapping[str, float] = {}
        try:
            counted = senders.read()
        finally:
            with self._lock:
                self._counting = False
                if senders == self._senders:
                    self._counted(counted)

    def _counted(self, counted: Mapping[str, float]) -> None:
        if counted:
            self._pause_seconds = COUNT_SECONDS
            self._senders_are(counted)
        self._count_at = self._clock() + self._pause_seconds
        if not counted:
            self._pause_seconds = min(2.0 * self._pause_seconds, SELDOM_SECONDS)

    def _senders_are(self, counted: Mapping[str, float]) -> None:
        self._sender.senders_are(counted)
        self._sender.measured(self._known, seconds=0.0)

    def _no_target(self) -> RoutingError:
        needs = "a partition needs a leader, an endpoint must be ready"
        return RoutingError(f"{self._source}: there is no target that takes records ({needs})")


def _ids(reading: Reading) -> npt.NDArray[np.int32]:
    return np.array([target.id for target in reading.targets], dtype=np.int32)


def _places(reading: Reading) -> list[Place | None]:
    return [target.place for target in reading.targets]


def _measured(reading: Reading, seconds: float) -> Measured | None:
    """None if nothing is known. What is read counts until the next reading, as many `seconds` later."""
    known = {target.id: target.load for target in reading.targets if target.load is not None}
    age = reading.age_seconds + seconds
    return Measured(known, age, reading.flow) if known or reading.flow else None


@functools.cache
def chooser_of(source: Targets) -> Chooser:
    """The one of this process."""
    # Targets and executors are read apart: neither waits where the other's server does not answer.
    return Chooser(source, sender(os.environ), background=ThreadPoolExecutor(2, thread_name_prefix="ballast-routing"))
