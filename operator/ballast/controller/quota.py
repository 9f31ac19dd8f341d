"""What of the cluster's objects passes the door: see `tenancy.door`, which holds the limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from ballast.api import SparkTopology
from ballast.kube import kinds, names
from ballast.kube.document import JSON
from ballast.kube.kinds import Kind
from ballast.kube.pods import Pod
from ballast.model import Constraints, MovePhase, Requirement
from ballast.moves.record import BY_HAND
from ballast.tenancy import door
from ballast.tenancy.door import ByValue, Guest, Limit, Takes, Tally, turned_away

if TYPE_CHECKING:
    from ballast.controller.cluster_objects import Read

T = TypeVar("T")
_TOPOLOGY = Takes(((door.TOPOLOGIES, 1),))
_MOVE = Takes(((door.MOVES_BY_HAND, 1),))
_EXECUTOR = ((door.EXECUTORS, 1),)
_ENDED, _DRIVER, _OTHER = Takes(((door.ENDED, 1),)), Takes(_EXECUTOR), Takes()
_ENDED_PHASES = frozenset(each.value for each in MovePhase if each.ended)
_UNREAD = Constraints(unread="its namespace has more executors, or executors' shapes, than Ballast reads")


@dataclass(frozen=True, slots=True)
class Excess:
    """Objects of one namespace that are turned away, by one of them."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    limit: Limit

    def __str__(self) -> str:
        return (
            f"{self.kind.plural} in {self.namespace} beyond {self.limit} are left alone, {self.name} too: delete some"
        )


def first_of_each(excesses: Iterable[Excess]) -> tuple[Excess, ...]:
    """One of each namespace, kind and limit: the first by name."""
    ordered = sorted(excesses, key=lambda each: (each.namespace, each.kind.plural, str(each.limit), each.name))
    first = {(each.namespace, each.kind, each.limit): each for each in reversed(ordered)}
    return tuple(reversed(first.values()))


@dataclass(frozen=True, slots=True)
class Within(Generic[T]):
    """What came in, and what did not."""

    inside: Sequence[T]
    outside: Sequence[tuple[T, Limit]] = ()


def takes(pod: Pod) -> Takes:
    """What a pod takes. Executors that have ended need no node any more, so they have no shape."""
    if pod.executor is None and not pod.is_driver:
        return _OTHER
    if pod.ended:
        return _ENDED
    return _DRIVER if pod.executor is None else Takes(_EXECUTOR, ByValue((of_template(pod), pod.requests)))


def of_template(pod: Pod) -> Constraints:
    """What its template demands of nodes: without what Ballast required at its release, which differs by place.

    No policy's levels are known here, as they are to `placement.tie`. So what a template itself demands in between, of
    one label one value, is left out too: executors count as fewer templates than they have, and only once released.
    """
    if pod.executor is None or pod.executor.pinned_at is None:
        return pod.constraints
    terms = map(_without_tie, pod.constraints.affinity_terms)
    return replace(pod.constraints, affinity_terms=tuple(term for term in terms if term))


def _without_tie(term: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """Without the node's name or its host label, which stand alone, or the last run of places, far to near."""
    expressions = [each for each in term if not each.on_field]
    fields = [each for each in term if each.on_field]
    if fields and _names_one(fields[-1]):
        return (*expressions, *fields[:-1])
    while expressions and _names_one(expressions[-1]):
        if expressions.pop().key == names.HOST:
            break
    return (*expressions, *fields)


def _names_one(requirement: Requirement) -> bool:
    return requirement.operator == "In" and len(requirement.values) == 1


def pods_within(pods: Sequence[Pod], crowded: Collection[str] | None = None) -> Within[Pod]:
    """Pods that are turned away are among those inside, as pods that are neither executors nor drivers.

    They take room on their nodes, and those at our gate are released as they are. `crowded`: the namespaces to look
    at; by default it is found out.
    """
    if crowded is None:
        crowded = _crowded(pods)
    if not crowded:
        return Within(pods)
    guests = [
        Guest(pod, pod.namespace, (pod.created_at, pod.name), takes(pod)) for pod in pods if pod.namespace in crowded
    ]
    outside = turned_away(guests)
    limits = {pod.uid: limit for pod, limit in outside}
    return Within([_outside(pod, limits[pod.uid]) if pod.uid in limits else pod for pod in pods], outside)


def _crowded(pods: Iterable[Pod]) -> Collection[str]:
    tally = Tally()
    for pod in pods:
        tally.add(pod.namespace, takes(pod))
    return tally.crowded()


def _outside(pod: Pod, limit: Limit) -> Pod:
    bare = replace(pod, labels={}, constraints=_UNREAD, claims=(), executor=None, drives=())
    return replace(bare, beyond=f"more than {limit}")


def topologies_within(topologies: Sequence[Read[SparkTopology]]) -> Within[Read[SparkTopology]]:
    def takes(read: Read[SparkTopology]) -> Takes:
        return Takes((*_TOPOLOGY.amounts, (door.COMPONENTS, len(read.resource.spec.components))))

    return _within(topologies, lambda read: read.raw, takes)


def moves_within(moves: Sequence[JSON]) -> Within[JSON]:
    """Of open moves by hand: Ballast's own have the policy's budgets, and those that have ended do nothing."""
    return _within(moves, lambda raw: raw, lambda raw: _MOVE if by_hand(raw) and _is_open(raw) else _OTHER)


def by_hand(move: JSON) -> bool:
    reason = (move.get("spec") or {}).get("reason") or {}
    return bool(reason.get("strategy", BY_HAND) == BY_HAND)


def _is_open(move: JSON) -> bool:
    phase = (move.get("status") or {}).get("phase")
    return phase not in _ENDED_PHASES


def _within(things: Sequence[T], raw: Callable[[T], JSON], takes: Callable[[T], Takes]) -> Within[T]:
    guests, tally = [], Tally()
    for each in things:
        metadata = raw(each)["metadata"]
        guest = Guest(each, metadata.get("namespace") or "", _age(metadata), takes(each))
        tally.add(guest.namespace, guest.takes)
        guests.append(guest)
    crowded = tally.crowded()
    outside = turned_away(guest for guest in guests if guest.namespace in crowded)
    away = {id(thing) for thing, _ in outside}
    return Within([each for each in things if id(each) not in away] if away else things, outside)


def _age(metadata: JSON) -> tuple[str, str]:
    return metadata.get("creationTimestamp") or "", metadata["name"]


def excess(kind: Kind, raw: JSON, limit: Limit) -> Excess:
    metadata = raw["metadata"]
    return Excess(kind, metadata.get("namespace") or "", metadata["name"], metadata["uid"], limit)


def pod_excess(pod: Pod, limit: Limit) -> Excess:
    return Excess(kinds.POD, pod.namespace, pod.name, pod.uid, limit)
