"""A source that records arrive at with a given rate, and that takes Kafka's options for the size of a batch."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

Offset = dict[str, int]


@dataclass
class Range(InputPartition):
    first: int
    end: int


class Arriving(DataSource):
    """Options: `rate` per second, `backlog` that waits at the start, `maxOffsetsPerTrigger`, `minPartitions`.

    The first `warmBatches` are full, and come before the start. With `smallest`, batches have as many records as chance
    wills, from `smallest` to `maxOffsetsPerTrigger`.
    """

    @classmethod
    def name(cls) -> str:
        return "arriving"

    def schema(self) -> str:
        return "id bigint"

    def streamReader(self, schema: StructType) -> _Reader:  # noqa: N802 -- Spark's name
        del schema
        return _Reader(self.options)


class _Reader(DataSourceStreamReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._rate = float(options["rate"])
        self._backlog = int(options["backlog"])
        self._warm = int(options["warmBatches"])
        self._most = int(options["maxOffsetsPerTrigger"])
        self._smallest = int(options.get("smallest", 0))
        self._partitions = int(options["minPartitions"])
        self._chance = random.Random(11)
        self._began: float | None = None
        self._first = 0

    def initialOffset(self) -> Offset:  # noqa: N802 -- Spark's name
        return {"next": 0}

    def latestOffset(self, start: Offset, limit: object = None) -> Offset:  # noqa: N802 -- Spark's name
        del limit
        if self._warm:
            self._warm -= 1
            return {"next": start["next"] + self._most}
        now = time.time()
        if self._began is None:
            self._began, self._first = now, start["next"]
        arrived = self._first + self._backlog + int(self._rate * (now - self._began))
        return {"next": max(start["next"], min(arrived, start["next"] + self._size()))}

    def _size(self) -> int:
        if not self._smallest:
            return self._most
        size: float = self._smallest * (self._most / self._smallest) ** self._chance.random()
        return round(size)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, count = start["next"], end["next"] - start["next"]
        bounds = [first + count * part // self._partitions for part in range(self._partitions + 1)]
        return [Range(low, high) for low, high in pairwise(bounds) if low < high]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        assert isinstance(partition, Range)
        return ((number,) for number in range(partition.first, partition.end))
