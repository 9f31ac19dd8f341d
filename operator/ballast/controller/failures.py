"""Executors that failed, also those whose pods are gone: Spark deletes a failed executor's pod at once."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from ballast.kube.pods import Pod

_WAITING_REPORTS = 20_000
"""Of more, the oldest are dropped: a standby takes none out for as long as it is one."""
_MOST_KNOWN = 1000
"""Executors of one application that are known by their ids."""
LARGEST_ID = 2**31 - 1

Application = tuple[str, str]
"""Namespace and id."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An executor that ended in failure, not because its pod was deleted: Spark counts no others."""

    application: Application
    executor: int
    """Its id, which Spark gives to no other executor of the application."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Executors of one application: the latest ones by their ids, so that none counts twice, the others by number."""

    latest: frozenset[int] = frozenset()
    earlier: int = 0

    @property
    def count(self) -> int:
        return self.earlier + len(self.latest)

    def joined(self, executors: Iterable[int], *, most: int = _MOST_KNOWN) -> Failed:
        """With these as well. Where some are known by number only, an id below the others' is taken to be theirs."""
        floor = min(self.latest, default=-1) if self.earlier else -1
        known = self.latest | {each for each in executors if each > floor}
        latest = sorted(known)[-most:]
        return Failed(frozenset(latest), self.earlier + len(known) - len(latest))

    def together(self, other: Failed) -> Failed:
        """What two processes counted that may have seen the same failures."""
        more, fewer = (self, other) if self.count >= other.count else (other, self)
        return more.joined(fewer.latest)


@dataclass(frozen=True, slots=True)
class Failures:
    """What is known of failed executors of the applications that are there."""

    applications: Mapping[Application, Failed] = field(default_factory=dict)

    def after(
        self,
        pods: Iterable[Pod],
        reported: Iterable[Failure] = (),
        recalled: Mapping[Application, Failed] | None = None,
    ) -> Failures:
        """The failures after these pods, which are all.

        `reported`: what the watch has seen since; `recalled`: what another process counted. An application without a
        pod but an ended driver is forgotten.
        """
        there: set[Application] = set()
        failed: dict[Application, set[int]] = defaultdict(set)
        for report in reported:
            failed[report.application].add(report.executor)
        for pod in pods:
            if not (pod.is_driver and pod.ended):
                there.update(_applications(pod))
            found = failure(pod)
            if found is not None:
                failed[found.application].add(found.executor)
        known = {application: each for application, each in self.applications.items() if application in there}
        for application, each in (recalled or {}).items():
            if application in there:
                known[application] = known.get(application, Failed()).together(each)
        for application, executors in failed.items():
            known[application] = known.get(application, Failed()).joined(executors)
        return Failures(known)

    def counts(self) -> Counter[Application]:
        return Counter({application: each.count for application, each in self.applications.items()})


class FailureReports:
    """On their way from the watch to the reconciler: put in by one thread, taken out by another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: deque[Failure] = deque(maxlen=_WAITING_REPORTS)

    def put(self, failure: Failure) -> None:
        with self._lock:
            self._waiting.append(failure)

    def take(self) -> list[Failure]:
        """Everything that is there, each once."""
        with self._lock:
            found = list(self._waiting)
            self._waiting.clear()
        return found


def failure(pod: Pod) -> Failure | None:
    """Of an executor that ended in failure, and was not deleted before."""
    if pod.executor is None or not pod.failed or pod.leaving:
        return None
    executor = pod.executor.executor_id
    known = executor.isascii() and executor.isdecimal() and int(executor) <= LARGEST_ID
    return Failure((pod.namespace, pod.executor.application), int(executor)) if known else None


def _applications(pod: Pod) -> list[Application]:
    """None of a pod that is neither an executor nor a driver."""
    names = pod.driven if pod.executor is None else (pod.executor.application,)
    return [(pod.namespace, name) for name in names]
