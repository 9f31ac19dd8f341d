"""Executors that failed, also those whose pods are gone: Spark deletes a failed executor's pod at once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ballast.kube import names
from ballast.kube.pods import Pod

_MOST = 100_000

Application = tuple[str, str]
"""Namespace and id."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An executor that ended in failure, not because its pod was deleted: Spark counts no others."""

    uid: str
    application: Application


@dataclass(frozen=True, slots=True)
class Failures:
    """What is known of failed executors of the applications that are there."""

    applications: Mapping[str, Application] = field(default_factory=dict)
    """By pod uid, in the order in which they became known."""

    def after(self, pods: Iterable[Pod], reported: Iterable[Failure] = ()) -> Failures:
        """The failures after these pods, which are all. `reported`: what the watch has seen since.

        An application without a pod but an ended driver is forgotten; of too many failures, the first ones are.
        """
        there, failed = set(), {failure.uid: failure.application for failure in reported}
        for pod in pods:
            application = _application(pod)
            if application is not None and not (pod.is_driver and pod.ended):
                there.add(application)
            found = failure(pod)
            if found is not None:
                failed[found.uid] = found.application
        known = {uid: each for uid, each in self.applications.items() if each in there} | failed
        return Failures(dict(list(known.items())[-_MOST:]))

    def counts(self) -> Counter[Application]:
        return Counter(self.applications.values())


class FailureReports:
    """On their way from the watch to the rounds: put in by one thread, taken out by another."""

    def __init__(self) -> None:
        self._waiting: deque[Failure] = deque(maxlen=_MOST)

    def put(self, failure: Failure) -> None:
        self._waiting.append(failure)

    def take(self) -> list[Failure]:
        """Everything that is there, each once."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


def failure(pod: Pod) -> Failure | None:
    """Of an executor that ended in failure, and was not deleted before."""
    application = _application(pod)
    if pod.executor is None or application is None or pod.status_phase != "Failed" or pod.leaving:
        return None
    return Failure(pod.uid, application)


def _application(pod: Pod) -> Application | None:
    """None for a pod that is neither an executor nor a driver."""
    if pod.executor is None and not pod.is_driver:
        return None
    return pod.namespace, pod.labels.get(names.SPARK_APPLICATION) or ""
