"""A Prometheus that is away or lies, asked over HTTP by the operator's own reader of metrics."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.metrics_reader import MetricsReader
from ballast.kube.nodes import NodeReader
from ballast.model import ConditionReason
from ballast.prometheus import Reading
from tests.faults.metrics import Values, serving
from tests.unit.kube.builders import node

JSON = dict[str, Any]
MAX_AGE_SECONDS = 60.0
HOUR_SECONDS = 3600.0
CORES = {"a": 1.0, "b": 2.0, "c": 3.0}
SERIES = 100_000


@pytest.fixture
def prometheus() -> Iterator[Values]:
    with serving() as found:
        found.nodes = CORES
        yield found


def read(prometheus: Values) -> Reading:
    metrics = prometheus.spec()
    metrics |= {"prometheus": metrics["prometheus"] | {"timeout": "30s"}, "maxAge": f"{MAX_AGE_SECONDS:.0f}s"}
    spec = {"nodeSelector": {}, "metrics": metrics}
    metadata = {"name": "streaming"}
    raw = {"apiVersion": "ballast.dev/v1alpha1", "kind": "BalancingPolicy", "metadata": metadata, "spec": spec}
    reader = MetricsReader(None, namespace="none")  # the policy names no secret
    nodes = [NodeReader().read(node(name)) for name in CORES]
    return reader.read(BalancingPolicy.parse(raw), nodes, [], now=time.time())


def known(reading: Reading) -> dict[str, float]:
    return {name: usage.cpu_ratio for name, usage in reading.nodes.items() if usage.cpu_ratio is not None}


def replaced(value: str) -> Callable[[list[JSON]], list[JSON]]:
    """The value of node `a`."""
    return lambda samples: [{**samples[0], "value": [samples[0]["value"][0], value]}, *samples[1:]]


LIES: dict[str, Callable[[list[JSON]], list[JSON]]] = {
    "partial": lambda samples: samples[1:],
    "duplicate": lambda samples: [*samples, {**samples[0], "value": [samples[0]["value"][0], "99"]}],
    "NaN": replaced("NaN"),
    "Inf": replaced("+Inf"),
    "-Inf": replaced("-Inf"),
    "negative": replaced("-5"),
    "absurd": replaced("9e300"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_node_that_prometheus_lies_about_has_no_values_and_others_keep_theirs(
    prometheus: Values, lie: Callable[[list[JSON]], list[JSON]]
) -> None:
    honest = known(read(prometheus))
    assert len(honest) == len(CORES)
    prometheus.lie = lie
    found = read(prometheus)
    assert known(found) == {name: ratio for name, ratio in honest.items() if name != "a"}
    assert all(map(math.isfinite, known(found).values()))
    prometheus.lie = list
    assert known(read(prometheus)) == honest


def test_each_look_at_a_prometheus_that_flaps_has_all_values_or_says_why_none(prometheus: Values) -> None:
    honest = known(read(prometheus))
    for number in range(6):
        prometheus.down = number % 2 == 0
        found = read(prometheus)
        if prometheus.down:
            assert (found.health.available, found.health.reason) == (False, ConditionReason.UNREACHABLE)
            assert "503" in found.health.message
        assert known(found) == ({} if prometheus.down else honest)


def test_samples_that_are_stale_or_of_a_clock_that_is_an_hour_behind_are_not_used(prometheus: Values) -> None:
    for age_seconds in (MAX_AGE_SECONDS + 1.0, HOUR_SECONDS):
        prometheus.age_seconds = age_seconds
        found = read(prometheus)
        assert known(found) == {}
        assert found.health.reason is ConditionReason.NO_NODE_METRICS


@pytest.mark.parametrize(
    ("ahead_seconds", "said"),
    [(HOUR_SECONDS, "Prometheus is 3[56].. s ahead"), (-HOUR_SECONDS, "Prometheus is 3[56].. s behind")],
    ids=["ahead", "behind"],
)
def test_a_prometheus_whose_clock_is_another_is_not_used_and_said_to_disagree(
    prometheus: Values, ahead_seconds: float, said: str
) -> None:
    honest = known(read(prometheus))
    for ahead, expected in ((ahead_seconds, {}), (2.0, honest), (0.0, honest)):
        prometheus.ahead_seconds = ahead
        found = read(prometheus)
        assert known(found) == expected
        assert (found.health.reason is ConditionReason.CLOCKS_DISAGREE) == (not expected)
        assert bool(re.search(said, found.health.message)) == (not expected)


@pytest.mark.soak
def test_a_hundred_thousand_series_of_others_take_no_value_away(prometheus: Values) -> None:
    honest = known(read(prometheus))
    prometheus.lie = lambda samples: [
        *({**samples[0], "metric": {"node": f"other-{number}"}} for number in range(SERIES)),
        *samples,
    ]
    found = read(prometheus)
    assert known(found) == honest
    assert found.health.available
