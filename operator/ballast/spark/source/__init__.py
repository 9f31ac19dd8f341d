"""Prometheus as a data source of Spark, for batches and streams."""

from ballast.spark.source.data_source import PrometheusDataSource, register

__all__ = ["PrometheusDataSource", "register"]
