"""Policies that leave times and limits to their defaults, on the real API server, with a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE
from ballast.kube.nodes import NodeFacts
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod
from ballast.prometheus import Reading
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.cluster.controller.hand import Clock, FakeFigures, Hand, hand
from tests.cluster.controller.ordered import CLICKS, COLD, ENDED, HOT, WARM
from tests.cluster.controller.pool import PATIENCE_SECONDS, POOL_LABEL, Pool, pool, required_labels, zones
from tests.cluster.controller.scene import Driver
from tests.faults.invariants import watched
from tests.testbed.nodes import ZONE_LABEL
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
INTERVAL_SECONDS = 61.0
"""A little more than the default one."""
PASSES = 8
"""More than a gap must last before an executor leaves."""
SAYS = {"balancingpolicies/status", "sparktopologies/status", "gateswitches", "gateswitches/status", "events"}
"""What a policy that only recommends lets the operator write."""


class Figures(FakeFigures):
    """Executors of little state: a move costs little."""

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        found = super().read(policy, nodes, executors, now=now)
        usage = {key: replace(each, state_bytes=1e6) for key, each in found.executors.items()}
        return replace(found, executors=usage)


@dataclass(frozen=True, slots=True)
class Scene:
    """Two executors, one of them on a node that others keep busy."""

    mine: Pool
    operator: Hand
    clock: Clock
    driver: Driver

    def interval(self) -> None:
        """A round, after which time passes, except while an executor is on its way: pods have the server's times."""
        self.operator.reconcile()
        self.driver.step()
        self.driver.await_running()
        if not any(phase in ("Approved", "Leaving", "Arriving") for phase in self.phases()):
            self.clock.ahead_seconds += INTERVAL_SECONDS
        elif self.clock.ahead_seconds < 0.0:
            self.clock.ahead_seconds = 0.0

    def phases(self) -> list[str]:
        return [(move.get("status") or {}).get("phase", "") for move in self.moves()]

    def status(self) -> JSON:
        found: JSON = self.mine.read(BALANCING_POLICY).get("status") or {}
        return found

    def moves(self) -> list[JSON]:
        return read_list(self.mine.admin, Query(EXECUTOR_MOVE, namespace=self.mine.name), lambda move: move).items


@contextmanager
def scene(installed: Installation, name: str, **policy: JSON) -> Iterator[Scene]:
    """`policy`: what its spec has besides the pool and the namespace."""
    clock = Clock(ahead_seconds=-PASSES * INTERVAL_SECONDS)
    with pool(installed.testbed, name, zones()) as mine:
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        chosen = {
            "nodeSelector": {"matchLabels": {POOL_LABEL: mine.name}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": mine.name}},
        }
        mine.apply(BALANCING_POLICY, mine.name, {**chosen, **policy})
        driver = Driver(mine, f"spark-{name}", 2, CLICKS)
        for node in (WARM, HOT):
            driver.start(gates=(), nodeName=mine.node(node))
        driver.await_running()
        driver.grow_old()
        noise = {mine.node(HOT): 0.75, mine.node(COLD): 0.1, mine.node(WARM): 0.3, mine.node("b2"): 0.3}
        operator = hand(installed.testbed, clock=clock, metrics=Figures(noise))
        try:
            yield Scene(mine, operator, clock, driver)
        finally:
            operator.close()
            installed.switch(gating=False)


def test_a_policy_that_says_only_where_it_applies_recommends_and_changes_nothing(installed: Installation) -> None:
    """By the API server's audit log."""
    with scene(installed, "unsaid") as on:
        on.mine.executor(9, gates=())
        before = {pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]) for pod in on.driver.pods()}
        since = installed.testbed.end_of_requests()
        for _ in range(PASSES):
            on.interval()
        (advice,) = on.status()["recommendations"]["items"]
        assert (advice["from"], advice["executor"]) == (on.mine.node(HOT), "spark-unsaid-exec-2")
        asked = installed.testbed.requests_of(NAMESPACE, RELEASE, since=since)
        own = [each for each in asked if each.namespace in ("", on.mine.name)]
        written = {each.resource for each in own if each.verb not in ("get", "list", "watch")}
        assert "balancingpolicies/status" in written
        assert written <= SAYS
        assert on.moves() == []
        assert {pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["spec"]) for pod in on.driver.pods()} == before


def test_a_policy_that_says_only_that_it_acts_moves_one_executor_which_succeeds(installed: Installation) -> None:
    with (
        scene(installed, "acting", placement={"mode": "Enforce"}, moves={"mode": "Enforce"}) as on,
        watched(installed.testbed, on.mine.name, most_under_way=1) as witness,
    ):

        def ended() -> bool:
            on.interval()
            return any(phase in ENDED for phase in on.phases())

        wait_until(ended, what="a move ends", timeout_seconds=PATIENCE_SECONDS)
        (move,) = on.moves()
        assert (move["status"]["phase"], move["status"]["reason"]) == ("Succeeded", "Helped"), move["status"]
        assert move["spec"]["executor"]["pod"] == "spark-acting-exec-2"
        (replacement,) = (pod for pod in on.driver.pods() if pod["metadata"]["name"] == "spark-acting-exec-3")
        assert replacement["spec"]["nodeName"] == move["spec"]["targetNodeName"] == on.mine.node(COLD)
        assert required_labels(replacement) == {ZONE_LABEL: ["a"]}
        assert witness.evicted() == ["spark-acting-exec-2"]
