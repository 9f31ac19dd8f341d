"""What happened in a cluster, day by day and pool by pool, as Parquet. docs/history.md says what is in it."""

from ballast.spark.history.collect import (
    Done,
    Origin,
    Range,
    ask_once,
    checked_once,
    collected,
    newcomers,
    planned,
    strangers,
    unmeasured,
)
from ballast.spark.history.schema import Day
from ballast.spark.history.store import Part, Store, Written

__all__ = [
    "Day",
    "Done",
    "Origin",
    "Part",
    "Range",
    "Store",
    "Written",
    "ask_once",
    "checked_once",
    "collected",
    "newcomers",
    "planned",
    "strangers",
    "unmeasured",
]
