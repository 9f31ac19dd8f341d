"""A pod as the API server has it, cut down to what a decision can depend on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ballast.kube import names
from ballast.kube.amounts import AmountReader
from ballast.kube.anti_affinity import UNREAD, AntiAffinityReader, AntiAffinityTerm
from ballast.kube.constraint_reader import ConstraintReader
from ballast.kube.document import JSON, seconds, too_long
from ballast.kube.executors import ExecutorReader, SparkExecutor, unschedulable
from ballast.kube.omission import OMISSIONS
from ballast.model import BINDING_SECONDS, KUBE_SCHEDULER, Constraints, Phase, Resources

_LOG = logging.getLogger(__name__)
_ENDED = ("Succeeded", "Failed")
_UNCONSTRAINED = Constraints()
_UNREAD = Constraints(unread="what it demands of nodes can't be read")
_OBJECTS = ("resourceClaims", "schedulingGroup", "workloadRef")
"""Fields that name objects which kube-scheduler waits for."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a release must know of a gated pod, so that it need not be read again."""

    resource_version: str
    gates: tuple[str, ...]
    """As in Pod."""
    node_affinity: Mapping[str, Any] | None
    """The pod's `spec.affinity.nodeAffinity` as it is; None where there is none, or where it is too long to be kept."""
    has_affinity: bool = False
    """Whether the pod has a `spec.affinity`."""
    unread: bool = False
    """Whether its node affinity is too long to be kept: nothing may be written into it."""
    index: int = 0
    """Of our gate, in the pod's list."""


@dataclass(frozen=True, slots=True)
class Nomination:
    """Of a pending pod to a node, by its status.nominatedNodeName."""

    node: str
    ours: bool
    """Ballast wrote it."""


