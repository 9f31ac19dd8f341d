"""What Spark's own metrics in Prometheus tell of one application: its executors, load and heap."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ballast.errors import InvalidField
from ballast.sizing.amount import LARGEST, SMALLEST

WINDOW_SECONDS = 600
_STEP_SECONDS = 5
_BY = "application_id"
_DRIVERS_NAME = "metrics_(.+)_driver_spark_streaming_(.+)_inputRate_total_Value"
_METRICS = {
    "taskSeconds": "totalDuration_seconds_total",
    "gcSeconds": "totalGCTime_seconds_total",
    "inputBytes": "totalInputBytes_bytes_total",
}


def _arriving(function: str) -> str:
    """Of every streaming query of a driver. The servlet has the application and the query in the name alone.

    Until a query's first batch has ended its gauge holds 0, which is no rate: what comes before the first value above
    0 is left out.
    """
    own = f'{{__name__=~"{_DRIVERS_NAME}"}} < Inf'
    for label, group in ((_BY, 1), ("query", 2)):
        own = f'label_replace({own}, "{label}", "${group}", "__name__", "{_DRIVERS_NAME}")'
    window = f"[{WINDOW_SECONDS}s:{_STEP_SECONDS}s]"
    told = f"({own} and max_over_time({own}{window}) > 0)"
    return f"sum by ({_BY}) ({function}{told}{window}))"


def seconds(by: str) -> str:
    """PromQL: how much of the last ten minutes there are values of."""
    window = f"[{WINDOW_SECONDS}s:{_STEP_SECONDS}s]"
    return f"max by ({by}) (time() - min_over_time(timestamp(metrics_executor_totalCores){window}))"


def increase(metric: str, by: str) -> str:
    """PromQL: of a counter of Spark's executors (`totalInputBytes_bytes_total`) in the last ten minutes."""
    return f"sum by ({by}) (increase(metrics_executor_{metric}[{WINDOW_SECONDS}s]))"


QUERIES: Mapping[str, str] = {
    "executors": f"count by ({_BY}) (metrics_executor_totalCores > 0)",
    "cores": f"sum by ({_BY}) (metrics_executor_totalCores)",
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
    """Of the given application, or of the only one. Raises InvalidField when there is none, or several."""
    cores = _by_application(answers.get("cores", ()))
    if application is None:
        if len(cores) != 1:
            known = ", ".join(sorted(cores)[:5])
            found = f"{len(cores)} applications ({known})" if cores else "no metrics_executor_totalCores"
            remedy = (
                "name one of them" if cores else "let Prometheus scrape the driver at /metrics/executors/prometheus"
            )
            raise InvalidField("--application", found, remedy)
        application = next(iter(cores))
    elif application not in cores:
        known = ", ".join(sorted(cores)[:5]) or "none"
        raise InvalidField("--application", application, f"Prometheus has no such application: it has {known}")
    values = {name: _of(application, _by_application(answer)) for name, answer in answers.items()}
    seconds = values.get("seconds")
    per_second = {name: None if seconds is None else _over(values.get(name), seconds) for name in _METRICS}
    return ExecutorMetrics(
        application=application,
        executors=max(1, int(values.get("executors") or 1)),
        cores=max(1, int(cores[application])),
        task_seconds_per_second=per_second["taskSeconds"],
        gc_seconds_per_second=per_second["gcSeconds"],
        input_bytes_per_second=per_second["inputBytes"],
        records_per_second=values.get("rate"),
        records_per_second_low=values.get("rateLow"),
        records_per_second_high=values.get("rateHigh"),
    )


def _of(application: str, values: Mapping[str, float]) -> float | None:
    """Names of metrics have `_` in place of all that is no letter or digit."""
    return values.get(application, values.get(re.sub(r"[^a-zA-Z0-9]", "_", application)))


def _over(amount: float | None, seconds: float) -> float | None:
    return None if amount is None else amount / seconds


def _by_application(answer: Samples) -> dict[str, float]:
    """Values above 0 that can be true, by application."""
    return {labels[_BY]: value for labels, value in answer if _BY in labels and SMALLEST <= value <= LARGEST}
