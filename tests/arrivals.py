"""Executors that come to their gates one after the other, in a cluster whose clock is not the machine's.

The planner is asked as the operator asks it: a moment after an executor has come, and when the plan said so. Pods are
stamped with whole seconds, as API servers do. kube-scheduler binds what was released to its node, if that has room, and
otherwise to the emptiest node that the release allows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf
from typing import Any

from ballast.controller.loop import CALM_SECONDS
from ballast.model import (
    Executor,
    Memory,
    MetricsHealth,
    Node,
    Phase,
    Pin,
    Placement,
    PlacementMode,
    PlacementPolicy,
    Policy,
    Resources,
    Snapshot,
    Topology,
)
from ballast.planner.plan import plan
from tests.builders import GIB

START = 1_000_000.0
BINDING_SECONDS = 0.2
"""From the release of an executor until it runs."""
ENFORCED = Policy("p", placement=PlacementPolicy(mode=PlacementMode.ENFORCE))


@dataclass(frozen=True, slots=True)
class Arrival:
    """Executors of one application that are created at once."""

    at_seconds: float
    count: int
    application: str = "app"
    hints: tuple[tuple[str, Any], ...] = ()
    """Further fields of each executor."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The end of all executors of an application."""

    at_seconds: float
    application: str = "app"


def batches(
    total: int, *, size: int, every_seconds: float = 1.0, application: str = "app", **hints: Any
) -> list[Arrival]:
    """As Spark's allocator asks for executors."""
    counts = [min(size, total - begun) for begun in range(0, total, size)]
    return _apart(counts, every_seconds, application, hints)


def doubling(last: int, *, every_seconds: float = 1.0, application: str = "app", **hints: Any) -> list[Arrival]:
    """As dynamic allocation asks for them: one more, then two, then four; `last` are there in the end."""
    counts, total = [], 0
    while total < last:
        counts.append(min(max(1, total), last - total))
        total += counts[-1]
    return _apart(counts, every_seconds, application, hints)


def _apart(counts: Iterable[int], every_seconds: float, application: str, hints: dict[str, Any]) -> list[Arrival]:
    further = tuple(hints.items())
    return [Arrival(turn * every_seconds, count, application, further) for turn, count in enumerate(counts)]


def pool(**room: int) -> list[Node]:
    """Nodes of four cores, so that each zone holds as many executors of one core as is said."""
    nodes = []
    for zone, count in room.items():
        for number, begun in enumerate(range(0, count, 4)):
            name = f"{zone}-{number:03}"
            rack = f"{zone}-r{number // 8}"
            cores = float(min(4, count - begun))
            labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
            nodes.append(Node(name, (zone, rack, name), Resources(cores, 64 * GIB, 110), labels=labels))
    return nodes


@dataclass(frozen=True, slots=True)
class Outcome:
    waits: tuple[float, ...]
    """Seconds from each creation to the release, in the order of creation."""
    homes: dict[str, Counter[str]]
    """By application: executors of each zone."""
    placements: tuple[Placement, ...]

    def together(self, application: str = "app") -> bool:
        """Whether all executors of the application that came are in one zone."""
        return len(self.homes[application]) == 1


