"""What Ballast does to pods: release, evict, delete while unscheduled. Every outcome is a value with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

from ballast.kube import names
from ballast.kube.client import Client
from ballast.kube.constraint_reader import PREFERRED, REQUIRED
from ballast.kube.document import JSON
from ballast.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, TooLarge, Unavailable
from ballast.kube.kinds import POD
from ballast.kube.pods import Held, Pod, held
from ballast.model import Levels, Pin, Placement, Reason
from ballast.tenancy.lane import Job, Lane, Rank

_TRIES = 4
_PAUSE_SECONDS = 60.0
"""Until a pod is tried again that the API server does not let be released as it is: a try is a long request."""
_WAIT_SECONDS = 2.0
"""For the answers about many pods, none of which is late: a pass has more to do than to release a thousand."""


@dataclass(frozen=True, slots=True)
class Released:
    pin: Pin = Pin.NONE
    """Down to which level its place is required now."""
    reason: Reason | None = None
    """Why it is not pinned as asked."""
    already: bool = False
    """It was released before."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The pod is not as it was when the decision was made (another gate, another affinity): decide again."""

    detail: str


@dataclass(frozen=True, slots=True)
class Vanished:
    """No such pod any more: deleted, being deleted, or one of the same name in its place."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The server said no; `detail` are its words."""

    detail: str
    forbidden: bool = False
    """For want of a right, which other objects of the kind want as well."""
    lasting: bool = False
    """The answer will be the same as long as the object is as it is."""
    unacceptable: bool = field(default=False, compare=False)
    """It is about what was to be written: the API server, or admission, does not accept that."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The API server has not answered yet, or was not asked, because it is slow about this namespace."""


ReleaseOutcome = Released | Changed | Vanished | Refused | UnderWay


@dataclass(frozen=True, slots=True)
class Release:
    """One gated pod, as it was read, and where it goes."""

    namespace: str
    name: str
    uid: str
    held: Held
    placement: Placement


def order(pod: Pod, placement: Placement) -> Release | None:
    """None when our gate is not in the pod, as it was read."""
    return None if pod.held is None else Release(pod.namespace, pod.name, pod.uid, pod.held, placement)


def release(client: Client, order: Release, levels: Levels) -> ReleaseOutcome:
    """Tighten the pod's affinity to its place and remove our gate, in one patch.

    Where only the pod's version changed in between (a status update), the same decision holds and the patch is
    sent again; where its gates or affinity changed, the outcome is Changed. At last a patch that writes no affinity is
    sent for any version of the pod: its author may change it faster than it can be read again, and would keep an
    uninstallation from its end.
    """
    current, last = order.held, KubeError("", "")
    for left in reversed(range(_TRIES)):
        patch = release_patch(current, order.placement, levels)
        at_any_version = not left and patch.node_affinity is None
        operations = _of_any_version(order, current, patch) if at_any_version else patch.operations
        try:
            client.patch(POD, order.name, operations, namespace=order.namespace, answer=False)
        except NotFound:
            return Vanished()
        except (Conflict, Invalid, Unavailable) as error:
            last = error
            fresh = _reread(client, order, patch) if _may_be_stale(error) else _refused(error)
            if isinstance(error, Invalid) and fresh == current:
                # Its test can't have failed: something else refused it, as a webhook may without a cause.
                return Refused(error.message, unacceptable=True)
            if not isinstance(fresh, Held):
                return fresh
            current = fresh
        except KubeError as error:
            right = _lacks_right(error)
            return Refused(error.message, forbidden=right, unacceptable=not (error.of_server or right))
        else:
            return Released(patch.pin, patch.reason)
    return _never_written(last)


def _never_written(last: KubeError) -> Changed | Refused:
    """`last`: the answer to the last patch of a pod that could be read after each."""
    if last.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        # So it is if a mutating webhook's own patch does not apply to the pod.
        return Refused(last.message, unacceptable=True)
    return Changed("it changes faster than it can be patched")


def _lacks_right(error: KubeError) -> bool:
    """Rights do not depend on what is written. After an API server restart it may not know them yet."""
    return isinstance(error, Forbidden) and error.of_rights


def _of_any_version(order: Release, pod: Held, patch: ReleasePatch) -> list[JSON]:
    """Guarded by the pod's uid and by where our gate stands, instead of by its version."""
    guards: list[JSON] = [
        {"op": "test", "path": "/metadata/uid", "value": order.uid},
        {"op": "test", "path": f"/spec/schedulingGates/{pod.index}/name", "value": names.GATE},
    ]
    return [*guards, patch.operations[-1]]


