"""Asking Prometheus: a few queries at a time, each of them within its own timeout."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import floor
from typing import Any

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.exceptions import InvalidHeader
from requests.utils import check_header_validity
from urllib3.util.retry import Retry

from ballast.errors import BallastError

_AT_ONCE = 6
_STORED_SECONDS = 1.0
"""A scrape carries the time at which it began, and is stored when it has ended."""


def settled(now: float) -> float:
    """The newest whole second of which all is stored at `now`, both in seconds since the epoch.

    What is asked about it has the same answer later, at any step of a range query of whole seconds.
    """
    return float(floor(now - _STORED_SECONDS))


class PrometheusError(BallastError):
    """A query gave no answer; the text holds the server's own words."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a Prometheus server."""

    url: str
    timeout_seconds: float = 10.0
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: str | None = None


class Prometheus:
    """A server that is asked instant queries. Thread-safe; `close` when done."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Raises PrometheusError for headers that can't be sent."""
        _check(endpoint.headers)
        session = requests.Session()
        session.verify = endpoint.ca_file or True
        # The next pass asks again anyway: a retry within this one would only use up its time.
        self._api = PrometheusConnect(
            url=endpoint.url.rstrip("/"), headers=dict(endpoint.headers), session=session, retry=Retry(0, read=False)
        )
        self._session = session
        self._timeout_seconds = endpoint.timeout_seconds

    def query(self, text: str, *, at: float | None = None) -> list[dict[str, Any]]:
        """The result of one instant query, as of `at` (seconds since the epoch) or now. Raises PrometheusError."""
        moment = {} if at is None else {"time": f"{at:.3f}"}
        try:
            answer: list[dict[str, Any]] = self._api.custom_query(text, params=moment, timeout=self._timeout_seconds)
        except (requests.RequestException, PrometheusApiClientException, ValueError, KeyError) as error:
            raise PrometheusError(_words(error)) from error
        if answer and not isinstance(answer[0], dict):
            raise PrometheusError("it gives a scalar, not a vector: wrap it in vector(…)")
        return answer

    def query_all(
        self, texts: Mapping[str, str], *, at: float | None = None
    ) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
        """Answers by name, and for those that failed, why. All of them as of the same moment, if it is given."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="prometheus") as threads:
            asked = {name: threads.submit(self.query, text, at=at) for name, text in texts.items()}
        answers: dict[str, list[dict[str, Any]]] = {}
        failures: dict[str, str] = {}
        for name, future in asked.items():
            error = future.exception()
            if isinstance(error, PrometheusError):
                failures[name] = str(error)
            else:
                answers[name] = future.result()
        return answers, failures

    def close(self) -> None:
        self._session.close()


def _check(headers: Mapping[str, str]) -> None:
    """The library would say so with the value in its words, and values may be secret."""
    for name, value in headers.items():
        try:
            check_header_validity((name, value))
        except InvalidHeader:
            raise PrometheusError(
                f"header {name} can't be sent: it holds a line break or begins with a space"
            ) from None


def _words(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate can't be verified: does caSecret hold the authority that signed it?"
    if isinstance(error, requests.ConnectionError):
        return "can't be reached"
    return str(error)[:300]
