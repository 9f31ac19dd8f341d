"""The topics: clicks that flow into one, and what reads the other. All of it runs outside of the nodes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec

from ballast.spark.routing import KafkaTopic

PARTITIONS = 4
USERS = 200
_PADDING = "x" * 400
_PERIOD_SECONDS = 0.1


@contextmanager
def in_background(name: str, step: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs `step` until the block ends; it has to end soon after the event is set."""
    stop = threading.Event()
    thread = threading.Thread(target=step, args=(stop,), name=name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def user(click: int) -> int:
    """The one of the click of that number."""
    return click * 7919 % USERS


class Clicks:
    """Numbered clicks at a fixed pace."""

    def __init__(self, bootstrap: str, topic: str, *, per_second: int) -> None:
        self._bootstrap, self._topic, self._per_second = bootstrap, topic, per_second
        self.sent = 0

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """All are in Kafka when the block has ended."""
        with in_background("clicks", self._run):
            yield

    def _run(self, stop: threading.Event) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, acks="all", linger_ms=20)
        due = time.monotonic()
        while not stop.is_set():
            for _ in range(round(self._per_second * _PERIOD_SECONDS)):
                producer.send(self._topic, self._click(self.sent))
                self.sent += 1
            due += _PERIOD_SECONDS
            stop.wait(max(0.0, due - time.monotonic()))
        producer.flush()
        producer.close()

    @staticmethod
    def _click(number: int) -> bytes:
        click = {"click_id": number, "user": user(number), "page": f"/p/{number % 50}", "padding": _PADDING}
        return json.dumps(click).encode()


class Reader:
    """Reads the partitions of one zone for the group `dashboard`, and commits what it has read, unless it stalls."""

    GROUP = "dashboard"

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> None:
        self._bootstrap = bootstrap
        self.partitions = [TopicPartition(topic, number) for number in partitions]
        self.stalled = threading.Event()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with in_background("reader", self._run):
            yield

    def _run(self, stop: threading.Event) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=self.GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        consumer.assign(self.partitions)
        while not stop.is_set():
            if self.stalled.is_set():
                stop.wait(_PERIOD_SECONDS)
            elif consumer.poll(timeout_ms=500):
                consumer.commit()
        consumer.close()


def create(bootstrap: str, replicas: Mapping[str, int]) -> None:
    """Topics by name with so many replicas of each partition."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics(
            {name: {"num_partitions": PARTITIONS, "replication_factor": count} for name, count in replicas.items()}
        )
        admin.wait_for_topics(list(replicas), timeout_ms=30_000)


def partitions_by_zone(bootstrap: str, topic: str) -> dict[str, list[int]]:
    """Where their leaders are."""
    found: dict[str, list[int]] = {}
    for target in KafkaTopic(bootstrap, topic).read().targets:
        zone = target.place.zone if target.place else None
        found.setdefault(zone or "", []).append(target.id)
    return found


def ends(admin: KafkaAdminClient, topic: str) -> dict[int, int]:
    """The records in each partition."""
    asked = {TopicPartition(topic, number): OffsetSpec.LATEST for number in range(PARTITIONS)}
    return {part.partition: end.offset for part, end in admin.list_partition_offsets(asked).items()}


def lags(admin: KafkaAdminClient, topic: str, at_end: Mapping[int, int]) -> dict[int, int]:
    """How far the reader's group is behind."""
    asked = [TopicPartition(topic, number) for number in at_end]
    committed = admin.list_group_offsets({Reader.GROUP: asked})[Reader.GROUP]
    return {part.partition: at_end[part.partition] - max(done.offset, 0) for part, done in committed.items()}


def click_ids(bootstrap: str, topic: str) -> list[int]:
    """Of all records in the topic: an independent count, next to the ledger's."""
    return [int(record["click_id"]) for record in records(bootstrap, topic)]


def records(bootstrap: str, topic: str) -> Iterator[dict[str, Any]]:
    """All that are in the topic, read without Spark."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(parts)
    consumer.seek_to_beginning()
    left = sum(consumer.end_offsets(parts).values())
    while left:
        for found in consumer.poll(timeout_ms=1000).values():
            left -= len(found)
            yield from (json.loads(record.value) for record in found)
    consumer.close()
