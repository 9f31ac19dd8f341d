from __future__ import annotations

import re
from datetime import datetime
from itertools import islice

from ballast.api import BalancingPolicy
from ballast.files import documents
from examples.backtest import cluster
from examples.backtest.__main__ import HISTORY, POLICY

SERIES = re.compile(r"^([a-zA-Z_]+\{.*\}) (\S+) (\d+)$")
APPLICATION = cluster.Application("a", 1, quiet_cores=1.0, busy_cores=3.0, peak_hour=12.0)


def test_every_series_is_there_once_a_minute_and_counters_never_fall() -> None:
    counters: dict[str, float] = {}
    seen: set[tuple[str, str]] = set()
    for line in islice(cluster.openmetrics(), 20_000):
        found = SERIES.match(line.rstrip("\n"))
        assert found, line
        series, value, second = found.groups()
        assert (series, second) not in seen
        seen.add((series, second))
        if "_total{" in series:
            assert float(value) >= counters.get(series, 0.0)
            counters[series] = float(value)
    assert len(counters) > 8


def test_series_of_kube_state_metrics_have_the_job_by_which_a_history_knows_them() -> None:
    """Without it a backtest does not know what nodes offer, nor what executors request."""
    series = [line for line in islice(cluster.openmetrics(), 20_000) if line.startswith("kube_")]
    assert len({each.partition("{")[0] for each in series}) == 4
    assert all('{job="kube-state-metrics",' in each for each in series)


def test_load_peaks_at_its_hour_and_is_quiet_at_the_other_end_of_the_day() -> None:
    assert APPLICATION.cores(12 * 3600.0) == APPLICATION.cores(36 * 3600.0) == 3.0
    assert APPLICATION.cores(0.0) < 1.01


def test_the_days_that_are_collected_are_those_that_are_described() -> None:
    first, last = (datetime.fromisoformat(f"{day}T00:00:00Z") for day in re.findall(r"\d{4}-\d\d-\d\d", HISTORY))
    assert first.timestamp() == cluster.START
    assert (last - first).days + 1 == cluster.DAYS


def test_the_policy_is_valid() -> None:
    assert BalancingPolicy.parse(documents(POLICY, option="--policies", remedy="")[0]).metadata.name == "streaming"
