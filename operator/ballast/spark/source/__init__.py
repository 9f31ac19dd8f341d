"""Prometheus as a data source of Spark, for batches and streams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import DoubleType, MapType, StringType, StructField, StructType, TimestampType

from ballast.errors import InvalidField
from ballast.spark.source.options import Options, refuse_for_batches

if TYPE_CHECKING:
    from ballast.spark.source.reader import PrometheusReader, PrometheusStreamReader

# Readers are imported where they are made: a process that Spark starts for the schema needs neither Arrow nor HTTP.


class PrometheusDataSource(DataSource):
    """Rows of (timestamp, value, labels), or of (timestamp, value, …) with a column for each label named."""

    @classmethod
    def name(cls) -> str:
        return "prometheus"

    def schema(self) -> StructType:
        return _spark_schema(Options.read(self.options).label_columns)

    def reader(self, schema: StructType) -> PrometheusReader:
        from ballast.spark.source.matrix import arrow_schema  # noqa: PLC0415
        from ballast.spark.source.reader import PrometheusReader  # noqa: PLC0415

        refuse_for_batches(self.options)
        options = self._checked(schema)
        now_ms = time.time_ns() // 1_000_000
        return PrometheusReader(options, arrow_schema(options.label_columns), now_ms=now_ms)

    def streamReader(self, schema: StructType) -> PrometheusStreamReader:  # noqa: N802 -- Spark's name
        from ballast.spark.source.matrix import arrow_schema  # noqa: PLC0415
        from ballast.spark.source.reader import PrometheusStreamReader  # noqa: PLC0415

        options = self._checked(schema)
        return PrometheusStreamReader(options, arrow_schema(options.label_columns))

    def _checked(self, schema: StructType) -> Options:
        options = Options.read(self.options)
        own = _spark_schema(options.label_columns)
        if schema != own:
            raise InvalidField("schema", schema.simpleString(), f"leave it out, it is {own.simpleString()}")
        return options


def register(spark: SparkSession) -> None:
    """Make the format `prometheus` known to a session, and let Spark push filters down to it."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(PrometheusDataSource)


def _spark_schema(label_columns: tuple[str, ...] | None) -> StructType:
    labels = (
        [StructField("labels", MapType(StringType(), StringType()))]
        if label_columns is None
        else [StructField(name, StringType()) for name in label_columns]
    )
    return StructType([StructField("timestamp", TimestampType()), StructField("value", DoubleType()), *labels])


__all__ = ["PrometheusDataSource", "register"]
