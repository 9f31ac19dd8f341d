"""Reading the whole cluster once, as far as decisions depend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Generic, Protocol, TypeVar

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api.meta import Resource
from ballast.controller.observe import Lists
from ballast.controller.quota import (
    Excess,
    excess,
    first_of_each,
    moves_within,
    pod_excess,
    pods_within,
    topologies_within,
)
from ballast.errors import BallastError, InvalidResource
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.clock import MOST_AHEAD_SECONDS
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden, NotFound
from ballast.kube.kinds import Kind
from ballast.kube.nodes import NodeReader
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.kube.volumes import Volumes, read_claim, read_storage_class, read_volume
from ballast.model import Move
from ballast.moves import MoveState, record
from ballast.tenancy.door import Limit

R = TypeVar("R", bound=Resource)
T = TypeVar("T")


class NotInstalledError(BallastError):
    """The server does not know our kinds."""

    public = True

    def __init__(self, plural: str) -> None:
        super().__init__(
            f"this cluster knows no {plural}: install the chart, or the definitions alone: "
            "`ballast crds --directory crds`, then `kubectl apply -f crds`"
        )


@dataclass(frozen=True, slots=True)
class Read(Generic[R]):
    """An object of ours: as the server has it, and parsed."""

    raw: JSON
    resource: R


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    lists: Lists
    policies: tuple[Read[BalancingPolicy], ...]
    """The oldest first."""
    topologies: tuple[Read[SparkTopology], ...]
    moves: tuple[JSON, ...]
    """ExecutorMoves. A ClusterLister lists them before the pods, so that what a move has caused is in the pods; with
    watches the pods may be older, and are read again before a move's next step.
    """
    broken: tuple[InvalidResource, ...] = ()
    """Objects that this version can't read; they are left alone."""
    excesses: tuple[Excess, ...] = ()
    """Of namespaces with more objects than come in: one object of each limit that is exceeded."""
    turned_away: tuple[tuple[Read[SparkTopology], Limit], ...] = ()
    """Topologies that did not come in; their status says so."""


class Observer(Protocol):
    """Shows a reconcile the cluster: by lists (ClusterLister), or as the watches have it (ClusterState)."""

    def look(self) -> ClusterObjects: ...

    def confirm(self) -> bool:
        """Whether policies, topologies and namespaces' labels are still as the last look showed them."""
        ...

    def released(self, uids: Iterable[str]) -> frozenset[str]:
        """Those of these gated pods that are known to have been released since the last look."""
        ...


class ClusterLister:
    """Lists everything through one client. Not safe for threads."""

    def __init__(self, client: Client, *, decommission_script: str = "decom.sh") -> None:
        self._client = client
        self._pods, self._nodes = PodReader(decommission_script=decommission_script), NodeReader()

    def look(self) -> ClusterObjects:
        """Raises KubeError when a list can't be read: a pass over half of a cluster is worse than none."""
        moves = moves_within(self._installed(kinds.EXECUTOR_MOVE, _as_is))
        lists, excesses = self._lists()
        # After the pods: a policy created before an executor must be seen before it is released as orphaned.
        broken: list[InvalidResource] = []
        policies = self._ours(kinds.BALANCING_POLICY, BalancingPolicy, broken)
        topologies = topologies_within(self._ours(kinds.SPARK_TOPOLOGY, SparkTopology, broken))
        excesses += [excess(kinds.EXECUTOR_MOVE, raw, limit) for raw, limit in moves.outside]
        return ClusterObjects(
            lists,
            oldest_first(policies),
            tuple(topologies.inside),
            tuple(moves.inside),
            tuple(broken),
            first_of_each(excesses),
            tuple(topologies.outside),
        )

    def confirm(self) -> bool:
        """Policies and topologies were listed after the pods."""
        return True

    def released(self, uids: Iterable[str]) -> frozenset[str]:
        """Nothing is heard of between two lists."""
        del uids
        return frozenset()

    def _lists(self) -> tuple[Lists, list[Excess]]:
        pods = pods_within(self._list(kinds.POD, self._pods.read))
        mounting = any(pod.claims for pod in pods.inside)
        volumes = listed_volumes(self._client, pods.inside) if mounting else Volumes()
        namespaces = dict(self._list(kinds.NAMESPACE, _labeled, metadata_only=True))
        nodes = self._list(kinds.NODE, self._nodes.read)
        excesses = [pod_excess(pod, limit) for pod, limit in pods.outside]
        return Lists(pods.inside, nodes, namespaces, volumes), excesses

    def _list(self, kind: Kind, read: Callable[[JSON], T], *, metadata_only: bool = False) -> list[T]:
        return read_list(self._client, Query(kind, metadata_only=metadata_only), read).items

    def _installed(self, kind: Kind, read: Callable[[JSON], T]) -> list[T]:
        """Raises NotInstalledError if the CRD is not installed."""
        try:
            return self._list(kind, read)
        except NotFound as error:
            raise NotInstalledError(kind.plural) from error

    def _ours(self, kind: Kind, model: type[R], broken: list[InvalidResource]) -> list[Read[R]]:
        def read(raw: JSON) -> Read[R] | None:
            try:
                return Read(raw, resource_of(kind, model, raw))
            except InvalidResource as error:
                broken.append(error)
                return None

        return [each for each in self._installed(kind, read) if each is not None]


