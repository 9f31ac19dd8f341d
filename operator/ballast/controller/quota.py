"""How much of the operator's memory the objects of one namespace, and of all, may take.

A user who may create SparkTopologies or ExecutorMoves in one namespace can create very many, and topologies as long as
the API server takes. Objects beyond the quota of their namespace are left alone; an Event and the log name one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

import msgspec

from ballast.kube import kinds
from ballast.kube.document import JSON
from ballast.kube.kinds import Kind
from ballast.kube.pods import Pod

TOPOLOGY_BYTES = 4 << 20
"""Of the specs of one namespace's topologies, as JSON. Parsed, they take about seven times as much."""
LEAST_TOPOLOGY_BYTES = 1 << 10
"""What each topology counts as at least: however short, it takes about seven times that much, too."""
MOVES_BY_HAND = 2_000
"""Of one namespace."""
LABEL_BYTES = 4 << 20
"""Of the labels of one namespace's pods, beyond what is usual. Kept, they take about five times as much."""
ENDED_PODS = 2_000
"""Executors and drivers of one namespace that have ended. Further ones count as any other pod that has ended."""
USUAL_LABEL_BYTES = 2 << 10
"""Of one pod: several times what Spark and its operators write."""
DEMAND_BYTES = 4 << 20
"""Of what one namespace's pods demand of nodes, each template once. Kept, it takes about five times as much."""
OF_ALL = 4
"""All namespaces together may use so many times as much as one, since one user may have many namespaces. Beyond that,
each may use half of its equal part.
"""


