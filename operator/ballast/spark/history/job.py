"""Collecting a history day by day, each day of a pool for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from ballast.errors import InvalidField
from ballast.spark.errors import HistoryError, SourceError
from ballast.spark.history.collect import Origin, collecting
from ballast.spark.history.day import Day, Stretch, missing, stretches
from ballast.spark.history.schema import Metadata
from ballast.spark.history.store import Part, Store, Written
from ballast.spark.source.api import PATIENCE, Api
from ballast.spark.source.moment import Grid
from ballast.spark.source.options import server

_REMEDY = (
    "the address must answer from here (`kubectl port-forward` brings one inside a cluster) and let you in"
    " (--header, --bearer-token-file, --ca-file)"
)

_PATIENCE = PATIENCE.new(connect=1, read=1)
"""For a server that answers, that of the tasks; one that does not is asked once more."""


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
    """What has become of a day of one pool; of a day without any figures where no pool is known."""

    day: Day
    pool: str | None
    files: Mapping[str, Written] = field(default_factory=dict)
    """By name; none without metrics."""
    rows: int = 0

    @property
    def written(self) -> Written:
        """Of all the files."""
        found = set(self.files.values())
        if not found:
            return Written.NOTHING
        if Written.KEPT in found:
            return Written.KEPT
        return found.pop() if len(found) == 1 else Written.CHANGED

    def __str__(self) -> str:
        if self.pool is None:
            return f"date={self.day}: {self.written} of any pool"
        part = Part(self.day, self.pool)
        if self.written is Written.NOTHING:
            return f"{part}: {self.written}; a file that is there is kept"
        told = f"{part}: {self.rows} rows, {self.written}"
        if self.written is Written.KEPT:
            kept = [file for file, written in self.files.items() if written is Written.KEPT]
            more = ", ".join(f"{file} has more" for file in kept)
            told += f": {more}, Prometheus forgets: delete such a file to have it collected again"
        return told


def planned(store: Store, origin: Origin, wanted: Range) -> list[Stretch]:
    """The days to collect, oldest first. Raises HistoryError for a history that can't be added to."""
    known: dict[Day, int] = {}
    for part, metadata in store.parts().items():
        _check_alike(origin, part, metadata)
        if not origin.pools or part.pool in origin.pools:
            known[part.day] = min(metadata.through_ms, known.get(part.day, metadata.through_ms))
    first = wanted.first or min(known, default=wanted.otherwise)
    days = stretches(first, wanted.last or Day.of(wanted.ripe_ms), ripe_ms=wanted.ripe_ms)
    return list(days) if wanted.first else missing(days, known)


def newcomers(store: Store, origin: Origin) -> list[str]:
    """Pools asked for that have no day yet, next to others that have: planned are the days that those lack."""
    there = store.pools()
    return sorted(origin.pools.keys() - there) if origin.pools.keys() & there else []


def _check_alike(origin: Origin, part: Part, metadata: Metadata) -> None:
    """All of a history has one step and one window, or its figures could not be compared."""
    there = {"--step": metadata.step_ms, "--window": metadata.window_ms}
    asked = {"--step": origin.step_ms, "--window": origin.window_ms}
    if there != asked:
        raise HistoryError(
            f"{part} was collected with {_options(there)}, not with {_options(asked)}: go on with what it has, or"
            " collect into another folder with --path"
        )


def _options(spans_ms: Mapping[str, int]) -> str:
    return " ".join(f"{name} {ms / 1000:g}s" for name, ms in spans_ms.items())


def collected(spark: SparkSession, store: Store, origin: Origin, stretch: Stretch) -> Iterator[Done]:
    """Collect one day, pool by pool: those asked for, or else those that are found or were found before.

    One file at a time is written: Parquet's writer sizes its row groups by what else is being written.
    """
    metadata = Metadata(stretch.through_ms, origin.step_ms, origin.window_ms)
    with collecting(spark, origin, stretch) as rows:
        counts = {row["pool"]: row["count"] for row in rows.groupBy("pool").count().collect()}
        pools = counts.keys() | (origin.pools.keys() or store.pools(stretch.day))
        for pool in sorted(pools):
            files: Mapping[str, Written] = {}
            if pool in counts:
                own = rows.where(rows["pool"] == pool)
                files = store.write(own, Part(stretch.day, pool), metadata, count=counts[pool])
            yield Done(stretch.day, pool, files, counts.get(pool, 0))
        if not pools:
            yield Done(stretch.day, None)


def checked_once(done: list[Done]) -> None:
    """Raises HistoryError if days were collected and none had any values."""
    if done and all(one.written is Written.NOTHING for one in done):
        raise HistoryError(
            "no metrics of any pool were found: is the preset the one that Prometheus is set up like? Without the"
            " operator's own metrics, say which nodes form a pool with --pool NAME=REGEX"
        )


def ask_once(source: Mapping[str, str], *, now_ms: int) -> None:
    """Asks what costs nothing, where the tasks ask too. `source` as in Origin.

    Raises SourceError with the address, the reason and what helps, and InvalidField if there can be no such server.
    """
    asked = server(source)
    # Files with certificates or a token may be where the tasks run, and nowhere else.
    with suppress(InvalidField), closing(Api(asked, patience=_PATIENCE)) as api:
        try:
            api.range("vector(1)", Grid(now_ms, 1000, 1))
        except SourceError as error:
            raise SourceError(f"--prometheus: {error}; {_REMEDY}") from error
