"""Routing into a real Kafka, whose three brokers are in three zones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kafka import OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from kafka.errors import CoordinatorNotAvailableError, NoError

from ballast.spark.routing import KafkaTopic
from ballast.spark.routing.chooser import RoutingError
from ballast.spark.routing.kafka import client_of
from tests.spark import routed_job
from tests.spark.session import PATHS
from tests.testbed.kafka import Kafka, jars, kafka
from tests.testbed.waiting import wait_until

PARTITIONS = 6
PARTITIONS_OF_OUT = [TopicPartition("out", part) for part in range(PARTITIONS)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka(tmp_path_factory.mktemp("kafka"), racks=["a", "b", "c"]) as running:
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
    targets = KafkaTopic(brokers.bootstrap, "out").read()
    assert [target.id for target in targets] == list(range(PARTITIONS))
    assert {target.place.zone for target in targets if target.place} == {"a", "b", "c"}
    assert {target.load for target in targets} == {None}


def test_a_topic_that_is_not_there_is_named(brokers: Kafka) -> None:
    with pytest.raises(RoutingError, match=r"topic none at .*: .* topic or partition that does not exist"):
        KafkaTopic(brokers.bootstrap, "none").read()


def test_a_job_writes_to_its_own_zone_keeps_keys_and_reads_from_its_own_zone(brokers: Kafka) -> None:
    before = KafkaTopic(brokers.bootstrap, "out").read()
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
    after = KafkaTopic(brokers.bootstrap, "out", group="readers", lag_at_full=records).read()
    assert {target.id: target.load for target in after} == {part: count / records for part, count in written.items()}
    assert "client.rack = b\n" in job.stderr
