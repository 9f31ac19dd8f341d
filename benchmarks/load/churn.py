"""Applications that come and go at a steady pace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice

from benchmarks.load.pods import driver, executor, release_operations
from benchmarks.load.server import Server
from tests.testbed.nodes import NodeSpec

_DRIVER_LEAD_SECONDS = 0.5
"""A driver is there before its first executor."""


class Gating(Enum):
    NONE = "none"
    LOOP = "loop"
    """The gate is in the pod's spec, and the load itself patches it away."""
    BALLAST = "ballast"
    """The admission policy sets it, and the operator releases."""


@dataclass(frozen=True, slots=True)
class Pace:
    executors_per_second: float
    seconds: float
    lifetime_seconds: float = 30.0
    set_size: int = 12
    debounce_seconds: float = 0.3

    @property
    def sets(self) -> int:
        return max(1, round(self.executors_per_second * self.seconds / self.set_size))

    def begins(self, set_: int, number: int = 0) -> float:
        """Seconds from the start until this executor is created."""
        return _DRIVER_LEAD_SECONDS + (set_ * self.set_size + number) / self.executors_per_second


@dataclass(frozen=True, slots=True)
class Churned:
    """What one run did. `sets`: names of executors, in the order in which they were created."""

    sets: list[list[str]]
    started_at: float
    """Monotonic seconds."""
    ended_at: float
    late_seconds: list[float]
    """By how much each request was sent too late: the load generator's own trouble."""


Step = tuple[float, Callable[[float], None]]
"""When it is due, in seconds from the start; and what sends the request, which is told when it was due."""


class Churn:
    """Creates sets of executors, one set after the other, and deletes each executor after its lifetime."""

    def __init__(self, server: Server, namespace: str, pace: Pace, gating: Gating, place: NodeSpec) -> None:
        """`place`: where the load's own patches send executors."""
        self._server, self._pace, self._gating = server, pace, gating
        self._namespace, self._operations = namespace, release_operations(place)
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._drivers: dict[int, Future[str]] = {}
        self._requests: list[Future[None]] = []
        self._late: list[float] = []

    def run(self) -> Churned:
        """Returns when the time is over; what was created last is still there. Raises what a request raised."""
        steps = sorted(self._steps(), key=lambda step: step[0])
        with ThreadPoolExecutor(self._server.connections) as threads:
            self._threads = threads
            started = time.monotonic()
            for at, step in steps:
                time.sleep(max(0.0, started + at - time.monotonic()))
                step(started + at)
            time.sleep(max(0.0, started + self._pace.seconds - time.monotonic()))
        ended = time.monotonic()
        for request in self._requests:
            request.result()
        sets = [[self.name(set_, number) for number in range(self._pace.set_size)] for set_ in range(self._pace.sets)]
        return Churned(sets, started, ended, self._late)

    def name(self, set_: int, number: int) -> str:
        return f"{_application(set_)}-exec-{number + 1}"

    def _steps(self) -> Iterator[Step]:
        pace = self._pace
        for set_ in range(pace.sets):
            yield pace.begins(set_) - _DRIVER_LEAD_SECONDS, partial(self._start_driver, set_)
            numbers = range(pace.set_size)
            for number in numbers:
                created = pace.begins(set_, number)
                yield created, partial(self._create, set_, number)
                if created + pace.lifetime_seconds < pace.seconds:
                    yield created + pace.lifetime_seconds, partial(self._delete, self.name(set_, number))
            last = pace.begins(set_, pace.set_size - 1)
            if self._gating is Gating.LOOP:
                for number in numbers:
                    yield last + pace.debounce_seconds, partial(self._release, set_, number)
            if last + pace.lifetime_seconds < pace.seconds:
                yield last + pace.lifetime_seconds, partial(self._delete, f"{_application(set_)}-driver")

    def _start_driver(self, set_: int, _due: float) -> None:
        body = driver(_application(set_), namespace=self._namespace)
        self._drivers[set_] = self._threads.submit(lambda: str(self._server.post(self._pods, body)["metadata"]["uid"]))

    def _create(self, set_: int, number: int, due: float) -> None:
        self._submit(due, lambda: self._server.post(self._pods, self._executor(set_, number)))

    def _executor(self, set_: int, number: int) -> dict[str, object]:
        return executor(
            number + 1,
            _application(set_),
            namespace=self._namespace,
            driver_uid=self._drivers[set_].result(),
            gated=self._gating is Gating.LOOP,
        )

    def _release(self, set_: int, number: int, due: float) -> None:
        path = f"{self._pods}/{self.name(set_, number)}"
        self._submit(due, lambda: self._server.patch(path, self._operations))

    def _delete(self, name: str, due: float) -> None:
        self._submit(due, lambda: self._server.delete(f"{self._pods}/{name}"))

    def _submit(self, due: float, request: Callable[[], object]) -> None:
        def done() -> None:
            self._late.append(time.monotonic() - due)
            request()

        self._requests.append(self._threads.submit(done))


def one_set(server: Server, namespace: str, name: str, *, size: int) -> list[str]:
    """A driver and its gated executors, at once; the executors' names."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    uid = server.post(path, driver(name, namespace=namespace))["metadata"]["uid"]
    bodies = [executor(n + 1, name, namespace=namespace, driver_uid=uid, gated=True) for n in range(size)]
    return [server.post(path, body)["metadata"]["name"] for body in bodies]


def create_all(server: Server, namespace: str, bodies: Iterator[dict[str, object]], *, count: int) -> None:
    with ThreadPoolExecutor(server.connections) as threads:
        list(threads.map(lambda body: server.post(f"/api/v1/namespaces/{namespace}/pods", body), islice(bodies, count)))


def _application(set_: int) -> str:
    return f"app-{set_:05d}"
