"""What is left out of a pod's JSON where it can't be read.

Whatever a user writes into one part of a pod must not hide the other parts. What the pod asks for is left out last:
without it, the pod's node would look free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ballast.kube.document import JSON

_IDENTIFYING = ("nodeName", "schedulingGates", "schedulerName", "preemptionPolicy")
_ASKING = ("resources", "overhead")


@dataclass(frozen=True, slots=True)
class Omission:
    part: str
    """For the log."""
    apply: Callable[[JSON], JSON]
    """The pod without that part."""
    keeps_demands: bool
    """Whether what the pod demands of nodes is still known."""


def _without_managed_fields(pod: JSON) -> JSON:
    return {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "managedFields"}}


def _without_demands(pod: JSON) -> JSON:
    """What it asks for is left. Its status is not, except for the phase."""
    spec = pod["spec"]
    asking: JSON = {key: spec[key] for key in _ASKING if key in spec}
    for kind in ("containers", "initContainers"):
        asking[kind] = [
            {key: each[key] for key in ("name", "resources", "restartPolicy") if key in each}
            for each in spec.get(kind) or ()
        ]
    return _reduced(pod, asking)


def _without_requests(pod: JSON) -> JSON:
    return _reduced(pod, {"containers": [{"name": ""}]})


def _reduced(pod: JSON, asking: JSON) -> JSON:
    spec, status = pod["spec"], pod.get("status") or {}
    identifying = {key: spec[key] for key in _IDENTIFYING if key in spec}
    return {
        **_without_managed_fields(pod),
        "spec": {**identifying, **asking},
        "status": {"phase": status.get("phase")},
    }


OMISSIONS = (
    Omission("metadata.managedFields", _without_managed_fields, keeps_demands=True),
    Omission("what it demands of nodes, and its status,", _without_demands, keeps_demands=False),
    Omission("what it asks for and demands", _without_requests, keeps_demands=False),
)
"""The least first."""