@dataclass(frozen=True, slots=True)
class Pod:
    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    status_phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    deadline: float | None
    """Once it is being deleted: when its grace period is over."""
    created_at: float
    node: str | None
    gates: tuple[str, ...]
    """Its scheduling gates."""
    requests: Resources
    """Nothing once it has ended."""
    scheduler: str
    unschedulable: bool = False
    """Its scheduler has tried it, and no node can take it."""
    never_unschedulable: bool = False
    """kube-scheduler may never mark it as Unschedulable. It does not try the pod before its ResourceClaims exist, or
    its PodGroup with all its pods. Read of pods without a node.
    """
    constraints: Constraints = _UNCONSTRAINED
    """Without volumes. Not read of bound pods that are no executors: nothing depends on them."""
    claims: tuple[str, ...] = ()
    """Names of the persistent volume claims it mounts; read like the constraints."""
    priority: int = 0
    preempts: bool = True
    """False: by its preemptionPolicy, kube-scheduler preempts no pod for it."""
    anti_affinity: tuple[AntiAffinityTerm, ...] = ()
    """Its required terms."""
    held: Held | None = None
    """Set while our gate is in the pod, which may be in others than executors: by a pod template they share."""
    nomination: Nomination | None = None
    executor: SparkExecutor | None = field(default=None)
    """Set for pods labeled spark-role=executor; a driver is never one."""
    drives: tuple[str, ...] = ()
    """Ids of applications whose executors it owns. Known where it was read together with them."""
    beyond: str = ""
    """The limit of its namespace beyond which it counts as neither executor nor driver."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def opted_in(self, namespace: Mapping[str, str]) -> bool:
        """By its own label or its namespace's, which is what the chart's admission policies go by.

        `namespace`: labels of its namespace.
        """
        return names.TOPOLOGY in self.labels or namespace.get(names.GATE_CHOICE) == "enabled"

    @property
    def nominated(self) -> str | None:
        """The node that Ballast has nominated it to; None once it is bound."""
        return self.nomination.node if self.node is None and self.nomination and self.nomination.ours else None

    @property
    def room_kept_on(self) -> str | None:
        """The node whose room kube-scheduler keeps for it, as when it preempts pods there that have not gone yet.

        None for an executor that Ballast has nominated: the planner decides whether that one is likely to be bound.
        """
        if self.nomination is None or not self.waits_for_a_node or (self.executor and self.nomination.ours):
            return None
        return self.nomination.node

    def is_preempted_by(self, priority: int) -> bool:
        """Whether kube-scheduler may preempt it for a pod of this priority. Spark's own are spared, known or not."""
        bound = self.node is not None and not (self.leaving or self.ended)
        return bound and self.priority < priority and not (self.executor or self.is_driver or self.beyond)

    @property
    def keeps_away_by(self) -> tuple[AntiAffinityTerm, ...]:
        """The terms by which kube-scheduler keeps other pods away from its node. None once it has ended."""
        return () if self.node is None or self.ended else self.anti_affinity

    @property
    def awaited_gates(self) -> tuple[str, ...]:
        """Gates of others that Ballast waits for. Where their owner waits for all others, both would wait for good."""
        return tuple(gate for gate in self.gates if gate != names.GATE and gate not in names.VOLCANO_GATES)

    @property
    def leaving(self) -> bool:
        return self.deadline is not None

    @property
    def ended(self) -> bool:
        return self.status_phase in _ENDED

    def about_to_be_bound(self, now: float) -> bool:
        """Whether kube-scheduler is going to look for a node for it next.

        A pod that it has found none for may wait for good. So may one for any other scheduler: the pod's spec names
        it, and it need not exist. So may one of which it may never say that it finds none: a user could create such
        pods again and again.
        """
        untried = not (self.unschedulable or self.never_unschedulable) and now - self.created_at < BINDING_SECONDS
        return self.waits_for_a_node and untried and self.scheduler == KUBE_SCHEDULER

    @property
    def waits_for_a_node(self) -> bool:
        return self.node is None and not (self.gates or self.leaving or self.ended)

    @property
    def is_driver(self) -> bool:
        return self.labels.get(names.SPARK_ROLE) == "driver" or bool(self.drives)

    @property
    def driven(self) -> tuple[str, ...]:
        """Ids of the applications that it is the driver of."""
        labeled = self.labels.get(names.SPARK_APPLICATION) if self.labels.get(names.SPARK_ROLE) == "driver" else None
        return self.drives if not labeled or labeled in self.drives else (labeled, *self.drives)

    @property
    def failed(self) -> bool:
        """Whether the executor in it has failed. Its pod ends only when its sidecars do, which some never do."""
        return self.status_phase == "Failed" or bool(self.executor and self.executor.exit_code)

    @property
    def phase(self) -> Phase:
        """An executor has ended when Spark's container has, though the pod takes room as long as a sidecar runs."""
        if self.ended or (self.executor is not None and self.executor.exit_code is not None):
            return Phase.ENDED
        if self.leaving:
            return Phase.LEAVING
        if names.GATE in self.gates:
            return Phase.GATED
        # MultiKueue copies the status of a pod in another cluster into the gated one here.
        return Phase.RUNNING if self.status_phase == "Running" and not self.gates else Phase.PENDING