class Usage:
    """Sum of sizes, by namespace. `most`: of each, and OF_ALL times as much of all together."""

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._used: Counter[str] = Counter()

    def __len__(self) -> int:
        """Namespaces that use anything."""
        return len(self._used)

    def left(self, namespace: str) -> int:
        """How much more the namespace may use."""
        whole, namespaces = OF_ALL * self._most, len(self._used) + (namespace not in self._used)
        used = self._used.get(namespace, 0)
        return max(0, min(self._most - used, max(whole - self._total, whole // (2 * namespaces) - used)))

    def fits(self, namespace: str, size: int) -> bool:
        return size <= self.left(namespace)

    def fits_alone(self, namespace: str, size: int) -> bool:
        """Whether it would fit if other namespaces used nothing."""
        return self._used.get(namespace, 0) + size <= self._most

    def take(self, namespace: str, size: int) -> bool:
        """Whether it fits; if so, it is added. A namespace that takes nothing counts for no part of the whole."""
        fits = self.fits(namespace, size)
        if fits and size:
            self.add(namespace, size)
        return fits

    def add(self, namespace: str, size: int) -> None:
        self._used[namespace] += size
        self._total += size

    def remove(self, namespace: str, size: int) -> None:
        self.add(namespace, -size)
        if not self._used[namespace]:
            del self._used[namespace]


@dataclass(frozen=True, slots=True)
class Excess:
    """Objects of one namespace that are left alone, by one of them."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    limit: str

    def __str__(self) -> str:
        return (
            f"{self.kind.plural} in {self.namespace} beyond {self.limit} are left alone, {self.name} too: delete some"
        )


class Quota:
    """Not thread-safe: callers hold the lock of the store that the objects are in.

    `most`: of each namespace, and OF_ALL times as much of all together; `limit`: that of each, in words.
    """

    def __init__(self, kind: Kind, most: int, limit: str) -> None:
        self._kind, self._limit, self._usage = kind, limit, Usage(most)
        self._admitted: dict[str, tuple[str, int]] = {}
        """Namespace and size, by uid."""
        self._refused: dict[str, tuple[str, str]] = {}
        """Namespaces and names, by uid."""
        self._refusals: Counter[str] = Counter()
        """How many objects are refused, by namespace."""
        self._freed: set[str] = set()
        """Namespaces with such objects that use less than when `retriable` was last called."""
        self._crowded_out: set[str] = set()
        """Uids of those that are refused because of what other namespaces use."""
        self._has_room = False
        """Whether there are such objects, and any namespace uses less than when `retriable` was last called."""

    def admit(self, uid: str, *, namespace: str, name: str, size: int) -> bool:
        """Whether an object of that size is within the quota. Its size replaces the one that it had before."""
        self.remove(uid)
        if not self._usage.fits(namespace, size):
            if self._usage.fits_alone(namespace, size):
                self._crowded_out.add(uid)
            self._refused[uid] = namespace, name
            self._refusals[namespace] += 1
            return False
        self._admitted[uid] = namespace, size
        self._usage.add(namespace, size)
        return True

    def admit_object(self, raw: JSON, size: int) -> bool:
        metadata = raw["metadata"]
        namespace = metadata.get("namespace") or ""
        return self.admit(metadata["uid"], namespace=namespace, name=metadata["name"], size=size)

    def remove(self, uid: str) -> None:
        if uid in self._refused:
            self._forget_refusal(uid)
        if uid not in self._admitted:
            return
        namespace, size = self._admitted.pop(uid)
        self._usage.remove(namespace, size)
        if namespace in self._refusals:
            self._freed.add(namespace)
        self._has_room = bool(self._crowded_out)

    def _forget_refusal(self, uid: str) -> None:
        namespace, _ = self._refused.pop(uid)
        self._crowded_out.discard(uid)
        self._refusals[namespace] -= 1
        if not self._refusals[namespace]:
            del self._refusals[namespace]
            self._freed.discard(namespace)

    def retain(self, uids: Container[str]) -> None:
        """Remove all others."""
        for uid in [each for each in (*self._admitted, *self._refused) if each not in uids]:
            self.remove(uid)

    def retriable(self) -> frozenset[str]:
        """Uids of refused objects in namespaces that use less than when this was last called.

        Also of those that were refused because of other namespaces, if one of these uses less.
        """
        found = frozenset(uid for uid, (namespace, _) in self._refused.items() if namespace in self._freed)
        if self._has_room:
            found |= self._crowded_out
        self._freed.clear()
        self._has_room = False
        return found

    def excesses(self) -> tuple[Excess, ...]:
        """One of each namespace: its first object by name."""
        first: dict[str, tuple[str, str]] = {}
        for uid, (namespace, name) in self._refused.items():
            first[namespace] = min(first.get(namespace, (name, uid)), (name, uid))
        return tuple(Excess(self._kind, each, *first[each], self._limit_of(first[each][1])) for each in sorted(first))

    def _limit_of(self, uid: str) -> str:
        of_all = f"their part of what all namespaces may have ({OF_ALL} times {self._limit})"
        return of_all if uid in self._crowded_out else self._limit


class TopologyQuota(Quota):
    def __init__(self) -> None:
        super().__init__(kinds.SPARK_TOPOLOGY, TOPOLOGY_BYTES, f"{TOPOLOGY_BYTES >> 20} MiB of specs")

    def admits(self, raw: JSON) -> bool:
        size = max(LEAST_TOPOLOGY_BYTES, len(msgspec.json.encode(raw.get("spec"))))
        return self.admit_object(raw, size)


class MoveQuota(Quota):
    """For moves by hand."""

    def __init__(self) -> None:
        super().__init__(kinds.EXECUTOR_MOVE, MOVES_BY_HAND, f"{MOVES_BY_HAND} by hand")

    def admits(self, raw: JSON) -> bool:
        return self.admit_object(raw, 1)


class LabelQuota(Quota):
    """For labels of pods."""

    def __init__(self) -> None:
        super().__init__(kinds.POD, LABEL_BYTES, f"{LABEL_BYTES >> 20} MiB of labels")

    def admits(self, pod: Pod, size: int) -> bool:
        if size <= USUAL_LABEL_BYTES:
            self.remove(pod.uid)
            return True
        return self.admit(pod.uid, namespace=pod.namespace, name=pod.name, size=size - USUAL_LABEL_BYTES)


class EndedQuota(Quota):
    """For executors and drivers that have ended: finalizers keep them, and no ResourceQuota of `pods` counts them."""

    def __init__(self) -> None:
        super().__init__(kinds.POD, ENDED_PODS, f"{ENDED_PODS} that have ended")

    def admits(self, pod: Pod) -> bool:
        if not pod.ended or (pod.executor is None and not pod.is_driver):
            self.remove(pod.uid)
            return True
        return self.admit(pod.uid, namespace=pod.namespace, name=pod.name, size=1)


class TemplateQuota:
    """For values that pods of one template share, by namespace: each counts once, as long as a pod has it.

    `most`: as in Quota. Not thread-safe: callers hold the lock of the store that the pods are in.
    """

    def __init__(self, most: int) -> None:
        self._usage = Usage(most)
        self._sizes: dict[tuple[str, int], int] = {}
        """By namespace and identity of the value: pods keep it, so that no other can have its identity."""
        self._pods: Counter[tuple[str, int]] = Counter()

    def admits(self, namespace: str, value: object, size: int) -> bool:
        """Whether the value, of that size, is known or within the quota."""
        return (namespace, id(value)) in self._sizes or self._usage.fits(namespace, size)

    def add(self, namespace: str, value: object, size: int) -> None:
        """A pod has it."""
        key = namespace, id(value)
        self._pods[key] += 1
        if key not in self._sizes:
            self._sizes[key] = size
            self._usage.add(namespace, size)

    def remove(self, namespace: str, value: object) -> None:
        """A pod that had it has it no more."""
        key = namespace, id(value)
        self._pods[key] -= 1
        if not self._pods[key]:
            del self._pods[key]
            self._usage.remove(namespace, self._sizes.pop(key))
