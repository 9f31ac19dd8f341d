"""Routing into a real Kafka, whose two brokers are in two zones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from kafka import OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.errors import CoordinatorNotAvailableError, NoError
from pyspark.sql import SparkSession

from ballast.spark.routing import KafkaTopic, PrometheusLoad, ServiceEndpoints
from ballast.spark.routing.chooser import RoutingError
from ballast.spark.routing.kafka import client_of
from benchmarks.routed import kafka_loop
from benchmarks.routed.loop import OURS, ROUND_ROBIN
from examples.clickstream import topics
from tests.spark import calling_job, counted_job, routed_job
from tests.spark.filled_prometheus import FilledPrometheus
from tests.spark.session import PATHS
from tests.testbed.kafka import Kafka, jars, kafka
from tests.testbed.waiting import wait_until
from tests.unit.cli.program import run

PARTITIONS = 6
CLICKS = 200
PARTITIONS_OF_OUT = [TopicPartition("out", part) for part in range(PARTITIONS)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka(tmp_path_factory.mktemp("kafka"), racks=["a", "b"]) as running:
        with KafkaAdminClient(bootstrap_servers=running.bootstrap) as admin:
            admin.create_topics({"out": {"num_partitions": PARTITIONS, "replication_factor": 2}})
            admin.wait_for_topics(["out"], timeout_ms=30_000)
            wait_until(lambda: committed_at_start(admin), what="the coordinator of groups", timeout_seconds=60)
        yield running
        client_of(running.bootstrap, ()).close()


def committed_at_start(admin: KafkaAdminClient) -> bool:
    """Whether the group `readers` is known to have read nothing yet."""
    try:
        start = {part: OffsetAndMetadata(0, "", -1) for part in PARTITIONS_OF_OUT}
        return set(admin.alter_group_offsets("readers", start).values()) == {NoError}
    except CoordinatorNotAvailableError:
        return False


def ends(brokers: Kafka) -> dict[int, int]:
    """The records in each partition."""
    asked = dict.fromkeys(PARTITIONS_OF_OUT, OffsetSpec.LATEST)
    with KafkaAdminClient(bootstrap_servers=brokers.bootstrap) as admin:
        return {part.partition: end.offset for part, end in admin.list_partition_offsets(asked).items()}


def test_the_partitions_of_a_topic_are_where_their_leaders_are(brokers: Kafka) -> None:
    targets = KafkaTopic(brokers.bootstrap, "out").read().targets
    assert [target.id for target in targets] == list(range(PARTITIONS))
    assert {target.place.zone for target in targets if target.place} == {"a", "b"}
    assert {target.load for target in targets} == {None}


def test_a_partition_is_loaded_as_prometheus_knows_its_leader(brokers: Kafka, prometheus: FilledPrometheus) -> None:
    busy = PrometheusLoad(prometheus.url, 'label_replace(vector(0.9), "broker", "2", "", "")', label="broker")
    targets = KafkaTopic(brokers.bootstrap, "out", broker_load=busy).read().targets
    zones = {target.id: target.place.zone for target in targets if target.place}
    assert {zones[target.id]: target.load for target in targets} == {"a": None, "b": 0.9}


def test_a_topic_that_is_not_there_is_named(brokers: Kafka) -> None:
    with pytest.raises(RoutingError, match=r"topic none at .*: .* topic or partition that does not exist"):
        KafkaTopic(brokers.bootstrap, "none").read()


def test_no_more_waits_in_kafka_than_with_round_robin_though_the_group_commits_every_five_seconds(
    brokers: Kafka,
) -> None:
    """`python -m benchmarks routing-kafka` has other loads and senders, and Storm's rule."""
    case = kafka_loop.Case("aab", 0.9, 5.0, 40.0)
    ours, turns = (
        kafka_loop.run(brokers.bootstrap, case, rule, name=f"loop-{rule[0]}") for rule in (OURS, ROUND_ROBIN)
    )
    assert ours.backlog <= 1.2 * turns.backlog
    # Half of the partitions are in zone a, and a third of the senders in zone b.
    assert ours.near == pytest.approx(1 / 2 + 1 / 3, abs=0.02)


