"""The executors of a scenario, as slots: one is filled by an executor, by its replacement after a move, and so on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ballast.model import Resources, Workload
from ballast.model.arrays import FloatArray, IntArray
from ballast.simulation.fleet import Fleet
from ballast.simulation.scenario import ScenarioSpec
from ballast.simulation.scenario_application import Application

NAMESPACE = "simulation"


@dataclass(frozen=True, slots=True)
class App:
    """One Spark application."""

    namespace: str
    name: str
    pods: str
    """What its executors' names begin with, before `-exec-`."""
    topology: str
    """Key of its topology."""
    component: str
    workload: Workload
    cores: float
    """Tasks at once of each executor."""
    requests: Resources
    records_per_core: float
    """NaN: not known, as with the two that follow."""
    bytes_per_core: float
    state_bytes: float
    task_seconds: float | None
    """On an ordinary idle machine; None: there are no task metrics."""
    exchange_bytes_per_second: float | None
    """Among its own executors; None: not said."""
    executors: int


@dataclass(frozen=True, slots=True, eq=False)
class Crew:
    """Executors of all applications, application by application."""

    apps: tuple[App, ...]
    app_of: IntArray
    """By slot."""
    homes: IntArray
    """By slot: node index where it runs when the run begins; -1: it is placed by the policy."""
    requests: FloatArray
    """Slots × (CPU cores, bytes of memory, pods)."""
    cores: FloatArray
    """By slot: tasks at once."""
    movable: IntArray
    """By slot: 1 where the workload may be moved at all."""
    starts: FloatArray
    """By slot: when there is to be an executor, in seconds since the run began."""
    stops: FloatArray
    """By slot: when there is to be none any more; infinite: never."""

    def __len__(self) -> int:
        return len(self.app_of)


def crew(spec: ScenarioSpec, fleet: Fleet) -> Crew:
    apps = tuple(app for each in spec.applications for app in _apps(each))
    app_of = np.array([i for i, app in enumerate(apps) for _ in range(app.executors)], dtype=np.int64)
    amounts = [(app.requests.cpu_cores, app.requests.memory_bytes, 1.0) for app in apps]
    return Crew(
        apps=apps,
        app_of=app_of,
        homes=np.array([home for each in spec.applications for home in _homes(each, fleet)], dtype=np.int64),
        requests=np.array(amounts).reshape(-1, 3)[app_of],
        cores=np.array([app.cores for app in apps])[app_of],
        movable=np.array([app.workload is Workload.STREAMING for app in apps], dtype=np.int64)[app_of],
        starts=np.array([each.starts.seconds for each in spec.applications for _ in range(each.total)]),
        stops=np.array([_stop(each) for each in spec.applications for _ in range(each.total)]),
    )


def _stop(each: Application) -> float:
    return each.stops.seconds if each.stops else float("inf")


def _apps(each: Application) -> list[App]:
    return [
        App(
            namespace=NAMESPACE,
            name=name,
            pods=name,
            topology=f"{NAMESPACE}/{each.topology or name}",
            component=name,
            workload=Workload(each.workload),
            cores=each.cores,
            requests=Resources(float(each.requests.cpu), float(each.requests.memory), 1.0),
            records_per_core=each.records_per_core,
            bytes_per_core=float(each.bytes_per_core),
            state_bytes=float(each.state),
            task_seconds=each.task_seconds,
            exchange_bytes_per_second=float(each.exchange) if each.exchange is not None else None,
            executors=each.executors,
        )
        for name in each.names
    ]


def _homes(each: Application, fleet: Fleet) -> list[int]:
    if isinstance(each.runs_on, tuple):
        nodes = [node for subject in each.runs_on for node in fleet.named(subject)] or [-1]
        return [nodes[i % len(nodes)] for i in range(each.total)]
    placed = [fleet.index(name) for name, count in each.runs_on.items() for _ in range(count)]
    return placed + [-1] * (each.total - len(placed))
