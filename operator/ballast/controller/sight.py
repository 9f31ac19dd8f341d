"""One look at the cluster, turned to one policy's pool."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ballast.api import BalancingPolicy
from ballast.controller.context import Context
from ballast.controller.failures import Failures
from ballast.controller.figures import Figures
from ballast.controller.gateclock import GateClock
from ballast.controller.observe import Metrics, Pool, observe
from ballast.controller.openmove import OpenMove, planner_moves
from ballast.controller.pools import Territories, for_another
from ballast.controller.survey import Read, Survey
from ballast.model import Memory, Snapshot
from ballast.model.from_api import policy_from
from ballast.prometheus import Reading


@dataclass(frozen=True, slots=True)
class Sight:
    survey: Survey
    lands: Territories
    gates: GateClock
    """Has seen the survey's pods."""
    now: float
    failures: Failures = field(default_factory=Failures)
    """Have seen them, too."""

    def figures(self, read: Read[BalancingPolicy], figures: Figures) -> Reading:
        """Ask the policy's Prometheus about its nodes and all executors."""
        mine = self.lands.nodes[read.resource.metadata.name]
        nodes = [node for node in self.survey.lists.nodes if node.name in mine]
        executors = [pod for pod in self.survey.lists.pods if pod.executor is not None and not pod.ended]
        topologies = [topology.resource for topology in self.survey.topologies]
        reading = figures.read(read.resource, nodes, executors, now=self.now)
        return replace(reading, rates=figures.rates(read.resource, topologies, now=self.now))

    def context(self, read: Read[BalancingPolicy], memory: Memory, reading: Reading, moves: list[OpenMove]) -> Context:
        name = read.resource.metadata.name
        nodes = [node for node in self.survey.lists.nodes if node.name in self.lands.nodes[name]]
        policy = policy_from(read.resource, {node.name: node.labels for node in nodes})
        weights = policy.weights
        points = {n.name: weights.points_per_core(n.allocatable.cpu_cores) for n in self.survey.lists.nodes}
        seen = observe(
            self.survey.lists,
            policy,
            pool=Pool.of(read.resource.spec),
            topologies=[topology.resource for topology in self.survey.topologies],
            clock=self.gates,
            now=self.now,
            moves=planner_moves(moves, points),
            metrics=Metrics(reading.nodes, reading.executors, reading.health),
            rates=reading.rates,
            failures=self.failures,
        )
        return Context(
            read=read,
            policy=policy,
            survey=self.survey,
            snapshot=self._own_part(seen.snapshot, name),
            memory=memory,
            reading=reading,
            findings=seen.findings,
            pods={pod.uid: pod for pod in self.survey.lists.pods if pod.executor is not None},
        )

    def _own_part(self, snapshot: Snapshot, policy: str) -> Snapshot:
        """Without gated executors that belong into another policy's pool."""
        nodes = {node.name: node for node in self.survey.lists.nodes}
        mine = tuple(e for e in snapshot.executors if not for_another(e, policy, self.lands.nodes, nodes))
        return snapshot if len(mine) == len(snapshot.executors) else replace(snapshot, executors=mine)

    def own_moves(self, moves: list[OpenMove], policy: str | None) -> list[OpenMove]:
        """Those that this policy answers for; of None: those that none does."""
        return [each for each in moves if self._ruler(each) == policy]

    def _ruler(self, move: OpenMove) -> str | None:
        """The policy that the move names; without that, the one in whose pool it begins, or else ends.

        A node may leave its pool while a move is under way, and must not take the move with it.
        """
        orders, pools = move.state.orders, self.lands.nodes
        if orders.policy in pools:
            return orders.policy
        ends = (orders.source, move.state.destination)
        return next((name for end in ends for name, nodes in pools.items() if end in nodes), None)
