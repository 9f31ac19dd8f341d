"""An executor on a hot node that is asked to move, and an operator that a test walks through it step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ballast.controller.failures import Failure
from ballast.kube import names
from ballast.kube.kinds import EXECUTOR_MOVE
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.hand import Clock, FakeFigures, Hand, hand
from tests.cluster.controller.pool import ENFORCE, PATIENCE_SECONDS, Pool, pool, zones
from tests.cluster.controller.scene import Driver
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]
CLICKS = {names.TOPOLOGY: "clicks"}
HOT, WARM, COLD = "a1", "b1", "a2"
MOVES: JSON = {
    "mode": "Enforce",
    "minExecutorAge": "0s",
    "allowUnknownState": True,
    "cooldown": "0s",
    "settle": "6s",
    "ttlAfterFinished": "1m",
    "budgets": [],
}
EAGER: JSON = {"strategy": "AvgShedder", "avgShedder": {"lowHits": 1, "highHits": 1}}
ENDED = ("Succeeded", "Failed", "Refused", "Expired")


class Stage:
    """An executor on a hot node, another next to it, and an operator whose figures and clock are the test's own."""

    def __init__(self, mine: Pool, operator: Hand, clock: Clock, driver: Driver, figures: FakeFigures) -> None:
        self.mine, self.operator, self.clock, self.driver, self.figures = mine, operator, clock, driver, figures

    def succeeded_by(self, operator: Hand) -> None:
        """Another process leads from now on."""
        self.operator.close()
        self.operator = operator

    def ask(self, name: str, pod: JSON, **spec: Any) -> None:
        """An approved move, made by hand."""
        executor = {"pod": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        way = {"sourceNodeName": pod["spec"].get("nodeName"), "targetNodeName": self.mine.node(COLD)}
        whole = {"topologyName": "clicks", "executor": executor, "approved": True, **way, **spec}
        self.mine.apply(EXECUTOR_MOVE, name, whole)

    def move(self, name: str) -> JSON:
        found: JSON = self.mine.read(EXECUTOR_MOVE, name)
        return found

    def outcome(self, name: str) -> tuple[str, str]:
        """Phase and reason once the move has ended."""
        status = self.until(lambda: self._ended(name), f"{name} ends")
        return status["phase"], status["reason"]

    def _ended(self, name: str) -> JSON | None:
        status: JSON = self.move(name).get("status") or {}
        return status if status.get("phase") in ENDED else None

    def until(self, look: Callable[[], JSON | None], what: str) -> JSON:
        """Reconcile until `look` finds something. Executors that left are replaced, and the clock goes on."""

        def once() -> JSON | None:
            self.operator.reconcile()
            self.driver.step()
            self.driver.await_running()
            self.clock.ahead_seconds += 1.0
            return look()

        return wait_until(once, what=what, timeout_seconds=PATIENCE_SECONDS)

    def executor(self, node: str) -> JSON:
        (found,) = (pod for pod in self.driver.pods() if pod["spec"].get("nodeName") == self.mine.node(node))
        return found


MEEK = "preempts-none"
_PORT = 7079


def take_places(mine: Pool, driver: Driver) -> None:
    """Let replacements find no node in the zone of the hot and the cold one, which Ballast can't know.

    They use a port of the host that pods on both nodes have. They may preempt no pod: kube-scheduler removes the
    nomination of those that may.
    """
    mine.testbed.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": MEEK},
            "value": 0,
            "preemptionPolicy": "Never",
            "description": "pods that preempt no other",
        }
    )
    container = {
        "name": "spark-kubernetes-executor",
        "image": "spark",
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
        "ports": [{"containerPort": _PORT, "hostPort": _PORT}],
        "lifecycle": {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}},
    }
    driver.options = {"containers": [container], "priorityClassName": MEEK}
    for number, node in enumerate((HOT, COLD)):
        mine.executor(number, role="other", application="service", gates=(), nodeName=mine.node(node), **driver.options)


def traveling(on: Stage, name: str) -> JSON | None:
    """The move's status while its executor is on the way."""
    status: JSON = on.move(name).get("status") or {}
    return status if status.get("phase") in ("Leaving", "Arriving") else None


@contextmanager
def stage(
    installed: Installation,
    name: str,
    *,
    labels: JSON | None = None,
    reported: Callable[[], Iterable[Failure]] = tuple,
    **policy: Any,
) -> Iterator[Stage]:
    clock = Clock()
    with pool(installed.testbed, name, zones()) as mine:
        figures = FakeFigures({mine.node(HOT): 0.7, mine.node(COLD): 0.1, mine.node(WARM): 0.3, mine.node("b2"): 0.3})
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        spec = {"placement": {**ENFORCE, "maxExecutorsPerNodePercent": 100}, "moves": MOVES, **policy}
        mine.policy(interval="1s", metrics={"window": "5s"}, **spec)
        driver = Driver(mine, f"spark-{name}", 2, CLICKS if labels is None else labels)
        for node in (WARM, HOT):
            driver.start(gates=(), nodeName=mine.node(node))
        driver.await_running()
        driver.grow_old()
        operator = hand(installed.testbed, clock=clock, metrics=figures, reported=reported)
        found = Stage(mine, operator, clock, driver, figures)
        try:
            yield found
        finally:
            found.operator.close()
            installed.switch(gating=False)
