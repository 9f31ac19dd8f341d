"""Prometheus' HTTP API as the data source needs it: whole answers, or an error in the server's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError, MaxRetryError, ReadTimeoutError
from urllib3.util import Retry, Timeout

from ballast.errors import InvalidField
from ballast.kube.deadline import with_deadlines
from ballast.spark.errors import SourceError
from ballast.spark.source.moment import Grid
from ballast.spark.source.options import Server

_LONGEST_PAUSE_SECONDS = 60.0
_OF_VALUES = "PromQL warning: "
"""Such as of histograms next to plain numbers, or of buckets without a bound, which PromQL leaves out."""


class _Patience(Retry):
    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        """A server, or a gateway before it, may ask for a pause of years, which would hold the task's slot."""
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, _LONGEST_PAUSE_SECONDS)


PATIENCE = _Patience(
    total=6,
    backoff_factor=0.5,
    backoff_max=30.0,
    backoff_jitter=0.5,
    status_forcelist=(429, *range(500, 600)),
    allowed_methods=None,
    raise_on_status=False,
)
"""A query changes nothing, so it may be asked again.

Retry-After is heeded, up to a minute; without it some half a minute in all.
"""


class Api:
    """One server, for as long as one partition is read. `close` when done."""

    def __init__(self, server: Server, *, patience: Retry = PATIENCE) -> None:
        self._server = server
        if server.ca_file:
            _readable(server.ca_file, field="caFile")
        self._http = with_deadlines(
            urllib3.PoolManager(
                timeout=Timeout(connect=min(10.0, server.timeout_seconds), read=server.timeout_seconds),
                retries=patience,
                ca_certs=server.ca_file,
            )
        )

    def range(self, query: str, grid: Grid) -> bytes:
        """The body of a range query's answer, which says success. Raises SourceError."""
        fields = {
            "query": query,
            "start": _seconds(grid.start_ms),
            "end": _seconds(grid.last_ms),
            "step": _seconds(grid.step_ms),
            "timeout": f"{round(self._server.timeout_seconds * 1000)}ms",
        }
        return self._ask("POST", "/api/v1/query_range", fields)

    def label_values(self, label: str, selector: str, *, start_ms: int, end_ms: int) -> list[str]:
        """The label's values among the selected series of that time, and perhaps of some time around it, each once."""
        fields = {"match[]": selector, "start": _seconds(start_ms), "end": _seconds(end_ms)}
        body = self._ask("GET", f"/api/v1/label/{quote(label, safe='')}/values?{urlencode(fields)}", None)
        document = envelope(body)
        return sorted({str(value) for value in document.get("data") or ()})

    def close(self) -> None:
        self._http.clear()

    def _ask(self, method: str, path: str, form: Mapping[str, str] | None) -> bytes:
        try:
            answer = self._http.request(
                method,
                self._server.url + path,
                body=urlencode(form) if form else None,
                headers=self._headers(form=form is not None),
                redirect=False,  # it would carry the headers to another host
            )
        except HTTPError as error:
            raise SourceError(f"{self._server.url}: {_why(error, self._server.timeout_seconds)}") from error
        if answer.status != 200:
            raise SourceError(f"{self._server.url}: {_words(answer.status, answer.data)}")
        return answer.data

    def _headers(self, *, form: bool) -> dict[str, str]:
        # Prometheus would spend more time on compressing than a network inside a cluster takes; headers.* can ask.
        headers = {"Accept-Encoding": "identity", "Accept": "application/json"}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if self._server.bearer_token_file:
            headers["Authorization"] = f"Bearer {_token(self._server.bearer_token_file)}"
        given = {name.lower() for name in self._server.headers}
        return {**{name: value for name, value in headers.items() if name.lower() not in given}, **self._server.headers}


def envelope(text: bytes) -> dict[str, Any]:
    """An answer that is whole: success, and no warning. Raises SourceError with the server's own words.

    A warning tells of what is missing (a store that did not answer, samples left out). Notes ("infos") don't, nor does
    what PromQL says of values: any pod that is scraped can export some that it warns of, next to those of others.
    """
    try:
        document = json.loads(text)
    except ValueError:
        raise SourceError(f"not an answer of Prometheus: {_shown(text)}") from None
    if not isinstance(document, dict) or document.get("status") != "success":
        raise SourceError(_told(document) or f"not an answer of Prometheus: {_shown(text)}")
    warnings = document.get("warnings") or ([f"partial: {document['partial']}"] if document.get("partial") else [])
    if document.get("isPartial"):
        warnings = [*warnings, "isPartial"]
    warnings = [each for each in warnings if not str(each).startswith(_OF_VALUES)]
    if warnings:
        raise SourceError(f"refused an answer that may be partial; the server warns: {'; '.join(map(str, warnings))}")
    return document


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"


def _token(path: str) -> str:
    token = _readable(path, field="bearerTokenFile").strip()
    if not (token.isascii() and token.isprintable() and token) or " " in token:
        raise InvalidField("bearerTokenFile", path, "name a file that holds a token and nothing else")
    return token


def _readable(path: str, *, field: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise InvalidField(field, path, f"name a file that can be read where the data is read ({reason})") from None


def _why(error: HTTPError, timeout_seconds: float) -> str:
    cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(cause, ReadTimeoutError):
        return f"no answer within {timeout_seconds:g} s, asked several times; a longer timeout may help"
    return f"can't be read: {cause}"


def _words(status: int, body: bytes) -> str:
    try:
        told = _told(json.loads(body))
    except ValueError:
        told = None
    if 300 <= status < 400:
        return f"HTTP {status}: it redirects, which is not followed; set url to the address that answers"
    words = f"HTTP {status}: {told or _shown(body)}"
    if told and "too many samples" in told:
        words += " (a shorter partitionSpan, or partitionBy, asks for fewer at once)"
    return words


def _told(document: object) -> str | None:
    if not isinstance(document, dict) or "error" not in document:
        return None
    return f"{document.get('errorType', 'error')}: {document['error']}"


def _shown(body: bytes) -> str:
    text = body[:300].decode("utf-8", "replace").strip()
    return text or "an empty answer"
