"""What only executors' pods have, read from their JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ballast.kube import names
from ballast.kube.amounts import AmountReader
from ballast.kube.constraint_reader import PREFERRED, REQUIRED
from ballast.kube.document import JSON, seconds
from ballast.kube.spark_container import spark_container, state_of
from ballast.model import gang_of

_MOST_SLOTS = 10_000.0
"""More than any executor has: sums of slots stay far from what a float can't hold."""
_OF_DIRECT_ALLOCATOR = re.compile(r"-exec-[0-9]+\Z")
"""Names of its executors: those that `ballast-evict` lets be evicted."""
_WHOLE_NUMBER = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_LACK = ("Insufficient ", "Too many pods")
"""What kube-scheduler says of nodes that have too little left (its plugin NodeResourcesFit)."""
_APART = ("node(s) didn't match Pod's node affinity", "node(s) had untolerated taint", "node(s) were unschedulable")
"""What it says of nodes that Ballast, too, knows to be none for the executor."""
_SPREAD_KEYS = 4
"""Of one executor that are kept."""


@dataclass(frozen=True, slots=True)
class SparkExecutor:
    """What only executors have."""

    application: str
    executor_id: str
    resource_profile: str
    cores: float
    graceful: bool
    allocator_direct: bool
    kueue_managed: bool
    opted_out: bool
    running_since: float | None
    unschedulable_since: float | None
    lacks_room: bool
    """False: kube-scheduler found no node for it, and not only for lack of an amount that it requests."""
    exit_code: int | None
    """Of Spark's container; None while that runs, whatever else is in the pod."""
    pinned_at: float | None
    """When Ballast wrote its required node affinity; None if it did not."""
    by_other_pods: bool = False
    """Its pod requires to be near other pods or apart from them, by what Ballast does not look at."""
    placed: bool = False
    """Ballast wrote node affinity into it, required or preferred."""
    soft_spread_keys: tuple[str, ...] = ()
    """Topology keys over which its pod prefers to be spread."""
    expected: int | None = None
    """How many executors its application is going to have, as it says."""
    gang: str = ""
    """What makes it a member of a gang; empty if nothing does."""
    owner_uid: str = ""
    """Of the pod that owns its pod: Spark names the driver's, whatever labels that has."""


class ExecutorReader:
    """`script`: as PodReader's `decommission_script`."""

    def __init__(self, amounts: AmountReader, script: str) -> None:
        self._amounts, self._script = amounts, script

    def read(self, pod: JSON, gates: tuple[str, ...]) -> SparkExecutor:
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        labels = metadata["labels"]
        owner = _controller(metadata)
        executor_id = labels.get(names.SPARK_EXECUTOR_ID) or ""
        pinned_at = _pinned_at(metadata)
        container = spark_container(spec)
        state = state_of(container, status)
        return SparkExecutor(
            application=labels.get(names.SPARK_APPLICATION) or "",
            executor_id=executor_id,
            resource_profile=labels.get(names.SPARK_RESOURCE_PROFILE) or "0",
            cores=self._cores(container or {}),
            graceful=any(_stops_by(container, self._script) for container in spec["containers"]),
            allocator_direct=executor_id != names.SPARK_INDIRECT_ID
            and owner.get("kind", "Pod") == "Pod"
            and _OF_DIRECT_ALLOCATOR.search(metadata["name"]) is not None,
            kueue_managed=_kueue_managed(metadata, gates),
            opted_out=_opted_out(metadata),
            running_since=_running_since(status, state),
            unschedulable_since=_unschedulable_since(status, pinned_at),
            lacks_room=_lacks_room(status),
            exit_code=_exit_code(state),
            pinned_at=pinned_at,
            by_other_pods=_by_other_pods(spec),
            placed=any(at is not None for _, at in _written(metadata)),
            soft_spread_keys=_soft_spread_keys(spec),
            expected=_expected(metadata),
            gang=gang_of(labels, metadata.get("annotations") or {}, spec),
            owner_uid=_owning_pod(metadata),
        )

    def _cores(self, container: JSON) -> float:
        for entry in container.get("env") or ():
            if entry["name"] == "SPARK_EXECUTOR_CORES":
                return _slots(entry.get("value"))
        asked = (container.get("resources") or {}).get("requests") or {}
        return min(self._amounts.quantity(asked["cpu"]), _MOST_SLOTS) if "cpu" in asked else 1.0


def _kueue_managed(metadata: JSON, gates: tuple[str, ...]) -> bool:
    """Whether Kueue queues this pod. A queue label alone does not: Kueue ignores an executor whose driver is queued."""
    return names.KUEUE_MANAGED in (metadata.get("finalizers") or ()) or any(
        gate.startswith(names.KUEUE) for gate in gates
    )