def test_a_job_writes_to_its_own_zone_keeps_keys_and_reads_from_its_own_zone(brokers: Kafka) -> None:
    before = KafkaTopic(brokers.bootstrap, "out").read().targets
    near = {target.id for target in before if target.place and target.place.zone == "b"}
    job = subprocess.run(
        [sys.executable, "-m", "tests.spark.routed_job", brokers.bootstrap, str(jars("kafka-connector"))],
        env={**os.environ, "PYTHONPATH": PATHS, "BALLAST_ZONE": "b"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 0, job.stderr[-3000:]
    records = routed_job.RECORDS * routed_job.BATCHES
    assert f"read {records}\n" in job.stdout
    written = ends(brokers)
    keyed = records // 10
    in_zone = sum(written[part] for part in near)
    assert in_zone in (records - keyed, records)
    assert sorted(set(written.values()) - {written[part] for part in near}) in ([0], [0, keyed])
    assert all(written[part] for part in near)
    assert "client.rack = b\n" in job.stderr


@pytest.mark.soak
def test_executors_are_told_by_spark_4_3_s_ui_how_many_cores_each_zone_has() -> None:
    job = subprocess.run(
        [sys.executable, "-m", "tests.spark.counted_job"],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        check=False,
    )
    assert job.returncode == 0, job.stderr[-3000:]
    assert f"told {{'b': {float(counted_job.EXECUTORS * counted_job.CORES)}}}" in job.stdout


@pytest.mark.soak
def test_the_clickstream_example_writes_near_and_its_ledger_is_balanced(brokers: Kafka, tmp_path: Path) -> None:
    """Its job alone, in one process: `python -m examples.clickstream` runs it on a cluster."""
    topics.create(brokers.bootstrap, {"clicks": 2, "visits": 1})
    near = topics.partitions_by_zone(brokers.bootstrap, "visits")["b"]
    clicks = topics.Clicks(brokers.bootstrap, "clicks", per_second=100)
    options = ["--bootstrap", brokers.bootstrap, "--folder", str(tmp_path), "--trigger", "1 second"]
    connector = ",".join(map(str, jars("kafka-connector").glob("*.jar")))
    settings = "--master local[2] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2"
    log = tmp_path / "job.log"
    with log.open("wb") as words, KafkaAdminClient(bootstrap_servers=brokers.bootstrap) as admin:
        job = subprocess.Popen(
            [sys.executable, "-m", "examples.clickstream.job", *options],
            env={
                **os.environ,
                "PYTHONPATH": PATHS,
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_SUBMIT_ARGS": f"{settings} --jars {connector} pyspark-shell",
                "BALLAST_ZONE": "b",
            },
            stdout=words,
            stderr=words,
        )
        try:
            with clicks.flowing():
                wait_until(
                    lambda: sum(topics.ends(admin, "visits").values()) >= 3 * CLICKS,
                    what="clicks in the sink",
                    timeout_seconds=120,
                    explain=log.read_text,
                )
            (tmp_path / "stop").touch()
            assert job.wait(120) == 0, log.read_text()
        finally:
            job.kill()
            job.wait()
        written = topics.ends(admin, "visits")
    assert sorted(topics.click_ids(brokers.bootstrap, "visits")) == list(range(clicks.sent))
    assert {part for part, count in written.items() if count} == set(near)
    ended = run("audit", str(tmp_path / "ledger"), "--timeout", "1ms")
    assert ended.code == 0, ended.out


SLOW_SECONDS = 0.1


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceEndpoints]:
    """A slow endpoint in zone a, and a fast one in zone b."""

    def slow() -> str:
        threading.Event().wait(SLOW_SECONDS)
        return "a"

    with ExitStack() as stack:
        ports = {
            "a": stack.enter_context(calling_job.serving(slow)),
            "b": stack.enter_context(calling_job.serving(lambda: "b")),
        }
        api = stack.enter_context(calling_job.serving(lambda: calling_job.slices(**ports)))
        kubeconfig = tmp_path / "kubeconfig"
        context = {"name": "it", "context": {"cluster": "it", "user": "it"}}
        cluster = {"name": "it", "cluster": {"server": f"http://127.0.0.1:{api}"}}
        users = [{"name": "it", "user": {}}]
        kubeconfig.write_text(
            yaml.safe_dump({"current-context": "it", "contexts": [context], "clusters": [cluster], "users": users})
        )
        yield ServiceEndpoints("scores", "shop", kubeconfig=str(kubeconfig))


def called(spark: SparkSession, service: ServiceEndpoints, records: int) -> list[str]:
    """What answered each call of a job of one task."""
    rows = spark.range(records, numPartitions=1).mapInArrow(calling_job.calls(service), calling_job.SCHEMA)
    return [row.zone for row in rows.orderBy("id").collect()]


def test_a_job_calls_its_own_zone_while_the_endpoints_there_keep_up(
    spark: SparkSession, service: ServiceEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, "BALLAST_ZONE", "a")
    # No call takes so long that it counts, however slow the machine is.
    assert set(called(spark, replace(service, seconds_at_full=10_000 * SLOW_SECONDS), 10)) == {"a"}


@pytest.mark.soak
def test_a_job_calls_farther_endpoints_once_the_near_ones_are_slow(
    spark: SparkSession, service: ServiceEndpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, "BALLAST_ZONE", "a")
    calls_a_second = round(1 / SLOW_SECONDS)
    zones = called(spark, replace(service, seconds_at_full=SLOW_SECONDS), 4 * calls_a_second)
    assert set(zones[: calls_a_second // 2]) == {"a"}
    assert "b" in zones
