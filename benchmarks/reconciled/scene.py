"""What goes on while Git is reconciled: sets come and are placed, and an executor is moved again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE, POD, SPARK_TOPOLOGY, Kind
from ballast.kube.objects import Query, read_list
from benchmarks.reconciled.flux import Flux
from tests.cluster.controller.ordered import EAGER, ENDED, MOVES
from tests.cluster.controller.pool import ENFORCE, POOL_LABEL, Pool, gates_of, pool, zones
from tests.cluster.controller.scene import Driver
from tests.faults.metrics import EXECUTOR_CORES, Values
from tests.testbed.testbed import Testbed

JSON = dict[str, Any]
TOPOLOGY = "clicks"
HOT_CORES, COLD_CORES, OTHER_CORES = 2.7, 0.4, 1.2
"""What runs on a node of four cores besides the executors."""
SET_EVERY_SECONDS = 5.0
SET_STAYS_SECONDS = 20.0
SET_SIZE = 3
_LABELS = {names.TOPOLOGY: TOPOLOGY}


@dataclass(slots=True)
class Scene:
    """Two pools, of a policy each; all of their resources come from Git, in the folder `resources`."""

    moving: Pool
    placing: Pool
    metrics: Values
    flux: Flux
    approved: dict[str, float] = field(default_factory=dict)
    """When the commit was pushed, in monotonic seconds, by the move's name."""
    acted: dict[str, float] = field(default_factory=dict)
    """How long after that the operator had begun, in seconds."""
    ended: dict[str, str] = field(default_factory=dict)
    """The phases in which approved moves ended."""
    sets: int = 0
    unplaced: list[str] = field(default_factory=list)
    """Executors that were still gated, or had no place, when their set's time was over."""
    _hot: str = "a1"
    _sets: list[tuple[float, Driver]] = field(default_factory=list)
    _next_set: float = 0.0

    def resources(self) -> dict[str, str]:
        """The files in Git."""
        placement = {**ENFORCE, "gateTimeout": "10s", "maxExecutorsPerNodePercent": 100}
        moves = {"moves": {**MOVES, "mode": "Approve", "ttlAfterFinished": "1h"}, "shedding": EAGER}
        steered = {"metrics": self.metrics.spec(), **moves}
        files = {}
        for mine, size, more in (
            (self.moving, 2, steered),
            (self.placing, SET_SIZE, {"shedding": {"strategy": "None"}}),
        ):
            spec = {"interval": "1s", "placement": placement, **_selectors(mine), **more}
            component = {"name": "ingest", "workload": "Streaming", "executors": size}
            files[f"resources/{mine.name}-policy.yaml"] = manifest(BALANCING_POLICY, mine.name, spec)
            files[f"resources/{mine.name}-topology.yaml"] = manifest(
                SPARK_TOPOLOGY, TOPOLOGY, {"components": [component]}, namespace=mine.name
            )
        return files

    def about(self, folder: str) -> str:
        """A ConfigMap that keeps the folder in Git when there is nothing else."""
        metadata = {"name": f"about-{folder}", "namespace": self.moving.name}
        return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"in": folder}})

    def mover(self) -> Driver:
        """The application whose executor is on the hot node."""
        driver = Driver(self.moving, "spark-moving", 2, _LABELS)
        for node in ("b1", self._hot):
            driver.start(gates=(), nodeName=self.moving.node(node))
        driver.await_running()
        driver.grow_old()
        return driver

    def step(self, driver: Driver) -> None:
        driver.step()
        self._measure(driver)
        self._approve()
        self._place()

    def _measure(self, driver: Driver) -> None:
        """Each node's load: its own, and that of the executors there."""
        own = {"a1": COLD_CORES, "a2": COLD_CORES, "b1": OTHER_CORES, "b2": OTHER_CORES, self._hot: HOT_CORES}
        running = [pod for pod in driver.pods() if pod["status"].get("phase") == "Running"]
        here = [pod["spec"]["nodeName"] for pod in running]
        self.metrics.executors = [(self.moving.name, pod["metadata"]["name"]) for pod in running]
        nodes = {self.moving.node(name): cores for name, cores in own.items()}
        self.metrics.nodes = {name: cores + EXECUTOR_CORES * here.count(name) for name, cores in nodes.items()}

    def _approve(self) -> None:
        """One move after the other, by a commit; another one removes it when it has ended."""
        for move in self.moves():
            name, status = move["metadata"]["name"], move.get("status") or {}
            phase = status.get("phase")
            if name in self.approved:
                if phase not in (None, "Proposed"):
                    self.acted.setdefault(name, time.monotonic() - self.approved[name])
                if phase in ENDED and name not in self.ended:
                    self.ended[name] = f"{phase}: {status.get('reason')}"
                    self._hot = {"a1": "a2", "a2": "a1"}[self._hot] if phase == "Succeeded" else self._hot
                    self.flux.push(f"Remove {name}", {f"approvals/{name}.yaml": None})
            elif phase == "Proposed" and len(self.approved) == len(self.ended):
                spec = {**move["spec"], "approved": True}
                text = manifest(EXECUTOR_MOVE, name, spec, namespace=self.moving.name)
                self.approved[name] = time.monotonic()
                self.flux.push(f"Approve {name}", {f"approvals/{name}.yaml": text})

    def _place(self) -> None:
        now = time.monotonic()
        if now >= self._next_set:
            self._next_set, self.sets = now + SET_EVERY_SECONDS, self.sets + 1
            driver = Driver(self.placing, f"spark-{self.sets}", SET_SIZE, _LABELS)
            for _ in range(SET_SIZE):
                driver.start(gates=())  # the admission policy adds it
            self._sets.append((now + SET_STAYS_SECONDS, driver))
        for over, driver in self._sets:
            if over <= now:
                for pod in driver.pods():
                    if gates_of(pod) or not (pod["spec"].get("affinity") or {}).get("nodeAffinity"):
                        self.unplaced.append(pod["metadata"]["name"])
                    self.placing.delete(POD, pod["metadata"]["name"])
        self._sets = [(over, driver) for over, driver in self._sets if over > now]

    def moves(self) -> list[JSON]:
        return read_list(self.moving.admin, Query(EXECUTOR_MOVE, namespace=self.moving.name), lambda each: each).items


@contextmanager
def scene(testbed: Testbed, metrics: Values, flux: Flux) -> Iterator[Scene]:
    with pool(testbed, "moving", zones()) as moving, pool(testbed, "placing", zones()) as placing:
        yield Scene(moving, placing, metrics, flux)


def manifest(kind: Kind, name: str, spec: JSON, *, namespace: str | None = None) -> str:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return yaml.safe_dump({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec})


def _selectors(mine: Pool) -> JSON:
    return {
        "nodeSelector": {"matchLabels": {POOL_LABEL: mine.name}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": mine.name}},
    }
