"""Whether one executor may be moved at all. Checked when a move is suggested and again right before it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ballast.model import Executor, MovesPolicy, Phase, Reason, Topology, Workload
from ballast.moves.evidence import Evidence

Objection = tuple[Reason, str]

_SPARK_MIN_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Case:
    """What the eligibility of one executor depends on."""

    executor: Executor
    topology: Topology | None
    live_executors: int
    """Running executors of its component, itself included."""
    load_cores: float | None
    """CPU that would travel with it; None: unknown."""
    evidence: Evidence
    now: float


def objections(case: Case, moves: MovesPolicy) -> Iterator[Objection]:
    """Every rule that forbids to move this executor, the weightiest first."""
    for rule in (_opted_in, _alive, _workload, _graceful, _age, _kueue, _state, _failure_budget, _load, _evidence):
        found = rule(case, moves)
        if found is not None:
            yield found


def _opted_in(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    executor = case.executor
    if not executor.enforced:
        return Reason.NOT_OPTED_IN, "its namespace or pod has not opted in"
    if not executor.labeled:
        return Reason.NOT_OPTED_IN, (
            "a selector or its pod template alone chose it, so its replacement might not be held: label its namespace "
            "ballast.dev/gate=enabled, or the executors with ballast.dev/topology"
        )
    if executor.scheduler != "default-scheduler":
        return Reason.FOREIGN_SCHEDULER, f"it is scheduled by {executor.scheduler}"
    return None


def _alive(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    if case.executor.phase is not Phase.RUNNING:
        return Reason.NOT_RUNNING, f"it is {case.executor.phase}"
    return None


def _workload(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    component = case.topology.component(case.executor.component) if case.topology else None
    workload = component.workload if component else None
    if workload is None and case.executor.unknown_topology:
        return Reason.UNKNOWN_TOPOLOGY, (
            f"its label ballast.dev/topology names {case.executor.unknown_topology}, and namespace "
            f"{case.executor.namespace} has no SparkTopology of that name, so its workload is not known: correct the "
            "label, create the SparkTopology, or set the label ballast.dev/workload"
        )
    if workload is None:
        return Reason.UNKNOWN_WORKLOAD, (
            "its component declares no workload; set components[].workload, or without a SparkTopology the executors' "
            "label ballast.dev/workload"
        )
    if workload is not Workload.STREAMING:
        return Reason.UNSUITED_WORKLOAD, f"a {workload} executor is placed but not moved in mid-stage"
    return None


def _graceful(case: Case, moves: MovesPolicy) -> Objection | None:
    if not case.executor.allocator_direct:
        return Reason.UNSUPPORTED_ALLOCATOR, "Spark's statefulset and deployment allocators re-create it in place"
    if not case.executor.graceful and not moves.allow_ungraceful:
        return Reason.NO_DECOMMISSIONING, "it was submitted without spark.decommission.enabled=true"
    return None


def _age(case: Case, moves: MovesPolicy) -> Objection | None:
    since = case.executor.running_since
    age = case.now - (since if since is not None else case.now)
    if age < moves.min_executor_age_seconds:
        return Reason.TOO_YOUNG, f"it has run {age:.0f} s of minExecutorAge {moves.min_executor_age_seconds:.0f} s"
    return None


def _kueue(case: Case, moves: MovesPolicy) -> Objection | None:
    if case.executor.kueue_managed and not moves.allow_kueue_managed:
        return Reason.KUEUE_MANAGED, "its replacement would queue again; see moves.allowKueueManaged"
    return None


def _state(case: Case, moves: MovesPolicy) -> Objection | None:
    usage = case.executor.usage
    state = usage.state_bytes if usage else None
    if state is None:
        if moves.allow_unknown_state:
            return None
        return Reason.UNKNOWN_STATE, "the size of its state is not known; see moves.allowUnknownState"
    if state > moves.max_state_bytes:
        return Reason.LARGE_STATE, f"it holds {state:.0f} B of state, above maxStateSize {moves.max_state_bytes:.0f} B"
    return None


def _failure_budget(case: Case, moves: MovesPolicy) -> Objection | None:
    if case.topology is None:
        return None
    limit = max(_SPARK_MIN_FAILURES, 2 * case.live_executors)
    failed, percent = case.topology.failed_executors, moves.max_failure_percent
    if 100 * failed >= percent * limit:
        detail = f"{failed} executors failed, and Spark gives up at {limit}: maxFailurePercent {percent} is reached"
        return Reason.FAILURE_BUDGET, detail
    return None


def _load(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    if case.load_cores is None:
        return Reason.UNKNOWN_LOAD, "its use of CPU is not known, so nothing can be predicted"
    return None


def _evidence(case: Case, moves: MovesPolicy) -> Objection | None:
    return case.evidence.objection(moves)
