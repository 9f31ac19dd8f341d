"""Which application a Spark series is of: told by the pod that it was scraped from, not by what the series says.

A series names its application itself, so any pod could export series of any application. The scrape puts on the labels
`namespace` and `pod`, which show where a series really comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ballast.prometheus.series import Figures, Series, application_of, averaged, value_of
from ballast.prometheus.transport import shown

Application = tuple[str, str]
"""Namespace and id (the label spark-app-selector of its pods)."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Which pods may export series of which application.

    `drivers`: names of its driver pods, by application. If no driver pod of an application is known (client mode: the
    driver is outside of the cluster, or in a pod that Spark did not create), the namespace alone must be the
    application's.
    """

    applications: Collection[Application]
    """Those that have executors."""
    drivers: Mapping[Application, Collection[str]] = field(default_factory=dict)

    def select(self, vector: Iterable[Series]) -> Selection:
        """Series of other applications are passed over."""
        known = {name for _, name in self.applications if name}
        kept: list[tuple[Application, Series]] = []
        foreign: Counter[str] = Counter()
        for series in vector:
            name = application_of(series.labels)
            if name not in known:
                continue
            namespace, pod = series.labels.get("namespace", ""), series.labels.get("pod", "")
            application = (namespace, name)
            if application in self.applications and pod in self.drivers.get(application, (pod,)):
                kept.append((application, series))
            else:
                foreign[_claim(name, namespace, pod)] += 1
        return Selection(tuple(kept), foreign)


@dataclass(frozen=True, slots=True)
class Selection:
    series: tuple[tuple[Application, Series], ...]
    foreign: Mapping[str, int]
    """How many series were dropped because they come from another pod than the application's driver, by claim."""

    def by_executor(self) -> Figures:
        """Values by `namespace/application id/executor id`."""
        return averaged(
            (f"{namespace}/{name}/{series.labels['executor_id']}", value_of(series))
            for (namespace, name), series in self.series
            if series.labels.get("executor_id")
        )

    def sums(self) -> dict[Application, float]:
        """One application may run several queries."""
        sums: dict[Application, float] = {}
        for application, value in self._values():
            sums[application] = sums.get(application, 0.0) + value
        return sums

    def largest(self) -> dict[Application, float]:
        """The slowest of an application's queries is what is felt."""
        largest: dict[Application, float] = {}
        for application, value in self._values():
            largest[application] = max(value, largest.get(application, value))
        return largest

    def samples(self) -> dict[Application, list[float]]:
        """Every sample of a range."""
        found: dict[Application, list[float]] = {}
        for application, series in self.series:
            if series.ranged:
                found.setdefault(application, []).extend(series.values)
        return found

    def _values(self) -> Iterable[tuple[Application, float]]:
        for application, series in self.series:
            value = value_of(series)
            if value is not None:
                yield application, value


def _claim(application: str, namespace: str, pod: str) -> str:
    if not namespace:
        return f"series of {shown(application)} have no label namespace: let the scrape set namespace and pod"
    source = f"pod {shown(namespace)}/{shown(pod)}" if pod else f"a target without a label pod in {shown(namespace)}"
    return f"series of {shown(application)} come from {source}, which is not its driver"
