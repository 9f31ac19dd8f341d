"""The cluster as the watches tell of it, in memory: a pass takes an immutable copy (ClusterObjects) instead of listing.

Pods, nodes, namespaces and, once an executor mounts a claim, volumes come from informers. kopf's handlers bring the
objects of our own kinds; since kopf does not say how old its watches are, and reports no object that vanished during a
re-list, these few objects are listed as well, now and then, and whatever kopf missed is noticed.

What it shows may be a moment old. Every write is guarded by resource version or uid, so a stale read costs a retry.
What this process wrote itself is put into the state with the answer to the write, so no decision is made twice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.meta import Resource
from ballast.controller.cluster_objects import ClusterObjects, NotInstalledError, Read, oldest_first, resource_of
from ballast.controller.failures import Failure
from ballast.controller.membership import key_of
from ballast.controller.observe import Lists
from ballast.controller.pod_index import PodIndex
from ballast.controller.quota import (
    Excess,
    by_hand,
    excess,
    first_of_each,
    moves_within,
    pod_excess,
    pods_within,
    topologies_within,
)
from ballast.errors import InvalidResource
from ballast.kube import kinds, names
from ballast.kube.client import Client
from ballast.kube.document import JSON, too_long
from ballast.kube.errors import NotFound, Unavailable
from ballast.kube.informer import Informer, Store, Timing, number
from ballast.kube.kinds import Kind
from ballast.kube.nodes import NodeFacts, NodeReader
from ballast.kube.objects import Objects, Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.kube.volumes import Volumes, read_claim, read_storage_class, read_volume
from ballast.tenancy.door import KEPT_BYTES, Kept

_LOG = logging.getLogger(__name__)
R = TypeVar("R", bound=Resource)
STALE_SECONDS = 180.0
"""No decision is made on a watch from which nothing was heard for so long, not even a bookmark."""
_FIRST_LIST_SECONDS = 60.0
_WITHOUT_CLASSES = "executors whose claims have no volume yet are placed without their StorageClass's allowedTopologies"
_METADATA = frozenset(
    ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels")
)
"""What is kept of the metadata of our own kinds' objects."""


@dataclass(frozen=True, slots=True)
class _Namespace:
    name: str
    labels: Mapping[str, str]
    leaving: bool


