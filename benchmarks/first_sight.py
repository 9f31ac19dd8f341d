"""How long do executors of a set that grows wait at their gates, and is all of it in one zone where one holds it?

First the planner under a clock that is not the machine's, with rooms of zones drawn at random, of which at least one
holds the set. Then a whole operator against an API server in this process, in real time: from the creation of a pod to
the patch that releases it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from ballast.controller.operator import Operator, Settings
from ballast.kube.connection import Connection
from ballast.kube.document import text
from ballast.model import Component, Topology
from benchmarks.report import Aim, Result, machine, write
from tests.apiserver import ApiServer, kubeconfig, serving
from tests.arrivals import Arrival, Arrivals, Departure, Outcome, batches, doubling, pool
from tests.testbed.instance import free_port
from tests.testbed.waiting import wait_until
from tests.unit.controller.world import World
from tests.unit.kube.builders import GATE, executor, node

SEEDS = range(10)
TYPICAL_SECONDS, LONGEST_SECONDS = 0.5, 1.5
"""Aims for the median, and for 99 of 100."""
NAMESPACE = "analytics"
SETTLING_SECONDS = 15.0
"""Until the operator leads, and from the last creation until all are released."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    events: Callable[[], list[Arrival | Departure]]
    size: int
    declared: bool = False


def cases() -> list[Case]:
    return [
        Case("100 in batches of 5 a second", lambda: [*batches(100, size=5)], 100),
        Case("the same with executors in the SparkTopology", lambda: [*batches(100, size=5)], 100, declared=True),
        Case("100 in batches of 20 a second", lambda: [*batches(100, size=20)], 100),
        Case("dynamic allocation, 1-2-4-8-16", lambda: [*doubling(31)], 31),
        Case("to nothing and up again", _again, 16),
    ]


def _again() -> list[Arrival | Departure]:
    later = [replace(each, at_seconds=each.at_seconds + 70.0) for each in doubling(16)]
    return [*doubling(16), Departure(60.0), *later]


def planned() -> Iterator[Result]:
    waits: list[float] = []
    for case in cases():
        found = [_outcome(case, seed) for seed in SEEDS]
        waits = [seconds for each in found for seconds in each.waits]
        name = f"planner: {case.name}, {len(SEEDS)} pools"
        together = sum(each.together() for each in found) / len(found)
        yield Result(name, "sets in one zone", together, "ratio", aim=Aim(1.0, at_least=True))
        yield from _quantiles(name, waits)
    found = [_of_two(seed) for seed in SEEDS]
    name = f"planner: two of declared size grow at once, {len(SEEDS)} pools"
    together = sum(each.together("one") and each.together("two") for each in found) / len(found)
    yield Result(name, "both in one zone", together, "ratio", aim=Aim(1.0, at_least=True))


