"""Records go to near Kafka partitions while these keep up, and farther away when they don't.

Storm's locality-aware, load-aware shuffle grouping (`ballast.grouping`), in a PySpark job.
"""

from ballast.spark.routing.kafka import KafkaTopic, client_rack, with_partition

__all__ = ["KafkaTopic", "client_rack", "with_partition"]
