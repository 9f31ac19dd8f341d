"""What a SparkTopology may say about its pipeline for sizing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model
from ballast.api.names import DnsLabel
from ballast.api.quantity import Quantity
from ballast.api.rule import Rule, map_by


class Goal(StrEnum):
    """What to size for first."""

    THROUGHPUT = "Throughput"
    LATENCY = "Latency"
    MEMORY = "Memory"
    COST = "Cost"


_Number = Annotated[int, Field(ge=1, le=1_000_000)]
_Latency = Annotated[Duration, Between("1us", "1h")]


class Source(Model):
    """Where the records come from, such as a Kafka topic."""

    brokers: _Number | None = None
    """How many brokers hold the partitions."""
    partitions: _Number | None = None
    """How many partitions there are in all."""
    max_fetch: Quantity | None = None
    """The most bytes that one fetch from one partition returns."""


class Machine(Model):
    """The machines to size for."""

    count: _Number | None = None
    """How many there are."""
    cores: _Number | None = None
    """Cores of each."""
    memory: Quantity | None = None
    """Memory of each, in bytes."""


class Stage(Model):
    """One step of the pipeline."""

    component: DnsLabel
    """The component that does it."""
    latency: _Latency | None = None
    """The time that one record takes in one task. Default: measured."""
    parallelism: _Number | None = None
    """How many tasks work at once. Default: measured."""
    output_percent: Annotated[int, Field(ge=0, le=100_000_000)] = 100
    """Records sent on per hundred received."""
    remote_rate_limit: Quantity | None = None
    """The most records per second that a remote service called here takes."""


class Sizing(Model):
    """What is known of the pipeline; the rest is measured or assumed, and marked so."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!(has(self.batchRecords) && has(self.batchTime))",
            message="set batchRecords or batchTime, not both: one follows from the other",
            holds=lambda sizing: sizing.batch_records is None or sizing.batch_time is None,
            path=".batchRecords",
        ),
    )

    goal: Goal = Goal.THROUGHPUT
    """What to size for first: Throughput, Latency, Memory or Cost."""
    records_per_second: Quantity | None = None
    """The rate to sustain. Default: measured."""
    record_bytes: Quantity | None = None
    """The size of one record, in bytes. Default: measured."""
    batch_time: Annotated[Duration, Between("1ms", "1h")] | None = None
    """The batch duration to aim at."""
    batch_records: Quantity | None = None
    """The batch size to aim at."""
    pending_percent: Annotated[int, Field(ge=100, le=10_000)] = 200
    """Pending records (or batches), in percent of the parallelism; comfortably above 100."""
    source: Source | None = None
    """Where the records come from."""
    machine: Machine | None = None
    """The machines to size for."""
    stages: Annotated[tuple[Stage, ...], Field(max_length=50), map_by("component")] = ()
    """The steps of the pipeline, by component."""
