"""What can go wrong with data on Spark, besides options that can't be used."""

from __future__ import annotations

from ballast.errors import BallastError


class SourceError(BallastError):
    """Prometheus gave no whole answer; the text holds its own words."""


class HistoryError(BallastError):
    """The history that is there can't be read or added to."""


class SparkFailedError(BallastError):
    """Spark, or a file system that it uses, failed; the text is the cause in one sentence."""


class BacktestError(BallastError):
    """A run of a backtest failed, or what an earlier one left can't be used."""
