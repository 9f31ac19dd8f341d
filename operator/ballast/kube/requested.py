"""What the pods on each node request together."""

from __future__ import annotations

from collections.abc import Mapping

from ballast.kube.pods import Pod
from ballast.model import Resources


class Requested:
    """Adds up pod by pod; pods that have ended request nothing, pods that are terminating still do.

    `before`: what further pods on each node request, which are not added one by one.
    """

    def __init__(self, before: Mapping[str, Resources] | None = None) -> None:
        self._plain: dict[str, list[float]] = {}
        self._extended: dict[str, dict[str, float]] = {}
        for node, requested in (before or {}).items():
            self._take(node, requested)

    def add(self, pod: Pod, *, kept_on: str | None = None) -> None:
        """`kept_on`: the node whose room is kept for it although it is not bound."""
        node = pod.node or kept_on
        if node is not None and not pod.ended:
            self._take(node, pod.requests)

    def _take(self, node: str, asked: Resources) -> None:
        sums = self._plain.get(node)
        if sums is None:
            sums = self._plain[node] = [0.0, 0.0, 0.0]
        sums[0] += asked.cpu_cores
        sums[1] += asked.memory_bytes
        sums[2] += asked.pods
        if asked.extended:
            amounts = self._extended.setdefault(node, {})
            for name, amount in asked.extended:
                amounts[name] = amounts.get(name, 0.0) + amount

    def on(self, node: str) -> Resources:
        cpu_cores, memory_bytes, pods = self._plain.get(node, (0.0, 0.0, 0.0))
        return Resources(cpu_cores, memory_bytes, pods, tuple(sorted(self._extended.get(node, {}).items())))
