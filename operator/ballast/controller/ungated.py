"""Executors that came without the gate although the switch gates executors there.

A mutating webhook that knows an older pod drops what it does not know, the gates among it. Such executors are scheduled
without regard to what they talk to, and nothing else would say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ballast.kube import names
from ballast.kube.pods import Pod

NOTICED_SECONDS = 10.0
"""Until every API server surely gates by a change of the switch, or of a namespace's labels."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Gating:
    """How executors of a namespace are gated."""

    schedulers: frozenset[str]
    labeled: bool
    """Its label opts all of them in."""


class Ungated:
    """Compares what was meant to be gated with what came.

    An executor counts as long as its pod exists, and executors are gated in its namespace.

    Only executors are judged that are seen within a moment of their creation: others may have been released meanwhile.
    """

    def __init__(self) -> None:
        self._seen: frozenset[str] | None = None
        """Uids of all executors at the last look; None before the first."""
        self._since: dict[tuple[str, _Gating], float] = {}
        """Since when executors are gated so, by namespace."""
        self._found: dict[str, Pod] = {}
        """By uid."""

    def look(
        self,
        pods: Iterable[Pod],
        namespaces: Mapping[str, Labels],
        *,
        gates: Callable[[str], frozenset[str]],
        now: float,
    ) -> tuple[str, ...]:
        """The executors (`namespace/pod`) without the gate.

        `gates`: the schedulers whose executors the switch gates in a namespace now; none where it gates none.
        """
        kept = {
            name: _Gating(schedulers, labels.get(names.GATE_CHOICE) == "enabled")
            for name, labels in namespaces.items()
            if (schedulers := gates(name))
        }
        self._since = {key: self._since.get(key, now) for key in kept.items()}
        executors = {pod.uid: pod for pod in pods if pod.executor is not None}
        if self._seen is not None:
            new = executors.keys() - self._seen
            self._found |= {uid: executors[uid] for uid in new if self._is_missed(executors[uid], kept, now)}
        self._seen = frozenset(executors)
        self._found = {uid: pod for uid, pod in self._found.items() if uid in executors}
        return tuple(sorted(pod.key for pod in self._found.values() if pod.namespace in kept))

    def _is_missed(self, pod: Pod, kept: Mapping[str, _Gating], now: float) -> bool:
        gating = kept.get(pod.namespace)
        if gating is None or pod.executor is None or pod.executor.opted_out or pod.scheduler not in gating.schedulers:
            return False
        opted_in = gating.labeled or names.TOPOLOGY in pod.labels
        since = self._since[pod.namespace, gating]
        timely = since + NOTICED_SECONDS <= pod.created_at and now - pod.created_at <= NOTICED_SECONDS
        return opted_in and timely and names.GATE not in pod.gates
