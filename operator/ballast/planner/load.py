"""The load that travels with an executor.

The driver hands tasks to whichever core is free, so what a move takes along is the executor's cores times its
application's mean usage per core, not what this one executor happened to use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
        """CPU cores that the executor would use anywhere; None when its application has no fresh figures."""
        mean = self.cores_per_core.get(profile_of(executor))
        return None if mean is None else mean * executor.cores

    def expected(self, executor: Executor) -> float:
        """The same for one that may be new: without figures, what it asks for."""
        known = self.known(executor)
        return executor.requests.cpu_cores if known is None else known


def loads(executors: Iterable[Executor]) -> Loads:
    sums: dict[Profile, tuple[float, float]] = {}
    for executor in executors:
        usage = executor.usage
        if executor.phase is not Phase.RUNNING or usage is None or usage.cpu_cores is None or executor.cores <= 0:
            continue
        key = profile_of(executor)
        used, cores = sums.get(key, (0.0, 0.0))
        sums[key] = (used + usage.cpu_cores, cores + executor.cores)
    return Loads({key: used / cores for key, (used, cores) in sums.items()})
