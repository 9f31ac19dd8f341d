"""A move whose replacement finds its destination taken: it needs a node, and is nominated to one.

kube-scheduler finds no node for it and leaves the nomination, and Karpenter provides no node for a nominated pod.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ballast.kube.kinds import EXECUTOR_MOVE
from benchmarks.scaled.karpenter import Karpenter
from tests.cluster.controller.ordered import CLICKS, COLD, EAGER, HOT, MOVES, WARM, take_places
from tests.cluster.controller.pool import ENFORCE, POOL_LABEL, pool, zones
from tests.cluster.controller.scene import Driver
from tests.faults.metrics import Values
from tests.testbed.testbed import Testbed

JSON = dict[str, Any]
NAME = "moving"
PATIENCE_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_APPLICATION = "spark-moving"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Seconds from when the first replacement was released."""

    nominated_seconds: float | None
    """Until none is nominated any more; None if none ever was."""
    bound_seconds: float | None
    """Until one is on a node; None if that took too long."""
    deleted: int
    """Replacements that were deleted and placed again meanwhile."""
    phase: str


@contextmanager
def stage(testbed: Testbed, metrics: Values, autoscaler: Karpenter) -> Iterator[Driver]:
    """An executor on a hot node, another one in the other zone, and no node in its zone that could take it."""
    with pool(testbed, NAME, zones()) as mine:
        taint = {"key": POOL_LABEL, "value": NAME, "effect": "NoSchedule"}
        autoscaler.pool(NAME, {POOL_LABEL: NAME}, taints=[taint])
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        mine.policy(
            interval="1s",
            placement={**ENFORCE, "maxExecutorsPerNodePercent": 100},
            metrics=metrics.spec(),
            moves={**MOVES, "settle": "6s"},
            shedding=EAGER,
        )
        driver = Driver(mine, _APPLICATION, 2, CLICKS)
        for node in (WARM, HOT):
            driver.start(gates=(), nodeName=mine.node(node))
        driver.await_running()
        driver.grow_old()
        take_places(mine, driver)
        cores = {HOT: 2.7, COLD: 0.4, WARM: 1.2, "b2": 1.2}
        metrics.nodes = {mine.node(node): used for node, used in cores.items()}
        metrics.executors = [(NAME, pod["metadata"]["name"]) for pod in driver.pods()]
        try:
            yield driver
        finally:
            autoscaler.clear(NAME)


def move(driver: Driver) -> Replaced:
    """Ask for the move, and play the driver until a replacement is on a node."""
    mine = driver.mine
    (leaving,) = (pod for pod in driver.pods() if pod["spec"].get("nodeName") == mine.node(HOT))
    known = {pod["metadata"]["name"] for pod in driver.pods()}
    executor = {"pod": leaving["metadata"]["name"], "uid": leaving["metadata"]["uid"]}
    way = {"sourceNodeName": mine.node(HOT), "targetNodeName": mine.node(COLD)}
    mine.apply(EXECUTOR_MOVE, "lost", {"topologyName": "clicks", "executor": executor, "approved": True, **way})
    seen: set[str] = set()
    released = nominated = bound = None
    started = time.monotonic()
    while bound is None and time.monotonic() < started + PATIENCE_SECONDS:
        driver.step()
        for pod in driver.pods():
            name, spec = pod["metadata"]["name"], pod["spec"]
            if name in known:
                continue
            seen.add(name)
            if not spec.get("schedulingGates"):
                released = released or time.monotonic()
            if released and pod["status"].get("nominatedNodeName"):
                nominated = time.monotonic()
            if spec.get("nodeName"):
                bound = time.monotonic()
        time.sleep(_LOOK_SECONDS)
    status = mine.read(EXECUTOR_MOVE, "lost").get("status") or {}
    return Replaced(
        nominated_seconds=nominated - released if nominated and released else None,
        bound_seconds=bound - released if bound and released else None,
        deleted=max(0, len(seen) - 1),
        phase=f"{status.get('phase')}: {status.get('message')}",
    )
