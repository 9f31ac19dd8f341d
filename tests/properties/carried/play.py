"""One play: leaders, one after the other, carry moves out by the real `Movers`, and at each point something may happen.

What happens is chosen from outside, so a play can be repeated and varied: see `Choices`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry

from ballast.api import BalancingPolicy
from ballast.controller.cluster_objects import ClusterObjects, MoveReader, OpenMove, Read
from ballast.controller.cluster_view import ClusterView, pools_of
from ballast.controller.context import Context
from ballast.controller.gateclock import GateClock
from ballast.controller.movers import Movers
from ballast.controller.observe import Lists
from ballast.controller.telemetry import Telemetry
from ballast.kube.client import Limits
from ballast.kube.document import text
from ballast.kube.errors import KubeError
from ballast.kube.events import EventRecorder, Notice
from ballast.kube.kinds import POD
from ballast.kube.nodes import NodeFacts, NodeReader
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import Pod, PodReader
from ballast.model import ConditionReason, ExecutorUsage, Memory, MetricsHealth, NodeUsage
from ballast.prometheus import Reading
from tests.apiserver import Answer, Asked, Watch
from tests.lanes import AtOnce
from tests.properties.carried.server import BUDGET, NAMESPACE, Ended, PlayedServer, Stored
from tests.unit.controller.stage import NAMESPACES, NOW, move, streaming
from tests.unit.kube.builders import GATE, node

JSON = dict[str, Any]
HOT, COLD, MILD = "hot", "cold", "mild"
BEFORE = {HOT: 0.9, MILD: 0.5, COLD: 0.2}
AFTER = {HOT: 0.8, MILD: 0.5, COLD: 0.3}
STEP_SECONDS = 5.0
GRACE_SECONDS = 10
"""Of every executor."""
GATE_SECONDS = 12.0
"""After which the gate timeout releases executors that no move has placed."""
NO_ROOM_SECONDS = 60.0
ROUNDS = 120
"""In which a play comes to its end."""
ENDED = ("Succeeded", "Failed", "Refused", "Expired")
MOVES: JSON = {
    "mode": "Enforce",
    "minExecutorAge": "0s",
    "cooldown": "0s",
    "settle": "6s",
    "leaveTimeout": "30s",
    "arriveTimeout": "30s",
    "saturationScore": 0,
    "minGain": 0,
    "maxConcurrent": 2,
    "maxConcurrentPerNode": 2,
    "maxConcurrentPerTopology": 2,
    "budgets": [],
}


@dataclass(frozen=True)
class Scenario:
    name: str
    moved: tuple[int, ...] = (1,)
    """Executors that are to go from the hot node to the cold one."""
    executors: int = 2
    troubles: tuple[str, ...] = ()
    """Of the world's; each may happen once, at any point."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Other settings of moves."""


