"""Since when ours is the last gate of a pod, and the release of pods whose gate no operator serves.

A pod does not record when another controller's gate was removed. So the time is that of the first reading in which
ours was alone. For a pod that was never read with another gate it is its creation. After a restart such a pod counts
as having waited, and is released sooner rather than later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ballast.kube import actions, kinds, names
from ballast.kube.client import Client
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.model import Levels, Pin, Placement, Reason

STALE_AFTER_SECONDS = 11.5
"""A little more than the longest gate timeout: by then the leader should have released the pod."""


@dataclass(frozen=True, slots=True)
class GateClock:
    alone_since: Mapping[str, float | None] = field(default_factory=dict)
    """By pod uid; None while another gate is there."""

    def after(self, pods: Iterable[Pod], now: float) -> GateClock:
        """The clock after these pods, which are all; it forgets pods that are not gated."""
        gated = (pod for pod in pods if names.GATE in pod.gates and not pod.ended)
        return GateClock({pod.uid: self._since(pod, now) for pod in gated})

    def holds_alone(self, pods: Iterable[Pod]) -> bool:
        """Whether one of these pods, which it has seen, waits for Ballast and for nothing else."""
        return any(self.alone_since.get(pod.uid) is not None and not pod.leaving for pod in pods)

    def _since(self, pod: Pod, now: float) -> float | None:
        if len(pod.gates) > 1:
            return None
        since = self.alone_since.get(pod.uid, pod.created_at)
        # Our clock may be behind the server's, or be set back: no pod may wait until it has caught up.
        return now if since is None else min(since, now)


class StaleGates:
    """Releases, as they are, pods that wait longer than the longest gate timeout.

    A pod that is no executor is not made to wait at all: our gate came with a template that it shares.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float]) -> None:
        self._client, self._clock = client, clock
        self._reader = PodReader()
        self._gates = GateClock()

    def look(self) -> list[Pod]:
        """The pods that our gate holds; from now on it is known since when ours is their last."""
        # A gated pod has no node yet: pods that are only starting need not be read.
        query = Query(kinds.POD, fields="status.phase=Pending,spec.nodeName=")
        pods = [pod for pod in read_list(self._client, query, self._reader.read).items if pod.held and not pod.leaving]
        self._gates = self._gates.after(pods, self._clock())
        return pods

    def release(self, *, older_than_seconds: float) -> dict[str, actions.ReleaseOutcome]:
        """Release those whose last gate has been ours for so long, and those that are no executors.

        Returns the outcomes by pod (`namespace/name`).
        """
        now = self._clock()
        return self._released(
            pod for pod in self.look() if pod.executor is None or self._waited(pod, now) >= older_than_seconds
        )

    def release_all(self) -> dict[str, actions.ReleaseOutcome]:
        """The same for all pods, also those with other gates: Ballast's gate is removed, the others stay."""
        return self._released(self.look())

    def _released(self, pods: Iterable[Pod]) -> dict[str, actions.ReleaseOutcome]:
        orders = [order for pod in pods if (order := _order(pod))]
        outcomes = actions.release_many(self._client, orders, Levels(()))
        return {f"{order.namespace}/{order.name}": outcome for order, outcome in zip(orders, outcomes, strict=True)}

    def _waited(self, pod: Pod, now: float) -> float:
        since = self._gates.alone_since.get(pod.uid)
        return -1.0 if since is None else now - since


def _order(pod: Pod) -> actions.Release | None:
    as_it_is = Placement(pod.key, pod.uid, None, (), Pin.NONE, Reason.GATE_TIMEOUT, "no pass placed it in time")
    return actions.order(pod, as_it_is)
