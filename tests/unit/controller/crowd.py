"""Resources as the API server has them, and passes over a thousand nodes and ten thousand executors."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

from ballast.api import BalancingPolicy, SparkTopology
from ballast.controller.status import Outlook
from ballast.controller.status.topology import recommendation
from ballast.model import (
    AvgShedderPolicy,
    Component,
    Executor,
    Memory,
    MovesPolicy,
    Policy,
    Snapshot,
    Topology,
    Workload,
)
from ballast.model.policy import SheddingPolicy
from ballast.planner.plan import plan
from ballast.planner.replan import ReplannedTopology
from tests.builders import NOW, a_node, a_policy, a_snapshot, a_topology, an_executor

KIB = 1024
LONG = "ip-10-123-{}.eu-central-1.compute.internal"
PARTS = ("ingest", "sessions", "enrichment")
MANY = tuple(f"{'c' * 59}-{number:03}" for number in range(100))
"""As many as a topology may have, with names as long as may be."""


def policy_resource(status: dict[str, Any] | None = None) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming", "generation": 4},
            "spec": {"nodeSelector": {"matchLabels": {"pool": "streaming"}}},
            "status": status or {},
        }
    )


def topology_resource(*components: str, status: dict[str, Any] | None = None) -> SparkTopology:
    names = components or ("ingest",)
    return SparkTopology.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "SparkTopology",
            "metadata": {"name": "clicks", "namespace": "team", "generation": 2},
            "spec": {"components": [{"name": name, "executors": 3} for name in names]},
            "status": status or {},
        }
    )


def outlook(snapshot: Snapshot, policy: Policy | None = None, memory: Memory | None = None) -> Outlook:
    chosen = policy or a_policy()
    decided, after = plan(snapshot, chosen, memory or Memory(), NOW)
    return Outlook(snapshot, chosen, decided, after, NOW)


def crowd(*, declared: bool, parts: tuple[str, ...] = PARTS) -> Snapshot:
    """A thousand nodes with names as long as a cloud gives them, and ten thousand executors."""
    luck = random.Random(7)
    names = [LONG.format(f"{i // 256}-{i % 256}") for i in range(1000)]
    nodes = tuple(
        a_node(name, zone=f"eu-central-1{'abc'[i % 3]}", rack=f"rack-{i % 40}", cores=48.0, cpu=luck.uniform(0.3, 1.0))
        for i, name in enumerate(names)
    )
    executors = tuple(_member(i, names[i % 1000], declared=declared, parts=parts) for i in range(10_000))
    return a_snapshot(*nodes, executors=executors, topologies=_topologies(declared=declared, parts=parts))


def _member(number: int, node: str, *, declared: bool, parts: tuple[str, ...]) -> Executor:
    if declared:
        topology, component = "team/clicks", parts[number % len(parts)]
    else:
        topology, component = f"team/spark-{number % 60:032}", "profile-0"
    name = f"clickstream-enrichment-production-{'0' * 20}-exec-{number}"
    return an_executor(name, node=node, topology=topology, component=component, cpu=0.8, application=topology[5:])


def _topologies(*, declared: bool, parts: tuple[str, ...]) -> tuple[Topology, ...]:
    if declared:
        return (a_topology(*(Component(part, workload=Workload.STREAMING) for part in parts)),)
    return tuple(
        Topology(f"team/spark-{i:032}", "team", f"spark-{i:032}", (Component("profile-0"),), implicit=True)
        for i in range(60)
    )


def busy(*, declared: bool, parts: tuple[str, ...] = PARTS) -> Outlook:
    """A pass over the crowd in which much is decided."""
    hasty = a_policy(
        shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1, min_hot_score=10.0)),
        moves=MovesPolicy(max_concurrent=50),
    )
    return outlook(crowd(declared=declared, parts=parts), hasty)


def recommended(seen: Outlook) -> Outlook:
    """As if every executor were to go to the next node."""
    names = [node.name for node in seen.snapshot.nodes]
    after = dict(zip(names, names[1:] + names[:1], strict=True))
    places: dict[str, Counter[str]] = defaultdict(Counter)
    for executor in seen.snapshot.executors:
        places[executor.component][after[executor.node or ""]] += 1
    (view,) = seen.locality.values()
    anew = ReplannedTopology(
        view.topology, 10_000, before=view, after=view, places=places, relocated=10_000, unplaced=()
    )
    return replace(seen, recommendations={view.topology: recommendation(anew)})
