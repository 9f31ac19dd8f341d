"""How fast machine types are against each other, learned from what the same applications do there.

Where an application runs on machines of two types, its executors of both do the same work: the records per second of
CPU tell how fast one type is against the other. Learned are the types' speeds against that of the type with the most
nodes. Nodes of one type are alike, so what is learned holds for nodes that no executor runs on yet.

Where a node declares its speed (annotation ballast.dev/speed), what is declared counts and nothing is learned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log

from ballast.model import Executor, Node, Phase, Snapshot
from ballast.moves.loads import Profile, profile_of

INSTANCE_TYPE = "node.kubernetes.io/instance-type"

_HORIZON_SECONDS = 1800.0
"""After this time two thirds of a type's speed are known."""
_LEAST_SECONDS = 900.0
"""A speed that was seen for less is not used yet."""
_LEAST_DIFFERENCE_RATIO = 0.1
"""Types that differ by less count as equally fast: caches and neighbors make such differences, too."""
_LEAST, _MOST = 0.25, 4.0
_LEAST_EXECUTORS = 2
"""Of an application on each type, so that one with unlike data does not speak for its machine."""
_REMEMBERED = 32


@dataclass(frozen=True, slots=True)
class TypeSpeed:
    machine_type: str
    log_speed: float
    """Natural logarithm of its speed ÷ that of the reference, averaged over the horizon."""
    seen_seconds: float


@dataclass(frozen=True, slots=True)
class Speeds:
    """Plain values, fit for JSON."""

    reference: str = ""
    """The machine type whose speed is 1."""
    types: tuple[TypeSpeed, ...] = ()
    last_at_seconds: float | None = None


def observed(before: Speeds, snapshot: Snapshot, *, window_seconds: float, now: float) -> Speeds:
    """The speeds after one more pass; metrics are means over the window, so that once a window is enough.

    When another type has the most nodes, learning begins again.
    """
    reference = _reference(snapshot.nodes)
    if reference is None or not snapshot.metrics.available:
        return before
    if before.reference != reference:
        before = Speeds(reference)
    last = before.last_at_seconds
    if last is not None and 0 <= now - last < window_seconds:
        return before
    elapsed = window_seconds if last is None or now < last else min(now - last, _LEAST_SECONDS / 2)
    known = {each.machine_type: each for each in before.types}
    for machine_type, value in _log_speeds(snapshot, reference).items():
        known[machine_type] = _averaged(known.get(machine_type), machine_type, value, elapsed)
    kept = sorted(known.values(), key=lambda each: (-each.seen_seconds, each.machine_type))[:_REMEMBERED]
    return Speeds(reference, tuple(sorted(kept, key=lambda each: each.machine_type)), now)


_NOTHING = Speeds()


def node_speeds(nodes: Iterable[Node], learned: Speeds = _NOTHING) -> dict[str, float]:
    """By node: work per second of CPU against an ordinary machine; what is declared before what was learned."""
    listed = list(nodes)
    if any(node.speed != 1.0 for node in listed):
        return {node.name: node.speed for node in listed}
    by_type = {each.machine_type: _speed(each) for each in learned.types}
    return {node.name: by_type.get(node.labels.get(INSTANCE_TYPE, ""), 1.0) for node in listed}


def _speed(learned: TypeSpeed) -> float:
    speed = min(max(exp(learned.log_speed), _LEAST), _MOST)
    if learned.seen_seconds < _LEAST_SECONDS or abs(speed - 1.0) < _LEAST_DIFFERENCE_RATIO:
        return 1.0
    return round(speed, 2)


def _reference(nodes: Iterable[Node]) -> str | None:
    """The type with the most nodes; None where there are no two types, or where speeds are declared."""
    listed = list(nodes)
    counts = Counter(node.labels[INSTANCE_TYPE] for node in listed if INSTANCE_TYPE in node.labels)
    if len(counts) < 2 or any(node.speed != 1.0 for node in listed):
        return None
    return min(counts, key=lambda each: (-counts[each], each))


def _averaged(before: TypeSpeed | None, machine_type: str, value: float, elapsed: float) -> TypeSpeed:
    if before is None:
        return TypeSpeed(machine_type, round(value, 4), elapsed)
    # A mean of all that was seen at first, then one that forgets.
    weight = max(1.0 - exp(-elapsed / _HORIZON_SECONDS), elapsed / (before.seen_seconds + elapsed))
    average = before.log_speed + weight * (value - before.log_speed)
    return TypeSpeed(machine_type, round(average, 4), round(before.seen_seconds + elapsed, 1))


@dataclass(slots=True)
class _Done:
    """By executors of one application on machines of one type."""

    records_per_second: list[float]
    cpu_cores: list[float]

    @property
    def records_per_core_second(self) -> float:
        return fsum(self.records_per_second) / fsum(self.cpu_cores)


def _log_speeds(snapshot: Snapshot, reference: str) -> dict[str, float]:
    """By machine type that shares an application with the reference; an application weighs by the CPU that it uses."""
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for by_type in _done(snapshot).values():
        base = by_type.get(reference)
        if base is None:
            continue
        for machine_type, done in by_type.items():
            if machine_type != reference:
                weight = min(fsum(done.cpu_cores), fsum(base.cpu_cores))
                value = log(done.records_per_core_second / base.records_per_core_second)
                # No machine is faster by more. An application's records are what its executors claim: one that lies
                # must weigh no more than the CPU that it uses.
                values[machine_type].append((weight, min(max(value, log(_LEAST)), log(_MOST))))
    return {
        machine_type: fsum(weight * value for weight, value in found) / fsum(weight for weight, _ in found)
        for machine_type, found in values.items()
    }


def _done(snapshot: Snapshot) -> Mapping[Profile, Mapping[str, _Done]]:
    types = {node.name: node.labels[INSTANCE_TYPE] for node in snapshot.nodes if INSTANCE_TYPE in node.labels}
    found: dict[Profile, dict[str, _Done]] = defaultdict(dict)
    for executor in snapshot.executors:
        machine_type = types.get(executor.node or "")
        figures = _figures(executor)
        if machine_type is not None and figures is not None:
            done = found[profile_of(executor)].setdefault(machine_type, _Done([], []))
            done.records_per_second.append(figures[0])
            done.cpu_cores.append(figures[1])
    return {
        profile: {name: done for name, done in by_type.items() if len(done.cpu_cores) >= _LEAST_EXECUTORS}
        for profile, by_type in found.items()
    }


def _figures(executor: Executor) -> tuple[float, float] | None:
    """Records per second and cores, where both are measured."""
    usage = executor.usage
    if executor.phase is not Phase.RUNNING or usage is None:
        return None
    records, cores = usage.records_per_second, usage.cpu_cores
    return (records, cores) if records and cores and records > 0 and cores > 0 else None
