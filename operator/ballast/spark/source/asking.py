"""Asking Prometheus from a task of Spark: patiently, because a fault may pass while the stage runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from urllib3.util import Retry

from ballast.prometheus.endpoint import AnswerTooLongError, PrometheusError
from ballast.prometheus.server import Server
from ballast.prometheus.session import PATIENT, Transport
from ballast.spark.errors import SourceError

_ANSWER_BYTES = (1 << 31) - 1
"""Of one partition's answer at most: some seventy million points."""


@contextmanager
def asking(server: Server, *, patience: Retry = PATIENT) -> Iterator[Transport]:
    """Reads the server's files. Raises InvalidField for these, and SourceError, with the server's address, for what
    Prometheus does not give.
    """
    try:
        # A form may hold a matcher with thousands of values.
        transport = Transport(server.endpoint(), patience=patience, most_bytes=_ANSWER_BYTES, method="POST")
        with closing(transport):
            yield transport
    except PrometheusError as error:
        words = f"{server.url}: {error}"
        if isinstance(error, AnswerTooLongError) or "too many samples" in words:
            words += " (a shorter partitionSpan, or partitionBy, asks for fewer at once)"
        raise SourceError(words) from error
