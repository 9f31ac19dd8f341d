"""The node that a pending pod is nominated to (`status.nominatedNodeName`): written and removed.

kube-scheduler tries that node first, and keeps its room from pods of equal or lower priority, from 1.35 on also while
the pod is gated. Only one nomination per pod is possible: that of another controller is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ballast.kube.actions import Changed, Refused, Release, Vanished
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Unavailable
from ballast.kube.kinds import POD
from ballast.kube.pods import Held, Nomination, Pod, held
from ballast.tenancy.lane import Lane, Rank

_PATH = "/status/nominatedNodeName"


@dataclass(frozen=True, slots=True)
class Nominated:
    pod: Pod
    """At its present version."""


@dataclass(frozen=True, slots=True)
class Cleared:
    held: Held | None = None
    """At its present version, if it is gated."""


NominationOutcome = Nominated | Changed | Vanished | Refused
ClearingOutcome = Cleared | Changed | Vanished | Refused


def nominate(client: Client, pod: Pod, node: str) -> NominationOutcome:
    """Nominate a pod, as it was read, to a node. Refused where another controller has nominated it."""
    now = pod.nomination
    if now is not None and now.node == node:
        return Nominated(pod)
    if now is not None and not now.ours:
        return Refused(f"it is nominated to {now.node} by another controller")
    found = _patch(client, pod, {"op": "add", "path": _PATH, "value": node})
    if isinstance(found, Changed | Vanished | Refused):
        return found
    if found.held is None:
        return Changed("it was released meanwhile")
    nominated, version = Nomination(node, ours=True), found.held.resource_version
    return Nominated(replace(pod, held=found.held, resource_version=version, nomination=nominated))


def nominate_many(client: Client, lane: Lane, pods: Sequence[tuple[Pod, str]]) -> list[NominationOutcome]:
    """The same for pods, each with its node. Returns the outcomes that the API server answers in time."""
    jobs = [
        lane.submit(pod.namespace, f"nominate {pod.uid}", Rank.RELEASE, partial(nominate, client, pod, node))
        for pod, node in pods
    ]
    lane.wait(jobs)
    # The next pass nominates again; releases must not wait behind these.
    lane.withdraw(jobs)
    return [outcome for job in jobs if (outcome := job.answer()) is not None]


def clear_nomination(client: Client, pod: Pod) -> ClearingOutcome:
    """Remove our nomination from a pod, as it was read; that of another controller stays."""
    now = pod.nomination
    if now is None or not now.ours:
        return Changed("it has no nomination by Ballast")
    found = _patch(client, pod, {"op": "remove", "path": _PATH})
    return found if isinstance(found, Changed | Vanished | Refused) else Cleared(found.held)


def clear_left_over(
    client: Client, lane: Lane, orders: Sequence[Release], pods: Mapping[str, Pod]
) -> tuple[list[Release], list[ClearingOutcome]]:
    """Clear Ballast's nominations of pods that are to be released; returns the releases of the pods' new versions.

    `pods`: by uid, as they were read. The outcomes are those that the API server answers in time.
    """
    jobs = {
        pod.uid: lane.submit(pod.namespace, clearing_key(pod), Rank.RELEASE, partial(clear_nomination, client, pod))
        for order in orders
        if (pod := pods.get(order.uid)) is not None and pod.nominated is not None
    }
    lane.wait(jobs.values())
    outcomes = {uid: outcome for uid, job in jobs.items() if (outcome := job.answer()) is not None}
    fresh = {uid: outcome.held for uid, outcome in outcomes.items() if isinstance(outcome, Cleared)}
    return [replace(order, held=fresh.get(order.uid) or order.held) for order in orders], list(outcomes.values())


def clearing_key(pod: Pod) -> str:
    """Of the lane's job that clears the pod's nomination."""
    return f"clear {pod.uid}"


@dataclass(frozen=True, slots=True)
class _Patched:
    held: Held | None
    """As the pod is afterwards, if it is gated."""


def _patch(client: Client, pod: Pod, change: JSON) -> _Patched | Changed | Vanished | Refused:
    """It is guarded by the uid and by the version that was read."""
    guards: list[JSON] = [
        {"op": "test", "path": "/metadata/uid", "value": pod.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version},
    ]
    try:
        return client.patch_as(
            lambda found: _Patched(held(found)),
            POD,
            pod.name,
            [*guards, change],
            namespace=pod.namespace,
            subresource="status",
        )
    except NotFound:
        return Vanished()
    except (Conflict, Invalid, Unavailable) as error:
        # A test that fails is a 422 without causes; without an answer it is not known whether it was done.
        return Changed(error.message) if not isinstance(error, Invalid) or not error.causes else Refused(error.message)
    except KubeError as error:
        return Refused(error.message, forbidden=isinstance(error, Forbidden))
