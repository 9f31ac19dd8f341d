"""How much of an all-to-all shuffle, and of the reads from brokers, crosses zones and racks, and how many bytes.

No metric of Spark's tells which executor fetched from which. The bytes that each executor reads and writes can be
measured; how they split over pairs of executors follows from Spark's design: every reducer reads from every mapper.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from ballast.model import Executor, Location, Topology


class Volume(StrEnum):
    """Where the number of shuffle bytes comes from."""

    MEASURED = "Measured"
    """Spark's own shuffle metrics, per executor; how they split over pairs of executors is estimated."""
    DECLARED = "Declared"
    """`exchange.bytesPerSecond` of the application's SparkTopology."""
    UPPER_BOUND = "UpperBound"
    """The pods' network traffic, which also holds what they read from and write to other systems."""
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Part:
    """One executor's part in the shuffle: its weights as a reader and as a writer."""

    executor: Executor
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Shuffle:
    parts: tuple[Part, ...]
    bytes_per_second: float | None
    """All that is read, on the reader's own executor too."""
    volume: Volume


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the shuffle. None: the nodes have no such label, or not all of them."""

    zone: float | None
    rack: float | None


def shuffle_of(executors: Sequence[Executor], declared_bytes_per_second: float | None) -> Shuffle:
    """Measured where Spark's metrics have all executors; else declared; else at most what the pods' network carries."""
    usages = [executor.usage for executor in executors]
    reads = [usage.shuffle_read_bytes_per_second if usage else None for usage in usages]
    writes = [usage.shuffle_write_bytes_per_second if usage else None for usage in usages]
    known_reads = [each for each in reads if each is not None]
    known_writes = [each for each in writes if each is not None]
    if executors and len(known_reads) == len(executors):
        whole = len(known_writes) == len(executors)
        return Shuffle(
            _parts(executors, known_reads, known_writes if whole else [1.0] * len(executors)),
            fsum(known_reads),
            Volume.MEASURED,
        )
    alike = _parts(executors, [1.0] * len(executors), [1.0] * len(executors))
    if declared_bytes_per_second is not None:
        return Shuffle(alike, declared_bytes_per_second, Volume.DECLARED)
    network = [usage.bytes_per_second for usage in usages if usage is not None and usage.bytes_per_second is not None]
    if executors and len(network) == len(executors):
        return Shuffle(alike, _bound(network), Volume.UPPER_BOUND)
    return Shuffle(alike, None, Volume.UNKNOWN)


def _bound(network: Sequence[float]) -> float:
    """Bytes between two executors are counted at both of them; what an executor reads from itself, at none."""
    others = 1.0 - 1.0 / len(network)
    return fsum(network) / 2.0 / others if others > 0.0 else 0.0


def _parts(executors: Sequence[Executor], reads: Sequence[float], writes: Sequence[float]) -> tuple[Part, ...]:
    return tuple(Part(*each) for each in zip(executors, reads, writes, strict=True))


def shares(parts: Sequence[Part], places: Sequence[Location]) -> Shares:
    """`places`: of each part. The zone is the farthest level, the rack the one above the node."""
    depth = min((len(place) for place in places), default=0)
    return Shares(
        zone=_crossing(parts, [place[0] for place in places]) if depth > 1 else None,
        rack=_crossing(parts, [place[-2] for place in places]) if depth > 2 else None,
    )


def _crossing(parts: Sequence[Part], values: Sequence[str | None]) -> float | None:
    """1 − the share that stays within a value; 0 where nothing is shuffled."""
    if any(value is None for value in values):
        return None
    reads, writes = fsum(part.reads for part in parts), fsum(part.writes for part in parts)
    if reads <= 0.0 or writes <= 0.0:
        return 0.0
    read: dict[str | None, float] = {}
    written: dict[str | None, float] = {}
    for part, value in zip(parts, values, strict=True):
        read[value] = read.get(value, 0.0) + part.reads
        written[value] = written.get(value, 0.0) + part.writes
    stays = fsum(read[value] / reads * written[value] / writes for value in read)
    return max(0.0, 1.0 - stays)


@dataclass(frozen=True, slots=True)
class Reads:
    """Bytes per second across zones that an application reads from its brokers.

    With `client.rack` set to the zone of each executor (docs/routing.md), an executor reads from a replica in its own
    zone, where there is one.
    """

    total_bytes_per_second: float
    volume: Volume
    now: float
    with_client_rack: float
    """The option alone. Needs `replica.selector.class` on brokers, and a replica in each zone that has brokers."""
    placed: float
    """Placement alone: partitions are read from their leaders."""
    placed_with_client_rack: float


def declared_leaders(topology: Topology, component: str) -> Mapping[str | None, float]:
    """Bytes per second that the component reads from leaders in each zone, by the topology's streams; may be empty."""
    found: dict[str | None, float] = defaultdict(float)
    for stream in topology.streams:
        source = topology.component(stream.source)
        if stream.target != component or source is None or not source.external or not stream.bytes_per_second:
            continue
        for anchor in source.anchors:
            found[anchor.location[0] if anchor.location else None] += stream.bytes_per_second * anchor.share
    return found


def other_bytes(executors: Sequence[Executor], shuffle: Shuffle) -> float | None:
    """At most what is read from other systems: the pods' network traffic without the shuffle between executors.

    Bytes per second; it also holds what the executors write elsewhere. None where one of the two is not measured.
    """
    network = [executor.usage.bytes_per_second if executor.usage else None for executor in executors]
    known = [each for each in network if each is not None]
    if shuffle.volume is not Volume.MEASURED or shuffle.bytes_per_second is None or len(known) < len(executors):
        return None
    between = _crossing(shuffle.parts, [part.executor.uid for part in shuffle.parts]) or 0.0
    # What one executor reads from another is counted at both.
    return max(0.0, fsum(known) - 2.0 * between * shuffle.bytes_per_second)


def reads_of(
    leaders: Mapping[str | None, float], volume: Volume, before: Sequence[Location], after: Sequence[Location]
) -> Reads | None:
    """`leaders`: bytes per second by their zone. None where nothing is read, or a zone is not labeled."""
    total, here, there = fsum(leaders.values()), _zones(before), _zones(after)
    if total <= 0.0 or None in leaders or not here or not there:
        return None
    led = {zone: amount / total for zone, amount in leaders.items() if zone is not None and amount > 0.0}
    return Reads(
        total_bytes_per_second=total,
        volume=volume,
        now=total * _from_leaders(here, led),
        with_client_rack=total * _from_replicas(here, led),
        placed=total * _from_leaders(there, led),
        placed_with_client_rack=total * _from_replicas(there, led),
    )


def _zones(places: Sequence[Location]) -> Mapping[str, float] | None:
    zones = [place[0] if len(place) > 1 else None for place in places]
    known = [zone for zone in zones if zone is not None]
    if not known or len(known) < len(zones):
        return None
    return {zone: count / len(known) for zone, count in Counter(known).items()}


def _from_leaders(executors: Mapping[str, float], leaders: Mapping[str, float]) -> float:
    return 1.0 - fsum(share * leaders.get(zone, 0.0) for zone, share in executors.items())


def _from_replicas(executors: Mapping[str, float], brokers: Mapping[str, float]) -> float:
    """Across zones, if each executor reads in its own zone; without a broker there, from the leader."""
    return fsum(share for zone, share in executors.items() if zone not in brokers)
