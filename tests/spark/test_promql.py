"""What PromQL means is the server's, and Prometheus 3 means some of it otherwise: point by point, on real servers.

The data source gives what the server answers. Where both versions hold the same samples, its rows are the same, except
those that docs/data-source.md names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ballast.prometheus import Endpoint, Prometheus, PrometheusError
from ballast.prometheus.session import Transport
from ballast.spark.errors import SourceError
from ballast.spark.source.matrix import arrow_schema
from ballast.spark.source.options import Options
from ballast.spark.source.reader import PrometheusReader
from tests.spark.filled_prometheus import FilledPrometheus, holding, running
from tests.testbed.binaries import find_binaries
from tests.testbed.waiting import wait_until
from tests.unit.spark.faults import Answer, serving

START = 1_767_225_600
"""2026-01-01T00:00:00Z, on which samples are taken every fifteen seconds for ten minutes."""
MINUTE, EVERY = 60, 15
MOST_SAMPLES = 20_000
HISTOGRAM = """# TYPE taken histogram
taken_bucket{le="1"} 2
taken_bucket{le="+Inf"} 3
taken_sum 4
taken_count 3
"""
PLAIN = {"Content-Type": "text/plain; version=0.0.4"}


@dataclass(frozen=True)
class Version:
    major: int
    binary: str | Path

    def __str__(self) -> str:
        return f"Prometheus {self.major}"


def openmetrics() -> Iterator[str]:
    """`on` has samples on whole quarters of a minute, `off` seven seconds later; both grow by one a second."""
    times = range(START, START + 10 * MINUTE + 1, EVERY)
    for name, shift in (("on", 0), ("off", 7)):
        yield f"# TYPE {name} counter\n"
        for second in times:
            yield f"{name}_total {second - START} {second + shift}\n"
    yield "# TYPE reset counter\n"
    for second in times:
        since = second - START
        yield f"reset_total {since if since < 5 * MINUTE else since - 5 * MINUTE} {second + 7}\n"
    yield "# TYPE gone gauge\n"
    for second in range(START, START + MINUTE + 1, EVERY):
        yield f'gone{{pod="deleted"}} 1 {second}\n'
    yield "# TYPE many gauge\n"
    for number in range(1_000):
        for second in times:
            yield f'many{{pod="p{number}"}} 1 {second}\n'
    yield "# EOF\n"


@pytest.fixture(scope="module", params=[pytest.param(2, id="2.42"), pytest.param(3, id="3.13", marks=pytest.mark.soak)])
def version(request: pytest.FixtureRequest) -> Version:
    if request.param == 2:
        return Version(2, "prometheus")
    return Version(3, find_binaries(["prometheus3"])["prometheus3"])


@pytest.fixture(scope="module")
def filled(version: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledPrometheus]:
    more = [f"--query.max-samples={MOST_SAMPLES}"]
    with holding(openmetrics(), tmp_path_factory.mktemp("promql"), binary=version.binary, more=more) as own:
        yield own


def rows(own: FilledPrometheus, query: str, *, first: int, last: int, step: int = MINUTE, **more: str) -> list[float]:
    """Values of the data source at the steps between two seconds after START, both included."""
    asked = {"start": str(START + first), "end": str(START + last), "step": str(step)}
    options = Options.read({"url": own.url, "query": query, **asked, **more})
    reader = PrometheusReader(options, arrow_schema(options.label_columns), now_ms=0)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_a_range_whose_begin_holds_a_sample_has_it_in_version_2_alone(
    version: Version, filled: FilledPrometheus
) -> None:
    samples = 5 if version.major == 2 else 4
    assert rows(filled, "count_over_time(on_total[1m])", first=120, last=240) == [samples] * 3
    assert rows(filled, "count_over_time(off_total[1m])", first=120, last=240) == [4.0] * 3


@pytest.mark.parametrize("name", ["on", "off"])
def test_a_rate_is_the_same_wherever_samples_are(filled: FilledPrometheus, name: str) -> None:
    assert rows(filled, f"rate({name}_total[2m])", first=180, last=480) == pytest.approx([1.0] * 6)


def test_a_range_as_long_as_the_distance_of_samples_has_a_rate_in_version_2_alone(
    version: Version, filled: FilledPrometheus
) -> None:
    found = rows(filled, "rate(on_total[15s])", first=120, last=240)
    assert found == ([1.0] * 3 if version.major == 2 else [])
    assert rows(filled, "rate(on_total[30s])", first=120, last=240) == pytest.approx([1.0] * 3)


def test_a_counter_that_begins_again_is_reset_once(filled: FilledPrometheus) -> None:
    assert rows(filled, "resets(reset_total[10m])", first=600, last=600) == [1.0]
    grown = rows(filled, "increase(reset_total[2m])", first=240, last=480)
    assert all(100 < each < 125 for each in grown)
    assert len(grown) == 5


def test_a_pod_that_is_gone_without_a_mark_is_seen_for_five_minutes(version: Version, filled: FilledPrometheus) -> None:
    """As in blocks that were backfilled, or after a crash of Prometheus. The last sample was at 60 s."""
    found = rows(filled, "gone", first=0, last=600)
    assert len(found) == (7 if version.major == 2 else 6)
    assert rows(filled, "gone", first=30, last=600) == [1.0] * 6


def test_no_more_than_11000_points_of_a_series_are_answered_and_the_source_asks_for_no_more(
    filled: FilledPrometheus,
) -> None:
    assert len(rows(filled, "vector(1)", first=0, last=20_000, step=1)) == 20_001
    transport = Transport(Endpoint(filled.url), most_bytes=1 << 20)
    with pytest.raises(PrometheusError, match="exceeded maximum resolution of 11,000 points"):
        transport.range("vector(1)", start_ms=0, end_ms=11_001_000, step_ms=1000)


def test_too_many_samples_at_once_are_refused_with_what_asks_for_fewer(filled: FilledPrometheus) -> None:
    with pytest.raises(SourceError, match=r"too many samples.*a shorter partitionSpan"):
        rows(filled, "many", first=0, last=600, step=EVERY)
    assert len(rows(filled, "many", first=0, last=600, step=EVERY, partitionSpan="1m")) == 41_000


def _seen(own: FilledPrometheus, query: str) -> bool:
    return bool(own.vector(query))


def test_a_pod_that_is_gone_from_its_target_has_no_rows_from_then_on(version: Version, tmp_path: Path) -> None:
    with (
        serving(Answer(b"here 1\n", headers=PLAIN)) as target,
        running(tmp_path, _scraping(target.url), binary=version.binary) as own,
    ):
        wait_until(lambda: _seen(own, "here"), what="a sample is there")
        target.answers[:] = [Answer(b"other 1\n", headers=PLAIN)]
        wait_until(lambda: not _seen(own, "here"), what="the series is stale")
        now = int(time.time()) - START + 1
        assert rows(own, "here", first=now - 10, last=now, step=1)
        assert rows(own, "here", first=now, last=now) == []


def test_the_bound_of_a_bucket_is_written_as_a_float_in_version_3(version: Version, tmp_path: Path) -> None:
    with (
        serving(Answer(HISTOGRAM.encode(), headers=PLAIN)) as target,
        running(tmp_path, _scraping(target.url), binary=version.binary) as own,
    ):
        wait_until(lambda: _seen(own, "taken_count"), what="a sample is there")
        assert _seen(own, 'taken_bucket{le="1"}') == (version.major == 2)
        assert _seen(own, 'taken_bucket{le="1.0"}') == (version.major == 3)
        assert _seen(own, 'taken_bucket{le=~"1([.]0)?"}')


def test_native_histograms_are_refused_with_what_to_ask_for(version: Version, tmp_path: Path) -> None:
    """Only version 3 makes them of classic ones; version 2 holds them only behind a flag."""
    converted = {"scrape_native_histograms": True, "convert_classic_histograms_to_nhcb": True}
    more = {} if version.major == 2 else converted
    with (
        serving(Answer(HISTOGRAM.encode(), headers=PLAIN)) as target,
        running(tmp_path, _scraping(target.url, **more), binary=version.binary) as own,
    ):
        wait_until(lambda: _seen(own, "up == 1"), what="the target was scraped")
        now = int(time.time()) + 1 - START  # not before the sample
        if version.major == 2:
            assert rows(own, "taken", first=now, last=now) == []
            return
        with pytest.raises(SourceError, match=r"holds native histograms.*histogram_quantile"):
            rows(own, "taken", first=now, last=now)
        assert rows(own, "histogram_count(taken)", first=now, last=now) == [3.0]
        (series,) = Prometheus(Endpoint(own.url)).query("histogram_sum(taken)").series
        assert series.values == (4.0,)


def _scraping(url: str, **more: object) -> str:
    targets = [{"targets": [url.removeprefix("http://")]}]
    job = {"job_name": "target", "scrape_interval": "1s", "scrape_timeout": "1s", "static_configs": targets}
    return json.dumps({"scrape_configs": [{**job, **more}]})
