"""Small plays on the real API server, that end alike whenever the operator's process ends in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ballast.kube import names
from ballast.kube.events import CONTROLLER
from ballast.kube.kinds import BALANCING_POLICY, EVENT, EXECUTOR_MOVE, GATE_SWITCH, POD, SPARK_TOPOLOGY
from ballast.kube.objects import Query, read_list
from tests.cluster.chart.installation import RELEASE, Installation
from tests.cluster.controller.hand import Clock, Died, FakeFigures, Fate, Hand, hand
from tests.cluster.controller.pool import Pool, gates_of, preferred_labels, required_labels
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]
PATIENCE_SECONDS = 120.0
LONG_AGO = "2026-01-01T00:00:00Z"
A_MINUTE = 61.0
"""After which a status may be written again."""


@dataclass(slots=True)
class Driver:
    """As much of a Spark driver as there is to executors' pods: those that went are replaced."""

    mine: Pool
    application: str
    target: int
    labels: dict[str, str]
    created: int = 0
    options: JSON = field(default_factory=dict)
    """What executors ask for that do not say so themselves."""

    def step(self) -> None:
        there = [pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]]
        for _ in range(self.target - len(there)):
            self.start()

    def start(self, **options: Any) -> None:
        self.created += 1
        asked = {**self.options, **options}
        self.mine.executor(self.created, application=self.application, labels=self.labels, **asked)

    def pods(self) -> list[JSON]:
        chosen = f"{names.SPARK_APPLICATION}={self.application}"
        return read_list(self.mine.admin, Query(POD, namespace=self.mine.name, labels=chosen), lambda pod: pod).items

    def grow_old(self) -> None:
        """So that everybody's load is in the figures by now."""
        for pod in self.pods():
            statuses = pod["status"]["containerStatuses"]
            statuses[0]["state"] = {"running": {"startedAt": LONG_AGO}}
            change = {"status": {"containerStatuses": statuses}}
            self.mine.admin.patch(POD, pod["metadata"]["name"], change, namespace=self.mine.name, subresource="status")

    def await_running(self) -> None:
        """Until kube-scheduler and kubelet are done with everybody who is not held."""
        wait_until(self._settled, what="released pods run", timeout_seconds=PATIENCE_SECONDS)

    def _settled(self) -> bool:
        return not any(_on_its_way(pod) for pod in self.pods())


def _on_its_way(pod: JSON) -> bool:
    return not gates_of(pod) and (pod["status"].get("phase") != "Running" or "deletionTimestamp" in pod["metadata"])


@dataclass(slots=True)
class Scene:
    """One run of a play under one `fate`: set up, lived through by one or two operators, looked at, cleared away."""

    installed: Installation
    mine: Pool
    name: str
    executors: int
    metrics: FakeFigures = field(default_factory=FakeFigures)
    clock: Clock = field(default_factory=Clock)
    driver: Driver = field(init=False)

    def __post_init__(self) -> None:
        self.driver = Driver(self.mine, self.name, self.executors, {names.TOPOLOGY: self.name})

    def live(self, fate: Fate, done: Callable[[Scene], bool]) -> Fate:
        """Reconcile until `done`, with a second operator if the first one ends; returns the fate of the first."""
        self.driver.step()
        for one in (fate, Fate()):
            operator = hand(self.installed.testbed, clock=self.clock, metrics=self.metrics, fate=one)
            try:
                self._reconcile(operator, done)
            except Died:
                self.driver.step()
                self.driver.await_running()
                continue
            finally:
                operator.close()
            return fate
        raise AssertionError("the second life has no end")

    def _reconcile(self, operator: Hand, done: Callable[[Scene], bool]) -> None:
        wait_until(
            lambda: done(self) or self._round(operator),
            what="the play ends",
            timeout_seconds=PATIENCE_SECONDS,
            poll_seconds=0.0,
            explain=lambda: f"{self.picture()} {self.refusals()}",
        )
        self.clock.ahead_seconds += A_MINUTE
        operator.reconcile()

    def _round(self, operator: Hand) -> bool:
        """One more, after which the play may have come to its end."""
        operator.reconcile()
        self.driver.step()
        self.driver.await_running()
        return False

    def moves(self) -> list[JSON]:
        return read_list(self.mine.admin, Query(EXECUTOR_MOVE, namespace=self.mine.name), lambda move: move).items

    def refusals(self) -> JSON:
        status: JSON = self.mine.read(BALANCING_POLICY, self.name).get("status") or {}
        return status.get("refusals") or {}

    def picture(self) -> JSON:
        """Everything that stays, except for names, times and uids, and for which of two nodes that are alike."""
        pods = self.driver.pods()
        topology = self.mine.read(SPARK_TOPOLOGY, self.name).get("status") or {}
        policy = self.mine.read(BALANCING_POLICY, self.name).get("status") or {}
        return {
            "nodes": sorted(Counter(pod["spec"].get("nodeName") for pod in pods).values()),
            "required": sorted(str(required_labels(pod)) for pod in pods),
            "preferred": sorted(str(sorted(preferred_labels(pod))) for pod in pods),
            "gates": [gates_of(pod) for pod in pods],
            "created": self.driver.created,
            "moves": [_move_picture(move) for move in self.moves()],
            "topology": {
                **{key: topology.get(key) for key in ("executors", "locality")},
                "components": [_without_scope(component) for component in topology.get("components") or ()],
                "placement": {c: sorted(n.values()) for c, n in (topology.get("placement") or {}).items()},
                "conditions": _verdicts(topology),
            },
            "policy": {
                **{key: policy.get(key) for key in ("nodes", "attempts", "moved", "budget")},
                "conditions": _verdicts(policy),
            },
            "switch": self.installed.admin.read(GATE_SWITCH, RELEASE).body["spec"],
        }

    def told(self) -> Counter[tuple[str, str]]:
        """How many Events of each reason there are about each kind of this play's objects; repetitions are one."""
        events = read_list(self.mine.admin, Query(EVENT, namespace=self.mine.name), lambda each: each).items
        about = [
            (each["reason"], each["regarding"]) for each in events if each.get("reportingController") == CONTROLLER
        ]
        mine = (self.name, f"{self.name}-")
        return Counter(
            (reason, each["kind"])
            for reason, each in about
            if each["name"] == mine[0] or each["name"].startswith(mine[1])
        )

    def clear(self) -> None:
        self.mine.delete(BALANCING_POLICY, self.name)
        for move in self.moves():
            self.mine.delete(EXECUTOR_MOVE, move["metadata"]["name"])
        self.mine.delete(SPARK_TOPOLOGY, self.name)
        for pod in self.driver.pods():
            self.mine.delete(POD, pod["metadata"]["name"])
        self.installed.switch(gating=False)


def _without_scope(component: JSON) -> JSON:
    """How far it may spread is steered step by step: between its bounds it depends on the way there."""
    return {key: value for key, value in component.items() if key != "scope"}


def _verdicts(status: JSON) -> list[tuple[str, str, str]]:
    return sorted((c["type"], c["status"], c["reason"]) for c in status.get("conditions") or ())


def _move_picture(move: JSON) -> JSON:
    status = move.get("status") or {}
    return {
        "from": move["spec"]["sourceNodeName"],
        "to": status.get("targetNodeName"),
        "approved": move["spec"]["approved"],
        "phase": status.get("phase"),
        "reason": status.get("reason"),
        "node": (status.get("replacement") or {}).get("node"),
        "pinned": (status.get("replacement") or {}).get("pinned"),
        "attempts": status.get("attempts"),
    }
