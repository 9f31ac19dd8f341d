"""The load that travels with an executor.

The driver hands tasks to whichever core is free, so what a move takes along is the executor's cores times its
application's mean usage per core, not what this one executor happened to use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from ballast.model import Executor, Phase

Profile = tuple[str, str, str]
"""Namespace, application, resource profile."""


def profile_of(executor: Executor) -> Profile:
    return (executor.namespace, executor.application, executor.resource_profile)


@dataclass(frozen=True, slots=True)
class Loads:
    """Mean CPU use per core of each application and resource profile."""

    cores_per_core: Mapping[Profile, float]

    def known(self, executor: Executor) -> float | None:
        """CPU cores that the executor would use anywhere; None when its application has no fresh metrics."""
        mean = self.cores_per_core.get(profile_of(executor))
        return None if mean is None else mean * executor.cores

    def expected(self, executor: Executor) -> float:
        """The same for one that may be new: without metrics, what it requests."""
        known = self.known(executor)
        return executor.requests.cpu_cores if known is None else known


def loads(executors: Iterable[Executor]) -> Loads:
    """Means over the running executors with metrics; exact sums, so that their order does not matter."""
    used: dict[Profile, list[float]] = defaultdict(list)
    cores: dict[Profile, list[float]] = defaultdict(list)
    for executor in executors:
        usage = executor.usage
        if executor.phase is Phase.RUNNING and usage is not None and usage.cpu_cores is not None and executor.cores > 0:
            used[profile_of(executor)].append(usage.cpu_cores)
            cores[profile_of(executor)].append(executor.cores)
    return Loads({key: fsum(amounts) / fsum(cores[key]) for key, amounts in used.items()})
