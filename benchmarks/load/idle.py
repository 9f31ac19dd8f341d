"""A quiet minute: what replicas use while nothing happens, and which of their writes change nothing."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE, GATE_SWITCH, LEASE, SPARK_TOPOLOGY
from benchmarks.load import usage
from benchmarks.load.replicas import NAMESPACE, Replica
from benchmarks.load.server import Server
from tests.testbed.audit import Request

_WRITTEN = (BALANCING_POLICY, SPARK_TOPOLOGY, EXECUTOR_MOVE, GATE_SWITCH, LEASE)
"""What a replica may write again while nothing happens."""
_KEPT_BY_THE_SERVER = ("resourceVersion", "managedFields")
_LAST_EVENTS_SECONDS = 2.0

Key = tuple[str, str]
"""Resource and name."""


@dataclass(frozen=True, slots=True)
class Idle:
    since: datetime
    until: datetime
    seconds: float
    replica_cpu_seconds: list[float]
    changes: Counter[Key]
    """How often each object became different."""

    def vain(self, asked: Sequence[Request]) -> int:
        """Updates and patches after which the object was what it had been."""
        writes = Counter(_key(each) for each in asked if each.verb in ("update", "patch"))
        return sum(max(0, count - self.changes[key]) for key, count in writes.items())


def quiet(server: Server, replicas: Sequence[Replica], *, seconds: float) -> Idle:
    """Look on for so long."""
    changes = _Changes(server)
    time.sleep(_LAST_EVENTS_SECONDS)
    changes.counted.clear()
    before, since, started = [each.meter.cpu_seconds() for each in replicas], usage.now(), time.monotonic()
    time.sleep(seconds)
    used = [each.meter.cpu_seconds() - was for each, was in zip(replicas, before, strict=True)]
    until, lasted = usage.now(), time.monotonic() - started
    time.sleep(_LAST_EVENTS_SECONDS)
    return Idle(since, until, lasted, used, changes.counted)


@dataclass(slots=True)
class _Changes:
    """Watches what replicas write, in threads that end with the process."""

    server: Server
    counted: Counter[Key] = field(default_factory=Counter)
    _known: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in _WRITTEN:
            path = kind.path(namespace=NAMESPACE if kind is LEASE else None)
            threading.Thread(target=self._watch, args=(kind.plural, path), daemon=True).start()

    def _watch(self, plural: str, path: str) -> None:
        for line in self.server.watch(path):
            found = json.loads(line)["object"]
            key = (plural, found["metadata"]["name"])
            for name in _KEPT_BY_THE_SERVER:
                found["metadata"].pop(name, None)
            if self._known.get(key) != found:
                self.counted[key] += 1
            self._known[key] = found


def _key(request: Request) -> Key:
    return request.resource.partition("/")[0], request.name
