"""Collecting a history day by day, each day of a pool for itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ballast.spark.errors import HistoryError
from ballast.spark.history.collect import Origin, collect
from ballast.spark.history.day import Day, Stretch, first_missing, stretches
from ballast.spark.history.store import Part, Store, Written


@dataclass(frozen=True, slots=True)
class Range:
    """What to collect: the days named, or else those that the history lacks, as far back as `otherwise`."""

    first: Day | None
    last: Day | None
    otherwise: Day
    ripe_ms: int
    """Figures before it are all there."""


@dataclass(frozen=True, slots=True)
class Done:
    part: Part
    written: Written
    rows: int


def planned(store: Store, wanted: Range) -> list[Stretch]:
    """The days to collect, oldest first. Raises HistoryError for a history that can't be added to."""
    known: dict[Day, int] = {}
    for part, through_ms in store.parts().items():
        known[part.day] = min(through_ms, known.get(part.day, through_ms))
    first = wanted.first or first_missing(known, otherwise=wanted.otherwise)
    return list(stretches(first, wanted.last or Day.of(wanted.ripe_ms), ripe_ms=wanted.ripe_ms))


def collected(spark: SparkSession, store: Store, origin: Origin, stretch: Stretch) -> Iterator[Done]:
    """Collect one day, pool by pool. A day of which Prometheus has nothing leaves what is there.

    One file at a time is written: Parquet's writer sizes its row groups by what else is being written.
    """
    rows = collect(spark, origin, stretch).persist()
    try:
        counts = {row["pool"]: row["count"] for row in rows.groupBy("pool").count().collect()}
        for pool in sorted(counts):
            written = store.write(rows.where(rows["pool"] == pool), stretch, pool)
            yield Done(Part(stretch.day, pool), written, counts[pool])
    finally:
        spark.catalog.clearCache()


def checked_once(done: list[Done], days: int) -> None:
    """Raises HistoryError if days were looked at and no pool was found in any."""
    if days and not done:
        raise HistoryError(
            "no figures of any pool were found: is the preset the one that Prometheus is set up like? Without the"
            " operator's own metrics, say which nodes form a pool with --pool NAME=REGEX"
        )
