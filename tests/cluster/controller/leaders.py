"""The operator as processes in a play: each leader but the last is killed at one of its writes, and a standby leads."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ballast.api import BalancingPolicy
from ballast.kube.errors import NotFound
from ballast.kube.kinds import BALANCING_POLICY, LEASE, NODE
from ballast.kube.nodes import NodeFacts, NodeReader
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import PodReader
from tests.cluster.chart.installation import NAMESPACE, RELEASE
from tests.cluster.controller import killed
from tests.cluster.controller.hand import Clock, When, hand
from tests.cluster.controller.process import Replica, replica
from tests.cluster.controller.scene import A_MINUTE, Scene
from tests.faults.metrics import Values
from tests.testbed.waiting import wait_until

LEASE_SECONDS = 3
"""A standby waits for so long when the leader was killed: together with a set's debounce less than a gate may last."""
PATIENCE_SECONDS = 60.0
"""For processes that start, and a lease that has to end first, on a machine with much to do."""


@dataclass(frozen=True, slots=True)
class Kill:
    """The write at which a process ends, and whether the server has got it by then."""

    when: When
    pattern: str
    """Found in its method, path and body."""
    number: int = 1
    """Which of those that the pattern is found in."""

    @property
    def program(self) -> list[str]:
        """What runs `ballast`."""
        return [sys.executable, killed.__file__, self.pattern, str(self.number), self.when.value]


@dataclass(frozen=True, slots=True)
class Leaders:
    """One life of a play. `values`: what the Prometheus of its policy serves."""

    kills: tuple[Kill, ...]
    values: Values
    folder: Path
    told: frozenset[str] = frozenset()
    """Reasons of Events that no kill can lose, because the last leader posts them."""

    def live(self, scene: Scene, done: Callable[[Scene], bool]) -> None:
        """Until the play is `done` under the last leader, which stops cleanly.

        Nothing happens before a standby is ready, so that no gate times out while a process starts.
        """
        self.values.nodes, self.values.executors = {}, []
        with ExitStack() as stack:
            leader = stack.enter_context(self._replica(scene, 0))
            wait_until(lambda: _leads(scene, leader), what="the first one leads", timeout_seconds=PATIENCE_SECONDS)
            for number in range(len(self.kills)):
                # Only one, so that it is known which replica follows.
                standby = stack.enter_context(self._replica(scene, number + 1))
                if number == 0:
                    standby.await_ready()
                self._await_end(scene, leader)
                leader = standby
                self._await(scene, leader, partial(_leads, scene, leader))
            self._await(scene, leader, lambda: done(scene) and self.told <= {reason for reason, _ in scene.told()})
            assert leader.stop() == 0, leader.log.read_text()[-4000:]
        self._conclude(scene)

    def _replica(self, scene: Scene, number: int) -> AbstractContextManager[Replica]:
        program = self.kills[number].program if number < len(self.kills) else ()
        name = f"{scene.name}-{number}"
        return replica(scene.installed.testbed, name, self.folder, lease_seconds=LEASE_SECONDS, program=program)

    def _await_end(self, scene: Scene, one: Replica) -> None:
        self._await(scene, one, lambda: one.process.poll() is not None)
        assert one.process.returncode == -signal.SIGKILL, one.log.read_text()[-4000:]

    def _await(self, scene: Scene, one: Replica, holds: Callable[[], bool]) -> None:
        """The driver does its part, and the metrics follow, until this holds."""

        def held() -> bool:
            scene.driver.step()
            self._measure(scene)
            return holds()

        wait_until(
            held,
            what=f"{one.identity} does its part",
            timeout_seconds=PATIENCE_SECONDS,
            explain=lambda: f"{scene.picture()}\n{scene.told()}\n{one.log.read_text()[-4000:]}",
        )

    def _measure(self, scene: Scene) -> None:
        """Serve the scene's own metrics."""
        nodes, reader = _nodes(scene), PodReader()
        policy = BalancingPolicy.parse(scene.mine.read(BALANCING_POLICY, scene.name))
        pods = [reader.read(pod) for pod in scene.driver.pods()]
        found = scene.metrics.read(policy, nodes, pods, now=scene.clock())
        self.values.nodes = {
            node.name: ratio * node.allocatable.cpu_cores
            for node in nodes
            if (usage := found.nodes.get(node.name)) and (ratio := usage.cpu_ratio) is not None
        }
        self.values.executors = [(pod.namespace, pod.name) for pod in pods if pod.key in found.executors]

    def _conclude(self, scene: Scene) -> None:
        """One more reconcile a minute later, as at the end of every life: then every status may be written again."""
        operator = hand(scene.installed.testbed, clock=Clock(A_MINUTE), metrics=scene.metrics)
        try:
            operator.reconcile()
        finally:
            operator.close()


def _nodes(scene: Scene) -> list[NodeFacts]:
    reader = NodeReader()
    found = read_list(scene.mine.admin, Query(NODE), lambda node: node).items
    return [reader.read(node) for node in found if node["metadata"]["name"].startswith(scene.mine.node(""))]


def _leads(scene: Scene, one: Replica) -> bool:
    """Also once it is dead, until another replica takes the lease."""
    with suppress(NotFound):
        lease = scene.mine.admin.get(LEASE, RELEASE, namespace=NAMESPACE)
        return bool((lease.get("spec") or {}).get("holderIdentity") == one.identity)
    return False
