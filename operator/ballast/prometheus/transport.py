"""One HTTP request within one deadline: no redirect is followed, and no answer is read beyond a stated length.

Own code on the standard library, because `prometheus_api_client` hands a request to `requests` and gets a whole answer
back: `requests` follows redirects with every header of ours, restarts its timeout with every read, and decompresses
whatever comes.
"""

from __future__ import annotations

import io
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, urlencode, urlsplit

import certifi
import msgspec

from ballast.errors import BallastError
from ballast.http_date import ahead_seconds

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_BYTES = 32 << 20
"""Of one answer: a hundred thousand series take about 20 MiB."""
_LEAST_SECONDS = 0.001
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[^\s\x00-\x1f\x7f][^\x00-\x08\x0a-\x1f\x7f]*)?")


_AddressInfo = tuple[Any, ...]
"""As `socket.getaddrinfo` returns it."""


INCOMPLETE = "series may be missing from its answer"
"""Half of a node's series would make it look idle, so such an answer is not used."""


class PrometheusError(BallastError):
    """A query gave no answer that can be used; the text says why."""


class AnswerTooLongError(PrometheusError):
    """The query may have a shorter answer if it selects fewer series."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How to reach a Prometheus server."""

    url: str
    timeout_seconds: float = 10.0
    """For one query as a whole, from the connection to the answer's last byte."""
    headers: Mapping[str, str] = field(default_factory=dict)
    authority: str | None = None
    """The certificate authority to trust instead of the usual ones, in PEM."""


class Fetched(NamedTuple):
    body: bytes
    ahead_seconds: float
    """By how much the server's clock is ahead of ours, at least; negative: behind. 0 if it does not say."""


class Transport:
    """Thread-safe: every request has its own connection.

    `monotonic`: seconds that only go forward; `clock`: seconds since the epoch.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Raises PrometheusError for an address, headers or an authority that can't be used."""
        _check(endpoint.headers)
        self._endpoint, self._clock, self._monotonic, self._most_bytes = endpoint, clock, monotonic, most_bytes
        self._url = _address(endpoint.url)
        self._tls = _trusting(endpoint.authority) if self._url.scheme == "https" else None

    def get(self, path: str, fields: Mapping[str, str]) -> Fetched:
        """The body of a successful answer. Raises PrometheusError."""
        deadline = _Deadline(self._monotonic, self._endpoint.timeout_seconds)
        host, port = self._url.hostname or "", self._url.port or (443 if self._tls else 80)
        connection = HTTPConnection(host, port)
        headers = {"Host": self._url.netloc, "Accept-Encoding": "identity", "Connection": "close"}
        target = f"{self._url.path.rstrip('/')}{path}?{urlencode(fields)}"
        try:
            with self._connected(host, port, deadline) as plain:
                connection.sock = _Timed(plain, deadline)
                asked_at = self._clock()
                connection.request("GET", target, headers=_joined(headers, self._endpoint.headers))
                answer = connection.getresponse()
                ahead = self._ahead(answer, asked_at)
                return Fetched(self._read(answer), ahead)
        except (OSError, HTTPException) as error:
            raise PrometheusError(_cause(error)) from error

    def _connected(self, host: str, port: int, deadline: _Deadline) -> socket.socket:
        """To the first of the host's addresses that answers, all of them within the deadline."""
        last: OSError = OSError("it has no address")
        for family, kind, protocol, _, address in _resolved(host, port, deadline):
            plain = socket.socket(family, kind, protocol)
            try:
                plain.settimeout(deadline.left())
                plain.connect(address)
                plain.settimeout(deadline.left())
                return self._tls.wrap_socket(plain, server_hostname=host) if self._tls else plain
            except OSError as error:
                plain.close()
                last = error
        raise last

    def _ahead(self, answer: HTTPResponse, asked_at: float) -> float:
        """An answer from a cache has the time at which it was made."""
        date = None if answer.getheader("Age") else answer.getheader("Date")
        return ahead_seconds(date, asked_at=asked_at, answered_at=self._clock()) or 0.0

    def _read(self, answer: HTTPResponse) -> bytes:
        if 300 <= answer.status < 400:
            raise PrometheusError(_redirected(answer))
        if answer.getheader("Content-Encoding", "identity").strip().lower() != "identity":
            raise PrometheusError("its answer is compressed although it was asked not to compress")
        body = answer.read(self._most_bytes + 1)
        if len(body) > self._most_bytes:
            raise AnswerTooLongError(f"its answer is longer than {self._most_bytes} bytes: select fewer series")
        if answer.status != 200:
            raise PrometheusError(_refused(answer.status, body))
        if answer.length:
            raise PrometheusError("its answer breaks off")
        return body


