"""Heap, generations and JVM options of an executor; cores, source tasks and buffers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from enum import StrEnum

from ballast.sizing.gc_health import YOUNG_INTERVAL_SECONDS, YOUNG_PAUSE_SECONDS

MIB, GIB = 1024**2, 1024**3
SURVIVOR_RATIO = 8
"""Eden ÷ one survivor space; a new generation is one eden and two survivors."""
LARGE_HEAP_BYTES, LARGEST_HEAP_BYTES = 12 * GIB, 32 * GIB
PENDING_SHARE = 0.25
"""The most of the heap that batches in flight may take: well under it."""
OVERHEAD_RATIO, LEAST_OVERHEAD_BYTES = 0.1, 384 * MIB
"""Spark's defaults for what a container has in addition to the heap; the ratio is 0.4 where Python runs."""
PYTHON_OVERHEAD_RATIO = 0.4
GENERATIONAL_ZGC_SINCE, GENERATIONAL_ZGC_DEFAULT = 21, 23


class Collector(StrEnum):
    G1 = "G1"
    ZGC = "ZGC"


def survivor_space(new_bytes: float) -> float:
    """One of the two in a new generation of this size; the rest is eden."""
    return new_bytes / (SURVIVOR_RATIO + 2)


def old_generation(*, new_bytes: float, steady_old_bytes: float) -> float:
    """The larger of twice its steady occupancy and 1.5 times the new generation."""
    return max(2.0 * steady_old_bytes, 1.5 * new_bytes)


def new_generation(allocation_bytes_per_second: float) -> float:
    """Large enough that eden fills no sooner than every ten seconds."""
    eden = allocation_bytes_per_second * YOUNG_INTERVAL_SECONDS
    return eden * (SURVIVOR_RATIO + 2) / SURVIVOR_RATIO


def overhead_bytes(heap_bytes: float, *, python: bool, own_bytes: float = 0.0, own_ratio: float = 0.0) -> float:
    """No less than the user's own, in bytes or in parts of the heap."""
    ratio = max(PYTHON_OVERHEAD_RATIO if python else OVERHEAD_RATIO, own_ratio)
    return max(ratio * heap_bytes, LEAST_OVERHEAD_BYTES, own_bytes)


def heap_within(container_bytes: float, *, python: bool, own_bytes: float = 0.0, own_ratio: float = 0.0) -> float:
    """The heap whose container, overhead included, fits."""
    ratio = max(PYTHON_OVERHEAD_RATIO if python else OVERHEAD_RATIO, own_ratio)
    return max(min(container_bytes / (1.0 + ratio), container_bytes - max(LEAST_OVERHEAD_BYTES, own_bytes)), 0.0)


def heap_warnings(heap_bytes: float, collector: Collector) -> Iterator[str]:
    """For a heap above 12 GiB, and for one that loses compressed object pointers (32 GiB)."""
    size = f"a heap of {heap_bytes / GIB:.3g} GiB"
    if heap_bytes >= LARGEST_HEAP_BYTES:
        yield (
            f"{size} is 32 GiB or more: Java can't compress object pointers there, so that it holds less than one of "
            "31 GiB. Take more executors with less memory each."
        )
    elif heap_bytes > LARGE_HEAP_BYTES and collector is Collector.G1:
        yield f"{size} is above 12 GiB: long collections cause timeouts and jitter. Take more executors, or ZGC."


def usable_heap(heap_bytes: float) -> float:
    """The heap that may be recommended: one that would lose compressed pointers is cut to 31 GiB."""
    return heap_bytes if heap_bytes < LARGEST_HEAP_BYTES else 31.0 * GIB


def pending_warnings(*, pending_bytes: float, heap_bytes: float) -> Iterator[str]:
    """For bytes in flight that are not well under the heap."""
    if pending_bytes > PENDING_SHARE * heap_bytes:
        yield (
            f"{pending_bytes / MIB:.4g} MiB in flight per executor are more than a quarter of its heap of "
            f"{heap_bytes / MIB:.4g} MiB: lower maxOffsetsPerTrigger, or raise spark.executor.memory."
        )


def collector_for(*, java: int, heap_bytes: float, latency: bool) -> Collector:
    """Generational ZGC where Java has it and pauses matter or the heap is large; else G1."""
    if java >= GENERATIONAL_ZGC_SINCE and (latency or heap_bytes > LARGE_HEAP_BYTES):
        return Collector.ZGC
    return Collector.G1


