"""Executors that came without the gate although the switch gates executors there.

A mutating webhook that knows an older pod drops what it does not know, the gates among it. Such executors are scheduled
without regard to what they talk to, and nothing else would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ballast.kube import names
from ballast.kube.pods import Pod
from ballast.model import KUBE_SCHEDULER

NOTICED_SECONDS = 10.0
"""Until every API server surely gates by a change of the switch, or of a namespace's labels."""

Labels = Mapping[str, str]


class Ungated:
    """Compares what was meant to be gated with what came. An executor counts as long as its pod exists.

    Only executors are judged that are seen within a moment of their creation: others may have been released meanwhile.
    """

    def __init__(self) -> None:
        self._seen: frozenset[str] | None = None
        """Uids of all executors at the last look; None before the first."""
        self._since: dict[tuple[str, bool], float] = {}
        """Since when executors are gated, by namespace and whether its label opts all of them in."""
        self._found: dict[str, str] = {}
        """Keys of pods by uid."""

    def look(
        self,
        pods: Iterable[Pod],
        namespaces: Mapping[str, Labels],
        *,
        gates: Callable[[str], bool],
        now: float,
    ) -> tuple[str, ...]:
        """The executors (`namespace/pod`) without the gate. `gates`: whether the switch gates in a namespace now."""
        kept = {name: labels.get(names.GATE_CHOICE) == "enabled" for name, labels in namespaces.items() if gates(name)}
        self._since = {key: self._since.get(key, now) for key in kept.items()}
        executors = {pod.uid: pod for pod in pods if pod.executor is not None}
        if self._seen is not None:
            new = executors.keys() - self._seen
            self._found |= {uid: executors[uid].key for uid in new if self._is_missed(executors[uid], kept, now)}
        self._seen = frozenset(executors)
        self._found = {uid: key for uid, key in self._found.items() if uid in executors}
        return tuple(sorted(self._found.values()))

    def _is_missed(self, pod: Pod, kept: Mapping[str, bool], now: float) -> bool:
        labeled = kept.get(pod.namespace)
        if labeled is None or pod.executor is None or pod.executor.opted_out or pod.scheduler != KUBE_SCHEDULER:
            return False
        opted_in = labeled or names.TOPOLOGY in pod.labels
        since = self._since[pod.namespace, labeled]
        timely = since + NOTICED_SECONDS <= pod.created_at and now - pod.created_at <= NOTICED_SECONDS
        return opted_in and timely and names.GATE not in pod.gates
