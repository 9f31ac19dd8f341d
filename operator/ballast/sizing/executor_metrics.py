"""What Spark's own metrics in Prometheus tell of one application: its executors, load and heap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ballast.errors import InvalidField
from ballast.sizing.amount import LARGEST, SMALLEST

WINDOW_SECONDS = 600
_STEP_SECONDS = 5
_APPLICATION, _NAMESPACE = "application_id", "namespace"
_BY = f"{_NAMESPACE}, {_APPLICATION}"
"""The namespace is the scrape's own label: a pod may export any application's id."""
BOUNDED = 'namespace=~"[]-~ -Z]{0,63}",pod=~"[]-~ -Z]{0,253}"'
NAMED = 'application_id=~"[-_.A-Za-z0-9]{1,63}"'
"""Selectors. No label is longer than a name may be: any pod may export any series, and an answer that is too long could
not be read.
"""
DRIVERS_NAME = "metrics_(.{1,253})_driver_spark_streaming_(.+)_inputRate_total_Value"
_METRICS = {
    "taskSeconds": "totalDuration_seconds_total",
    "gcSeconds": "totalGCTime_seconds_total",
    "inputBytes": "totalInputBytes_bytes_total",
}


_CORES = f"metrics_executor_totalCores{{{BOUNDED},{NAMED}}}"


def _arriving(function: str) -> str:
    """Of every streaming query of a driver. The servlet has the application and the query in the name alone; a scrape
    may add the application as a label. The id in the name counts only without that label, and the whole name tells the
    queries apart: two series that became one would end the whole query.

    Until a query's first batch has ended its gauge holds 0, which is no rate: what comes before the first value above
    0 is left out.
    """
    name = f'__name__=~"{DRIVERS_NAME}",query="",{BOUNDED}'
    labeled = f"{{{name},{NAMED}}} < Inf"
    unlabeled = f'{{{name},{_APPLICATION}=""}} < Inf'
    named = f'label_replace({unlabeled}, "{_APPLICATION}", "$1", "__name__", "{DRIVERS_NAME}")'
    own = f'label_replace({named} or {labeled}, "query", "$1", "__name__", "(.+)")'
    window = f"[{WINDOW_SECONDS}s:{_STEP_SECONDS}s]"
    told = f"({own} and max_over_time({own}{window}) > 0)"
    return f"sum by ({_BY}) ({function}{told}{window}))"


def seconds(by: str) -> str:
    """PromQL: how much of the last ten minutes there are values of."""
    window = f"[{WINDOW_SECONDS}s:{_STEP_SECONDS}s]"
    return f"max by ({by}) (time() - min_over_time(timestamp({_CORES}){window}))"


def increase(metric: str, by: str) -> str:
    """PromQL: of a counter of Spark's executors (`totalInputBytes_bytes_total`) in the last ten minutes."""
    return f"sum by ({by}) (increase(metrics_executor_{metric}{{{BOUNDED},{NAMED}}}[{WINDOW_SECONDS}s]))"


QUERIES: Mapping[str, str] = {
    "executors": f"count by ({_BY}) ({_CORES} > 0)",
    "cores": f"sum by ({_BY}) ({_CORES})",
    "seconds": seconds(_BY),
    **{name: increase(metric, _BY) for name, metric in _METRICS.items()},
    "rate": _arriving("avg_over_time("),
    "rateLow": _arriving("quantile_over_time(0.025, "),
    "rateHigh": _arriving("quantile_over_time(0.975, "),
}
"""PromQL, by what it gives: of the last ten minutes, summed over an application's executors.

The driver has no cores and no tasks, except in local mode, where it is the only executor.
"""


@dataclass(frozen=True, slots=True)
class ExecutorMetrics:
    """Means over the window, of all executors of one application together."""

    application: str
    executors: int
    cores: int
    task_seconds_per_second: float | None = None
    gc_seconds_per_second: float | None = None
    input_bytes_per_second: float | None = None
    records_per_second: float | None = None
    records_per_second_low: float | None = None
    records_per_second_high: float | None = None

    @property
    def busy_ratio(self) -> float | None:
        """Of the cores, how much tasks occupied."""
        return None if self.task_seconds_per_second is None else self.task_seconds_per_second / self.cores


Samples = Sequence[tuple[Mapping[str, str], float]]
"""An instant vector: labels and value of each series."""


def read(answers: Mapping[str, Samples], *, application: str | None) -> ExecutorMetrics:
    """Of the given application (its id, or NAMESPACE/ID), or of the only one.

    Raises InvalidField when there is none, or several.
    """
    cores = _by_application(answers.get("cores", ()))
    chosen = _chosen(cores, application)
    values = {name: _of(chosen, _by_application(answer)) for name, answer in answers.items()}
    seconds = values.get("seconds")
    per_second = {name: None if seconds is None else _over(values.get(name), seconds) for name in _METRICS}
    return ExecutorMetrics(
        application=chosen[1],
        executors=max(1, int(values.get("executors") or 1)),
        cores=max(1, int(cores[chosen])),
        task_seconds_per_second=per_second["taskSeconds"],
        gc_seconds_per_second=per_second["gcSeconds"],
        input_bytes_per_second=per_second["inputBytes"],
        records_per_second=values.get("rate"),
        records_per_second_low=values.get("rateLow"),
        records_per_second_high=values.get("rateHigh"),
    )


_Key = tuple[str, str]
"""Namespace, empty where the scrape tells none, and id."""


def _chosen(known: Iterable[_Key], application: str | None) -> _Key:
    """Raises InvalidField."""
    found = {_name(key): key for key in known if application in (None, key[1], _name(key))}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        told = f"{len(found)} applications ({_first(found)})"
        raise InvalidField("--application", application or told, f"name one of {_first(found)}")
    if application is None:
        remedy = "let Prometheus scrape the driver at /metrics/executors/prometheus"
        raise InvalidField("--application", "no metrics_executor_totalCores", remedy)
    there = _first(map(_name, known)) or "none"
    raise InvalidField("--application", application, f"Prometheus has no such application: it has {there}")


def _name(key: _Key) -> str:
    return "/".join(filter(None, key))


def _first(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:5])


def _of(application: _Key, values: Mapping[_Key, float]) -> float | None:
    """Names of metrics have `_` in place of all that is no letter or digit."""
    namespace, id_ = application
    return values.get(application, values.get((namespace, re.sub(r"[^a-zA-Z0-9]", "_", id_))))


def _over(amount: float | None, seconds: float) -> float | None:
    return None if amount is None else amount / seconds


def _by_application(answer: Samples) -> dict[_Key, float]:
    """Values above 0 that can be true, by application."""
    return {
        (labels.get(_NAMESPACE, ""), labels[_APPLICATION]): value
        for labels, value in answer
        if _APPLICATION in labels and SMALLEST <= value <= LARGEST
    }
