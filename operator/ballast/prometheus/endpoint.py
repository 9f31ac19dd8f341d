"""How a Prometheus server is reached, in values, and what is told where it gives nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ballast.errors import BallastError, InvalidField

TENANT = "X-Scope-OrgID"
"""The header by which Mimir, Cortex, Thanos and Loki tell tenants apart."""

_URL_REMEDY = "write http:// or https:// and a host, such as http://prometheus.monitoring:9090"
# A proxy may have these words in the middle of its own paths, as that of the Kubernetes API does.
_API_PATH = re.compile(r"/api/v1/(?:query\w*|series|labels|label/[^/]+/values|read|write)\Z")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~\xa0-\xff][\t\x20-\x7e\xa0-\xff]*)?")


class PrometheusError(BallastError):
    """A query gave no answer that can be used; the text says why."""


class AnswerTooLongError(PrometheusError):
    """The query may have a shorter answer if it selects fewer series."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a server. What is secret stands in it: it is made where the queries are sent."""

    url: str
    timeout_seconds: float = 10.0
    """For one query as a whole, from the name's resolution to the answer's last byte."""
    headers: Mapping[str, str] = field(default_factory=dict)
    authority: str | None = None
    """The certificate authority to trust instead of the usual ones, in PEM."""
    certificate: str | None = None
    """The client's certificate and its key, in PEM, one after the other."""
    proxy: str | None = None
    """The address of an HTTP proxy. The environment's proxies are not used: they are the API server's."""
    region: str | None = None
    """If set, each request is signed (SigV4) for Amazon Managed Service for Prometheus in this region."""


def address(url: str, *, field: str = "url") -> str:
    """The address that paths of the API are added to. Raises InvalidField, which shows no password."""
    # Also where a password holds a slash.
    shown = re.sub(r"\A(\w+://)?.*@", r"\1***@", url, flags=re.DOTALL)
    if not url:
        raise InvalidField(field, url, "say where Prometheus answers, such as http://prometheus.monitoring:9090")
    if shown != url:
        remedy = "credentials don't belong into an address: use a file or a secret with a token or headers, and no @"
        raise InvalidField(field, shown, remedy)
    try:
        parts = urlsplit(url)
        complete = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        complete = False
    if not complete or not re.fullmatch(r"[!-~]+", url):
        raise InvalidField(field, url, _URL_REMEDY)
    if "?" in url or "#" in url:
        raise InvalidField(field, url.partition("?")[0], "leave out what follows ? or #")
    base = url.rstrip("/")
    if _API_PATH.search(base):
        raise InvalidField(field, url, f"leave out what is added to it for each request: {_API_PATH.sub('', base)}")
    return base.removesuffix("/api/v1").rstrip("/")


def check_header(name: str, value: str) -> None:
    """Raises InvalidField, which does not show the value: HTTP libraries would, and it may be secret."""
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidField(f"headers.{shown(name)}", "***", "write the name of a header, such as X-Scope-OrgID")
    if not _HEADER_VALUE.fullmatch(value):
        raise InvalidField(f"headers.{name}", "***", "write one line, of the letters that a header may have")


def shown(text: str) -> str:
    """A foreign text as it may stand in a message: no control characters, and not long."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:200])
