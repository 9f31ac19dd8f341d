"""The chooser of one Python worker: its state lives as long as the worker, over tasks and micro-batches."""

from __future__ import annotations

import functools
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ballast.errors import BallastError
from ballast.grouping.shuffle import Bounds, Loads, Place, RemoteLoad, Shuffle

REFRESH_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


class RoutingError(BallastError):
    """There is no target to route to."""


@dataclass(frozen=True, slots=True)
class Target:
    """One place that records can go to. `load`: 0…1; `place` and `load` are None if unknown."""

    id: int
    place: Place | None = None
    load: float | None = None


class Targets(Protocol):
    """Where the targets come from. Hashable: equal sources share a chooser."""

    def __str__(self) -> str: ...

    def __hash__(self) -> int: ...

    def read(self) -> Sequence[Target]:
        """All targets that take records now. May take as long as a server's answer."""


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
        bounds: Bounds | None = None,
    ) -> None:
        """Reads the targets once. Raises RoutingError if there is none, and what `source` raises."""
        self._source, self._background, self._clock = source, background, clock
        self._lock = threading.Lock()
        targets = source.read()
        self._ids = _ids(targets)
        self._asked_at, self._reading = clock(), False
        if not targets:
            raise self._no_target()
        self._shuffle = Shuffle(
            place,
            self._ids.tolist(),
            [target.place for target in targets],
            random=random or np.random.default_rng(),
            bounds=bounds,
        )
        self._shuffle.refresh(_loads(targets))

    def choose(self, records: int) -> npt.NDArray[np.int32]:
        """The id of a target for each record. Raises RoutingError if there is no target."""
        with self._lock:
            due = not self._reading and self._clock() - self._asked_at >= REFRESH_SECONDS
            if due:
                self._asked_at, self._reading = self._clock(), True
            chosen = self._ids[self._shuffle.choose(records)] if self._ids.size else None
        if due:
            self._background.submit(self._refresh)
        if chosen is None:
            raise self._no_target()
        return chosen

    def _refresh(self) -> None:
        try:
            targets = self._source.read()
        except Exception as error:  # noqa: BLE001 -- of any client; what is known is used until it answers again
            _LOG.warning("routing: %s can't be read: %s", self._source, error)
        else:
            with self._lock:
                self._take(targets)
        finally:
            with self._lock:
                self._reading = False

    def _take(self, targets: Sequence[Target]) -> None:
        ids, places = _ids(targets), [target.place for target in targets]
        if ids.size and not np.array_equal(ids, self._ids):
            self._shuffle.targets_replaced(ids.tolist(), places)
        elif ids.size:
            self._shuffle.targets_moved(places)
        self._ids = ids
        if ids.size:
            self._shuffle.refresh(_loads(targets))

    def _no_target(self) -> RoutingError:
        needs = "a partition needs a leader, an endpoint must be ready"
        return RoutingError(f"{self._source}: there is no target that takes records ({needs})")


def _ids(targets: Sequence[Target]) -> npt.NDArray[np.int32]:
    return np.array([target.id for target in targets], dtype=np.int32)


def _loads(targets: Sequence[Target]) -> Loads | None:
    """None if no load is known."""
    # Sums of loads that are none would overflow.
    known = {
        target.id: RemoteLoad(queue=min(max(target.load, 0.0), 1.0) if isfinite(target.load) else target.load)
        for target in targets
        if target.load is not None
    }
    return Loads(remote=known) if known else None


@functools.cache
def chooser_of(source: Targets) -> Chooser:
    """The one of this process."""
    return Chooser(source, sender(os.environ), background=ThreadPoolExecutor(1, thread_name_prefix="ballast-routing"))