def _outcome(case: Case, seed: int) -> Outcome:
    random = Random(f"{case.name} {seed}")
    roomy = random.randrange(case.size, case.size * 3 // 2)
    room = [roomy, *(random.randrange(case.size // 4, case.size * 3 // 2) for _ in range(2))]
    random.shuffle(room)
    topology = Topology("team/app", "team", "app", (Component("work", expected=case.size),))
    arrivals = Arrivals(pool(**dict(zip("abc", room, strict=True))), topologies=(topology,) if case.declared else ())
    return arrivals.run(case.events())


def _of_two(seed: int) -> Outcome:
    random = Random(f"two {seed}")
    room = [*(random.randrange(50, 75) for _ in range(2)), random.randrange(10, 75)]
    random.shuffle(room)
    topologies = tuple(
        Topology(f"team/{name}", "team", name, (Component("work", expected=50),)) for name in ("one", "two")
    )
    both = [*batches(50, size=5, application="one"), *batches(50, size=5, application="two")]
    return Arrivals(pool(**dict(zip("abc", room, strict=True))), topologies=topologies).run(both)


def _quantiles(case: str, waits: Sequence[float]) -> Iterator[Result]:
    ordered = sorted(waits)
    for percent, aim in ((50, TYPICAL_SECONDS), (99, LONGEST_SECONDS)):
        value = ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
        yield Result(case, f"created to released, p{percent}", value, "s", aim=Aim(aim))


def operated() -> Iterator[Result]:
    """By a whole operator. kube-scheduler is missing, so released executors stay without nodes."""
    for name, events in (
        ("100 in batches of 5 a second", batches(100, size=5)),
        ("dynamic allocation, 1-2-4-8-16", doubling(31)),
    ):
        world = _world()
        with serving(world) as server, tempfile.TemporaryDirectory() as folder:
            created = asyncio.run(_operate(server, world, events, Path(folder)))
        released = {
            asked.place.name: asked.at
            for asked in server.writes
            if asked.method == "PATCH" and asked.place.plural == "pods"
        }
        waits = [released.get(pod, float("inf")) - at for pod, at in created.items()]
        yield from _quantiles(f"operator: {name}", waits)
        first = min(created, key=lambda pod: created[pod])
        yield Result(f"operator: {name}", "first created to released", released[first] - created[first], "s")


def _world() -> World:
    world = World()
    for zone, count in (("a", 4), ("b", 8), ("c", 7)):
        for number in range(count):
            labels = {"topology.kubernetes.io/zone": zone, "topology.ballast.dev/rack": f"{zone}-1"}
            allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110"}
            world.put("nodes", node(f"{zone}-{number}", labels=labels, allocatable=allocatable))
    world.put("namespaces", {"metadata": {"name": NAMESPACE, "labels": {"ballast.dev/gate": "enabled"}}})
    spec = {"nodeSelector": {"matchLabels": {"pool": "streaming"}}, "placement": {"mode": "Enforce"}}
    world.put("balancingpolicies", {"metadata": {"name": "p", "uid": "uid-p", "generation": 1}, "spec": spec})
    return world


async def _operate(server: ApiServer, world: World, events: Sequence[Arrival], folder: Path) -> dict[str, float]:
    """When each pod was created, in monotonic seconds."""
    created: dict[str, float] = {}
    async with _running(server, folder):
        began = time.monotonic()
        for event in events:
            await asyncio.sleep(max(0.0, began + event.at_seconds - time.monotonic()))
            for _ in range(event.count):
                pod = executor(len(created) + 1, gates=[GATE])
                pod["metadata"]["creationTimestamp"] = text(time.time())
                created[pod["metadata"]["name"]] = time.monotonic()
                world.put("pods", pod)
        released = partial(_all_released, world)
        await asyncio.to_thread(wait_until, released, what="all are released", timeout_seconds=SETTLING_SECONDS)
    return created


@asynccontextmanager
async def _running(server: ApiServer, folder: Path) -> AsyncIterator[None]:
    """An operator that leads."""
    ports = {"health_port": free_port("127.0.0.1"), "metrics_port": free_port("127.0.0.1")}
    settings = Settings("ballast", "ballast-system", "one", host="127.0.0.1", lease_seconds=6, **ports)
    operator = Operator(Connection.from_kubeconfig(kubeconfig(folder, server.url)), settings)
    stop = asyncio.Event()
    task = asyncio.ensure_future(operator.run(stop))
    try:
        leads = partial(_leads, server)
        await asyncio.to_thread(wait_until, leads, what="it leads", timeout_seconds=SETTLING_SECONDS)
        yield
    finally:
        stop.set()
        await task


def _leads(server: ApiServer) -> bool:
    return any(switch["spec"]["gating"] for switch in server.all("gateswitches"))


def _all_released(world: World) -> bool:
    return not any(pod["spec"].get("schedulingGates") for pod in world.all("pods"))


def main() -> int:
    before = machine()
    write("first-sight", [*planned(), *operated()], before=before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
