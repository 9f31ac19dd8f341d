"""`python -m tests.spark.following CHECKPOINT SINK NAME=VALUE…`: a driver that follows a query, to be killed."""

from __future__ import annotations

import sys

from tests.spark.session import local_session


def main() -> None:
    checkpoint, sink, *given = sys.argv[1:]
    options = dict(text.split("=", 1) for text in given)
    spark = local_session("following", memory="500m")
    frame = spark.readStream.format("prometheus").options(**options).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint).option("path", sink)
    # A second between batches, so that it can be killed between two of them, or in one.
    writer.trigger(processingTime="1 second").start().awaitTermination()


if __name__ == "__main__":
    main()
