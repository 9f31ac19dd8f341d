"""The options of the data source that say how to reach Prometheus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ballast.errors import InvalidField
from ballast.spark.source.moment import span_ms

HEADERS = "headers."
_HIDDEN = "***"
_URL_REMEDY = "write http:// or https:// and a host, such as http://prometheus.monitoring:9090"
# A proxy may have these words in the middle of its own paths, as that of the Kubernetes API does.
_ENDPOINT = re.compile(r"/api/v1/(?:query\w*|series|labels|label/[^/]+/values|read|write)\Z")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


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