UNIFIED_LOGGING_SINCE = 9
_OPTION = re.compile(r"""(?:[^\s"']|"(?:\\.|[^"])*"|'[^']*')+""")
_DECIDED = re.compile(
    r"-XX:[+-](?:Use\w+GC|ZGenerational|ParallelRefProcEnabled|ExitOnOutOfMemoryError)|-XX:(?:MaxGCPauseMillis|SurvivorRatio)="
)
_OF_SPARK = re.compile(
    r"-XX:\+IgnoreUnrecognizedVMOptions|-Djava\.net\.preferIPv6Addresses=|-Djdk\.reflect\.useDirectMethodHandle="
    r"|-Dio\.netty\.(?:tryReflectionSetAccessible|allocator\.type|handler\.ssl\.defaultEndpointVerificationAlgorithm)="
    r"|--add-modules=jdk\.incubator\.vector|--enable-native-access=ALL-UNNAMED"
    r"|--add-opens=java\.base/(?:java\.(?:lang|io|net|nio|util)\b|jdk\.internal\.ref|sun\.(?:nio|security|util)\.)"
    r"|--add-opens=java\.security\.jgss/"
)
"""Spark adds these itself, so that an event log has them."""
_LOGS_GC = re.compile(r"-Xlog(?::(?:gc|safepoint|all)|$)|-Xloggc:|-verbose:gc")


def jvm_options(collector: Collector, *, java: int, own: str = "") -> tuple[str, ...]:
    """For spark.executor.extraJavaOptions. Spark sets -Xms and -Xmx itself, both to spark.executor.memory.

    Of the user's `own` options those are kept that are not decided here.
    """
    given = [each for each in _OPTION.findall(own) if not _DECIDED.match(each) and not _OF_SPARK.match(each)]
    logs = any(_LOGS_GC.match(each) for each in given)
    return (*given, *_options(collector, java, logs=logs))


def _options(collector: Collector, java: int, *, logs: bool) -> Iterator[str]:
    if collector is Collector.ZGC:
        yield "-XX:+UseZGC"
        if java < GENERATIONAL_ZGC_DEFAULT:
            yield "-XX:+ZGenerational"
    else:
        yield "-XX:+UseG1GC"
        yield f"-XX:MaxGCPauseMillis={YOUNG_PAUSE_SECONDS * 1000:.0f}"
        yield f"-XX:SurvivorRatio={SURVIVOR_RATIO}"
        yield "-XX:+ParallelRefProcEnabled"
    yield "-XX:+ExitOnOutOfMemoryError"
    if java >= UNIFIED_LOGGING_SINCE and not logs:
        yield "-Xlog:gc*,safepoint:file=/tmp/gc-%p.log:time,uptime,level,tags:filecount=10,filesize=1m"


# How many executors, cores, source tasks, state tasks and buffers.

HIGH_CORE_COUNT = 8
"""From here on one core of a machine is left to the system."""


def usable_cores(cores: int) -> int:
    """All cores of a machine, or one less from eight cores on."""
    return cores - 1 if cores >= HIGH_CORE_COUNT else cores


def source_tasks(*, partitions: int, cores: int) -> int:
    """The largest divisor of the partitions that the cores can run at once: every task then reads as many of them."""
    return max(each for each in _divisors(partitions) if each <= max(cores, 1))


def next_partitions(*, partitions: int, cores: int) -> int:
    """The smallest multiple of the cores that is not below the partitions."""
    return math.ceil(partitions / cores) * cores


def idle_sources(*, partitions: int, source_tasks: int) -> int:
    """Tasks beyond the partitions have nothing to read."""
    return max(source_tasks - partitions, 0)


def source_warnings(*, partitions: int, cores: int, declared_tasks: int | None) -> Iterator[str]:
    """For sources that sit idle, and for partitions that cores can't share evenly."""
    if declared_tasks is not None and (idle := idle_sources(partitions=partitions, source_tasks=declared_tasks)):
        yield (
            f"{idle} of {declared_tasks} declared source tasks sit idle: {partitions} partitions feed {partitions} "
            f"tasks at most. Declare {partitions}, or raise the partitions."
        )
    elif declared_tasks is not None and partitions % declared_tasks:
        yield (
            f"{partitions} partitions are no multiple of {declared_tasks} source tasks: some tasks read more than "
            f"others. Declare {source_tasks(partitions=partitions, cores=declared_tasks)}."
        )
    if cores > partitions:
        yield (
            f"{cores - partitions} of {cores} cores have no partition to read: {partitions} partitions feed "
            f"{partitions} tasks. Raise the partitions to {cores}, set the source's minPartitions to {cores}, or "
            "shuffle after the source."
        )
    elif partitions % cores:
        yield (
            f"{partitions} partitions are no multiple of {cores} cores: in the last wave {cores - partitions % cores} "
            f"cores wait. {next_partitions(partitions=partitions, cores=cores)} partitions would keep all busy."
        )


def power_of_two(least: float) -> int:
    """The smallest power of two that is larger than `least`."""
    return 1 << max(math.floor(least), 0).bit_length()


def _divisors(number: int) -> Iterator[int]:
    for small in range(1, math.isqrt(number) + 1):
        if number % small == 0:
            yield small
            yield number // small
