"""When a watch saw each executor created, released and bound: one clock for all, finer than the server's seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ballast.kube import names
from benchmarks.load.server import Server

EXECUTORS = f"labelSelector={names.SPARK_ROLE}%3Dexecutor"


class _Metadata(msgspec.Struct):
    name: str


class _Gate(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    node_name: str | None = msgspec.field(name="nodeName", default=None)
    scheduling_gates: list[_Gate] = msgspec.field(name="schedulingGates", default_factory=list)
    affinity: dict[str, Any] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _Event(msgspec.Struct):
    type: str
    object: _Pod


@dataclass(slots=True)
class Sighting:
    """Monotonic seconds; None until it was seen."""

    created_at: float
    gated: bool
    released_at: float | None = None
    bound_at: float | None = None
    placed: bool = False
    """It was released with a node affinity."""


class Sightings:
    """Watches the executors of one namespace from now on, in a thread that ends with the process."""

    def __init__(self, server: Server, namespace: str) -> None:
        self._server, self._namespace = server, namespace
        self._seen: dict[str, Sighting] = {}
        self._decoder = msgspec.json.Decoder(_Event)
        threading.Thread(target=self._watch, daemon=True, name=f"watch-{namespace}").start()

    def of(self, pods: Sequence[str]) -> list[Sighting | None]:
        """What was seen of these pods, in their order."""
        return [self._seen.get(name) for name in pods]

    def released(self, pods: Sequence[str]) -> bool:
        return all(each is not None and each.released_at is not None for each in self.of(pods))

    def bound(self, pods: Sequence[str]) -> bool:
        return all(each is not None and each.bound_at is not None for each in self.of(pods))

    def _watch(self) -> None:
        for line in self._server.watch(f"/api/v1/namespaces/{self._namespace}/pods?{EXECUTORS}"):
            now = time.monotonic()
            event = self._decoder.decode(line)
            if event.type in ("ADDED", "MODIFIED"):
                self._take(event.object, now)

    def _take(self, pod: _Pod, now: float) -> None:
        gated = any(gate.name == names.GATE for gate in pod.spec.scheduling_gates)
        seen = self._seen.setdefault(pod.metadata.name, Sighting(now, gated))
        if not gated and seen.released_at is None:
            seen.released_at = now
            seen.placed = "nodeAffinity" in (pod.spec.affinity or {})
        if pod.spec.node_name and seen.bound_at is None:
            seen.bound_at = now
