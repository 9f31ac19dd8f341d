"""What the cluster state knows of pods, kept so that a pass need not walk over all of them.

Executors, drivers, gated pods and pods that wait for a node are handed to a pass one by one. All others only take room
on their nodes and may be the fixed end of a topology: of them a pass gets sums by node, and the pods of the namespaces
that it asks for.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.controller.failures import Failure, failure
from ballast.controller.quota import of_template, takes
from ballast.kube import names
from ballast.kube.anti_affinity import AntiAffinityTerm
from ballast.kube.pods import Pod
from ballast.kube.requested import Requested
from ballast.kube.shared_values import SharedValues
from ballast.model import Constraints, Resources
from ballast.tenancy.door import KEPT_BYTES, ByValue, Kept, Tally

_LABEL_BYTES = 4 << 10
"""Of one pod's labels: several times what Spark and its operators write."""
_UNREAD = Constraints(
    unread=f"pods of its namespace demand nodes in too many ways ({KEPT_BYTES}): what it demands is not read"
)


@dataclass(frozen=True, slots=True)
class OtherPods:
    """Pods that are bound and neither executors nor drivers nor gated."""

    requested: Mapping[str, Resources] = field(default_factory=dict)
    """Sums of requests, by node."""
    by_priority: Mapping[str, Mapping[int, Resources]] = field(default_factory=dict)
    """The same by priority, of those that are not leaving."""
    by_namespace: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    """The pods themselves, of the namespaces that were asked for."""
    keeping_away: Mapping[tuple[str, AntiAffinityTerm], frozenset[str]] = field(default_factory=dict)
    """Nodes of those that keep other pods away, by their namespace and the term of their anti-affinity."""


