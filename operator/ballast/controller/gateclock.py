"""Since when ours is the last gate of a pod.

A pod does not say when another controller's gate left. So the time is the first look at which ours was alone; for
a pod that was never seen with another gate, its creation (also after a restart: then it counts as having waited,
and is released sooner rather than later).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ballast.kube import names
from ballast.kube.pods import Pod

STALE_AFTER_SECONDS = 11.5
"""A little more than the longest gate timeout: by then the leader should have released the pod."""


@dataclass(frozen=True, slots=True)
class GateClock:
    alone_since: Mapping[str, float | None] = field(default_factory=dict)
    """By pod uid; None while another gate is there."""

    def after(self, pods: Iterable[Pod], now: float) -> GateClock:
        """The clock once these pods (all there are) have been looked at; it forgets pods that are not gated."""
        gated = (pod for pod in pods if names.GATE in pod.gates and not pod.ended)
        return GateClock({pod.uid: self._since(pod, now) for pod in gated})

    def _since(self, pod: Pod, now: float) -> float | None:
        if len(pod.gates) > 1:
            return None
        since = self.alone_since.get(pod.uid, pod.created_at)
        # Our clock may be behind the server's, or be set back: no pod may wait until it has caught up.
        return now if since is None else min(since, now)
