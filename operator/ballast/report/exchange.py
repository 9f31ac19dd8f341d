"""How much of an all-to-all shuffle crosses zones and racks, and how many bytes that is.

No metric of Spark's tells which executor fetched from which. The bytes that each executor reads and writes can be
measured; how they split over pairs of executors follows from Spark's design: every reducer reads from every mapper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

from ballast.model import Executor, Location


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