class _Deadline:
    def __init__(self, monotonic: Callable[[], float], seconds: float) -> None:
        self._monotonic, self._at = monotonic, monotonic() + seconds

    def left(self) -> float:
        """Seconds, more than none. Raises TimeoutError when it has passed."""
        seconds = self._at - self._monotonic()
        if seconds < _LEAST_SECONDS:
            raise TimeoutError
        return seconds


def _resolved(host: str, port: int, deadline: _Deadline) -> list[_AddressInfo]:
    """The host's addresses. A resolver takes no timeout, and may try for minutes: it is left behind at the deadline."""
    answers: Queue[list[_AddressInfo] | OSError] = Queue()

    def resolve() -> None:
        try:
            answers.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            answers.put(error)
        except UnicodeError:  # of a name that can't be one
            answers.put(socket.gaierror())

    Thread(target=resolve, name="resolver", daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left())
    except Empty:
        raise TimeoutError from None
    if isinstance(answer, OSError):
        raise answer
    return answer


class _Timed:
    """The part of a socket that http.client uses; each call gets the time that is left."""

    def __init__(self, plain: socket.socket, deadline: _Deadline) -> None:
        self._socket, self._deadline = plain, deadline

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(self._deadline.left())
        self._socket.sendall(data)

    def makefile(self, *_: object) -> io.BufferedReader:
        return io.BufferedReader(_Reading(self._socket, self._deadline))

    def close(self) -> None:
        """Left to its owner: http.client closes it before it has read the answer."""


class _Reading(io.RawIOBase):
    def __init__(self, plain: socket.socket, deadline: _Deadline) -> None:
        self._socket, self._deadline = plain, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._socket.settimeout(self._deadline.left())
        return self._socket.recv_into(buffer)


def _address(url: str) -> SplitResult:
    """The parts of a URL that names a server and nothing secret: what is refused is not repeated."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or not re.fullmatch(r"[!-~]+", url) or "?" in url or "#" in url:
        raise PrometheusError("metrics.prometheus.url: write an address such as http://prometheus.monitoring:9090")
    if "@" in parts.netloc:
        raise PrometheusError(
            "metrics.prometheus.url holds credentials: put them into a secret, and name it in bearerTokenSecretRef or "
            "headersSecretRef"
        )
    return parts


def _joined(defaults: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The given ones replace defaults of the same name, in whichever case."""
    names = {name.lower() for name in given}
    return {**{name: value for name, value in defaults.items() if name.lower() not in names}, **given}


def _check(headers: Mapping[str, str]) -> None:
    """http.client would refuse some of these with the value in its message, and values may be secret."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise PrometheusError(f"header {shown(name)} can't be sent: that is no header's name")
        try:
            value.encode("latin-1")
            sound = _HEADER_VALUE.fullmatch(value) is not None
        except UnicodeEncodeError:
            sound = False
        if not sound:
            raise PrometheusError(
                f"header {name} can't be sent: it holds a line break or another control character, is not Latin-1 or "
                "begins with a space"
            )


def _trusting(authority: str | None) -> ssl.SSLContext:
    """Of the given authority alone, or of the usual ones."""
    try:
        return ssl.create_default_context(cadata=authority, cafile=None if authority else certifi.where())
    except (ssl.SSLError, ValueError):
        raise PrometheusError("caSecretRef holds no certificate in PEM") from None


def _redirected(answer: HTTPResponse) -> str:
    try:
        target = urlsplit(answer.getheader("Location", ""))
        place = f" to {shown(f'{target.scheme}://{target.hostname}')}" if target.hostname else ""
    except ValueError:
        place = ""
    return (
        f"it redirects{place} (HTTP {answer.status}), which is not followed: set metrics.prometheus.url to the address "
        "that answers"
    )


def _refused(status: int, body: bytes) -> str:
    try:
        told: Any = _REFUSAL.decode(body).error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        told = ""
    if status in (401, 403) and not told:
        told = "see to bearerTokenSecretRef or headersSecretRef"
    if status == 404 and not told:
        told = "there is no Prometheus at this address: correct its path"
    return f"HTTP {status}: {shown(told)}" if told else f"HTTP {status}: see to the server"


class _Refusal(msgspec.Struct):
    error: str = ""


_REFUSAL = msgspec.json.Decoder(_Refusal)
"""Built when this module is loaded, as in `client`."""


def shown(text: str) -> str:
    """A foreign text as it may stand in a message: no control characters, and not long."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:200])


def _cause(error: OSError | HTTPException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time: see to the server, or allow it more time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate can't be verified ({shown(error.verify_message)}): does caSecretRef hold the authority "
            "that signed it?"
        )
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {shown(error.reason or str(error))}"
    if isinstance(error, socket.gaierror):
        return "can't be reached: its name is not known: correct the address"
    if isinstance(error, HTTPException):
        return "its answer is no HTTP, or breaks off"
    return f"can't be reached: {shown(error.strerror or str(error))}: see to the server, or correct the address"