@dataclass(slots=True)
class Arrivals:
    """One pool. `topologies`: SparkTopologies; an application without one is a topology by itself."""

    nodes: Sequence[Node]
    policy: Policy = ENFORCED
    topologies: tuple[Topology, ...] = ()
    _memory: Memory = field(default_factory=Memory)
    _executors: dict[str, Executor] = field(default_factory=dict)
    _created: dict[str, float] = field(default_factory=dict)
    _released: dict[str, tuple[float, Placement]] = field(default_factory=dict)

    def run(self, events: Iterable[Arrival | Departure], *, until_seconds: float | None = None) -> Outcome:
        """Until every executor runs, or so long."""
        waiting = sorted(events, key=lambda event: event.at_seconds)
        now, due = 0.0, inf
        last = waiting[-1].at_seconds if waiting else 0.0
        end = last + 60.0 if until_seconds is None else until_seconds
        while now < end and (waiting or self._unsettled()):
            coming = waiting[0].at_seconds if waiting else inf
            # What finds no node is tried again a little later.
            now = min(coming, due, max(self._next_binding(), now + 0.01), end)
            while waiting and waiting[0].at_seconds <= now:
                self._take_place(waiting.pop(0))
                due = min(due, now + CALM_SECONDS)
            self._bind(now)
            if due <= now:
                woken = self._pass(now)
                due = inf if woken is None else max(woken - START, now + CALM_SECONDS)
        return self._outcome()

    def _unsettled(self) -> bool:
        return any(each.phase in (Phase.GATED, Phase.PENDING) for each in self._executors.values())

    def _next_binding(self) -> float:
        pending = (uid for uid, each in self._executors.items() if each.phase is Phase.PENDING)
        return min((self._released[uid][0] + BINDING_SECONDS for uid in pending), default=inf)

    def _take_place(self, event: Arrival | Departure) -> None:
        if isinstance(event, Departure):
            for uid, each in list(self._executors.items()):
                if each.application == event.application:
                    del self._executors[uid]
            return
        declared = next((each for each in self.topologies if each.name == event.application), None)
        for _ in range(event.count):
            number = len(self._created)
            stamp = START + floor(event.at_seconds)
            usual: dict[str, Any] = {
                "namespace": "team",
                "name": f"{event.application}-exec-{number:04}",
                "uid": f"uid-{number:04}",
                "application": event.application,
                "executor_id": str(number),
                "resource_profile": "0",
                "topology": declared.key if declared else f"team/{event.application}",
                "component": declared.components[0].name if declared else event.application,
                "phase": Phase.GATED,
                "created_at": stamp,
                "last_gate_since": stamp,
                "requests": Resources(1.0, GIB, 1),
            }
            executor = Executor(**usual | dict(event.hints))
            self._executors[executor.uid] = executor
            self._created[executor.uid] = event.at_seconds

    def _pass(self, now: float) -> float | None:
        snapshot = Snapshot(
            taken_at=START + now,
            nodes=tuple(self._with_requests()),
            executors=tuple(self._executors.values()),
            topologies=(*self.topologies, *self._implicit()),
            metrics=MetricsHealth(),
        )
        decided, self._memory = plan(snapshot, self.policy, self._memory, START + now)
        for placement in decided.placements:
            self._released[placement.uid] = (now, placement)
            pinned_at = START + now if placement.pin is not Pin.NONE else None
            freed = replace(
                self._executors[placement.uid], phase=Phase.PENDING, last_gate_since=None, pinned_at=pinned_at
            )
            self._executors[placement.uid] = freed
        return decided.wake_at

    def _implicit(self) -> list[Topology]:
        declared = {each.key for each in self.topologies}
        keys = {each.topology for each in self._executors.values()} - declared
        return [Topology(key, "team", key.partition("/")[2], (), implicit=True) for key in sorted(keys)]

    def _with_requests(self) -> Iterable[Node]:
        bound: dict[str, Resources] = defaultdict(Resources)
        for each in self._executors.values():
            if each.node is not None:
                bound[each.node] = bound[each.node].plus(each.requests)
        return (replace(node, requested=node.requested.plus(bound[node.name])) for node in self.nodes)

    def _bind(self, now: float) -> None:
        for uid, each in self._executors.items():
            if each.phase is Phase.PENDING and self._released[uid][0] + BINDING_SECONDS <= now + 1e-9:
                node = self._node_for(each, self._released[uid][1])
                if node is not None:
                    self._executors[uid] = replace(each, phase=Phase.RUNNING, node=node, running_since=START + now)

    def _node_for(self, executor: Executor, placement: Placement) -> str | None:
        free = {node.name: (node.free, node.location) for node in self._with_requests()}
        able = [name for name, (room, _) in free.items() if executor.requests.fits_in(room)]
        if placement.pin is not Pin.NONE:
            able = [name for name in able if free[name][1][0] == placement.location[0]]
        if placement.node in able:
            return placement.node
        return max(able, key=lambda name: (free[name][0].cpu_cores, name), default=None)

    def _outcome(self) -> Outcome:
        zones = {node.name: node.location[0] or "" for node in self.nodes}
        homes: dict[str, Counter[str]] = defaultdict(Counter)
        for each in self._executors.values():
            homes[each.application][zones[each.node] if each.node else ""] += 1
        waits = tuple(
            (self._released[uid][0] if uid in self._released else inf) - at for uid, at in self._created.items()
        )
        return Outcome(waits, dict(homes), tuple(placement for _, placement in self._released.values()))