@dataclass
class Choices:
    """What is chosen at each point: the first option, which is the fair course, except where `other` says otherwise."""

    other: Mapping[int, int] = field(default_factory=dict)
    """Option by the number of the point."""
    offered: list[Sequence[str]] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Those that were not the fair course."""

    def of(self, *options: str) -> str:
        at = len(self.offered)
        self.offered.append(options)
        chosen = options[min(self.other.get(at, 0), len(options) - 1)]
        if chosen:
            self.made.append(f"{at}: {chosen}")
        return chosen


class NoEvents(EventRecorder):
    def post(self, notice: Notice) -> None:
        del notice


@dataclass
class Leader:
    """One process, and what only it remembers."""

    movers: Movers
    gates: GateClock = field(default_factory=GateClock)


class Play:
    def __init__(self, scenario: Scenario, choices: Choices, *, checked: Callable[[Stored, Stored], None]) -> None:
        self.scenario, self.choices = scenario, choices
        self.now, self.room_at = NOW, 0.0
        self.troubles, self.lives, self.delays = list(scenario.troubles), 1, 1
        self.target = self.created = scenario.executors
        self.policy, self.server = policy({**MOVES, **scenario.limits}), PlayedServer(checked)
        self.server.now = lambda: datetime.fromtimestamp(self.now, UTC)
        self.late: Callable[[], Any] | None = None
        """A request of a leader that leads no more, which has not reached the server yet."""
        for number in range(1, scenario.executors + 1):
            self.server.put("pods", streaming(number, node=HOT, terminationGracePeriodSeconds=GRACE_SECONDS))
        for number in scenario.moved:
            self.server.put("executormoves", _ordered(number))
        self.leader = self._another()

    def run(self) -> None:
        for _ in range(ROUNDS):
            if self._at_rest():
                return
            self._round()
            self._happen()
            self._go_on()
        raise AssertionError(f"no rest: {[each.get('status') for each in self.server.stored.moves.values()]}")

    def _at_rest(self) -> bool:
        moves, pods = self.server.stored.moves.values(), self.server.stored.pods.values()
        return (
            self.late is None
            and all((each.get("status") or {}).get("phase") in ENDED for each in moves)
            and all(pod["status"]["phase"] == "Running" and not _leaving(pod) for pod in pods)
        )

    # The operator

    def _another(self) -> Leader:
        self._client = self.server.client(limits=Limits(connections=1, attempts=1), through=self.meet)
        movers = Movers(
            self._client,
            AtOnce(),
            events=NoEvents(self._client, AtOnce(), instance="one", clock=self.clock, on_error=_fail),
            telemetry=Telemetry(CollectorRegistry()),
            clock=self.clock,
            reread=self._reread,
        )
        return Leader(movers)

    def clock(self) -> float:
        return self.now

    def _reread(self, namespace: str, application: str, name: str) -> list[Pod]:
        pods = read_list(self._client, Query(POD, namespace=namespace), _read).items
        return [pod for pod in pods if application or pod.name == name]

    def _round(self) -> None:
        """One reconcile, by what was read at one moment or at two."""
        age = self.choices.of("", "pods are older", "moves are older", "both are older")
        now, before = self.server.stored, self.server.before_last
        pods = before.pods if age in ("pods are older", "both are older") else now.pods
        moves = before.moves if age in ("moves are older", "both are older") else now.moves
        leader = self.leader
        try:
            self._carry(leader, pods, moves)
        except Ended:
            self.leader = self._another()
        else:
            self._arrive()

    def _carry(self, leader: Leader, pods: Mapping[str, JSON], moves: Mapping[str, JSON]) -> None:
        found, broken = MoveReader().read(tuple(moves.values()))
        assert not broken
        read = [_read(pod) for pod in pods.values()]
        leader.gates = leader.gates.after(read, self.now)
        leader.movers.keep(found)
        leader.movers.run(self._context(read, found, leader.gates), found)

    def _context(self, pods: Sequence[Pod], moves: list[OpenMove], gates: GateClock) -> Context:
        nodes = _nodes()
        objects = ClusterObjects(Lists(pods, nodes, NAMESPACES), (self.policy,), (), ())
        cpu = AFTER if self.server.evicted else BEFORE
        reading = Reading(
            nodes={name: NodeUsage(cpu_ratio=ratio) for name, ratio in cpu.items()},
            executors={pod.key: ExecutorUsage(cpu_cores=0.4, state_bytes=1024.0) for pod in pods},
            health=MetricsHealth(available=True, reason=ConditionReason.AVAILABLE),
        )
        view = ClusterView(objects, pools_of([self.policy], nodes), gates, self.now)
        return view.context(self.policy, Memory(), reading, moves)

    def meet(self, asked: Asked, request: Callable[[], Answer | Watch]) -> Answer | Watch:
        """A request of the leader's; before it, and in place of its answer, something may happen."""
        writes = asked.method != "GET"
        ends = ("ends before it", "ends after it") if writes and self.lives else ()
        late = ("leads no more, and it comes late",) if writes and self.delays and self.late is None else ()
        comes = ("the late one comes",) if self.late is not None else ()
        chosen = self.choices.of("", *ends, *late, *comes, *self.troubles)
        if chosen == "ends before it":
            self.lives -= 1
            raise Ended
        if chosen in late:
            self.delays, self.late = self.delays - 1, request
            raise Ended
        if chosen == "the late one comes":
            self._arrive()
        if chosen in self.troubles:
            self._befall(chosen)
        if chosen == "ends after it":
            self.lives -= 1
            _whatever(request)
            raise Ended
        return request()

    def _arrive(self) -> None:
        late, self.late = self.late, None
        if late is not None:
            _whatever(late)

    # The world

    def _happen(self) -> None:
        chosen = self.choices.of("", *self.troubles)
        if chosen:
            self._befall(chosen)

    def _befall(self, trouble: str) -> None:
        self.troubles.remove(trouble)
        pods = self.server.stored.pods
        match trouble:
            case "evictions are blocked":
                self.server.put("poddisruptionbudgets", BUDGET)
                self.troubles.append("evictions are let again")
            case "evictions are let again":
                self.server.remove("poddisruptionbudgets", BUDGET["metadata"]["name"], NAMESPACE)
            case "moves are switched off":
                self.policy = policy({**MOVES, **self.scenario.limits, "mode": "Disabled"})
            case "Spark needs one less":
                self.target -= 1
            case "the executor goes by itself":
                self._go("spark-1-exec-1")
            case "an executor crashes":
                alive = [name for name, pod in pods.items() if pod["status"]["phase"] == "Running"]
                if alive:
                    self._become(alive[-1], phase="Failed")
            case "a replacement finds no room":
                for name in [name for name, pod in pods.items() if _pending(pod)]:
                    since = {"lastTransitionTime": text(self.now), "reason": "Unschedulable"}
                    condition = {"type": "PodScheduled", "status": "False", **since}
                    self._become(name, phase="Pending", conditions=[condition])
                    self.room_at = self.now + NO_ROOM_SECONDS
            case _:
                raise AssertionError(trouble)

    def _go_on(self) -> None:
        """One thing that is due in the world, or else time passes."""
        self.now += 0.5
        event = next(self._due(), None)
        if event is None:
            self.now += STEP_SECONDS
        else:
            event()

    def _due(self) -> Iterator[Callable[[], None]]:
        pods = self.server.stored.pods
        for name, pod in pods.items():
            if _leaving(pod) or pod["status"]["phase"] == "Failed":
                yield lambda name=name: self._go(name)  # type: ignore[misc]
        if sum(pod["status"]["phase"] != "Failed" for pod in pods.values()) < self.target:
            yield self._allocate
        for name, pod in pods.items():
            if _pending(pod) and self.now >= self.room_at:
                yield lambda pod=pod: self._bind(pod)  # type: ignore[misc]
            if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                yield lambda name=name: self._become(name, phase="Running", startTime=text(self.now))  # type: ignore[misc]
            created = NOW if "schedulingGates" not in pod["spec"] else _created(pod)
            if pod["spec"].get("schedulingGates") and self.now - created > GATE_SECONDS:
                yield lambda pod=pod: self._let_go(pod)  # type: ignore[misc]

    def _go(self, name: str) -> None:
        self.server.remove("pods", name, NAMESPACE)

    def _allocate(self) -> None:
        self.created += 1
        more = {"gates": [GATE], "terminationGracePeriodSeconds": GRACE_SECONDS}
        self.server.put("pods", streaming(self.created, created=self.now, **more))

    def _bind(self, pod: JSON) -> None:
        where = pod["status"].get("nominatedNodeName") or MILD
        status = {key: value for key, value in pod["status"].items() if key not in ("nominatedNodeName", "conditions")}
        self.server.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": where}, "status": status})

    def _let_go(self, pod: JSON) -> None:
        self.server.put("pods", {**pod, "spec": {**pod["spec"], "schedulingGates": []}})

    def _become(self, name: str, **status: Any) -> None:
        pod = self.server.stored.pods[name]
        self.server.put("pods", {**pod, "status": {**pod["status"], **status}})


