"""The node that a pending pod is nominated to (`status.nominatedNodeName`): written and removed.

kube-scheduler tries that node first, and keeps its room from pods of equal or lower priority, from 1.35 on also while
the pod is gated. Only one nomination per pod is possible: that of another controller is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ballast.kube.actions import Changed, Refused, Release, Vanished
from ballast.kube.bulkhead import Bulkhead
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Unavailable
from ballast.kube.kinds import POD
from ballast.kube.pods import Held, Nomination, Pod, held

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


def nominate_many(client: Client, bulkhead: Bulkhead, pods: Sequence[tuple[Pod, str]]) -> list[NominationOutcome]:
    """The same for pods, each with its node. Returns the outcomes that the API server answers in time."""
    found = bulkhead.map(
        lambda each: nominate(client, *each),
        pods,
        key=lambda each: each[0].uid,
        namespace=lambda each: each[0].namespace,
    )
    return [outcome for outcome in found if outcome is not None]


def clear_nomination(client: Client, pod: Pod) -> ClearingOutcome:
    """Remove our nomination from a pod, as it was read; that of another controller stays."""
    now = pod.nomination
    if now is None or not now.ours:
        return Changed("it has no nomination by Ballast")
    found = _patch(client, pod, {"op": "remove", "path": _PATH})
    return found if isinstance(found, Changed | Vanished | Refused) else Cleared(found.held)


def clear_many(client: Client, bulkhead: Bulkhead, pods: Sequence[Pod]) -> list[ClearingOutcome]:
    """The same for pods; one that the API server does not answer for in time counts as Changed."""
    found = bulkhead.map(
        lambda pod: clear_nomination(client, pod), pods, key=lambda pod: pod.uid, namespace=lambda pod: pod.namespace
    )
    return [Changed("the API server has not answered yet") if outcome is None else outcome for outcome in found]


def clear_left_over(
    client: Client, bulkhead: Bulkhead, orders: Sequence[Release], pods: Mapping[str, Pod]
) -> tuple[list[Release], list[ClearingOutcome]]:
    """Clear Ballast's nominations of pods that are to be released; returns the releases of the pods' new versions.

    `pods`: by uid, as they were read. The outcomes are those of the pods that were nominated.
    """
    nominated = [pod for order in orders if (pod := pods.get(order.uid)) is not None and pod.nominated is not None]
    outcomes = clear_many(client, bulkhead, nominated) if nominated else []
    found = zip(nominated, outcomes, strict=True)
    fresh = {pod.uid: outcome.held for pod, outcome in found if isinstance(outcome, Cleared)}
    return [replace(order, held=fresh.get(order.uid) or order.held) for order in orders], outcomes


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
