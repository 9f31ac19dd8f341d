"""Capacity and load of a topology's executors: two different things, and each of four combinations has its causes.

Capacity is the share of time in which an executor's task slots run tasks: tasks executed × their mean latency ÷ the
window, per slot. Load is the share of its cores that it uses: of its task slots, or of its CPU request where that is
less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ballast.errors import BallastError
from ballast.model import Executor, Phase, Snapshot

HIGH_RATIO = 0.6
"""From here on capacity and load count as high."""
_IDLE_RATIO = 0.2
"""Capacity up to here, next to executors of high capacity, makes a component uneven."""


class Combination(StrEnum):
    """Of capacity and load."""

    BUSY = "HighCapacityHighLoad"
    WAITING = "HighCapacityLowLoad"
    OTHER_WORK = "LowCapacityHighLoad"
    IDLE = "LowCapacityLowLoad"
    UNKNOWN = "Unknown"
    """One of them is not measured."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What it means, and what can be done."""

    meaning: str
    remedies: tuple[str, ...]


ADVICE = {
    Combination.BUSY: Advice(
        "Tasks fill its slots and compute: more records reach it than it passes, or just as many as it can pass.",
        (
            "If all executors of the component are like this, add executors or cores: `ballast size` tells how many.",
            "If only some are, look for skewed partitions, and for slow nodes with `kubectl ballast explain pod/NAME`.",
        ),
    ),
    Combination.WAITING: Advice(
        "Tasks fill its slots but hardly compute: they wait for shuffle data or a remote service, or records come "
        "about as fast as they are processed.",
        (
            "If batches keep up with their records, change nothing.",
            "If not, place it nearer to what it talks to: `kubectl ballast explain pod/NAME` shows the distances.",
            "Or give it more task slots than CPUs (spark.executor.cores).",
        ),
    ),
    Combination.OTHER_WORK: Advice(
        "Its CPUs work, but its slots run few tasks: it collects garbage, or serves shuffle blocks to other executors, "
        "which share its connection.",
        (
            "Check its garbage collection with `ballast size --gc-log FILE`.",
            "Send less through its connection: filter and aggregate before the shuffle.",
            "Place executors that exchange much near to each other (spec.placement.strategy: Proximity).",
        ),
    ),
    Combination.IDLE: Advice(
        "It has little work to do.",
        ("If all executors of the component are like this, run fewer: `ballast size` computes how many.",),
    ),
    Combination.UNKNOWN: Advice(
        "Prometheus has no fresh values of its tasks or of its CPU.",
        ("Set spark.ui.prometheus.enabled=true, and let Prometheus scrape the driver: see `ballast docs use`.",),
    ),
}

UNEVEN_REMEDIES = (
    "Run fewer executors, if batches keep up: those that work are not overloaded.",
    "Move the bounds at which a component spreads (spec.placement.scope of the policy).",
    "Place executors in the order of their streams (spec.placement.order: ProximityNeeds, the default).",
    "To make capacity even, let Spark send tasks to any executor at once: spark.locality.wait=0s.",
)
"""Where some executors of a component are busy and others are hardly used."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One executor's."""

    executor: Executor
    capacity: float | None
    """0…1: of its task slots' time."""
    load: float | None
    """0…1: of its cores."""

    @property
    def combination(self) -> Combination:
        if self.capacity is None or self.load is None:
            return Combination.UNKNOWN
        if self.capacity >= HIGH_RATIO:
            return Combination.BUSY if self.load >= HIGH_RATIO else Combination.WAITING
        return Combination.OTHER_WORK if self.load >= HIGH_RATIO else Combination.IDLE


@dataclass(frozen=True, slots=True)
class Capacities:
    topology: str
    """Its key: `namespace/name`."""
    standings: tuple[Standing, ...]
    """Of its running executors, by component and name."""
    uneven: tuple[str, ...]
    """Components in which some executors have a high capacity, and others hardly any."""

    @property
    def combinations(self) -> tuple[Combination, ...]:
        """Those that hold for at least one executor."""
        return tuple(each for each in Combination if any(one.combination is each for one in self.standings))


class UnknownTopologyError(BallastError):
    """None of that name has executors here."""


def capacities(snapshot: Snapshot, topology: str) -> Capacities:
    """Of one topology (`namespace/name`). Raises UnknownTopologyError when it has no running executor."""
    running = [each for each in snapshot.executors if each.topology == topology and each.phase is Phase.RUNNING]
    if not running:
        known = ", ".join(sorted({each.topology for each in snapshot.executors})[:5]) or "none"
        raise UnknownTopologyError(
            f"{topology}: no running executor belongs to a topology of that name; topologies with executors: {known}"
        )
    standings = tuple(_standing(each) for each in sorted(running, key=lambda each: (each.component, each.name)))
    return Capacities(topology, standings, tuple(_uneven(standings)))


def _standing(executor: Executor) -> Standing:
    """Tasks that began before the window count whole when they end: that is cut to 1."""
    usage = executor.usage
    if usage is None:
        return Standing(executor, None, None)
    capacity = None if usage.slot_ratio is None else min(usage.slot_ratio, 1.0)
    load = None if usage.cpu_cores is None else min(usage.cpu_cores / _own_cores(executor), 1.0)
    return Standing(executor, capacity, load)


def _own_cores(executor: Executor) -> float:
    """What its tasks can use, or what it requests where that is less."""
    requested = executor.requests.cpu_cores
    return min(requested, executor.cores) if requested > 0.0 else executor.cores


def _uneven(standings: Sequence[Standing]) -> Iterator[str]:
    for component in dict.fromkeys(each.executor.component for each in standings):
        found = [
            each.capacity for each in standings if each.executor.component == component and each.capacity is not None
        ]
        if found and min(found) <= _IDLE_RATIO and max(found) >= HIGH_RATIO:
            yield component
