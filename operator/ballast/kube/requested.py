"""Requests of the pods bound to each node."""

from __future__ import annotations

from ballast.kube.pods import Pod
from ballast.model import Resources


class Requested:
    """Adds up pod by pod; those that have ended hold nothing, those that are terminating still do."""

    def __init__(self) -> None:
        self._plain: dict[str, list[float]] = {}
        self._extended: dict[str, dict[str, float]] = {}

    def add(self, pod: Pod) -> None:
        if pod.node is None or pod.ended:
            return
        asked = pod.requests
        sums = self._plain.get(pod.node)
        if sums is None:
            sums = self._plain[pod.node] = [0.0, 0.0, 0.0]
        sums[0] += asked.cpu_cores
        sums[1] += asked.memory_bytes
        sums[2] += asked.pods
        if asked.extended:
            amounts = self._extended.setdefault(pod.node, {})
            for name, amount in asked.extended:
                amounts[name] = amounts.get(name, 0.0) + amount

    def on(self, node: str) -> Resources:
        cpu_cores, memory_bytes, pods = self._plain.get(node, (0.0, 0.0, 0.0))
        return Resources(cpu_cores, memory_bytes, pods, tuple(sorted(self._extended.get(node, {}).items())))
