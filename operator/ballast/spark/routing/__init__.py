"""Records go to near Kafka partitions or endpoints of a Service while these keep up, and farther away when they don't.

The shares of `ballast.grouping`, in a PySpark job.
"""

from ballast.spark.routing.kafka import KafkaTopic, client_rack, with_partition
from ballast.spark.routing.loads import PrometheusLoad
from ballast.spark.routing.services import ServiceEndpoints

__all__ = ["KafkaTopic", "PrometheusLoad", "ServiceEndpoints", "client_rack", "with_partition"]
