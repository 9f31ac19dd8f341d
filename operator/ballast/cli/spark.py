"""What the commands that run on Spark share: the extra may be missing, and Spark's errors are pages long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ballast.errors import BallastError


class SparkMissingError(BallastError):
    """The extra `spark` is not installed."""


@contextmanager
def with_spark() -> Iterator[None]:
    """Raises SparkMissingError, or a BallastError in one sentence for what Spark raises."""
    try:
        from ballast.spark.failure import in_own_words  # noqa: PLC0415 -- Spark takes seconds to load
    except ImportError as error:
        raise SparkMissingError(
            f"{error}: install ballast with its extra `spark`, such as pip install '.[spark]'"
        ) from error
    with in_own_words():
        yield
