"""Since when ours is the last gate of a pod that is waited for, and the release of pods whose gate no operator serves.

A pod does not record when another controller's gate was removed. So the time is that of the first reading in which
ours was alone. For a pod that was never read with another gate it is its creation. After a restart such a pod counts
as having waited, and is released sooner rather than later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from ballast.kube import actions, kinds, names
from ballast.kube.client import Client
from ballast.kube.errors import KubeError
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.model import Levels, Pin, Placement, Reason
from ballast.tenancy.lane import Lane

STALE_AFTER_SECONDS = 11.5
"""A little more than the longest gate timeout: by then the leader should have released the pod."""
_NOTICED_SECONDS = 5.0
"""Until every API server surely sees a change of the gate switch; pods are stamped with whole seconds."""

Rests = Callable[[Mapping[str, str]], Mapping[str, float]]
"""Takes namespaces out of the gate switch, as `Switch.rest`."""
LabelsOf = Callable[[str], Mapping[str, str]]
"""The labels of a namespace; none where they are not known."""


@dataclass(frozen=True, slots=True)
class GateClock:
    alone_since: Mapping[str, float | None] = field(default_factory=dict)
    """By pod uid; None while another gate is there."""
    first_read: Mapping[str, float] = field(default_factory=dict)
    """By pod uid: when ours was first read to be alone. By its stamp, which is in whole seconds, a pod has often waited
    for long when it comes, and those that come with it would not be waited for."""
    created_within_seconds: float = 0.0
    """Of its stamp: a pod counts as first read within this. So what was there before a restart is not new."""

    def after(self, pods: Iterable[Pod], now: float) -> GateClock:
        """The clock after these pods, which are all; it forgets pods that are not gated."""
        gated = (pod for pod in pods if names.GATE in pod.gates and not pod.ended)
        alone = {pod.uid: self._since(pod, now) for pod in gated}
        latest = {uid: since + self.created_within_seconds for uid, since in alone.items() if since is not None}
        read = {uid: min(self.first_read.get(uid, now), at, now) for uid, at in latest.items()}
        return replace(self, alone_since=alone, first_read=read)

    def holds_alone(self, pods: Iterable[Pod]) -> bool:
        """Whether one of these pods, which it has seen, waits for Ballast and for nothing else."""
        return any(self.alone_since.get(pod.uid) is not None and not pod.leaving for pod in pods)

    def _since(self, pod: Pod, now: float) -> float | None:
        if pod.awaited_gates:
            return None
        since = self.alone_since.get(pod.uid, pod.created_at)
        # Our clock may be behind the server's, or be set back: no pod may wait until it has caught up.
        return now if since is None else min(since, now)


def refused(
    pods: Iterable[Pod], outcomes: Mapping[str, actions.ReleaseOutcome], rest: Rests, labels_of: LabelsOf
) -> list[Pod]:
    """The executors to delete, so that Spark creates others, which nothing gates: their releases were refused.

    `outcomes`: of the releases, by uid. Only executors that opted in are deleted, whatever account this runs as. An
    executor that was created after its namespace has been taken out of the switch has the gate from a pod template. So
    would its successors: it is tried again, and not deleted.
    """
    labels_of = cache(labels_of)
    stuck = [
        (pod, outcome) for pod in pods if _is_refused(outcome := outcomes.get(pod.uid)) and _replaceable(pod, labels_of)
    ]
    if not stuck:
        return []
    resting = rest({pod.namespace: outcome.detail for pod, outcome in stuck if isinstance(outcome, actions.Refused)})
    return [
        pod
        for pod, _ in stuck
        if pod.namespace in resting and pod.created_at < resting[pod.namespace] + _NOTICED_SECONDS
    ]


def _is_refused(outcome: actions.ReleaseOutcome | None) -> bool:
    """Refused because of this pod or of what was to be written: not for want of a right, or by a broken API server."""
    return isinstance(outcome, actions.Refused) and not outcome.forbidden and (outcome.unacceptable or outcome.lasting)


def _replaceable(pod: Pod, labels_of: LabelsOf) -> bool:
    if pod.executor is None or pod.executor.opted_out or names.GATE not in pod.gates or pod.awaited_gates:
        return False
    return pod.opted_in({}) or pod.opted_in(labels_of(pod.namespace))


class StaleGates:
    """Releases, as they are, pods that wait longer than the longest gate timeout.

    A pod that is no executor is not made to wait at all: our gate came with a template that it shares.
    """

    def __init__(self, client: Client, *, clock: Callable[[], float], rest: Rests = lambda _: {}) -> None:
        """`rest`: as `Switch.rest`."""
        self._client, self._clock, self._rest, self._lane = client, clock, rest, Lane()
        self._reader = PodReader()
        self._gates = GateClock()

    def look(self) -> list[Pod]:
        """The pods that our gate holds; from now on it is known since when ours is their last."""
        # A gated pod has no node yet: pods that are only starting need not be read.
        query = Query(kinds.POD, fields="status.phase=Pending,spec.nodeName=")
        pods = [pod for pod in read_list(self._client, query, self._reader.read).items if pod.held and not pod.leaving]
        self._gates = self._gates.after(pods, self._clock())
        return pods

    def release(
        self, *, older_than_seconds: float, replace: bool
    ) -> dict[str, actions.ReleaseOutcome | actions.Deleted]:
        """Release those whose last gate has been ours for so long, and those that are no executors.

        `replace`: as in `release_all`. Returns the outcomes by pod (`namespace/name`).
        """
        now = self._clock()
        waiting = (p for p in self.look() if p.executor is None or self._waited(p, now) >= older_than_seconds)
        return self._released(waiting, replace=replace)

    def release_all(self, *, replace: bool) -> dict[str, actions.ReleaseOutcome | actions.Deleted]:
        """The same for all pods, also those with other gates: Ballast's gate is removed, the others stay.

        `replace`: delete executors whose release is refused, which may be new. So not after a first refusal: it may be
        one of a moment.
        """
        return self._released(self.look(), replace=replace)

    def _released(self, pods: Iterable[Pod], *, replace: bool) -> dict[str, actions.ReleaseOutcome | actions.Deleted]:
        """Executors whose release is refused are deleted once nothing gates their successors."""
        pods = list(pods)
        orders = [order for pod in pods if (order := _order(pod))]
        outcomes = actions.release_many(self._client, self._lane, orders, Levels(()), patiently=True)
        found: dict[str, actions.ReleaseOutcome | actions.Deleted] = {
            f"{order.namespace}/{order.name}": outcome for order, outcome in zip(orders, outcomes, strict=True)
        }
        by_uid = {order.uid: outcome for order, outcome in zip(orders, outcomes, strict=True)}
        stuck = refused(pods, by_uid, self._rest, self._labels_of) if replace else []
        for pod, outcome in actions.delete_gated_many(self._client, self._lane, stuck, patiently=True):
            if isinstance(outcome, actions.Deleted | actions.Vanished):
                found[pod.key] = outcome
        return found

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        try:
            return self._client.get(kinds.NAMESPACE, namespace)["metadata"].get("labels") or {}
        except KubeError:
            return {}

    def _waited(self, pod: Pod, now: float) -> float:
        since = self._gates.alone_since.get(pod.uid)
        return -1.0 if since is None else now - since


def _order(pod: Pod) -> actions.Release | None:
    as_it_is = Placement(pod.key, pod.uid, None, (), Pin.NONE, Reason.GATE_TIMEOUT, "no pass placed it in time")
    return actions.order(pod, as_it_is)
