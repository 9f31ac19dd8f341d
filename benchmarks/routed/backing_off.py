"""How routing backs off from near partitions whose readers stop, and comes back: over time, on a real Kafka.

`python -m benchmarks.routed.backing_off SETTINGS` is the job; `watched` runs it and plays the readers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from kafka import OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, OffsetSpec
from pydantic import TypeAdapter
from pyspark.sql import functions as f

from ballast.cli.picture.frame import BOTTOM, Drawing, Frame, Plot, Scale, Size
from ballast.cli.picture.lines import Line, polylines
from ballast.spark.routing import KafkaTopic, with_partition
from benchmarks.routed.links import EXECUTORS, Links
from benchmarks.routed.piped import PARTITIONS, Settings, session
from tests.spark.session import PATHS
from tests.testbed.kafka import jars
from tests.testbed.waiting import wait_until

TOPIC, GROUP = "watched", "readers"
RECORDS_PER_SECOND = 2000
HANDLED_PER_SECOND = 4.0 * RECORDS_PER_SECOND
"""Readers of one partition could handle all that is sent, so all of it may stay near."""
STOPPED_AT, RESUMED_AT, ENDED_AT = 15.0, 45.0, 75.0
_LEAD_SECONDS = 10.0
"""What piled up before the first batch goes through."""
_EVERY_SECONDS = 0.5
_LOOK_BACK_SECONDS = 3.0
_HEIGHT, _HEAD = 240.0, 22.0


@dataclass(frozen=True, slots=True)
class Moment:
    seconds: float
    near: int
    """Records in partitions whose leader is in the executors' zone, since the start."""
    far: int


def main(chosen: Settings) -> None:
    spark = session(chosen)
    rate = {"rowsPerSecond": str(RECORDS_PER_SECOND), "numPartitions": str(EXECUTORS)}
    records = spark.readStream.format("rate").options(**rate).load().select(f.col("value").cast("string"))
    topic = KafkaTopic(chosen.bootstrap, TOPIC, group=GROUP, handled_per_second=HANDLED_PER_SECOND)
    writer = (
        with_partition(records, topic, senders={chosen.zone: EXECUTORS})
        .writeStream.format("kafka")
        .option("topic", TOPIC)
    )
    with tempfile.TemporaryDirectory() as folder:
        writer = writer.option("kafka.bootstrap.servers", chosen.bootstrap).option("checkpointLocation", folder)
        writer.trigger(processingTime="1 second").start().awaitTermination()


def watched(at: Links, workers: Collection[str], folder: Path) -> list[Moment]:
    """Executors are on `workers`, all in one zone; readers of its partitions stop for a while."""
    zone = at.nodes[next(iter(workers))].spec.zone
    with KafkaAdminClient(bootstrap_servers=at.brokers.bootstrap) as admin:
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 1}})
        admin.wait_for_topics([TOPIC], timeout_ms=30_000)
        near = {
            t.id for t in KafkaTopic(at.brokers.bootstrap, TOPIC).read().targets if t.place and t.place.zone == zone
        }
        with at.spark(tuple(workers), folder) as master, _job(at, master, zone):
            wait_until(lambda: sum(_ends(admin).values()) > 0, what="records in the topic", timeout_seconds=180)
            return list(_followed(admin, near, time.monotonic))


@contextmanager
def _job(at: Links, master: str, zone: str) -> Iterator[None]:
    settings = Settings(
        master=master,
        address=at.network.control_address,
        bootstrap=at.brokers.bootstrap,
        jars=str(jars("kafka-connector")),
        instance=at.network.instance.number,
        executors=EXECUTORS,
        ways=(),
        rounds=0,
        zone=zone,
    )
    command = [sys.executable, "-m", "benchmarks.routed.backing_off", json.dumps(asdict(settings))]
    job = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": PATHS})
    try:
        yield
    finally:
        job.terminate()
        job.wait(60)


def _followed(admin: KafkaAdminClient, near: Collection[int], clock: Callable[[], float]) -> Iterator[Moment]:
    """Readers are at the end of every partition, but for the near ones while they have stopped."""
    began = clock() + _LEAD_SECONDS
    while (seconds := clock() - began) < ENDED_AT:
        ends = _ends(admin)
        stopped = STOPPED_AT <= seconds < RESUMED_AT
        read = {part: end for part, end in ends.items() if not (stopped and part in near)}
        commits = {TopicPartition(TOPIC, part): OffsetAndMetadata(end, "", -1) for part, end in read.items()}
        admin.alter_group_offsets(GROUP, commits)
        if seconds >= 0.0:
            yield Moment(seconds, sum(ends[part] for part in near), sum(n for p, n in ends.items() if p not in near))
        time.sleep(_EVERY_SECONDS)


def _ends(admin: KafkaAdminClient) -> Mapping[int, int]:
    asked = dict.fromkeys((TopicPartition(TOPIC, part) for part in range(PARTITIONS)), OffsetSpec.LATEST)
    return {part.partition: end.offset for part, end in admin.list_partition_offsets(asked).items()}


def rates(moments: list[Moment]) -> tuple[Line, Line]:
    """Records per second, near and far, over the last seconds."""
    times = np.array([each.seconds for each in moments])
    since = np.searchsorted(times, times - _LOOK_BACK_SECONDS)
    found = []
    for name, counts in (("near", [m.near for m in moments]), ("far", [m.far for m in moments])):
        sums, spans = np.array(counts, dtype=float), np.maximum(times - times[since], 1e-9)
        found.append(Line(name, times, (sums - sums[since]) / spans))
    return found[0], found[1]


def share_near(moments: list[Moment], begin: float, end: float) -> float:
    """Of the records of that time."""
    within = [each for each in moments if begin <= each.seconds < end]
    near, far = within[-1].near - within[0].near, within[-1].far - within[0].far
    return near / max(near + far, 1)


def picture(moments: list[Moment]) -> Plot:
    title = "Records per second to partitions in the executors' zone (near) and in others (far)"
    return Plot.drawn("routing-back-off", title, lambda size: _drawing(rates(moments), size))


def _drawing(lines: tuple[Line, Line], size: Size) -> Drawing:
    frame = Frame(size, ENDED_AT, _HEIGHT)
    scale = Scale.up_to(max(line.highest for line in lines), start=_HEIGHT - BOTTOM, end=_HEAD)
    marks = list(scale.axis(size))
    for at, words in ((STOPPED_AT, "near readers stop"), (RESUMED_AT, "they go on")):
        x = frame.x(at)
        marks.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{_HEAD}" y2="{_HEIGHT - BOTTOM}"/>')
        marks.append(f'<text class="strong" x="{x + 4:.1f}" y="14">{words}</text>')
    marks += [
        f'<text class="tick" x="{frame.x(at):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{at} s</text>'
        for at in range(0, int(ENDED_AT) + 1, 15)
    ]
    for index, line in enumerate(lines):
        marks += polylines(line, frame, scale, style=f"line series{index}")
        middle = line.times.size // 2 if line.name == "far" else line.times.size // 10
        x, y = frame.x(float(line.times[middle])), scale.at(float(line.values[middle]))
        marks.append(f'<text class="strong" x="{x:.1f}" y="{y - 6:.1f}">{line.name}</text>')
    return frame.drawing(marks)


if __name__ == "__main__":
    main(TypeAdapter(Settings).validate_json(sys.argv[1]))