class ClusterState:
    """Start it, ask it for objects, stop it. `monotonic`: seconds that nothing sets back.

    `gated`: called, from any thread, when a pod has come to our gate; `notify`: when something else changed that a pass
    can act on.
    `failed`: called when an executor was seen to fail; Spark deletes its pod at once.
    """

    def __init__(
        self,
        client: Client,
        *,
        monotonic: Callable[[], float],
        notify: Callable[[], None],
        gated: Callable[[], None],
        failed: Callable[[Failure], None],
        timing: Timing | None = None,
    ) -> None:
        self._client, self._monotonic, self._timing = client, monotonic, timing or Timing()
        self._notify = notify
        self._index = PodIndex(notify=notify, gated=gated, failed=failed)
        reader, nodes = PodReader(), NodeReader()
        self._pods = self._informer(
            Query(kinds.POD), lambda raw: self._index.slim(reader.read(raw)), self._index.changed
        )
        self._nodes = self._informer(Query(kinds.NODE), nodes.read, self._node_changed)
        self._namespaces = self._informer(
            Query(kinds.NAMESPACE, metadata_only=True), _namespace, self._namespace_changed
        )
        self._volumes = self._informer(Query(kinds.VOLUME), read_volume, _unnoticed)
        self._claims = self._informer(Query(kinds.CLAIM), read_claim, _unnoticed, without=_WITHOUT_CLASSES)
        self._classes = self._informer(
            Query(kinds.STORAGE_CLASS), read_storage_class, _unnoticed, without=_WITHOUT_CLASSES
        )
        self._moves: Store[JSON | Excess] = Store(self._move, self._move_changed)
        self._policies: Store[Read[BalancingPolicy] | InvalidResource] = Store(
            partial(_parsed, kinds.BALANCING_POLICY, BalancingPolicy), self._spec_changed
        )
        self._topologies: Store[Read[SparkTopology] | InvalidResource | Excess] = Store(
            self._topology, self._topology_changed
        )
        self._kept = {kinds.SPARK_TOPOLOGY: Kept(), kinds.EXECUTOR_MOVE: Kept()}
        """By uid. What is not kept is read again by `verify`."""
        self._ours: dict[Kind, Store[Any]] = {
            kinds.EXECUTOR_MOVE: self._moves,
            kinds.BALANCING_POLICY: self._policies,
            kinds.SPARK_TOPOLOGY: self._topologies,
        }
        self._heard: dict[str, int] = {}
        """Versions of our own objects, by uid, as kopf told of them."""
        self._uids: dict[tuple[str, str, str], str] = {}
        """Of what kopf has told of, by resource, namespace and name."""
        self._hearing = threading.Lock()
        self._verified_at: float | None = None
        self._restorations = 0
        """Of all stores, as far as `restored` told of them."""
        self._mounting = threading.Lock()
        self._running: list[Informer[Any]] = []

    def _informer(
        self, query: Query, read: Callable[[JSON], Any], changed: Callable[[Any, Any], None], *, without: str = ""
    ) -> Informer[Any]:
        store: Store[Any] = Store(read, changed)
        return Informer(self._client, query, store, monotonic=self._monotonic, timing=self._timing, without=without)

    def start(self) -> None:
        for each in (self._namespaces, self._nodes, self._pods):
            self._start(each)

    def stop(self) -> None:
        for each in self._running:
            each.stop()

    def ages(self) -> dict[str, float]:
        """By resource, seconds since its watch was last heard of; of our own kinds, since they were last compared."""
        found = {each.plural: age for each in self._running if (age := each.age_seconds) is not None}
        if self._verified_at is not None:
            found |= {kind.plural: self._monotonic() - self._verified_at for kind in self._ours}
        return found

    def restarts(self) -> dict[str, int]:
        """By resource, how often its watch had to be opened again because it broke or was silent."""
        return {each.plural: each.restarts for each in self._running}

    def heard(self, kind: Kind, raw: JSON, *, deleted: bool = False) -> None:
        """Take in what kopf tells of an object of ours."""
        store, metadata = self._ours[kind], raw["metadata"]
        uid, version = metadata["uid"], number(metadata.get("resourceVersion"))
        name = (kind.plural, metadata.get("namespace") or "", metadata["name"])
        if deleted:
            store.remove(uid, version)
        else:
            store.put(raw)
        with self._hearing:
            former = self._uids.get(name, uid)
            if deleted:
                self._heard.pop(uid, None)
                if former == uid:
                    self._uids.pop(name, None)
                return
            self._heard[uid] = version
            if former == uid or store.version(former) < version:
                self._uids[name] = uid
            if former != uid:
                # A name is one object's: the event of the other one's deletion was lost, as with its definition.
                older = min(uid, former, key=store.version)
                store.remove(older, store.version(older))

    def wrote(self, kind: Kind, raw: JSON) -> None:
        """The answer to a write of this process. Of a pod it may be the metadata alone: our gate has left it."""
        if kind in self._ours:
            self._ours[kind].put(raw)
        elif kind is kinds.POD and "spec" in raw:
            # Ballast has nominated it. The index must know that before the gate is removed, see `with_nomination`.
            self._pods.store.put(raw)
        elif kind is kinds.POD:
            metadata = raw["metadata"]
            self._pods.store.amend(metadata["uid"], number(metadata.get("resourceVersion")), _without_gate)

    def verify(self) -> Mapping[str, int]:
        """List our own kinds. Returns the listed version (0: it is gone) of each object that was not as listed.

        Its event is late, or lost.

        Raises KubeError, and NotInstalledError where the cluster does not know our kinds.
        """
        for kind in self._kept:
            for each in self._ours[kind].values():
                if isinstance(each, Excess):
                    self._ours[kind].forget(each.uid)
        differing = self._list(*self._ours)
        self._verified_at = self._monotonic()
        with self._hearing:
            known = differing.union(*(store.uids() for store in self._ours.values()))
            self._heard = {uid: version for uid, version in self._heard.items() if uid in known}
            self._uids = {name: uid for name, uid in self._uids.items() if uid in known}
        return {uid: self._version(uid) for uid in differing}

    def _list(self, *those: Kind) -> frozenset[str]:
        """List these kinds of ours; returns the uids of objects that the state had otherwise."""
        differing: set[str] = set()
        for kind in those:
            try:
                differing |= self._ours[kind].replace_all(Objects(self._client, Query(kind)))
            except NotFound as error:
                raise NotInstalledError(kind.plural) from error
        return frozenset(differing)

    def restored(self) -> bool:
        """Whether etcd was restored from a backup since this was last asked.

        Then our own kinds are to be listed again, and kopf to be started again: its watches wait for versions that are
        still to come.
        """
        stores = (*(each.store for each in tuple(self._running)), *self._ours.values())
        if sum(each.restorations for each in stores) == self._restorations:
            return False
        for store in self._ours.values():
            store.start_over()
        self._restorations = sum(each.restorations for each in stores)
        with self._hearing:
            self._heard.clear()
            self._uids.clear()
        self.distrust()
        return True

    def unheard(self, missed: Mapping[str, int]) -> bool:
        """Whether kopf has still not reported one of these objects as `verify` found it.

        A write of this process since then does not count: its event may be late in turn.
        """
        with self._hearing:
            heard = dict(self._heard)
        return any(
            heard.get(uid, 0) < listed and self._version(uid) > 0 if listed else uid in heard
            for uid, listed in missed.items()
        )

    def _version(self, uid: str) -> int:
        """Of an object of ours; 0 without one."""
        return max(store.version(uid) for store in self._ours.values())

    @property
    def has_policies(self) -> bool:
        return bool(self._policies.uids())

    def confirm(self) -> bool:
        """List policies, topologies and namespaces; returns whether they are as the state had them.

        Moves are not listed: they opt no pod in, and there may be thousands.
        """
        namespaces = Objects(self._client, Query(kinds.NAMESPACE, metadata_only=True))
        differing = self._namespaces.store.replace_all(namespaces)
        missed = self._list(kinds.BALANCING_POLICY, kinds.SPARK_TOPOLOGY)
        return not differing and not missed

    def distrust(self) -> None:
        """Have our own kinds listed before the next look: this process did not lead, and must see all moves."""
        self._verified_at = None

    def look(self, *, patience_seconds: float = _FIRST_LIST_SECONDS) -> ClusterObjects:
        """The cluster as it is known now. Raises Unavailable when a watch has been silent for too long.

        `patience_seconds`: how long to wait for the first list of each resource.
        """
        if self._verified_at is None:
            self.verify()
        for each in (self._namespaces, self._nodes, self._pods):
            self._await(each, patience_seconds)
        all_moves, policies, all_topologies = self._moves.values(), self._policies.values(), self._topologies.values()
        moves = moves_within([each for each in all_moves if not isinstance(each, Excess)])
        topologies = topologies_within([each for each in all_topologies if isinstance(each, Read)])
        namespaces = _namespaces_of_ends(topologies.inside, moves.inside)
        lists, excesses = self._lists(namespaces, patience_seconds)
        excesses += [each for each in (*all_moves, *all_topologies) if isinstance(each, Excess)]
        excesses += [excess(kinds.EXECUTOR_MOVE, raw, limit) for raw, limit in moves.outside]
        return ClusterObjects(
            lists,
            oldest_first([each for each in policies if isinstance(each, Read)]),
            tuple(sorted(topologies.inside, key=lambda each: key_of(each.resource))),
            tuple(moves.inside),
            tuple(each for each in (*policies, *all_topologies) if isinstance(each, InvalidResource)),
            first_of_each(excesses),
            tuple(topologies.outside),
        )

    def created_at(self, namespace: str, pod: str) -> float | None:
        """When the pod was created (seconds since the epoch); None where it is not known."""
        found = (each for each in self._pods.store.values() if (each.namespace, each.name) == (namespace, pod))
        return next((each.created_at for each in found), None)

    def leaving(self, namespace: str) -> bool:
        """Whether it is being deleted, as far as is known."""
        return any(each.leaving for each in self._namespaces.store.values() if each.name == namespace)

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """None while the namespace is not known."""
        return next((each.labels for each in self._namespaces.store.values() if each.name == namespace), {})

    def gated(self) -> list[Pod]:
        """The pods that our gate is in. Raises Unavailable like `look`."""
        self._await(self._pods, _FIRST_LIST_SECONDS)
        with self._pods.store.lock:
            return self._index.gated()

    def released(self, uids: Iterable[str]) -> frozenset[str]:
        """Of gated pods that a look has shown, those that our gate has left since, or that are gone."""
        with self._pods.store.lock:
            gated = {pod.uid for pod in self._index.gated()}
        return frozenset(uids) - gated

    def reread(self, namespace: str, application: str, name: str) -> list[Pod]:
        """From the API server: the pods of the application with this id, or, without one, the pod with this name.

        The latter is no list by name: for that the API server reads the whole namespace, however long its pods are.
        """
        reader = PodReader()
        if application:
            chosen = Query(kinds.POD, namespace=namespace, labels=f"{names.SPARK_APPLICATION}={application}")
            found = read_list(self._client, chosen, reader.read).items
        else:
            try:
                found = [self._client.get_as(reader.read, kinds.POD, name, namespace=namespace)]
            except NotFound:
                return []
        with self._pods.store.lock:
            return [self._index.with_nomination(pod) for pod in found]

    def _lists(self, namespaces: Iterable[str], patience_seconds: float) -> tuple[Lists, list[Excess]]:
        with self._pods.store.lock:
            pods, others = pods_within(self._index.single(), self._index.crowded()), self._index.others(namespaces)
        nodes = sorted(self._nodes.store.values(), key=lambda node: node.name)
        labels = {each.name: each.labels for each in self._namespaces.store.values()}
        lists = Lists(pods.inside, nodes, labels, self._mounted(pods.inside, patience_seconds), others)
        return lists, [pod_excess(pod, limit) for pod, limit in pods.outside]

    def _mounted(self, pods: Iterable[Pod], patience_seconds: float) -> Volumes:
        """Volumes are watched from the first pod on that mounts a claim; claims and StorageClasses from the first
        executor on whose claim has no volume. No executor waits for these: without them, its zone is only preferred.
        """
        mounting = [pod for pod in pods if pod.claims]
        if not mounting:
            return Volumes()
        self._start(self._volumes)
        self._await(self._volumes, patience_seconds)
        volumes = self._volumes.store.values()
        found = Volumes.of(volumes)
        if all(found.all_bound(pod.namespace, pod.claims) for pod in mounting if pod.executor is not None):
            return found
        for each in (self._claims, self._classes):
            self._start(each)
        return Volumes.of(volumes, self._claims.store.values(), self._classes.store.values())

    def _start(self, informer: Informer[Any]) -> None:
        with self._mounting:
            if informer not in self._running:
                self._running.append(informer)
                informer.start()

    def _await(self, informer: Informer[Any], patience_seconds: float) -> None:
        action = f"watch {informer.plural}"
        if not informer.await_synced(patience_seconds):
            raise Unavailable(action, f"not listed within {patience_seconds:.0f} s; {informer.last_error}")
        age = informer.age_seconds
        if age is not None and age > STALE_SECONDS:
            raise Unavailable(action, f"nothing was heard for {age:.0f} s; {informer.last_error}")

    def _node_changed(self, before: NodeFacts | None, after: NodeFacts | None) -> None:
        if before != after:
            self._notify()

    def _namespace_changed(self, before: _Namespace | None, after: _Namespace | None) -> None:
        if before != after:
            self._notify()

    def _move_changed(self, before: JSON | Excess | None, after: JSON | Excess | None) -> None:
        if isinstance(before, dict) and after is None:
            self._unkeep(kinds.EXECUTOR_MOVE, before)
        old, new = (each if isinstance(each, dict) else None for each in (before, after))
        if _declared(old) != _declared(new):
            self._notify()

    def _move(self, raw: JSON) -> JSON | Excess:
        lean = _lean(raw)
        return lean if not by_hand(raw) else self._within(kinds.EXECUTOR_MOVE, raw) or lean

    def _topology(self, raw: JSON) -> Read[SparkTopology] | InvalidResource | Excess:
        beyond = self._within(kinds.SPARK_TOPOLOGY, raw)
        if beyond is not None:
            return beyond
        found = _parsed(kinds.SPARK_TOPOLOGY, SparkTopology, raw)
        if isinstance(found, InvalidResource):
            self._unkeep(kinds.SPARK_TOPOLOGY, raw)
        return found

    def _within(self, kind: Kind, raw: JSON) -> Excess | None:
        """None where what is kept of the namespace has room for it."""
        metadata, size = raw["metadata"], len(msgspec.json.encode(raw.get("spec")))
        fits = self._kept[kind].replace(metadata.get("namespace") or "", metadata["uid"], size)
        return None if fits else excess(kind, raw, KEPT_BYTES)

    def _unkeep(self, kind: Kind, raw: JSON) -> None:
        self._kept[kind].remove(raw["metadata"].get("namespace") or "", raw["metadata"]["uid"])

    def _topology_changed(
        self,
        before: Read[SparkTopology] | InvalidResource | Excess | None,
        after: Read[SparkTopology] | InvalidResource | Excess | None,
    ) -> None:
        if isinstance(before, Read) and not isinstance(after, Read):
            self._unkeep(kinds.SPARK_TOPOLOGY, before.raw)
        self._spec_changed(before, after)

    def _spec_changed(
        self,
        before: Read[Any] | InvalidResource | Excess | None,
        after: Read[Any] | InvalidResource | Excess | None,
    ) -> None:
        old, new = (each.raw if isinstance(each, Read) else None for each in (before, after))
        if _declared(old) != _declared(new) or isinstance(after, InvalidResource):
            self._notify()


