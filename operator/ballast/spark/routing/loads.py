"""How busy a target is, next to a consumer's lag: by a query of Prometheus, and by how long one's own calls take."""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ballast.prometheus.client import Prometheus
from ballast.prometheus.endpoint import Endpoint, PrometheusError
from ballast.prometheus.series import without_port

HALF_LIFE_SECONDS = 5.0
"""A call counts half as much after so long, so that a target that is no longer called soon counts as idle again."""
_TIMEOUT_SECONDS = 5.0
_FULL = 1.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PrometheusLoad:
    """Loads from an instant query: 0 is idle, 1 is full. `label` names the label that tells the targets apart.

    The label's value may end in a port, as that of `instance` does. `headers` go with each request.
    """

    url: str
    query: str
    label: str = "instance"
    headers: tuple[tuple[str, str], ...] = ()

    def read(self) -> Mapping[str, float]:
        """By the label's value, with and without its port. Empty, with a warning, if Prometheus does not answer."""
        try:
            answer = _client_of(self.url, self.headers).query(self.query)
        except PrometheusError as error:
            _LOG.warning("routing: no load is known from Prometheus at %s: %s", self.url, error)
            return {}
        found = {
            each.labels[self.label]: min(max(each.values[-1], 0.0), _FULL)
            for each in answer.series
            if self.label in each.labels and each.values and math.isfinite(each.values[-1])
        }
        return {without_port(name): load for name, load in found.items()} | found


def highest(loads: Iterable[float | None]) -> float | None:
    """As Storm joins a receive queue and a connection; None if no load is known."""
    return max((load for load in loads if load is not None), default=None)


@functools.cache
def _client_of(url: str, headers: tuple[tuple[str, str], ...]) -> Prometheus:
    return Prometheus(Endpoint(url, timeout_seconds=_TIMEOUT_SECONDS, headers=dict(headers)))


@dataclass(slots=True)
class _Recent:
    """The calls of one target: how many there were and the sum of their loads, both decaying; and those in flight."""

    count: float = 0.0
    loads: float = 0.0
    at: float = 0.0
    began: list[float] = field(default_factory=list)

    def decay(self, now: float) -> None:
        left = 0.5 ** ((now - self.at) / HALF_LIFE_SECONDS)
        self.count, self.loads, self.at = self.count * left, self.loads * left, now


class Calls:
    """How long the calls of this process take. A target is fully loaded if they take `seconds_at_full`. Thread-safe."""

    def __init__(self, seconds_at_full: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds_at_full, self._clock = seconds_at_full, clock
        self._recent: dict[str, _Recent] = {}
        self._lock = threading.Lock()

    @contextmanager
    def timed(self, target: str) -> Iterator[None]:
        """Counts its block as one call. A call that raises counts as full: what refuses at once is not fast."""
        began = self._clock()
        with self._lock:
            self._recent.setdefault(target, _Recent(at=began)).began.append(began)
        failed = True
        try:
            yield
            failed = False
        finally:
            now = self._clock()
            with self._lock:
                recent = self._recent[target]
                recent.began.remove(began)
                recent.decay(now)
                recent.count += 1.0
                recent.loads += _FULL if failed else self._load(now - began)

    def load(self, target: str) -> float:
        """0…1: the mean of the recent calls, or what the oldest call in flight has come to, if that is more."""
        now = self._clock()
        with self._lock:
            recent = self._recent.get(target)
            if recent is None:
                return 0.0
            recent.decay(now)
            waiting = self._load(now - min(recent.began, default=now))
            return max(recent.loads / max(recent.count, 1.0), waiting)

    def _load(self, seconds: float) -> float:
        return min(seconds / self._seconds_at_full, _FULL)
