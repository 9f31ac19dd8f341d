"""Kafka: the column that tells Spark's sink the partition of each record, and the rack of Spark's consumers."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf

from ballast.errors import InvalidField
from ballast.grouping.lags import LagHistory, Offsets
from ballast.grouping.place import Place
from ballast.grouping.shares import Measured
from ballast.spark.routing.chooser import UNKNOWN, Reading, RoutingError, Target, chooser_of
from ballast.spark.routing.executors import Counted, Senders, executors_of
from ballast.spark.routing.loads import PrometheusLoad, highest

_TIMEOUT_MS = 10_000
_LOG = logging.getLogger(__name__)
_BROKER = "kafka"
"""The process of a broker: a sender on its node is another one."""


def with_partition(
    df: DataFrame,
    topic: KafkaTopic,
    *,
    senders: Mapping[str, float] | None = None,
    key: str = "key",
    reroute_keys: bool = False,
) -> DataFrame:
    """`df` with a column `partition`, as Spark's Kafka sink reads it: a near partition that keeps up.

    `senders` says how many executors, or cores of them, each zone has: `{"a": 4, "b": 2}`. If unset, executors ask
    Spark's UI, which knows their variables SPARK_EXECUTOR_ATTRIBUTE_BALLAST_ZONE. A record whose column `key` is not
    null keeps the partition that Kafka gives its key, unless `reroute_keys`. The task fails with RoutingError if no
    partition has a leader. Raises InvalidField for a `key` that is no column.
    """
    if key != "key" and key not in df.columns:
        raise InvalidField("key", key, f"name one of the columns: {', '.join(df.columns)}")
    quoted = "`{}`".format(key.replace("`", "``"))
    free = sql.col(quoted).isNull() if key in df.columns and not reroute_keys else sql.lit(True)
    return df.withColumn("partition", _chosen(topic, _senders(df, topic, senders), free))


def _senders(df: DataFrame, topic: KafkaTopic, given: Mapping[str, float] | None) -> Senders:
    if given is not None:
        return Counted(tuple(sorted(given.items())))
    if topic.group is None:
        return UNKNOWN
    return executors_of(df.sparkSession, "BALLAST_RACK" if topic.rack_is == "rack" else "BALLAST_ZONE")


def _chosen(topic: KafkaTopic, senders: Senders, free: Column) -> Column:
    def partition(free: pa.Array) -> pa.Array:
        routed = free.to_numpy(zero_copy_only=False)
        chosen = chooser_of(topic).choose(int(routed.sum()), senders)
        if routed.all():
            return pa.array(chosen)
        column = np.zeros(routed.size, dtype=np.int32)
        column[routed] = chosen
        return pa.array(column, mask=~routed)

    # Choosing again would give other partitions: the optimizer must not do it twice.
    udf = arrow_udf(partition, "int")  # type: ignore[call-overload]  # its stubs know iterators alone
    chosen: Column = udf.asNondeterministic()(free)
    return chosen


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """The partitions of `topic` that have a leader, and how far the consumer group `group` is behind on each.

    If the group's reader of one partition handles `handled_per_second` records a second, near partitions get as many
    as keep it half busy, even if that is more than an even share. `broker_load` is the load of brokers, by id, host
    name or the host name's first part. Without a group and without `broker_load` records stay near. `rack_is` says
    whether the brokers' `broker.rack` names a zone or a rack within one. `options` are those of kafka-python's
    KafkaAdminClient, for TLS and the like. Needs the package kafka-python on the executors.
    """

    bootstrap: str
    topic: str
    group: str | None = None
    handled_per_second: float = 0.0
    rack_is: Literal["zone", "rack"] = "zone"
    options: tuple[tuple[str, str], ...] = ()
    broker_load: PrometheusLoad | None = None

    def __post_init__(self) -> None:
        """Raises InvalidField."""
        if not self.handled_per_second >= 0.0:
            remedy = "write how many records of a partition its reader handles a second; 0 if that is not known"
            raise InvalidField("handled_per_second", self.handled_per_second, remedy)
        if self.rack_is not in ("zone", "rack"):
            raise InvalidField("rack_is", self.rack_is, "write zone or rack, whichever broker.rack names")

    def __str__(self) -> str:
        return f"topic {self.topic} at {self.bootstrap}"

    def read(self, at_seconds: float | None = None) -> Reading:
        """Raises RoutingError if there is no such topic, and KafkaError if no broker answers."""
        from kafka.errors import for_code  # noqa: PLC0415 -- on executors alone

        admin = client_of(self.bootstrap, self.options)
        topic = admin.describe_topics([self.topic])[0]
        if topic["error_code"]:
            raise RoutingError(f"{self}: {for_code(topic['error_code']).description}")
        brokers = {broker["broker_id"]: broker for broker in admin.describe_cluster()["brokers"]}
        leaders = {
            part["partition_index"]: brokers[part["leader_id"]]
            for part in topic["partitions"]
            if part["leader_id"] in brokers
        }
        lags = self._lags(admin, leaders, time.monotonic() if at_seconds is None else at_seconds)
        busy = self.broker_load.read() if self.broker_load else {}
        targets = [
            Target(part, self._place(leader), _load_of(leader, busy)) for part, leader in sorted(leaders.items())
        ]
        return Reading(targets, lags.age_seconds, lags.flow) if lags else Reading(targets)

    def _place(self, broker: Mapping[str, Any]) -> Place:
        if self.rack_is == "zone":
            return Place(node=broker["host"], process=_BROKER, zone=broker["rack"])
        return Place(node=broker["host"], process=_BROKER, rack=broker["rack"])

    def _lags(self, admin: Any, partitions: Iterable[int], at_seconds: float) -> Measured | None:
        """What arrives in partitions and what their readers can take; None without a group."""
        from kafka import TopicPartition  # noqa: PLC0415 -- on executors alone
        from kafka.admin import OffsetSpec  # noqa: PLC0415 -- as above
        from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError  # noqa: PLC0415 -- as above

        asked = [TopicPartition(self.topic, part) for part in partitions]
        if self.group is None or not asked:
            return None
        try:
            committed = admin.list_group_offsets({self.group: asked})[self.group]
        except (CoordinatorNotAvailableError, CoordinatorLoadInProgressError):
            # A cluster in which no group has committed yet creates its offsets topic at the first request.
            committed = {}
        ends = admin.list_partition_offsets(dict.fromkeys(asked, OffsetSpec.LATEST), timeout_ms=_TIMEOUT_MS)
        known = {part.partition: done.offset for part, done in committed.items() if done.offset >= 0}
        if committed and not known:
            warn_of_no_commit(self.bootstrap, self.topic, self.group, self.options)
        now = Offsets(at_seconds, {part.partition: end.offset for part, end in ends.items()}, known)
        return history_of(self).add(now, handled_per_second=self.handled_per_second)


def _load_of(broker: Mapping[str, Any], busy: Mapping[str, float]) -> float | None:
    first = broker["host"].partition(".")[0]
    # The first part of an IPv4 address could be another broker's id.
    names = (str(broker["broker_id"]), broker["host"], *(() if first.isdecimal() else (first,)))
    return highest(busy.get(name) for name in names)


@functools.cache
def client_of(bootstrap: str, options: tuple[tuple[str, str], ...]) -> Any:
    """The one of this process: connections last as long as the worker. A kafka.admin.KafkaAdminClient."""
    from kafka.admin import KafkaAdminClient  # noqa: PLC0415 -- on executors alone

    return KafkaAdminClient(**{**dict(options), "bootstrap_servers": bootstrap, "request_timeout_ms": _TIMEOUT_MS})


@functools.cache
def warn_of_no_commit(bootstrap: str, topic: str, group: str, options: tuple[tuple[str, str], ...]) -> None:
    """Once in this process: for an unknown group Kafka answers as for one whose readers commit no offsets."""
    from kafka.errors import KafkaError  # noqa: PLC0415 -- on executors alone

    try:
        types = {each["group_id"]: each.get("group_type") for each in client_of(bootstrap, options).list_groups()}
        kind = f"a {types[group] or 'consumer'} group" if group in types else "no group that Kafka knows"
    except KafkaError as error:
        kind = f"a group whose type is not known: {error}"
    _LOG.warning(
        "routing: %s (%s) has committed no offset of topic %s, so readers that fall behind are not noticed. Share"
        " groups and Spark's readers never commit any: give broker_load instead",
        group,
        kind,
        topic,
    )


@functools.cache
def history_of(_: KafkaTopic) -> LagHistory:
    """The one of this process; the thread that reads the topic adds to it."""
    return LagHistory()


def client_rack(variable: str = "BALLAST_ZONE") -> dict[str, str]:
    """Options of Spark's Kafka source by which each executor reads from replicas in its own zone (`client.rack`).

    Kafka's consumer resolves the environment variable where it runs, which is on the executor.
    """
    return {
        "kafka.config.providers": "ballast",
        "kafka.config.providers.ballast.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "kafka.client.rack": f"${{ballast:{variable}}}",
    }
