"""Errors of data on Spark, and Spark's own errors in one sentence instead of pages of stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ballast.errors import BallastError

_OWN_WORDS = re.compile(r"^\s*(?:\S+: )?ballast\.[\w.]+: (.+)$", re.MULTILINE)


class SourceError(BallastError):
    """Prometheus gave no whole answer; the text holds its own words."""


class HistoryError(BallastError):
    """The history that is there can't be read or added to."""


class SparkFailedError(BallastError):
    """Spark, or a file system that it uses, failed; the text is the cause in one sentence."""


class ConnectError(BallastError):
    """The session is one of Spark Connect, and what is asked for needs the driver's JVM."""


class BacktestError(BallastError):
    """A run of a backtest failed, or what an earlier one left can't be used."""


@contextmanager
def in_own_words() -> Iterator[None]:
    """Raises SparkFailedError for what Spark raises: with the words of Ballast's own error where one has caused it."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise SparkFailedError(words(error)) from error
    except OSError as error:
        raise SparkFailedError(f"{error.filename or 'a file'}: {error.strerror or error}") from error


SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises. PySpark hands those on as they are that it has no class for, as of a file that is broken."""


def words(error: PySparkException | Py4JJavaError) -> str:
    """The cause in one sentence."""
    return _told(error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error))


def _told(text: str) -> str:
    own = _OWN_WORDS.findall(text)
    lines = own[-1:] or [line for line in text.splitlines() if line.strip()]
    return lines[0].strip() if lines else "Spark failed and does not say why"
