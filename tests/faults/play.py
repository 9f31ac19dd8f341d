"""What is going on in the cluster when a fault comes: a set waits at its gate, and an executor is to move."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ballast.kube import names
from ballast.kube.errors import KubeError, NotFound
from ballast.kube.kinds import EXECUTOR_MOVE, POD, SPARK_TOPOLOGY, Kind
from ballast.kube.objects import Query, read_list
from tests.cluster.controller.pool import ENFORCE, JSON, PATIENCE_SECONDS, Pool, pool, required_labels, zones
from tests.cluster.controller.scene import Driver
from tests.faults.metrics import Values
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

HOT, WARM, COLD = "a1", "b1", "a2"
CORES = {"a1": 3.6, "a2": 0.4, "b1": 1.2, "b2": 1.2}
"""Used on each node, of four."""
# `settle` lasts longer than a fault and what follows: a move that was judged would end one way or the other.
MOVES: JSON = {
    "mode": "Enforce",
    "minExecutorAge": "0s",
    "allowUnknownState": True,
    "cooldown": "0s",
    "settle": "60s",
    # The move of the play before may be deleted while it is under way, and counts at its nodes for a while.
    "maxConcurrentPerNode": 20,
    "budgets": [
        {"moves": 1, "per": "1h", "scope": "Topology"},
        {"moves": 1, "schedule": "0 0 * * *", "duration": "24h", "scope": "Topology"},
    ],
}
MOST_UNDER_WAY = 1
"""maxConcurrentPerTopology, and one topology moves at a time."""


@dataclass
class Stage:
    """`moving` and `placing` are two pools, of a policy each, so that loads of one do not matter to the other."""

    moving: Pool
    placing: Pool
    metrics: Values
    _number: int = field(default=0, init=False)

    @contextmanager
    def play(self) -> Iterator[Play]:
        """Another one, with applications of its own, that are gone afterwards."""
        self._number += 1
        found = Play(self, f"p{self._number}")
        found.prepare()
        yield found
        found.clear()

    def policies(self) -> None:
        """Make both, which a test may have deleted."""
        placement = {**ENFORCE, "gateTimeout": "10s", "maxExecutorsPerNodePercent": 100}
        self.moving.policy(interval="1s", metrics=self.metrics.spec(), placement=placement, moves=MOVES)
        self.placing.policy(interval="1s", placement=placement)


@dataclass
class Play:
    """`begin`, let a fault come and go, and compare `ends` with what they are undisturbed."""

    stage: Stage
    name: str

    def __post_init__(self) -> None:
        labels = {names.TOPOLOGY: self.name}
        self._mover = Driver(self.stage.moving, f"spark-{self.name}", 2, labels)
        self._placed = Driver(self.stage.placing, f"spark-{self.name}", 2, labels)

    def prepare(self) -> None:
        """The application with the executor that is to move, running for long."""
        mine = self.stage.moving
        mine.topology(self.name, {"name": "ingest", "workload": "Streaming", "executors": 2})
        for node in (WARM, HOT):
            self._mover.start(gates=(), nodeName=mine.node(node))
        self._mover.await_running()
        self._mover.grow_old()
        metrics = self.stage.metrics
        metrics.executors = [(mine.name, pod["metadata"]["name"]) for pod in self._mover.pods()]
        asked = metrics.asked
        # The first answer may have been begun before, and the second is asked for when the first is used.
        wait_until(lambda: metrics.asked >= asked + 2, what="the operator knows the executors' load")

    def begin(self, *, moving: bool = True) -> None:
        """Without `moving`, nothing is asked to move."""
        self.stage.placing.topology(self.name, {"name": "ingest", "executors": 2})
        self._placed.step()
        if moving:
            self._ask()

    def _ask(self) -> None:
        mine = self.stage.moving
        (pod,) = (each for each in self._mover.pods() if each["spec"].get("nodeName") == mine.node(HOT))
        spec = {
            "topologyName": self.name,
            "component": "ingest",
            "executor": {"pod": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
            "sourceNodeName": mine.node(HOT),
            "targetNodeName": mine.node(COLD),
            "approved": True,
        }
        mine.apply(EXECUTOR_MOVE, self.name, spec)

    def step(self) -> None:
        """Drivers replace executors that are gone."""
        for driver in (self._mover, self._placed):
            driver.step()

    def last(self, seconds: float, *, until: Callable[[], bool] = lambda: True) -> None:
        """Let so much time pass, and more until something holds."""
        over = time.monotonic() + seconds

        def lasted() -> bool:
            self.step()
            return time.monotonic() >= over and until()

        wait_until(lasted, what="the fault is felt")

    def ends(self, *, moving: bool = True, anywhere: bool = False, outage_seconds: float = 0.0) -> JSON:
        """The end state, once it is reached.

        `anywhere`: the gate of the move's replacement may have run out, and then it is where it found room. After an
        outage, the gates of executors that are placed may have run out, too, and they have no zone.
        """
        aim = self.aim(moving=moving)

        def ended() -> JSON | None:
            self.step()
            found = self.picture()
            if anywhere and len(found["moved"]) == len(aim["moved"]):
                found |= {"moved": aim["moved"], "pinned": aim["pinned"]}
            if outage_seconds and found["zones"] == 0 and self._gate_ran_out():
                found |= {"zones": aim["zones"]}
            return found if found == aim else None

        began = time.monotonic()
        found = wait_until(
            ended,
            what="everything is as without the fault",
            timeout_seconds=PATIENCE_SECONDS,
            poll_seconds=0.1,
            explain=lambda: f"{self.picture()} {self._status()} {self._said()}",
        )
        print(f"recovered in {time.monotonic() - began:.1f} s")  # for `python -m benchmarks faults`
        return found

    def _gate_ran_out(self) -> bool:
        own = {each["metadata"]["name"] for each in self._placed.pods()}
        return any(event["reason"] == "GateTimeout" and event["regarding"]["name"] in own for event in self._events())

    def _events(self) -> list[JSON]:
        """Those of the namespace in which executors are placed."""
        query = Query(Kind("events.k8s.io/v1", "Event", "events"), namespace=self.stage.placing.name)
        return read_list(self.stage.placing.admin, query, lambda event: event).items

    def _said(self) -> list[str]:
        return [f"{each['regarding'].get('name')}: {each['reason']}: {each.get('note')}" for each in self._events()]

    def aim(self, *, moving: bool = True) -> JSON:
        """As it is undisturbed."""
        return {
            "moved": [COLD, WARM] if moving else [HOT, WARM],
            "phase": "Settling" if moving else None,
            "pinned": True if moving else None,
            "zones": 1,
            "running": 2,
            "placed": ("True", "Placed"),
        }

    def picture(self) -> JSON:
        moved = [each for each in self._mover.pods() if (each.get("status") or {}).get("phase") == "Running"]
        placed = [each for each in self._placed.pods() if (each.get("status") or {}).get("phase") == "Running"]
        move = self._status()
        condition = self.stage.placing.condition(SPARK_TOPOLOGY, "Placed", self.name) or {}
        prefix = f"{self.stage.moving.name}-"
        return {
            "moved": sorted(each["spec"]["nodeName"].removeprefix(prefix) for each in moved),
            "phase": move.get("phase"),
            "pinned": (move.get("replacement") or {}).get("pinned"),
            "zones": len(Counter(str(required_labels(each)) for each in placed if required_labels(each))),
            "running": len(placed),
            "placed": (condition.get("status"), condition.get("reason")),
        }

    def _status(self) -> JSON:
        """Of the move, once there is one."""
        try:
            found: JSON = self.stage.moving.read(EXECUTOR_MOVE, self.name).get("status") or {}
        except NotFound:
            return {}
        return found

    def clear(self) -> None:
        """The move first, so that nothing is judged by what goes now."""
        _gone(self.stage.moving, EXECUTOR_MOVE, self.name)
        for mine, driver in ((self.stage.moving, self._mover), (self.stage.placing, self._placed)):
            _gone(mine, SPARK_TOPOLOGY, self.name)
            for each in driver.pods():
                _gone(mine, POD, each["metadata"]["name"])


def _gone(mine: Pool, kind: Kind, name: str) -> None:
    try:
        mine.delete(kind, name)
    except KubeError:
        return  # a fault may have come before it was made


@contextmanager
def stage(testbed: Testbed, name: str, metrics: Values) -> Iterator[Stage]:
    with pool(testbed, f"{name}-moves", zones()) as moving, pool(testbed, f"{name}-places", zones()) as placing:
        metrics.nodes = {moving.node(node): cores for node, cores in CORES.items()}
        found = Stage(moving, placing, metrics)
        found.policies()
        yield found
