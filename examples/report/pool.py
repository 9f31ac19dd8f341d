"""Writes snapshot.yaml, the example of docs/report.md: `python -m examples.report.pool`.

Twelve nodes in three zones of two racks each, and five applications, each with another thing to see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ballast.cli.situation import Situation, dump
from ballast.model import (
    Anchor,
    Component,
    ConditionReason,
    Executor,
    ExecutorUsage,
    Memory,
    MetricsHealth,
    Node,
    NodeUsage,
    Policy,
    Resources,
    Snapshot,
    Stream,
    Topology,
    Workload,
)
from ballast.model.executor import Phase

FILE = Path(__file__).parent / "snapshot.yaml"
NOW = 1_790_000_000.0
MIB, GIB = float(1 << 20), float(1 << 30)
_SILENT = ExecutorUsage()
BUSY = "worker-08"
"""Something else keeps this node busy."""


def situation() -> Situation:
    """The same in every run."""
    executors = (*_clicks(), *_enrich(), *_attribution(), *_billing(), *_features())
    placed = [executor.node for executor in executors]
    nodes = tuple(_node(index, placed.count(_name(index))) for index in range(12))
    metrics = MetricsHealth(available=True, reason=ConditionReason.AVAILABLE, age_seconds=12.0)
    topologies = (_clicks_topology(), _attribution_topology())
    return Situation(
        Policy("streaming"), Memory(), Snapshot(NOW, nodes, executors, topologies=topologies, metrics=metrics)
    )


def _name(index: int) -> str:
    return f"worker-{index % 12 + 1:02d}"


def _node(index: int, executors: int) -> Node:
    name, zone = _name(index), f"eu-1{'abc'[index % 3]}"
    rack = f"{zone}-r{index // 3 % 2 + 1}"
    busy = name == BUSY
    return Node(
        name,
        (zone, rack, name),
        Resources(8.0, 32 * GIB, 110),
        requested=Resources(executors, 2 * GIB * executors, executors),
        labels={
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": zone,
            "topology.ballast.dev/rack": rack,
            "eks.amazonaws.com/nodegroup": "spark",
        },
        usage=NodeUsage(
            cpu_ratio=0.94 if busy else 0.35 + index * 0.01,
            memory_ratio=0.4,
            pressure_ratio=0.31 if busy else 0.02,
            age_seconds=0.0,
        ),
    )


def _executor(
    application: str, number: int, *, node: str, usage: ExecutorUsage = _SILENT, component: str = "executors"
) -> Executor:
    """`application`: as `namespace/id`."""
    namespace, _, name = application.partition("/")
    return Executor(
        namespace=namespace,
        name=f"{name}-exec-{number}",
        uid=f"{name}-{number}",
        application=name,
        executor_id=str(number),
        resource_profile="0",
        topology=application,
        component=component,
        phase=Phase.RUNNING,
        created_at=NOW - 7200.0,
        running_since=NOW - 7190.0,
        node=node,
        requests=Resources(1.0, 2 * GIB, 1),
        graceful=True,
        usage=replace(usage, cpu_cores=0.6, state_bytes=64 * MIB),
    )


def _shuffling(rate: float) -> ExecutorUsage:
    return ExecutorUsage(shuffle_read_bytes_per_second=rate, shuffle_write_bytes_per_second=rate)


def _clicks() -> list[Executor]:
    """With Spark's metrics: its bytes are measured."""
    usage = _shuffling(8 * MIB)
    return [_executor("shop/clicks", i + 1, node=_name(i), usage=usage, component="sessions") for i in range(12)]


def _enrich() -> list[Executor]:
    """Without Spark's metrics: its pods' traffic is an upper bound."""
    usage = ExecutorUsage(bytes_per_second=12 * MIB)
    return [_executor("shop/enrich", i + 1, node=_name(i), usage=usage) for i in range(6)]


def _attribution() -> list[Executor]:
    """Shuffles through Celeborn."""
    return [_executor("ads/attribution", i + 1, node=_name(5 * i), component="join") for i in range(8)]


def _billing() -> list[Executor]:
    """All in one zone; reads from Kafka, and nothing but its network traffic shows it."""
    usage = replace(_shuffling(2 * MIB), bytes_per_second=6 * MIB)
    return [_executor("ads/billing", i + 1, node=_name(3 * i), usage=usage) for i in range(4)]


def _features() -> list[Executor]:
    """One executor is slow because of its node, another because it has twice the data."""
    seconds_bytes = [(1.5, MIB), (2.4, MIB), (1.5, MIB), (1.5, MIB), (3.0, 2 * MIB), (1.5, MIB)]
    nodes = ["worker-03", BUSY, "worker-05", "worker-06", "worker-07", BUSY]
    return [
        _executor(
            "ml/features", number, node=node, usage=replace(_shuffling(3 * MIB), task_seconds=seconds, task_bytes=size)
        )
        for number, (node, (seconds, size)) in enumerate(zip(nodes, seconds_bytes, strict=True), start=1)
    ]


def _spread() -> tuple[Anchor, ...]:
    return tuple(Anchor((f"eu-1{letter}", None, None), 1 / 3) for letter in "abc")


def _clicks_topology() -> Topology:
    components = (
        Component("kafka", external=True, anchors=_spread()),
        Component("sessions", Workload.STREAMING),
    )
    reads = Stream("kafka", "sessions", bytes_per_second=30 * MIB)
    return Topology("shop/clicks", "shop", "clicks", components, streams=(reads,))


def _attribution_topology() -> Topology:
    components = (
        Component("celeborn", external=True, anchors=_spread()),
        Component("join", Workload.BATCH, exchange_bytes_per_second=0.0),
    )
    streams = (Stream("join", "celeborn"), Stream("celeborn", "join"))
    return Topology("ads/attribution", "ads", "attribution", components, streams=streams)


if __name__ == "__main__":
    FILE.write_text(dump(situation()), encoding="utf-8")