class PodReader:
    """Reads pods' JSON. Keeps what pods of one template share; not safe for threads.

    `decommission_script`: the end of the preStop command by which Spark's decommissioning hook is known
    (Spark's spark.kubernetes.decommission.script, /opt/decom.sh by default).
    """

    def __init__(self, *, decommission_script: str = "decom.sh") -> None:
        self._amounts = AmountReader()
        self._constraints, self._anti_affinity = ConstraintReader(), AntiAffinityReader()
        self._executors = ExecutorReader(self._amounts, decommission_script)

    def read(self, pod: JSON) -> Pod:
        """The pod, without the parts that can't be read.

        Whatever a user writes into one pod must not hide it, or those that are listed with it: gated executors would
        never be released.
        """
        try:
            return self._read(pod)
        except Exception as error:  # noqa: BLE001 -- whatever is in a pod
            problem = error
        for omission in OMISSIONS:
            try:
                found = self._read(omission.apply(pod))
            except Exception as error:  # noqa: BLE001 -- whatever is in a pod
                problem = error
            else:
                metadata = pod["metadata"]
                words = "%s of %s/%s can't be read, and is left out: %r"
                _LOG.warning(words, omission.part, metadata.get("namespace"), metadata.get("name"), problem)
                return found if omission.keeps_demands else _demanding_unknown(found)
        raise problem

    def _read(self, pod: JSON) -> Pod:
        metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        labels = metadata.get("labels") or {}
        node = spec.get("nodeName")
        phase = status.get("phase") or "Pending"
        is_executor = labels.get(names.SPARK_ROLE) == "executor"
        asks = is_executor or node is None
        gates = _gates(spec)
        return Pod(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            resource_version=metadata.get("resourceVersion") or "",
            labels=labels,
            status_phase=phase,
            deadline=seconds(metadata.get("deletionTimestamp")),
            created_at=seconds(metadata.get("creationTimestamp")) or 0.0,
            node=node,
            gates=gates,
            requests=Resources() if phase in _ENDED else self._amounts.requests(pod),
            scheduler=spec.get("schedulerName") or KUBE_SCHEDULER,
            unschedulable=unschedulable(status) is not None,
            never_unschedulable=node is None and any(spec.get(each) for each in _OBJECTS),
            constraints=self._constraints.read(spec) if asks else _UNCONSTRAINED,
            claims=tuple(_claims(pod)) if asks else (),
            priority=spec.get("priority") or 0,
            preempts=spec.get("preemptionPolicy") != "Never",
            anti_affinity=self._anti_affinity.read(metadata["namespace"], spec),
            held=_held(pod, gates),
            nomination=_nomination(pod),
            executor=self._executors.read(pod, gates) if is_executor else None,
        )


def _held(pod: JSON, gates: tuple[str, ...]) -> Held | None:
    if names.GATE not in gates:
        return None
    affinity = pod["spec"].get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity")
    unread = too_long(node_affinity)
    version = pod["metadata"].get("resourceVersion") or ""
    kept = None if unread else node_affinity
    return Held(version, gates, kept, has_affinity=bool(affinity), unread=unread, index=gates.index(names.GATE))


def _gates(spec: JSON) -> tuple[str, ...]:
    return tuple(gate["name"] for gate in spec.get("schedulingGates") or ())


def held(pod: JSON) -> Held | None:
    """What a release must know of this pod; None when our gate is not in it."""
    return _held(pod, _gates(pod["spec"]))


def _nomination(pod: JSON) -> Nomination | None:
    node = (pod.get("status") or {}).get("nominatedNodeName")
    return Nomination(node, _nominated_by_us(pod)) if node else None


def _nominated_by_us(pod: JSON) -> bool:
    """Also if managedFields names no manager of it: its author may have emptied them, and the nomination would stay.

    The author may write another manager's name, too. kube-scheduler removes the nomination of a pod that finds no node,
    but not where the pod may preempt no other: such a pod it never nominates, so there the nomination counts as ours.
    """
    if pod["spec"].get("preemptionPolicy") == "Never":
        return True
    managers = {
        entry.get("manager")
        for entry in pod["metadata"].get("managedFields") or ()
        if entry.get("subresource") == "status"
        and "f:nominatedNodeName" in ((entry.get("fieldsV1") or {}).get("f:status") or {})
    }
    return not managers or names.FIELD_MANAGER in managers


def _demanding_unknown(pod: Pod) -> Pod:
    """No node is known to meet what it demands, and a release must not write over it. It may keep others away."""
    held = None if pod.held is None else replace(pod.held, has_affinity=True, unread=True)
    return replace(pod, held=held, constraints=_UNREAD, anti_affinity=(UNREAD,))


def _claims(pod: JSON) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            yield f"{pod['metadata']['name']}-{volume['name']}"
