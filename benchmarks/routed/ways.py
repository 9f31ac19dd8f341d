"""Ways to choose a record's partition. Python workers import them from here."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from ballast.spark.routing import KafkaTopic, with_partition
from ballast.spark.routing.chooser import sender
from tests.reference.storm.shuffle import Shuffle

PARTITIONS = 12
ROUND_ROBIN, ROUTED, PLAIN, NONE = "round robin", "with_partition", "plain Python UDF", "no choice"

Way = Callable[[DataFrame], DataFrame]


def ways(topic: KafkaTopic) -> Mapping[str, Way]:
    turn = (f.monotonically_increasing_id() % PARTITIONS).cast("int")
    return {
        NONE: lambda df: df,
        ROUND_ROBIN: lambda df: df.withColumn("partition", turn),
        ROUTED: lambda df: with_partition(df, topic),
        PLAIN: lambda df: df.withColumn("partition", one_by_one(topic)),
    }


def one_by_one(topic: KafkaTopic) -> Column:
    """The same choice without Arrow: Python is called for each record."""

    def choose() -> int:
        return shuffle_of(topic).choose_one()

    chosen: Column = f.udf(choose, "int", useArrow=False).asNondeterministic()()
    return chosen


@functools.cache
def shuffle_of(topic: KafkaTopic) -> Shuffle:
    targets = topic.read().targets
    places = [target.place for target in targets]
    return Shuffle(sender(os.environ), [target.id for target in targets], places, random=np.random.default_rng())
