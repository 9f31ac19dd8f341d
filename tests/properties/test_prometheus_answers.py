"""Whatever Prometheus answers: a query has an answer or the module's own error, and a value is one that can be."""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ballast.model import ExecutorUsage, NodeUsage
from ballast.prometheus import (
    Answer,
    ExecutorFrame,
    NodeFrame,
    Preset,
    PrometheusError,
    parsed,
    queries,
    reading,
    single,
)
from ballast.prometheus.series import BOUNDS

NODES = (NodeFrame("a", ("10.0.0.1",), cpu_cores=2.0, memory_bytes=100.0, network_bits_per_second=1000.0),)
EXECUTORS = (ExecutorFrame("team", "x-exec-1", "spark-1", "1"), ExecutorFrame("team", "x-exec-2", "spark-1", "2"))
DRIVERS = {("team", "spark-1"): {"x-driver"}}
SIGNALS = (
    *queries(Preset.KUBE_PROMETHEUS_STACK, {}).by_signal,
    "nodeNetworkCapacity",
    "executorRecords",
    "batchSeconds",
)

anything: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5),
        st.sampled_from(["success", "vector", "matrix", "scalar", "NaN", "1e308", 10**400]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)  # fmt: skip
number = st.one_of(
    st.floats().map(str),
    st.sampled_from(["-5", "NaN", "+Inf", "-Inf", "1e308", "-9e15", "9e15", "-0", "5e-324", "", "what", "1_0"]),
)
labels = st.fixed_dictionaries(
    {},
    optional={
        "node": st.sampled_from(["a", "b"]),
        "instance": st.sampled_from(["10.0.0.1:9100", ":", ""]),
        "namespace": st.sampled_from(["team", "tenant-a", "\x1b[2J"]),
        "pod": st.sampled_from(["x-driver", "x-exec-1", "evil"]),
        "application_id": st.sampled_from(["spark-1", "spark-2"]),
        "executor_id": st.sampled_from(["1", "driver"]),
    },
)
sound_sample = st.one_of(
    st.fixed_dictionaries({"metric": labels, "value": st.tuples(st.floats(0, 1e9), number)}),
    st.fixed_dictionaries({"metric": labels, "values": st.lists(st.tuples(st.floats(0, 1e9), number), max_size=4)}),
)
sample = st.one_of(
    sound_sample,
    sound_sample,
    anything,
    st.fixed_dictionaries({"metric": anything, "value": anything}),
    st.fixed_dictionaries({"metric": labels, "values": anything}),
)
envelope = st.fixed_dictionaries(
    {
        "status": st.just("success"),
        "data": st.fixed_dictionaries(
            {"resultType": st.sampled_from(["vector", "matrix"]), "result": st.lists(sample, max_size=6)}
        ),
    }
)
body = st.one_of(
    envelope.map(lambda value: json.dumps(value).encode()),
    anything.map(lambda value: json.dumps({"status": "success", "data": value}).encode()),
    anything.map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b'{"status":"success","data":{"resultType":"vector","result":[NaN]}}', b"NaN", b"\xff"]),
    st.binary(max_size=50),
    st.text(string.printable, max_size=50).map(str.encode),
    st.integers(1, 200_000).map(
        lambda depth: b'{"status":"success","data":{"resultType":"vector","result":' + b"[" * depth
    ),
)


def answered(text: bytes) -> Answer | None:
    try:
        return parsed(text)
    except PrometheusError:
        return None


def numbers(usage: NodeUsage | ExecutorUsage) -> Iterator[float]:
    for each in fields(usage):
        value = getattr(usage, each.name)
        if value is not None:
            yield value


@given(st.dictionaries(st.sampled_from(SIGNALS), body, max_size=4))
def test_no_answer_raises_anything_else_or_yields_a_value_that_can_not_be(bodies: dict[str, bytes]) -> None:
    answers = {signal: answer for signal, text in bodies.items() if (answer := answered(text)) is not None}
    failures = dict.fromkeys(bodies.keys() - answers.keys(), "failed")
    found = reading(answers, nodes=NODES, executors=EXECUTORS, drivers=DRIVERS, max_age_seconds=60.0, failures=failures)
    usages: list[NodeUsage | ExecutorUsage] = [*found.nodes.values(), *found.executors.values()]
    batches = [*found.batch_p50_seconds.values(), *found.batch_p95_seconds.values()]
    values = [*(value for usage in usages for value in numbers(usage)), *batches]
    assert all(0 <= value <= 10 * max(BOUNDS.values()) for value in values)
    assert all(0 <= usage.pressure_ratio <= 1 for usage in found.nodes.values() if usage.pressure_ratio is not None)
    assert all(0 <= seconds <= BOUNDS["batchSeconds"] for seconds in batches)
    assert found.batch_p95_seconds.keys() <= DRIVERS.keys()
    assert found.health.message.isprintable()


@given(body)
def test_a_topologys_own_query_gives_one_value_that_can_be_or_none(text: bytes) -> None:
    answer = answered(text)
    value = single(answer) if answer else None
    assert value is None or 0 <= value <= 1e15


@given(st.lists(sample, min_size=1, max_size=6))
def test_one_sample_that_can_not_be_read_takes_no_other_with_it(samples: list[Any]) -> None:
    good = {"metric": {"node": "a"}, "value": [1.0, "1"]}
    text = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [*samples, good]}}).encode()
    answer = answered(text)
    assert answer is not None
    assert answer.series[-1].values == (1.0,)
    assert len(answer.series) + answer.malformed == len(samples) + 1