def release_even_unplaced(client: Client, order: Release, levels: Levels) -> ReleaseOutcome:
    """Release the pod, as it is if its affinity is refused: no pod may stay gated because of an admission policy."""
    outcome: ReleaseOutcome
    try:
        outcome = release(client, order, levels)
    except Exception as error:  # noqa: BLE001 -- whatever is in the affinity of one pod
        outcome = Refused(f"its place can't be written: {error!r}", unacceptable=True)
    if not isinstance(outcome, Refused) or not outcome.unacceptable or not any(order.placement.location):
        return outcome
    as_it_is = replace(order.placement, location=(), pin=Pin.NONE)
    again = release(client, replace(order, placement=as_it_is), levels)
    if not isinstance(again, Released):
        return outcome
    return again if again.already else replace(again, reason=Reason.AFFINITY_REFUSED)


class _OfPod(Protocol):
    @property
    def uid(self) -> str: ...


P = TypeVar("P", bound=_OfPod)


def due(lane: Lane, pods: Iterable[P], *, overdue: bool = False) -> list[P]:
    """The pods, or the releases of pods, except those whose last refusal would be repeated.

    `overdue`: their gate timeout is over. Then only refusals after it count.
    """
    key = _overdue_key if overdue else _release_key
    return [pod for pod in pods if not lane.rests(key(pod.uid))]


def release_many(
    client: Client, lane: Lane, orders: Sequence[Release], levels: Levels, *, patiently: bool = False
) -> list[ReleaseOutcome]:
    """As `release_each`, with the same levels for all."""
    return release_each(client, lane, [(order, levels) for order in orders], patiently=patiently)


def release_each(
    client: Client,
    lane: Lane,
    orders: Sequence[tuple[Release, Levels]],
    *,
    late: MutableMapping[str, Job[ReleaseOutcome]] | None = None,
    overdue: bool = False,
    patiently: bool = False,
) -> list[ReleaseOutcome]:
    """Release all, as they are if their places are refused; outcomes in the order of `orders`.

    `late`: keeps the jobs, by uid, that were not answered in time. The next call with the same pod returns that answer
    instead of sending its release again: a refusal counts, however long it takes. `overdue`: as in `due`.
    `patiently`: wait for all answers, also of pods whose last refusal may be repeated.
    """
    kept: MutableMapping[str, Job[ReleaseOutcome]] = {} if late is None else late
    jobs = []
    for order, levels in orders:
        job = kept.pop(order.uid, None)
        if job is None or job.began is None:
            work = partial(release_even_unplaced, client, order, levels)
            key, anyway = _release_key(order.uid), overdue or patiently
            job = lane.submit(order.namespace, key, Rank.RELEASE, work, anyway=anyway)
        jobs.append(job)
    _wait(lane, jobs, patiently=patiently)
    outcomes: list[ReleaseOutcome] = []
    for (order, _), job in zip(orders, jobs, strict=True):
        answer = job.answer()
        if answer is None:
            kept[order.uid] = job
        if isinstance(answer, Refused) and answer.lasting and not patiently:
            for key in (_release_key(order.uid), *([_overdue_key(order.uid)] if overdue else ())):
                lane.back_off(key, _PAUSE_SECONDS)
        outcomes.append(UnderWay() if answer is None else answer)
    return outcomes


def _wait(lane: Lane, jobs: Sequence[Job[Any]], *, patiently: bool) -> None:
    """What is not over then goes on in the lane."""
    lane.wait(jobs, seconds=None if patiently else _WAIT_SECONDS, late_too=patiently)


def _overdue_key(uid: str) -> str:
    """Of the rest after a refusal that came after the gate timeout."""
    return f"overdue {uid}"


def _release_key(uid: str) -> str:
    return f"release {uid}"


def _may_be_stale(error: KubeError) -> bool:
    """Whether it is unclear what the pod looks like now.

    A patch whose test fails is a 422 without causes (a pod that would not be valid has some); without an answer it
    is not known whether the patch was applied.
    """
    return isinstance(error, Conflict | Unavailable) or not (error.causes or isinstance(error, TooLarge))


def _refused(error: KubeError) -> Refused:
    return Refused(error.message, lasting=isinstance(error, TooLarge), unacceptable=not isinstance(error, TooLarge))


def _reread(client: Client, order: Release, sent: ReleasePatch) -> Held | ReleaseOutcome:
    """`sent`: the patch of which it is not known whether it was applied."""
    try:
        return client.get_as(lambda pod: _compared(pod, order, sent), POD, order.name, namespace=order.namespace)
    except NotFound:
        return Vanished()
    except KubeError as error:
        return Refused(error.message)