def _unnoticed(before: object, after: object) -> None:
    del before, after


def _namespace(raw: JSON) -> _Namespace:
    metadata = raw["metadata"]
    return _Namespace(metadata["name"], metadata.get("labels") or {}, "deletionTimestamp" in metadata)


def _without_gate(pod: Pod) -> Pod:
    return replace(pod, gates=tuple(gate for gate in pod.gates if gate != names.GATE), held=None)


def _lean(raw: JSON) -> JSON:
    """With the metadata that something depends on: a user may fill a megabyte of the rest, of thousands of objects."""
    kept = {key: value for key, value in raw["metadata"].items() if key in _METADATA}
    if too_long(kept.get("labels")):
        del kept["labels"]
    return {**raw, "metadata": kept}


def _parsed(kind: Kind, model: type[R], raw: JSON) -> Read[R] | InvalidResource:
    """Its spec is kept once, parsed: any user may create thousands of topologies."""
    raw = _lean(raw)
    try:
        return Read({key: value for key, value in raw.items() if key != "spec"}, resource_of(kind, model, raw))
    except InvalidResource as error:
        return error


def _declared(raw: JSON | None) -> tuple[object, bool] | None:
    """What a user wrote: another generation, or an object that goes. A status that we wrote is no news."""
    return None if raw is None else (raw["metadata"].get("generation"), "deletionTimestamp" in raw["metadata"])


def _namespaces_of_ends(topologies: Iterable[Read[SparkTopology]], moves: Iterable[JSON]) -> set[str]:
    """Where pods are that are neither executors nor drivers and yet matter: brokers, and what a move names."""
    found = {str(move["metadata"].get("namespace") or "") for move in moves}
    for read in topologies:
        for component in read.resource.spec.components:
            external = component.external
            if external is not None and external.selector is not None:
                found.add(external.namespace or read.resource.metadata.namespace or "")
    return found