def listed_volumes(client: Client, pods: Iterable[Pod]) -> Volumes:
    """Of claims without a volume, their StorageClasses too, where they may be read: as without them otherwise."""
    volumes = read_list(client, Query(kinds.VOLUME), read_volume).items
    found = Volumes.of(volumes)
    late = {pod.namespace for pod in pods if pod.executor and not found.all_bound(pod.namespace, pod.claims)}
    if not late:
        return found
    try:
        claims = [
            each
            for namespace in sorted(late)
            for each in read_list(client, Query(kinds.CLAIM, namespace=namespace), read_claim).items
        ]
        classes = read_list(client, Query(kinds.STORAGE_CLASS), read_storage_class).items
    except Forbidden:
        return found
    return Volumes.of(volumes, claims, classes)


def resource_of(kind: Kind, model: type[R], raw: JSON) -> R:
    """A policy or a topology, parsed. Raises InvalidResource.

    Its status is the operator's own, and may be another version's, as after a rollback. One that can't be read counts
    as none, and the next pass writes another. Otherwise the object would be left alone for good.
    """
    whole = {"apiVersion": kind.api_version, "kind": kind.kind, **raw}
    try:
        return model.parse(whole)
    except InvalidResource:
        if "status" not in whole:
            raise
    return model.parse({key: value for key, value in whole.items() if key != "status"})


def _as_is(raw: JSON) -> JSON:
    return raw


def _labeled(raw: JSON) -> tuple[str, dict[str, str]]:
    return raw["metadata"]["name"], raw["metadata"].get("labels") or {}


def oldest_first(policies: list[Read[BalancingPolicy]]) -> tuple[Read[BalancingPolicy], ...]:
    def age(read: Read[BalancingPolicy]) -> tuple[str, str]:
        metadata = read.raw["metadata"]
        return metadata.get("creationTimestamp") or "", metadata["name"]

    return tuple(sorted(policies, key=age))


@dataclass(frozen=True, slots=True)
class OpenMove:
    raw: JSON
    state: MoveState
    _planned: dict[float, Move] = field(default_factory=dict, init=False, compare=False, repr=False)
    """The last answer of `planned`: a user may leave thousands of moves behind, of which every pass asks this."""

    @property
    def key(self) -> str:
        return self.state.orders.key

    @property
    def namespace(self) -> str:
        return self.state.orders.namespace

    @property
    def uid(self) -> str:
        """A user may make another move of the same key."""
        return str(self.raw["metadata"]["uid"])

    def planned(self, points_per_core: Mapping[str, float]) -> Move:
        """As the planner reads it. `points_per_core`: of score, by node; nodes that are gone are absent."""
        points = points_per_core.get(self.state.orders.source, 0.0)
        known = self._planned.get(points)
        if known is None:
            self._planned.clear()
            known = self._planned[points] = record.to_move(self.state, source_points_per_core=points)
        return known


def read_moves(raw: tuple[JSON, ...], *, now: float = inf) -> tuple[list[OpenMove], list[BallastError]]:
    """The moves that this version can read, without times that are still to come; what is wrong with the others."""
    return MoveReader().read(raw, now=now)


class MoveReader:
    """Reads each version of a move once: a user may leave thousands of them behind, in every reconcile's way."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], OpenMove | BallastError] = {}
        """By version, those of the last call."""

    def read(self, raw: tuple[JSON, ...], *, now: float = inf) -> tuple[list[OpenMove], list[BallastError]]:
        """As `read_moves`."""
        known = {_version(item): item for item in raw}
        self._known = {version: self._known.get(version) or _read_move(item, now) for version, item in known.items()}
        found = list(self._known.values())
        return (
            [each for each in found if isinstance(each, OpenMove)],
            [each for each in found if isinstance(each, BallastError)],
        )


def _version(raw: JSON) -> tuple[str, ...]:
    metadata = raw["metadata"]
    return tuple(metadata.get(field) or "" for field in ("namespace", "name", "uid", "resourceVersion"))


def _read_move(raw: JSON, now: float) -> OpenMove | BallastError:
    whole = {"apiVersion": kinds.EXECUTOR_MOVE.api_version, "kind": kinds.EXECUTOR_MOVE.kind, **raw}
    try:
        return OpenMove(whole, record.read(whole).without_times_after(now + MOST_AHEAD_SECONDS))
    except BallastError as error:
        return error
    except Exception as error:  # noqa: BLE001 -- whatever is in one move
        metadata = raw["metadata"]
        return BallastError(f"ExecutorMove {metadata.get('namespace')}/{metadata.get('name')} can't be read: {error!r}")


def planner_moves(moves: Iterable[OpenMove], points_per_core: Mapping[str, float]) -> tuple[Move, ...]:
    """All of them as the planner reads them."""
    return tuple(each.planned(points_per_core) for each in moves)
