"""How a Prometheus server is reached where what is secret stands in files: by a command, or where Spark reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ballast.errors import InvalidField
from ballast.prometheus.endpoint import TENANT, Endpoint, address, check_header

HEADERS = "headers."
OPTIONS = ("url", "bearerTokenFile", "caFile", "certificateFile", "keyFile", "proxy", "tenant", "awsRegion")
"""In addition to headers.NAME."""
_OF_TLS = ("caFile", "certificateFile", "keyFile")


@dataclass(frozen=True, slots=True)
class Server:
    """Its files are read where the data is read, for each `endpoint` again: tokens and certificates are rotated."""

    url: str
    timeout_seconds: float = 120.0
    headers: Mapping[str, str] = field(default_factory=dict)
    bearer_token_file: str | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    """Default: the key is in the certificate's file, too."""
    proxy: str | None = None
    region: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, str], *, timeout_seconds: float = 10.0) -> Server:
        """By OPTIONS and headers.NAME, in any case; others are passed over. Raises InvalidField."""
        options = {name.lower(): value for name, value in given.items()}
        url = address(options.get("url", "").strip())
        headers = {name[len(HEADERS) :]: value for name, value in options.items() if name.startswith(HEADERS)}
        if tenant := options.get("tenant"):
            _refuse_both("tenant", tenant, headers, TENANT)
            headers[TENANT.lower()] = tenant
        for name, value in headers.items():
            check_header(name, value)
        for name in _OF_TLS:
            if (file := options.get(name.lower())) is not None and url.startswith("http:"):
                remedy = "the url is one of http://, which has no certificates: write https://"
                raise InvalidField(name, file, remedy)
        for name in ("bearerTokenFile", "awsRegion"):
            if given_too := options.get(name.lower()):
                _refuse_both(name, given_too, headers, "Authorization")
        if (key := options.get("keyfile")) is not None and "certificatefile" not in options:
            raise InvalidField("keyFile", key, "name the certificate, too: certificateFile")
        proxy = options.get("proxy")
        return cls(
            url,
            timeout_seconds,
            headers,
            options.get("bearertokenfile"),
            options.get("cafile"),
            options.get("certificatefile"),
            key,
            None if proxy is None else address(proxy, field="proxy"),
            options.get("awsregion"),
        )

    def endpoint(self) -> Endpoint:
        """With what the files hold now. Raises InvalidField."""
        headers = dict(self.headers)
        if self.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {token_in(self.bearer_token_file)}"
        certificate = [
            readable(path, field=name)
            for name, path in (("certificateFile", self.certificate_file), ("keyFile", self.key_file))
            if path is not None
        ]
        return Endpoint(
            self.url,
            self.timeout_seconds,
            headers,
            None if self.ca_file is None else readable(self.ca_file, field="caFile"),
            "\n".join(certificate) if certificate else None,
            self.proxy,
            self.region,
        )


def token_in(path: str) -> str:
    """The token in a file. Raises InvalidField, which does not show it."""
    token = readable(path, field="bearerTokenFile").strip()
    if not (token.isascii() and token.isprintable() and token) or " " in token:
        raise InvalidField("bearerTokenFile", path, "name a file that holds a token and nothing else")
    return token


def readable(path: str, *, field: str) -> str:
    """The text in a file. Raises InvalidField."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise InvalidField(field, path, f"name a file that can be read where the data is read ({reason})") from None


def _refuse_both(name: str, value: str, headers: Mapping[str, str], header: str) -> None:
    if header.lower() in headers:
        raise InvalidField(name, value, f"headers.{header} says it, too: leave one of them out")
