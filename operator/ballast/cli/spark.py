"""What the commands that run on Spark share: the extra may be missing, and Spark's errors are pages long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ballast.errors import BallastError


class SparkMissingError(BallastError):
    """The extra `spark` is not installed."""


def progress(told: Console) -> Progress:
    """A bar that counts, while it lasts, where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=told, transient=True, disable=not told.is_terminal)


@contextmanager
def with_spark() -> Iterator[None]:
    """Raises SparkMissingError, or a BallastError in one sentence for what Spark raises."""
    try:
        from ballast.spark.errors import in_own_words  # noqa: PLC0415 -- Spark takes seconds to load
    except ImportError as error:
        raise SparkMissingError(
            f"Spark is not installed: install ballast with its extra `spark`, such as pip install '.[spark]' ({error})"
        ) from error
    with in_own_words():
        yield