def _compared(pod: JSON, order: Release, sent: ReleasePatch) -> Held | ReleaseOutcome:
    if pod["metadata"]["uid"] != order.uid or "deletionTimestamp" in pod["metadata"]:
        return Vanished()
    fresh = held(pod)
    if fresh is None:
        return Released(sent.pin, sent.reason) if _carries(pod, sent) else Released(already=True)
    if fresh.gates != order.held.gates:
        return Changed(f"its gates are now {', '.join(fresh.gates)}")
    same = fresh == replace(order.held, resource_version=fresh.resource_version)
    return fresh if same else Changed("its affinity was changed")


def _carries(pod: JSON, sent: ReleasePatch) -> bool:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity")
    return sent.node_affinity is not None and affinity == sent.node_affinity


@dataclass(frozen=True, slots=True)
class Evicted:
    """The pod is on its way out."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A disruption budget forbids it now; `detail` are its words."""

    detail: str


EvictionOutcome = Evicted | Blocked | Vanished | Refused


def evict(client: Client, *, namespace: str, name: str, uid: str) -> EvictionOutcome:
    """Ask for the pod with exactly this uid to leave, by the Eviction API, which heeds disruption budgets."""
    body: JSON = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    try:
        client.act(POD, name, subresource="eviction", body=body, namespace=namespace)
    except NotFound:
        return Vanished()
    except Conflict as error:
        return Vanished() if "UID" in error.message else Refused(error.message)
    except Unavailable as error:
        return Blocked(_why(error)) if _by_budget(error) else Refused(error.message)
    except KubeError as error:
        return Refused(error.message)
    return Evicted()


def _by_budget(error: Unavailable) -> bool:
    """A budget's refusal, not that of a busy server. Two budgets for one pod are an error 500 in words."""
    reasons = [cause.get("reason") for cause in error.causes]
    return (
        "DisruptionBudget" in reasons or "PodDisruptionBudget" in error.message or "disruption budget" in error.message
    )


def _why(error: KubeError) -> str:
    return " ".join(str(cause["message"]) for cause in error.causes if cause.get("message")) or error.message


@dataclass(frozen=True, slots=True)
class Deleted:
    pass


@dataclass(frozen=True, slots=True)
class Scheduled:
    """It has been bound to `node` in the meantime, so it stays."""

    node: str


DeletionOutcome = Deleted | Scheduled | Changed | Vanished | Refused


def delete_unscheduled(client: Client, *, namespace: str, name: str, uid: str, gated: bool = False) -> DeletionOutcome:
    """Delete the pod with exactly this uid if, and only if, it has not been bound to a node.

    `gated`: and if our gate is in it, so that it has never run. It is read first; a pod that changes before it is
    deleted is left alone, and the outcome is Changed.
    """
    try:
        seen = client.get_as(lambda pod: _unscheduled(pod, uid, gated=gated), POD, name, namespace=namespace)
        if isinstance(seen, Vanished | Scheduled | Changed):
            return seen
        client.delete(POD, name, namespace=namespace, preconditions=seen)
    except NotFound:
        return Vanished()
    except Conflict as error:
        return Vanished() if "UID" in error.message else Changed(error.message)
    except KubeError as error:
        return Refused(error.message)
    return Deleted()


def delete_gated_many(
    client: Client, lane: Lane, pods: Sequence[Pod], *, patiently: bool = False
) -> list[tuple[Pod, DeletionOutcome]]:
    """Delete those of them that our gate still holds; without those for which there is no answer yet.

    `patiently`: wait for all answers.
    """
    jobs = [
        lane.submit(
            pod.namespace,
            f"delete {pod.uid}",
            Rank.MOVE,
            partial(delete_unscheduled, client, namespace=pod.namespace, name=pod.name, uid=pod.uid, gated=True),
        )
        for pod in pods
    ]
    _wait(lane, jobs, patiently=patiently)
    return [(pod, outcome) for pod, job in zip(pods, jobs, strict=True) if (outcome := job.answer()) is not None]


def _unscheduled(pod: JSON, uid: str, *, gated: bool) -> dict[str, str] | Vanished | Scheduled | Changed:
    """What it must be when it is deleted, or why it is not to be."""
    if pod["metadata"]["uid"] != uid or "deletionTimestamp" in pod["metadata"]:
        return Vanished()
    if pod["spec"].get("nodeName"):
        return Scheduled(pod["spec"]["nodeName"])
    if gated and held(pod) is None:
        return Changed("it has been released meanwhile")
    return {"uid": uid, "resourceVersion": pod["metadata"]["resourceVersion"]}