class PodIndex:
    """Follows a Store of pods by `changed`; readers hold the store's lock.

    `gated`: called when a pod has come to our gate; `notify`: when something else changed that a pass can act on;
    `failed`: when an executor was seen to fail.
    """

    def __init__(
        self, *, notify: Callable[[], None], gated: Callable[[], None], failed: Callable[[Failure], None]
    ) -> None:
        self._notify, self._gated, self._failed = notify, gated, failed
        self._single: dict[str, Pod] = {}
        self._owned: Counter[str] = Counter()
        """How many executors each pod owns, by its uid. Such a pod is their driver, whatever its labels."""
        self._others: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._on_node: dict[str, dict[str, Pod]] = defaultdict(dict)
        self._sums: dict[str, Resources] = {}
        self._by_priority: dict[str, Mapping[int, Resources]] = {}
        self._stale_sums: set[str] = set()
        self._keeping_away: dict[tuple[str, AntiAffinityTerm], Counter[str]] = defaultdict(Counter)
        """How many of `_others` on each node keep other pods away, by their namespace and term."""
        self._labels: SharedValues[Mapping[str, str]] = SharedValues()
        self._affinities: SharedValues[Mapping[str, Any]] = SharedValues()
        self._kept, self._tally = Kept(), Tally()

    def changed(self, before: Pod | None, after: Pod | None) -> None:
        if before is not None:
            self._forget(before)
        if after is not None:
            self._learn(after)
        if after is not None and after.held is not None and (before is None or before.gates != after.gates):
            self._gated()
        elif _of_interest(before) != _of_interest(after):
            self._notify()
        found = None if after is None else failure(after)
        if found is not None:
            self._failed(found)

    def single(self) -> tuple[Pod, ...]:
        """Executors, drivers, gated pods, and pods without a node."""
        return tuple(self._single.values())

    def crowded(self) -> frozenset[str]:
        """Namespaces whose executors and drivers exceed a limit."""
        return self._tally.crowded()

    def gated(self) -> list[Pod]:
        """Pods that our gate is in."""
        return [pod for pod in self._single.values() if pod.held is not None]

    def others(self, namespaces: Iterable[str]) -> OtherPods:
        for node in self._stale_sums:
            self._sum(node)
        self._stale_sums.clear()
        by_namespace = {name: tuple(self._others[name].values()) for name in namespaces if name in self._others}
        keeping_away = {key: frozenset(nodes) for key, nodes in self._keeping_away.items()}
        return OtherPods(dict(self._sums), dict(self._by_priority), by_namespace, keeping_away)

    def slim(self, pod: Pod) -> Pod:
        """The pod, with labels and affinity that it shares with others of its template: there may be 100 000 pods.

        Labels that are longer than any template's are not kept, except for those that Ballast or Spark gives a meaning.
        Nor are demands of nodes beyond what is kept of the pod's namespace.
        """
        return self._within_demands(self._with_labels(self.with_nomination(pod)))

    def with_nomination(self, pod: Pod) -> Pod:
        """The pod with its nomination as Ballast's or another's, whatever a user has written into managedFields.

        Ballast nominates only pods that its gate holds, so a nomination that comes later is kube-scheduler's. If
        Ballast cleared that, kube-scheduler would preempt further pods, next to those that are leaving already.
        """
        known, now = self._single.get(pod.uid), pod.nomination
        if known is None or now is None:
            return pod
        before = known.nomination
        if before is not None and before.node == now.node:
            return replace(pod, nomination=before)
        return pod if known.held is not None else replace(pod, nomination=replace(now, ours=False))

    def _with_labels(self, pod: Pod) -> Pod:
        key = marshal.dumps(sorted(pod.labels.items()), 2)
        if len(key) > _LABEL_BYTES:
            return replace(pod, labels={key: value for key, value in pod.labels.items() if names.known(key)})
        if self._is_single(pod):
            return pod
        return replace(pod, labels=self._labels.of(key, lambda: pod.labels))

    def _within_demands(self, pod: Pod) -> Pod:
        held, demanded = pod.held, of_template(pod)
        if not self._kept.fits(pod.namespace, ByValue(demanded), demanded.size):
            pod = replace(pod, constraints=_UNREAD)
        if held is None or held.node_affinity is None:
            return pod
        affinity: Any = held.node_affinity
        written = marshal.dumps(affinity, 2)
        if self._kept.fits(pod.namespace, _digest(written), len(written)):
            return replace(pod, held=replace(held, node_affinity=self._affinities.of(written, lambda: affinity)))
        return replace(pod, held=replace(held, node_affinity=None, unread=True))

    def _learn(self, pod: Pod) -> None:
        for key, size in _demands(pod):
            self._kept.add(pod.namespace, key, size)
        self._tally.add(pod.namespace, takes(pod))
        if pod.executor is not None and pod.executor.owner_uid:
            self._own(pod.executor.owner_uid, pod.namespace)
        if self._is_single(pod):
            self._single[pod.uid] = pod
            return
        self._others[pod.namespace][pod.uid] = pod
        if pod.node is not None:
            self._on_node[pod.node][pod.uid] = pod
            self._stale_sums.add(pod.node)
            for term in pod.keeps_away_by:
                self._keeping_away[pod.namespace, term][pod.node] += 1

    def _forget(self, pod: Pod) -> None:
        for key, _ in _demands(pod):
            self._kept.remove(pod.namespace, key)
        self._tally.remove(pod.namespace, takes(pod))
        if pod.executor is not None and pod.executor.owner_uid:
            self._disown(pod.executor.owner_uid)
        if self._single.pop(pod.uid, None) is not None:
            return
        _take_out(self._others, pod.namespace, pod.uid)
        if pod.node is not None:
            _take_out(self._on_node, pod.node, pod.uid)
            self._stale_sums.add(pod.node)
            for term in pod.keeps_away_by:
                self._let_near((pod.namespace, term), pod.node)

    def _is_single(self, pod: Pod) -> bool:
        role = pod.executor is not None or pod.is_driver or self._owned[pod.uid] > 0
        return role or pod.held is not None or (pod.node is None and not pod.ended)

    def _own(self, owner: str, namespace: str) -> None:
        known = self._others.get(namespace, {}).get(owner)
        if known is not None:
            self._forget(known)
        self._owned[owner] += 1
        if known is not None:
            self._learn(known)

    def _disown(self, owner: str) -> None:
        known = self._single.get(owner) if self._owned[owner] == 1 else None
        if known is not None and known.executor is not None:
            known = None  # it stays one of the executors, which may name each other
        if known is not None:
            self._forget(known)
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]
        if known is not None:
            self._learn(known)

    def _let_near(self, key: tuple[str, AntiAffinityTerm], node: str) -> None:
        nodes = self._keeping_away[key]
        nodes[node] -= 1
        if not nodes[node]:
            del nodes[node]
        if not nodes:
            del self._keeping_away[key]

    def _sum(self, node: str) -> None:
        pods = self._on_node.get(node)
        if not pods:
            self._sums.pop(node, None)
            self._by_priority.pop(node, None)
            return
        requested, by_priority = Requested(), defaultdict[int, Requested](Requested)
        for pod in pods.values():
            requested.add(pod)
            if not pod.leaving:
                by_priority[pod.priority].add(pod)
        self._sums[node] = requested.on(node)
        self._by_priority[node] = {priority: found.on(node) for priority, found in by_priority.items()}


def _demands(pod: Pod) -> Iterator[tuple[Hashable, int]]:
    """What is kept of what it demands of nodes, and its size: equal for pods of one template."""
    demanded = of_template(pod)
    yield ByValue(demanded), demanded.size
    if pod.held is not None and pod.held.node_affinity is not None:
        affinity: Any = pod.held.node_affinity
        written = marshal.dumps(affinity, 2)
        yield _digest(written), len(written)


def _digest(written: bytes) -> bytes:
    return hashlib.blake2b(written, digest_size=16).digest()


def _of_interest(pod: Pod | None) -> tuple[object, ...] | None:
    """What a pass can act on: a gate, a node, a phase, a departure, a nomination by which kube-scheduler keeps room in
    vain, a pin to where no node takes the pod; of other pods only our gate.
    """
    if pod is None or not (pod.executor is not None or pod.is_driver or pod.held is not None):
        return None
    return (
        pod.gates,
        pod.node,
        pod.status_phase,
        pod.phase,
        pod.leaving,
        pod.unschedulable and _tied(pod),
    )


def _tied(pod: Pod) -> bool:
    return pod.nominated is not None or (pod.executor is not None and pod.executor.pinned_at is not None)


def _take_out(groups: dict[str, dict[str, Pod]], key: str, uid: str) -> None:
    group = groups[key]
    del group[uid]
    if not group:
        del groups[key]
