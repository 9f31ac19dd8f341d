"""How many executors, cores, source tasks, state tasks and buffers."""

from __future__ import annotations

import math
from collections.abc import Iterator

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