_NEAREST_WEIGHT = 100
"""Kubernetes' largest; each level farther away weighs half."""


@dataclass(frozen=True, slots=True)
class ReleasePatch:
    operations: list[JSON]
    """RFC 6902, guarded by the resource version."""
    pin: Pin
    """Down to which level the place is required after it; may be wider than what was asked for."""
    reason: Reason | None = None
    """Why it is not pinned as asked."""
    node_affinity: JSON | None = None
    """The pod's after it; None where it leaves that as it is."""


def release_patch(pod: Held, placement: Placement, levels: Levels) -> ReleasePatch:
    """Require the placement's location down to its pin, prefer the nearer levels, and remove our gate only.

    Levels for which the location has no value are left out. A placement without a node requires at most the zone and
    racks of its location.
    """
    node_affinity: Mapping[str, Any] = pod.node_affinity or {}
    pin, reason = placement.pin, placement.reason
    if pod.unread:
        placement, reason = replace(placement, location=(), pin=Pin.NONE), reason or Reason.NOT_ADMITTED
    required = _required(placement, levels)
    if required and _has_empty_term(node_affinity):
        required, pin, reason = _Demands(), Pin.NONE, Reason.EMPTY_AFFINITY_TERM
    if not required:
        pin = Pin.NONE
    preferred = _preferred(replace(placement, pin=pin), levels)
    operations: list[JSON] = [{"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version}]
    written = _tightened(node_affinity, required, preferred) if required or preferred else None
    if written is not None:
        operations.append(_affinity_operation(written, into=pod.has_affinity))
    operations.append({"op": "remove", "path": f"/spec/schedulingGates/{pod.index}"})
    return ReleasePatch(operations, pin, reason, written)


@dataclass(frozen=True, slots=True)
class _Demands:
    """What is appended to every required term."""

    expressions: tuple[JSON, ...] = ()
    fields: tuple[JSON, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.expressions or self.fields)


def _required(placement: Placement, levels: Levels) -> _Demands:
    last = levels.index_of(placement.pin)
    if last is None or not placement.location:
        return _Demands()
    named = list(zip(levels.ordered, placement.location, strict=True))[: last + 1]
    if placement.pin is not Pin.NODE:
        return _Demands(tuple(_in(level.label, value) for level, value in named if value is not None))
    level, host = named[-1]
    # The host alone says everything; where the node has no such label, its name does.
    if host is not None:
        return _Demands((_in(level.label, host),))
    if placement.node is None:
        return _Demands()
    return _Demands(fields=(_in("metadata.name", placement.node),))


def _preferred(placement: Placement, levels: Levels) -> list[JSON]:
    required = levels.index_of(placement.pin)
    first = 0 if required is None else required + 1
    nearest = len(levels.ordered) - 1
    return [
        {
            "weight": max(1, _NEAREST_WEIGHT >> (nearest - index)),
            "preference": {"matchExpressions": [_in(levels.ordered[index].label, value)]},
        }
        for index, value in enumerate(placement.location)
        if index >= first and value is not None
    ]


def _in(key: str, value: str) -> JSON:
    return {"key": key, "operator": "In", "values": [value]}


def _has_empty_term(node_affinity: Mapping[str, Any]) -> bool:
    return any(not (term.get("matchExpressions") or term.get("matchFields")) for term in _terms(node_affinity))


def _terms(node_affinity: Mapping[str, Any]) -> list[JSON]:
    return list((node_affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ())


def _tightened(node_affinity: Mapping[str, Any], required: _Demands, preferred: list[JSON]) -> JSON:
    tightened = dict(node_affinity)
    if required:
        terms = [_with(term, required) for term in _terms(node_affinity) or [{}]]
        tightened[REQUIRED] = {"nodeSelectorTerms": terms}
    if preferred:
        tightened[PREFERRED] = [*(node_affinity.get(PREFERRED) or ()), *preferred]
    return tightened


def _with(term: JSON, required: _Demands) -> JSON:
    joined = {
        **term,
        "matchExpressions": [*(term.get("matchExpressions") or ()), *required.expressions],
        "matchFields": [*(term.get("matchFields") or ()), *required.fields],
    }
    return {key: value for key, value in joined.items() if value}


def _affinity_operation(node_affinity: JSON, *, into: bool) -> JSON:
    """`add` sets a member that is there already, too; `into`: the pod has an affinity already."""
    if into:
        return {"op": "add", "path": "/spec/affinity/nodeAffinity", "value": node_affinity}
    return {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": node_affinity}}
