"""Short ways to say what a test is about; everything left unsaid is ordinary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ballast.model import (
    Component,
    ConditionReason,
    Executor,
    ExecutorUsage,
    MetricsHealth,
    Move,
    MovePhase,
    Node,
    NodeUsage,
    Phase,
    Policy,
    Resources,
    Snapshot,
    Topology,
    Workload,
)

NOW = 1_000_000.0
GIB = float(1 << 30)


def a_node(name: str, *, zone: str | None = "z1", rack: str | None = "r1", cores: float = 4.0, **changes: Any) -> Node:
    """An open node; `cpu` sets its measured CPU ratio, `pressure` the share of time in which something waited."""
    cpu, pressure = changes.pop("cpu", None), changes.pop("pressure", None)
    usage = NodeUsage(cpu_ratio=cpu, pressure_ratio=pressure) if cpu is not None else None
    node = Node(
        name=name,
        location=(zone, rack, name),
        allocatable=Resources(cores, 16 * GIB, 110),
        labels={"kubernetes.io/hostname": name},
        usage=usage,
    )
    return replace(node, **changes)


def an_executor(name: str, **changes: Any) -> Executor:
    """A running, opted-in, graceful streaming executor of one core; `cpu` sets its measured cores."""
    usage = ExecutorUsage(
        cpu_cores=changes.pop("cpu", None),
        task_seconds=changes.pop("task_seconds", None),
        task_bytes=changes.pop("task_bytes", None),
        state_bytes=changes.pop("state_bytes", 1024.0),
    )
    executor = Executor(
        namespace="team",
        name=name,
        uid=f"uid-{name}",
        application="spark-app",
        executor_id=name.rsplit("-", 1)[-1],
        resource_profile="0",
        topology="team/clicks",
        component="ingest",
        phase=Phase.RUNNING,
        created_at=NOW - 3600,
        running_since=NOW - 3500,
        requests=Resources(1.0, GIB, 1),
        graceful=True,
        usage=usage,
    )
    return replace(executor, **changes)


def gated(name: str, *, since: float = NOW - 1, **changes: Any) -> Executor:
    """An executor whose last gate is ours, since `since`."""
    settings: dict[str, Any] = {
        "phase": Phase.GATED,
        "node": None,
        "created_at": since,
        "last_gate_since": since,
        "running_since": None,
        "usage": None,
    }
    return replace(an_executor(name), **{**settings, **changes})


def a_topology(*components: Component, **changes: Any) -> Topology:
    chosen = components or (Component("ingest", workload=Workload.STREAMING),)
    return replace(Topology("team/clicks", "team", "clicks", chosen), **changes)


def a_move(name: str = "m1", **changes: Any) -> Move:
    move = Move(
        name=name,
        namespace="team",
        topology="team/clicks",
        component="ingest",
        executor_uid=f"uid-{name}",
        executor_name=f"team/{name}",
        source="hot",
        target="cold",
        phase=MovePhase.SUCCEEDED,
        started_at=NOW - 300,
        ended_at=NOW - 100,
        helped=True,
    )
    return replace(move, **changes)


def a_snapshot(*nodes: Node, **changes: Any) -> Snapshot:
    settings: dict[str, Any] = {
        "taken_at": NOW,
        "nodes": nodes,
        "executors": (),
        "topologies": (a_topology(),),
        "metrics": MetricsHealth(available=True, reason=ConditionReason.AVAILABLE),
    }
    return Snapshot(**{**settings, **changes})


def a_policy(**changes: Any) -> Policy:
    return replace(Policy(name="streaming"), **changes)
