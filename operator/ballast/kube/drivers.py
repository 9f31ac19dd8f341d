"""Which pods are drivers: those that own executors, whatever their labels, as well as those that Spark labels so.

Spark's own submission labels the driver's pod. A Connect server, a notebook or a pod of Airflow has other labels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from ballast.kube.pods import Pod


def with_drivers(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """These pods, which of each owner among them say the applications whose executors it owns."""
    known = tuple(pods)
    owned: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in known:
        if pod.executor is not None and pod.executor.owner_uid and pod.executor.application:
            owned[pod.namespace, pod.executor.owner_uid].add(pod.executor.application)
    return tuple(_driving(pod, owned.get((pod.namespace, pod.uid))) for pod in known)


def _driving(pod: Pod, applications: set[str] | None) -> Pod:
    drives = tuple(sorted(applications)) if applications and pod.executor is None else ()
    return pod if pod.drives == drives else replace(pod, drives=drives)
