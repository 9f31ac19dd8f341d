"""How much of an all-to-all shuffle, and of the reads from brokers, crosses zones and racks, and how many bytes.

No metric of Spark's tells which executor fetched from which. The bytes that each executor reads and writes can be
measured; how they split over pairs of executors follows from Spark's design: every reducer reads from every mapper.
"""

from __future__ import annotations

from collections import Counter
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

    Spark passes one `kafka.client.rack` to all executors of an application. With the option alone, only executors in
    that one zone read from a replica of their own zone; all others read across. Placement into one zone makes the
    option true for every executor.
    """

    total_bytes_per_second: float
    now: float
    with_client_rack: float
    """The option alone, set to the best zone. Needs `replica.selector.class` on brokers and a replica in that zone."""
    placed: float
    """Placement alone: partitions are read from their leaders."""
    placed_with_client_rack: float


def reads_of(topology: Topology, component: str, before: Sequence[Location], after: Sequence[Location]) -> Reads | None:
    """None where no stream with a rate and a place of its brokers is declared, or a zone is not labeled."""
    total = 0.0
    leaders: dict[str, float] = {}
    for stream in topology.streams:
        source = topology.component(stream.source)
        if stream.target != component or source is None or not source.external or not stream.bytes_per_second:
            continue
        for anchor in source.anchors:
            zone = anchor.location[0] if anchor.location else None
            if zone is None:
                return None
            leaders[zone] = leaders.get(zone, 0.0) + stream.bytes_per_second * anchor.share
            total += stream.bytes_per_second * anchor.share
    here, there = _zones(before), _zones(after)
    if total <= 0.0 or not here or not there:
        return None
    led = {zone: amount / total for zone, amount in leaders.items()}
    return Reads(
        total_bytes_per_second=total,
        now=total * _from_leaders(here, led),
        with_client_rack=total * min(_from_leaders(here, led), _with_option(here, led)),
        placed=total * _from_leaders(there, led),
        placed_with_client_rack=total * min(_from_leaders(there, led), _with_option(there, led)),
    )


def _zones(places: Sequence[Location]) -> Mapping[str, float] | None:
    zones = [place[0] if len(place) > 1 else None for place in places]
    known = [zone for zone in zones if zone is not None]
    if not known or len(known) < len(zones):
        return None
    return {zone: count / len(known) for zone, count in Counter(known).items()}


def _from_leaders(executors: Mapping[str, float], leaders: Mapping[str, float]) -> float:
    return 1.0 - fsum(share * leaders.get(zone, 0.0) for zone, share in executors.items())


def _with_option(executors: Mapping[str, float], brokers: Mapping[str, float]) -> float:
    return 1.0 - max((executors.get(zone, 0.0) for zone in brokers), default=0.0)
