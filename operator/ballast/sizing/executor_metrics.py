"""What Spark's own metrics in Prometheus tell of one application: its executors, load and heap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ballast.errors import InvalidField

WINDOW_SECONDS = 600
_EXECUTORS = '{executor_id!="driver"}'
_BY = "application_id"
_PER_SECOND = {
    "taskSeconds": "totalDuration_seconds_total",
    "gcSeconds": "totalGCTime_seconds_total",
    "inputBytes": "totalInputBytes_bytes_total",
}
QUERIES: Mapping[str, str] = {
    "executors": f"count by ({_BY}) (metrics_executor_totalCores{_EXECUTORS})",
    "cores": f"sum by ({_BY}) (metrics_executor_totalCores{_EXECUTORS})",
    **{
        name: f"sum by ({_BY}) (rate(metrics_executor_{metric}{_EXECUTORS}[{WINDOW_SECONDS}s]))"
        for name, metric in _PER_SECOND.items()
    },
    "rate": (
        f"sum by ({_BY}) (avg_over_time"
        f'({{__name__=~"metrics_.+_driver_spark_streaming_.+_inputRate_total_Value"}}[{WINDOW_SECONDS}s]))'
    ),
    "rateLow": (
        f"sum by ({_BY}) (quantile_over_time"
        f'(0.025, {{__name__=~"metrics_.+_driver_spark_streaming_.+_inputRate_total_Value"}}[{WINDOW_SECONDS}s]))'
    ),
    "rateHigh": (
        f"sum by ({_BY}) (quantile_over_time"
        f'(0.975, {{__name__=~"metrics_.+_driver_spark_streaming_.+_inputRate_total_Value"}}[{WINDOW_SECONDS}s]))'
    ),
}
"""PromQL, by what it gives: rates per second over ten minutes, summed over an application's executors."""


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
    values = {name: _by_application(answer).get(application) for name, answer in answers.items()}
    return ExecutorMetrics(
        application=application,
        executors=int(values.get("executors") or 1),
        cores=int(cores[application]),
        task_seconds_per_second=values.get("taskSeconds"),
        gc_seconds_per_second=values.get("gcSeconds"),
        input_bytes_per_second=values.get("inputBytes"),
        records_per_second=values.get("rate"),
        records_per_second_low=values.get("rateLow"),
        records_per_second_high=values.get("rateHigh"),
    )


def _by_application(answer: Samples) -> dict[str, float]:
    """Finite values above 0, by application."""
    return {labels[_BY]: value for labels, value in answer if _BY in labels and math.isfinite(value) and value > 0.0}