def _ordered(number: int) -> JSON:
    """A move whose load is that of its executor, so that another one may follow it."""
    found = move(number)
    return {**found, "spec": {**found["spec"], "predicted": {"hotAfter": "80", "coldAfter": "30"}}}


def _pending(pod: JSON) -> bool:
    return not (pod["spec"].get("schedulingGates") or pod["spec"].get("nodeName")) and not _leaving(pod)


def _leaving(pod: JSON) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _created(pod: JSON) -> float:
    return _read(pod).created_at


def _whatever(request: Callable[[], object]) -> None:
    """The answer is lost."""
    with suppress(KubeError):
        request()


def _fail(error: Exception) -> None:
    raise error


@cache
def _nodes() -> tuple[NodeFacts, ...]:
    reader = NodeReader()
    return tuple(reader.read(node(name)) for name in BEFORE)


def _read(pod: JSON) -> Pod:
    return PodReader().read(pod)


def policy(moves: Mapping[str, Any]) -> Read[BalancingPolicy]:
    raw: JSON = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": "streaming", "uid": "u1"},
        "spec": {
            "nodeSelector": {"matchLabels": {"pool": "streaming"}},
            "interval": "1s",
            "metrics": {"window": "5s"},
            "placement": {"mode": "Enforce"},
            "moves": {"maxLocalityLossPercent": 100, **moves},
        },
    }
    return Read(raw, BalancingPolicy.parse(raw))