def _opted_out(metadata: JSON) -> bool:
    return "disabled" in (
        (metadata.get("labels") or {}).get(names.GATE_CHOICE),
        (metadata.get("annotations") or {}).get(names.GATE_CHOICE),
    )


def _expected(metadata: JSON) -> int | None:
    text = (metadata.get("labels") or {}).get(names.EXECUTORS) or (metadata.get("annotations") or {}).get(
        names.EXECUTORS
    )
    return int(text) if text and _WHOLE_NUMBER.fullmatch(text) else None


def _by_other_pods(spec: JSON) -> bool:
    """Whether it requires (anti-)affinity to pods, or to be spread over more than hosts.

    Hosts of one zone keep a spread as well as those of several.
    """
    affinity = spec.get("affinity") or {}
    kinds = (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {})
    return any(each.get(REQUIRED) for each in kinds) or any(
        each.get("whenUnsatisfiable") == "DoNotSchedule" and each.get("topologyKey") != names.HOST
        for each in spec.get("topologySpreadConstraints") or ()
    )


def _soft_spread_keys(spec: JSON) -> tuple[str, ...]:
    """By ScheduleAnyway and by preferred anti-affinity. A policy's levels are few, and so are the keys that matter."""
    apart = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(PREFERRED) or ()
    keys = {(each.get("podAffinityTerm") or {}).get("topologyKey") for each in apart}
    keys |= {
        each.get("topologyKey")
        for each in spec.get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable") == "ScheduleAnyway"
    }
    return tuple(sorted(key for key in keys if key and key != names.HOST))[:_SPREAD_KEYS]


def _controller(metadata: JSON) -> JSON:
    owners: list[JSON] = metadata.get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), {})


def _owning_pod(metadata: JSON) -> str:
    owners: list[JSON] = metadata.get("ownerReferences") or []
    pods = sorted((each for each in owners if each.get("kind") == "Pod"), key=lambda each: not each.get("controller"))
    return pods[0].get("uid") or "" if pods else ""


def _stops_by(container: JSON, script: str) -> bool:
    hook = ((container.get("lifecycle") or {}).get("preStop") or {}).get("exec") or {}
    command: list[str] = hook.get("command") or []
    return bool(command) and command[-1].endswith(script)


def _running_since(status: JSON, state: JSON | None) -> float | None:
    """Since when Spark's container runs, or the pod where that can't be told."""
    if status.get("phase") != "Running":
        return None
    return seconds(((state or {}).get("running") or {}).get("startedAt") or status.get("startTime"))


def _exit_code(state: JSON | None) -> int | None:
    end = (state or {}).get("terminated")
    return int(end["exitCode"]) if end else None


def _unschedulable_since(status: JSON, released_at: float | None) -> float | None:
    """The condition keeps the time at which it became False, which a gated pod's was from the start.

    So for a pod that we released the count begins there.
    """
    condition = unschedulable(status)
    since = seconds(condition.get("lastTransitionTime")) if condition else None
    return since if since is None or released_at is None else max(since, released_at)


def _lacks_room(status: JSON) -> bool:
    """`0/4 nodes are available: 1 Insufficient cpu, 3 node(s) were unschedulable. preemption: …`

    Others may have filled one node of its place, and used up on another what Ballast does not look at.
    """
    message = (unschedulable(status) or {}).get("message") or ""
    if not message:
        return True
    _, _, about_nodes = message.partition("nodes are available: ")
    reasons = [each.lstrip("0123456789 ") for each in about_nodes.partition(". ")[0].rstrip(".").split(", ")]
    return any(each.startswith(_LACK) for each in reasons) and all(each.startswith(_LACK + _APART) for each in reasons)


def unschedulable(status: JSON) -> JSON | None:
    """The condition that says so."""
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled":
            refused = condition["status"] == "False" and condition.get("reason") == "Unschedulable"
            return condition if refused else None
    return None


def _pinned_at(metadata: JSON) -> float | None:
    return next((at for field, at in _written(metadata) if field == f"f:{REQUIRED}"), None)


def _written(metadata: JSON) -> Iterator[tuple[str, float | None]]:
    """The kinds of node affinity that Ballast wrote, and when."""
    for entry in metadata.get("managedFields") or ():
        if entry.get("manager") == names.FIELD_MANAGER and not entry.get("subresource"):
            fields = (entry.get("fieldsV1") or {}).get("f:spec") or {}
            affinity = (fields.get("f:affinity") or {}).get("f:nodeAffinity") or {}
            yield from ((field, seconds(entry.get("time"))) for field in affinity if field != ".")


def _slots(text: Any) -> float:
    """Spark writes a whole number. A user who creates pods may write anything else, which counts as one slot."""
    try:
        number = float(text)
    except (TypeError, ValueError):
        return 1.0
    return number if 1 <= number <= _MOST_SLOTS else 1.0
