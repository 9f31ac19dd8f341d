"""The options of the data source, read once and checked all together."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ballast.errors import InvalidField
from ballast.spark.source.moment import MOST_STEPS, Grid, as_rfc3339, span_ms, time_ms

_KNOWN = (
    "url", "query", "start", "end", "step", "timeout", "bearerTokenFile", "caFile",
    "partitionSpan", "partitionBy", "labels", "delay", "maxSpanPerTrigger",
)  # fmt: skip
_COLUMNS = ("timestamp", "value")
_STREAMS_ONLY = ("delay", "maxSpanPerTrigger")

HEADERS = "headers."
_HIDDEN = "***"
_URL_REMEDY = "write http:// or https:// and a host, such as http://prometheus.monitoring:9090"
# A proxy may have these words in the middle of its own paths, as that of the Kubernetes API does.
_ENDPOINT = re.compile(r"/api/v1/(?:query\w*|series|labels|label/[^/]+/values|read|write)\Z")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked, and how it is shown and cut. Times as written: they are read against a clock when needed."""

    server: Server
    query: str
    step_ms: int
    start: str | None = None
    end: str | None = None
    span_steps: int = MOST_STEPS
    """Steps of one partition at most."""
    partition_by: str | None = None
    label_columns: tuple[str, ...] | None = None
    """Labels with their own column; None is one column with all of them."""
    delay_ms: int = 60_000
    trigger_steps: int = MOST_STEPS
    """Steps of one micro-batch at most."""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Options:
        """From the options of a Spark reader, whose names differ by more than case. Raises InvalidField."""
        options = {name.lower(): value for name, value in given.items()}
        _refuse_unknown(options)
        step_ms = span_ms(_needed(options, "step", "say how far apart the points are, such as 15s"), field="step")
        span_steps = _steps(options, "partitionSpan", step_ms)
        return cls(
            server=server(options),
            query=_needed(options, "query", "say what to ask, in PromQL"),
            step_ms=step_ms,
            start=options.get("start"),
            end=options.get("end"),
            span_steps=min(span_steps or MOST_STEPS, MOST_STEPS),
            partition_by=options.get("partitionby") or None,
            label_columns=_label_columns(options.get("labels")),
            delay_ms=span_ms(options.get("delay", "60s"), field="delay"),
            trigger_steps=_steps(options, "maxSpanPerTrigger", step_ms) or span_steps or MOST_STEPS,
        )

    def range_ms(self, *, now_ms: int) -> tuple[int, int]:
        """Start and end as asked for. Raises InvalidField."""
        if self.start is None:
            raise InvalidField("start", None, "say where to begin, such as now-6h or 2026-11-21T00:00:00Z")
        start_ms = time_ms(self.start, now_ms=now_ms, field="start")
        end_ms = time_ms(self.end or "now", now_ms=now_ms, field="end")
        if end_ms < start_ms:
            raise InvalidField("end", self.end or "now", f"write a time that is not before {as_rfc3339(start_ms)}")
        return start_ms, end_ms

    def grid(self, *, now_ms: int) -> Grid:
        """All the steps that are asked for. Raises InvalidField."""
        return Grid.between(*self.range_ms(now_ms=now_ms), step_ms=self.step_ms)


def refuse_for_batches(given: Mapping[str, str]) -> None:
    """Raises InvalidField for an option that only a stream heeds."""
    options = {name.lower(): value for name, value in given.items()}
    for name in _STREAMS_ONLY:
        if name.lower() in options:
            remedy = "leave it out, it is for streams (readStream): this reads all from start to end, as it is now"
            raise InvalidField(name, options[name.lower()], remedy)


def _needed(options: Mapping[str, str], name: str, remedy: str) -> str:
    value = options.get(name, "").strip()
    if not value:
        raise InvalidField(name, options.get(name), remedy)
    return value


def _steps(options: Mapping[str, str], name: str, step_ms: int) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    steps = span_ms(text, field=name) // step_ms
    if steps < 1:
        raise InvalidField(name, text, "write a span of at least one step")
    return steps


def _label_columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InvalidField("labels", text, "write names of labels, such as namespace,pod, or leave the option out")
    taken = next((name for at, name in enumerate(names) if name.lower() in (*_COLUMNS, *_lower(names[:at]))), None)
    if taken:
        raise InvalidField(
            "labels", text, f"{taken} is the name of another column already: label_replace can rename it"
        )
    return names


def _lower(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def _refuse_unknown(options: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in _KNOWN}
    for name, value in options.items():
        if name in known or name.startswith(HEADERS):
            continue
        if name in ("path", "paths"):
            raise InvalidField(name, value, "call load() with nothing: url says where Prometheus answers")
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(_KNOWN)} and headers.*"
        raise InvalidField(name, value, f"there is no such option: {meant}")


@dataclass(frozen=True, slots=True)
class Server:
    """How to reach a Prometheus server. Files are read where the data is read, each time."""

    url: str
    timeout_seconds: float = 120.0
    headers: Mapping[str, str] = field(default_factory=dict)
    bearer_token_file: str | None = None
    ca_file: str | None = None


def server(given: Mapping[str, str]) -> Server:
    """Of all options, those about the server. Raises InvalidField."""
    options = {name.lower(): value for name, value in given.items()}
    url = _base(options.get("url", "").strip())
    ca_file, token_file = options.get("cafile"), options.get("bearertokenfile")
    headers = {name[len(HEADERS) :]: value for name, value in options.items() if name.startswith(HEADERS)}
    for name, value in headers.items():
        _check_header(name, value)
    if ca_file is not None and url.startswith("http:"):
        raise InvalidField("caFile", ca_file, "the url is one of http://, which has no certificates: write https://")
    if token_file is not None and "authorization" in headers:
        raise InvalidField("bearerTokenFile", token_file, "headers.Authorization says it, too: leave one of them out")
    timeout_seconds = span_ms(options.get("timeout", "120s"), field="timeout") / 1000
    return Server(url, timeout_seconds, headers, token_file, ca_file)


def _base(url: str) -> str:
    """The address that paths of the API are added to. No error shows a password."""
    shown = re.sub(r"\A(\w+://)?.*@", rf"\1{_HIDDEN}@", url, flags=re.DOTALL)
    if not url:
        raise InvalidField("url", url, "say where Prometheus answers, such as http://prometheus.monitoring:9090")
    if shown != url:
        remedy = "credentials don't belong into a url: use bearerTokenFile, or headers.Authorization, and no @ here"
        raise InvalidField("url", shown, remedy)
    try:
        parts = urlsplit(url)
        complete = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        complete = False
    if not complete or re.search(r"\s", url):
        raise InvalidField("url", url, _URL_REMEDY)
    if parts.query or parts.fragment:
        raise InvalidField("url", url, "leave out what follows ? or #: other options say what is asked")
    base = url.rstrip("/?#")
    if _ENDPOINT.search(base):
        raise InvalidField("url", url, f"leave out what is added to it for each request: {_ENDPOINT.sub('', base)}")
    return base.removesuffix("/api/v1").rstrip("/")


def _check_header(name: str, value: str) -> None:
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidField(f"{HEADERS}{name}", _HIDDEN, "write the name of a header, such as headers.X-Scope-OrgID")
    if not _HEADER_VALUE.fullmatch(value):
        raise InvalidField(f"{HEADERS}{name}", _HIDDEN, "write one line, of the letters that a header may have")
