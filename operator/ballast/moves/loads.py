"""The CPU that an executor uses, and takes along when it moves.

The driver hands tasks to whichever core is free, so a move takes along the executor's cores times its application's
mean use of a core. What the executor uses beyond that counts as far as it has lasted: partitions of unequal size stay
with their executors, and bursts go. Loads are compared as work, because the same work takes more of a core on a slower
node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum

from ballast.model import Executor, Phase

Profile = tuple[str, str, str]
"""Namespace, application, resource profile."""


def profile_of(executor: Executor) -> Profile:
    return (executor.namespace, executor.application, executor.resource_profile)


@dataclass(frozen=True, slots=True)
class Loads:
    """What is known of the use of CPU by a pool's executors."""

    work_per_core: Mapping[Profile, float]
    """Mean of each application and resource profile, in cores of an ordinary machine per core that it has."""
    speed: Mapping[str, float]
    """By node."""
    strays: Mapping[str, float]
    """By uid of the measured executors on the pool's nodes: cores of its node by which it differs from that mean."""
    most_cores: Mapping[Profile, float] = field(default_factory=dict)
    """Of the measured executors of each application and resource profile."""
    used_cores: Mapping[Profile, float] = field(default_factory=dict)
    """Of all the measured executors of each application and resource profile."""
    lasting_ratio: Mapping[str, float] = field(default_factory=dict)
    """By node, the share of its executors' strays that has lasted, 0…1."""

    def known(self, executor: Executor, *, on: str | None = None) -> float | None:
        """Cores of node `on` (None: its own, or of an ordinary machine) that the executor uses.

        None when its application has no fresh metrics.
        """
        profile = profile_of(executor)
        work = self.work_per_core.get(profile)
        if work is None:
            return None
        # Executors of a profile are alike. One that claims more cores than those could look as heavy as it likes.
        cores = min(executor.cores, self.most_cores.get(profile, executor.cores))
        home = executor.node or ""
        here = self._speed(home)
        lasting = self.lasting_ratio.get(home, 0.0) * self.strays.get(executor.uid, 0.0)
        used = max(0.0, work * cores / here + lasting)
        return used if on is None else used * here / self._speed(on)

    def expected(self, executor: Executor, *, on: str | None = None) -> float:
        """The same for one that may be new: without metrics, what it requests."""
        known = self.known(executor, on=on)
        return executor.requests.cpu_cores if known is None else known

    def astray(self, executors: Iterable[Executor]) -> dict[str, float]:
        """By node, the cores by which those of `executors` that are measured differ from their means, in sum."""
        found: dict[str, list[float]] = defaultdict(list)
        for executor in executors:
            if executor.uid in self.strays:
                found[executor.node or ""].append(self.strays[executor.uid])
        return {node: fsum(cores) for node, cores in found.items()}

    def with_lasting(self, lasting_ratio: Mapping[str, float]) -> Loads:
        return replace(self, lasting_ratio=lasting_ratio)

    def _speed(self, node: str) -> float:
        return self.speed.get(node, 1.0)


def loads(executors: Iterable[Executor], speed: Mapping[str, float]) -> Loads:
    """Of the running executors with metrics; exact sums, so that their order does not matter.

    `speed`: by node of the pool, against an ordinary machine.
    """
    measured = [
        (executor, executor.usage.cpu_cores)
        for executor in executors
        if executor.phase is Phase.RUNNING
        and executor.cores > 0
        and executor.usage is not None
        and executor.usage.cpu_cores is not None
    ]
    work: dict[Profile, list[float]] = defaultdict(list)
    cores: dict[Profile, list[float]] = defaultdict(list)
    for executor, used in measured:
        work[profile_of(executor)].append(used * speed.get(executor.node or "", 1.0))
        cores[profile_of(executor)].append(executor.cores)
    mean = {key: fsum(amounts) / fsum(cores[key]) for key, amounts in work.items()}
    strays = {
        executor.uid: used - mean[profile_of(executor)] * executor.cores / speed[executor.node or ""]
        for executor, used in measured
        if executor.node in speed
    }
    most = {key: max(found) for key, found in cores.items()}
    return Loads(mean, speed, strays, most, {key: fsum(amounts) for key, amounts in work.items()})
