"""Which executors may move, where each could go and at what cost: what strategies and rules ask about a pool."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property, reduce

from ballast.model import (
    Constraints,
    Executor,
    Gap,
    Node,
    Objection,
    Phase,
    Policy,
    Reason,
    Resources,
    Separation,
    Snapshot,
    Topology,
)
from ballast.moves import eligibility
from ballast.moves.eligibility import Evidence, TaskTimes
from ballast.moves.loads import Loads
from ballast.moves.rules import Way
from ballast.moves.score import measured
from ballast.placement import admission
from ballast.placement.limit import most_per_node, separation_level, zone_allowance
from ballast.placement.locality import Locality, counts_by_topology, locality_delta_ratio, measure
from ballast.placement.tie import untied

_STATE_UNIT_BYTES = float(1 << 30)
_LOCALITY_WEIGHT = 10.0
"""A locality cost that is 10 % higher weighs as much as a gibibyte of state."""
_WARM_SECONDS = 3600.0
"""After this time an executor has compiled and cached all that it will."""
_WARMTH_WEIGHT = 0.1
"""All of that weighs as much as a tenth of a gibibyte of state."""


class Candidates:
    """Answers for one snapshot; lazily, because a strategy asks about few executors and nodes of many.

    `reserved`: amounts set aside by node. `unbound`: those that pods take next to them which are not bound yet.
    `sent`: node by uid of executors that go there and are on no node yet.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        loads: Loads,
        *,
        reserved: Mapping[str, Resources],
        unbound: Mapping[str, Resources],
        sent: Mapping[str, str],
        now: float,
    ) -> None:
        self._snapshot, self._policy = snapshot, policy
        self._loads = loads
        self._now = now
        self._executors = {e.key: e for e in snapshot.executors}
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._topologies = {topology.key: topology for topology in snapshot.topologies}
        self._reserved, self._unbound = reserved, unbound
        self._counts = counts_by_topology(snapshot.executors, snapshot.nodes)
        self._measured: dict[str, Locality] = {}
        self._deltas: dict[tuple[str, str, str, str], float] = {}
        self._rooms: dict[str, Resources] = {}
        """By node, as far as it was asked for."""
        self._takers: dict[tuple[Resources, Constraints, bool], frozenset[str]] = {}
        """By what an executor asks for."""
        self._homes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._live: Counter[tuple[str, str]] = Counter()
        for executor in snapshot.executors:
            self._count(executor, sent.get(executor.uid))

    def given(self, *, reserved: Mapping[str, Resources], now: float) -> Candidates:
        """The same at another moment, with other amounts spoken for; the same pods are not bound yet."""
        other = copy(self)
        other._reserved, other._now = reserved, now  # noqa: SLF001 -- one of its own kind
        other._rooms, other._takers = {}, {}  # noqa: SLF001
        return other

    def _count(self, executor: Executor, heading: str | None) -> None:
        key = (executor.topology, executor.component)
        if executor.phase is Phase.RUNNING:
            self._live[key] += 1
        settled = executor.node is not None and executor.phase in (Phase.RUNNING, Phase.PENDING)
        home = executor.node if settled else heading
        if home is not None:
            self._homes[key][home] += 1

    def knows(self, key: str) -> bool:
        return key in self._executors

    def executor(self, key: str) -> Executor:
        return self._executors[key]

    @property
    def loads(self) -> Loads:
        return self._loads

    def load_cores(self, executor: Executor) -> float:
        return self._loads.expected(executor)

    def points_on(self, executor: Executor, node: str) -> float:
        """Points of score that its load, as used where it is, makes on that node."""
        there = self._nodes.get(node)
        if there is None:
            return 0.0
        points = self._policy.weights.points_per_core(there.allocatable.cpu_cores)
        return self._loads.expected(executor, on=node) * points

    def way(self, executor: Executor, target: str, scores: Mapping[str, float]) -> Way:
        """What moving it to `target` is predicted to bring. `scores`: projected, percent, by node."""
        source = executor.node or ""
        unmeasured = next((name for name in (source, target) if name not in scores), "")
        before = after = None
        if not unmeasured:
            before = Gap(scores[source], scores[target])
            after = Gap(before.hot - self.points_on(executor, source), before.cold + self.points_on(executor, target))
        return Way(
            executor_uid=executor.uid,
            topology=executor.topology,
            source=source,
            target=target,
            before=before,
            after=after,
            locality_delta_ratio=self.locality_delta_ratio(executor, target),
            unmeasured=unmeasured,
        )

    @property
    def slownesses(self) -> Mapping[str, float]:
        """By executor uid, where there are task metrics."""
        return self._times.slownesses

    def slowness(self, executor: Executor) -> float | None:
        return self.slownesses.get(executor.uid)

    @cached_property
    def _times(self) -> TaskTimes:
        return TaskTimes(self._snapshot.executors, measured(self._snapshot, self._policy).by_node)

    def _evidence(self, executor: Executor, target: str | None) -> Evidence:
        """For moving it to `target`; None: wherever its application is fastest."""
        return self._times.evidence(executor, target, pressure_ratio=self.pressure_ratio(executor.node or ""))

    def gain_objection(self, executor: Executor, target: str) -> Objection | None:
        """Why moving it to `target` would not help, where moving it somewhere would.

        None for an executor that does not run, since it has to go somewhere.
        """
        moves = self._policy.moves
        if executor.phase is not Phase.RUNNING or self._evidence(executor, None).objection(moves) is not None:
            return None
        return self._evidence(executor, target).objection(moves)

    def pressure_ratio(self, node: str) -> float | None:
        usage = self._nodes[node].usage if node in self._nodes else None
        return usage.pressure_ratio if usage else None

    def objection(self, executor: Executor) -> Objection | None:
        """The weightiest of `objections`, if there is any."""
        return next(self.objections(executor), None)

    def objections(self, executor: Executor) -> Iterator[Objection]:
        """Everything for which it may not move at all, the weightiest first."""
        return eligibility.objections(self._case(executor), self._policy.moves)

    def drain_objections(self, executor: Executor) -> Iterator[Objection]:
        """Everything for which it may not even leave a node that is about to go."""
        return eligibility.drain_objections(self._case(executor), self._policy.moves)

    def _case(self, executor: Executor) -> eligibility.Case:
        return eligibility.Case(
            executor=executor,
            topology=self._topologies.get(executor.topology),
            live_executors=self._live[executor.topology, executor.component],
            load_cores=self._loads.known(executor),
            evidence=self._evidence(executor, None),
            now=self._now,
        )

    def room(self, node: Node) -> Resources:
        """What is free there and not spoken for."""
        if node.name not in self._rooms:
            taken = (amounts[node.name] for amounts in (self._reserved, self._unbound) if node.name in amounts)
            self._rooms[node.name] = reduce(Resources.minus, taken, node.free)
        return self._rooms[node.name]

    def takers(self, executor: Executor) -> frozenset[str]:
        """The nodes that admit it and have room for it."""
        shape = (executor.requests, executor.constraints, executor.pinned)
        if shape not in self._takers:
            admits = self._admission.mask(self._asking(executor).constraints).tolist()
            able = (node for node, admitted in zip(self._snapshot.nodes, admits, strict=True) if admitted)
            self._takers[shape] = frozenset(node.name for node in able if executor.requests.fits_in(self.room(node)))
        return self._takers[shape]

    @cached_property
    def _admission(self) -> admission.Admission:
        return admission.Admission(self._snapshot.nodes)

    def _asking(self, mover: Executor) -> Executor:
        """One that runs is replaced from its template; a tie that Ballast made goes with it."""
        return untied(mover, self._policy.levels) if mover.phase is Phase.RUNNING else mover

    def refusal(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        """Why `executor` can't go to `target` once `arriving` are there too, or would gain nothing; None if neither."""
        found = self.unfit(executor, target, arriving)
        gain = self.gain_objection(self._executors[executor], target) if found is None else None
        return gain[0] if gain is not None else found

    def unfit(self, executor: str, target: str, arriving: tuple[str, ...]) -> Reason | None:
        """The same, whatever it would gain."""
        mover, node = self._executors[executor], self._nodes.get(target)
        if node is None:
            return Reason.NODE_UNAVAILABLE
        refused = admission.refusal(self._asking(mover), node)
        if refused is not None:
            return refused[0]
        room = self.room(node)
        for name in arriving:
            room = room.minus(self._executors[name].requests)
        if not mover.requests.fits_in(room):
            return Reason.NO_ROOM
        return self._crowding(mover, node, arriving)

    def _crowding(self, mover: Executor, node: Node, arriving: tuple[str, ...]) -> Reason | None:
        key = (mover.topology, mover.component)
        topology = self._topologies.get(mover.topology)
        there = self._homes[key][node.name] + sum(self._component(name) == key for name in arriving)
        total = self._total(mover, topology)
        if there + 1 > most_per_node(self._policy.placement, mover.component, total):
            return Reason.SPREAD_LIMIT
        if not self._zone_takes(mover, node, arriving, total):
            return Reason.SPREAD_LIMIT
        for separation in topology.separate if topology else ():
            if mover.component in separation.components and self._meets(separation, mover, node, arriving):
                return Reason.SEPARATED
        return None

    def _total(self, mover: Executor, topology: Topology | None) -> int:
        """Executors of its component there are, with this one, or are expected."""
        component = topology.component(mover.component) if topology else None
        running = self._live[mover.topology, mover.component] + (mover.phase is not Phase.RUNNING)
        return max(running, (component.expected if component else None) or 0)

    def _zone_takes(self, mover: Executor, node: Node, arriving: tuple[str, ...], total: int) -> bool:
        """Whether the zone stays within its share; a move inside of it changes nothing."""
        zone, ratio = node.location[0], self._policy.placement.max_executors_per_zone_ratio
        if ratio >= 1 or zone is None or len(node.location) < 2 or self._zone(mover.node) == zone:
            return True
        key = (mover.topology, mover.component)
        there = sum(count for home, count in self._homes[key].items() if self._zone(home) == zone)
        coming = [self._executors[name] for name in arriving if self._component(name) == key]
        return there + sum(self._zone(e.node) != zone for e in coming) + 1 <= zone_allowance(total, ratio)

    def _zone(self, node: str | None) -> str | None:
        return self._nodes[node].location[0] if node in self._nodes else None

    def _component(self, key: str) -> tuple[str, str]:
        executor = self._executors[key]
        return (executor.topology, executor.component)

    def _meets(self, separation: Separation, mover: Executor, node: Node, arriving: tuple[str, ...]) -> bool:
        depth = separation_level(separation, len(node.location) - 1) + 1
        place = node.location[:depth]
        others = {(mover.topology, name) for name in separation.components if name != mover.component}
        if any(self._component(name) in others for name in arriving):
            return True
        homes = (home for key in others for home in self._homes[key])
        return any(home in self._nodes and self._nodes[home].location[:depth] == place for home in homes)

    def cost(self, executor: str, target: str) -> float:
        """State held, in gibibytes, plus warmth and locality lost."""
        mover = self._executors[executor]
        state = (mover.usage.state_bytes if mover.usage else None) or 0.0
        dearer = max(0.0, self.locality_delta_ratio(mover, target))
        return state / _STATE_UNIT_BYTES + _LOCALITY_WEIGHT * dearer + _WARMTH_WEIGHT * self._warmth(mover)

    def _warmth(self, executor: Executor) -> float:
        """What it has gained by running, 0…1; in tenths, so that those of about the same age stay alike."""
        age = 0.0 if executor.running_since is None else self._now - executor.running_since
        return round(min(max(age, 0.0) / _WARM_SECONDS, 1.0), 1)

    def locality_delta_ratio(self, executor: Executor, target: str) -> float:
        """Growth of its topology's cost of traffic if it went to `target`; 0 where a node is not of the pool."""
        topology, here = self._topologies.get(executor.topology), self._nodes.get(executor.node or "")
        there = self._nodes.get(target)
        if topology is None or here is None or there is None:
            return 0.0
        # Executors of one component on one node are alike in this, and all of a hot node are asked about.
        way = (topology.key, executor.component, here.name, target)
        if way not in self._deltas:
            self._deltas[way] = self._delta_ratio(topology, executor.component, here, there)
        return self._deltas[way]

    def _delta_ratio(self, topology: Topology, component: str, here: Node, there: Node) -> float:
        if topology.key not in self._measured:
            self._measured[topology.key] = measure(topology, self._counts[topology.key], self._policy.levels)
        measured = self._measured[topology.key]
        return locality_delta_ratio(measured, component, source=here.location, target=there.location)
