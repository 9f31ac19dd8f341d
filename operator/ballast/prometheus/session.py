"""The one way by which Prometheus is asked: prometheus-api-client over a session of requests that keeps its bounds.

Alone, the client follows redirects with every header, restarts its timeout with each read, keeps an endless answer in
memory and unpacks without a limit. What it makes of an answer is not used either: it drops the server's warnings.
"""

from __future__ import annotations

import os
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException, IncompleteRead
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from socket import gaierror
from threading import Thread
from typing import Any, cast
from urllib.parse import quote, urlsplit

import certifi
import requests
import urllib3
from prometheus_api_client import PrometheusConnect
from requests.adapters import HTTPAdapter
from urllib3 import BaseHTTPResponse
from urllib3.util import Retry

from ballast.deadline import with_deadlines
from ballast.http_date import ahead_seconds
from ballast.prometheus.endpoint import AnswerTooLongError, Endpoint, PrometheusError, address, check_header, shown
from ballast.prometheus.envelope import names_of, refusal_of

_PIECE_BYTES = 256 << 10
_SERVICE = "aps"
"""Amazon's name of its Managed Service for Prometheus."""
ONCE = Retry(total=0)
PATIENT = Retry(
    total=6,
    backoff_factor=0.5,
    backoff_max=30.0,
    backoff_jitter=0.5,
    # A server, or a gateway before it, may ask for a pause of years, which would hold the task's slot.
    retry_after_max=60,
)
"""A query changes nothing, so it may be asked again after a fault that may pass.

Retry-After is heeded, up to a minute; without it some half a minute in all.
"""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A successful answer as it came."""

    body: bytes
    ahead_seconds: float
    """By how much the server's clock is ahead of ours, at least; negative: behind. 0 if it does not say."""
    status_code: int = 200

    def json(self) -> Mapping[str, Any]:
        """The client returns what it finds here: this answer, of which no object has been made for each sample."""
        return {"data": {"result": self}}


class Transport:
    """Queries to one server. Thread-safe: every request has its own connection.

    `clock`: seconds since the epoch. `patience`: for faults that may pass. `most_bytes`: of one answer, as it comes
    and unpacked. `method`: of queries; POST sends them in a form, which may be as long as it likes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        most_bytes: int,
        clock: Callable[[], float] = time.time,
        patience: Retry = ONCE,
        method: str = "GET",
    ) -> None:
        """Raises InvalidField for an address or headers that can't be used, and PrometheusError for certificates."""
        url = address(endpoint.url)
        self._timeout_ms = round(endpoint.timeout_seconds * 1000)
        self._session = _Session(endpoint, clock=clock, patience=patience, most_bytes=most_bytes)
        self._client = PrometheusConnect(
            url,
            session=self._session,
            timeout=endpoint.timeout_seconds,
            method=method,
            auth=_signature(endpoint.region, os.environ),
        )
        # The client has mounted an adapter of its own there, even though the session is ours.
        self._session.mount(url, _Adapter(_tls(endpoint) if url.startswith("https:") else None))

    def instant(self, query: str, *, at: float | None = None) -> Fetched:
        """As of `at` (seconds since the epoch) or now. Raises PrometheusError."""
        moment = {} if at is None else {"time": f"{at:.3f}"}
        return cast("Fetched", self._client.custom_query(query, params=moment))

    def range(self, query: str, *, start_ms: int, end_ms: int, step_ms: int) -> Fetched:
        """Both ends included. Raises PrometheusError."""
        # The client rounds its times to seconds.
        times = {"start": _seconds(start_ms), "end": _seconds(end_ms), "timeout": f"{self._timeout_ms}ms"}
        unused = datetime.fromtimestamp(0, tz=UTC)
        found = self._client.custom_query_range(query, unused, unused, _seconds(step_ms), params=times)
        return cast("Fetched", found)

    def label_values(self, label: str, selector: str, *, start_ms: int, end_ms: int) -> list[str]:
        """The label's values among the selected series of that time, and perhaps of some time around it, each once.

        Raises PrometheusError.
        """
        fields = {"match[]": selector, "start": _seconds(start_ms), "end": _seconds(end_ms)}
        return names_of(self._client.get_label_values(quote(label, safe=""), params=fields)["result"].body)

    def close(self) -> None:
        self._session.close()


class _Session(requests.Session):
    """Follows no redirect, and reads an answer as a whole within its time and its length."""

    def __init__(self, endpoint: Endpoint, *, clock: Callable[[], float], patience: Retry, most_bytes: int) -> None:
        super().__init__()
        for name, value in endpoint.headers.items():
            check_header(name, value)
        self._endpoint, self._clock, self._patience, self._most_bytes = endpoint, clock, patience, most_bytes
        # Neither proxies nor passwords (.netrc) of the environment, and no cookies of earlier answers.
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        # Prometheus would spend more time on compressing than a network inside a cluster takes; a header can ask.
        usual = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        self.headers.clear()
        self.headers.update({**usual, "User-Agent": "ballast"})
        self.headers.update(endpoint.headers)
        if endpoint.proxy is not None:
            self.proxies = dict.fromkeys(("http", "https"), address(endpoint.proxy, field="proxy"))

    def get_redirect_target(self, resp: requests.Response) -> None:
        """There is none: every header would go there, too."""

    def request(self, method: str, url: str, **options: Any) -> Fetched:  # type: ignore[override]
        """The answer to one query, which says success by its status. Raises PrometheusError."""
        if method == "POST":
            # The client puts the query into the address even then.
            options = {**options, "params": None, "data": options.get("params")}
        ask = partial(super().request, method, url, **options, stream=True)
        patience = self._patience
        while True:
            try:
                return self._once(ask)
            except _PassingError as failed:
                try:
                    patience = patience.increment(response=failed.response, error=failed if failed.cause else None)
                except urllib3.exceptions.MaxRetryError:
                    raise PrometheusError(str(failed)) from failed.cause
                try:
                    patience.sleep(failed.response)
                except urllib3.exceptions.InvalidHeader:  # of a Retry-After that is none
                    patience.sleep()

    def _once(self, ask: Callable[[], requests.Response]) -> Fetched:
        """In another thread, left behind at the deadline: a resolver takes no timeout, and may try for minutes."""
        outcome: Future[Fetched] = Future()

        def work() -> None:
            try:
                outcome.set_result(self._read(ask))
            except Exception as error:  # noqa: BLE001 -- raised below, in the thread that waits
                outcome.set_exception(error)

        Thread(target=work, name="prometheus-query", daemon=True).start()
        try:
            return outcome.result(self._endpoint.timeout_seconds)
        except (OSError, HTTPException, UnicodeError, *_OF_LIBRARIES) as error:
            raise _PassingError(self._words(error), cause=error) from error

    def _read(self, ask: Callable[[], requests.Response]) -> Fetched:
        asked_at = self._clock()
        with closing(ask()) as answer:
            # An answer from a cache has the time at which it was made.
            date = None if "Age" in answer.headers else answer.headers.get("Date")
            ahead = ahead_seconds(date, asked_at=asked_at, answered_at=self._clock()) or 0.0
            if 300 <= answer.status_code < 400:
                raise PrometheusError(_redirected(answer))
            asked_for = "accept-encoding" in {name.lower() for name in self._endpoint.headers}
            if not asked_for and answer.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
                raise PrometheusError("its answer is compressed although it was asked not to compress")
            body = self._body(answer.raw)
            if answer.status_code == 200:
                return Fetched(body, ahead)
            words = _refused(answer.status_code, body)
            if answer.status_code == 429 or answer.status_code >= 500:
                raise _PassingError(words, response=answer.raw)
            raise PrometheusError(words)

    def _body(self, raw: BaseHTTPResponse) -> bytes:
        data = bytearray()
        while piece := raw.read(_PIECE_BYTES, decode_content=True):
            data += piece
            if max(len(data), raw.tell()) > self._most_bytes:
                raise AnswerTooLongError(f"its answer is longer than {self._most_bytes} bytes: select fewer series")
        return bytes(data)

    def _words(self, error: BaseException) -> str:
        match _cause(error):
            case TimeoutError():
                seconds = self._endpoint.timeout_seconds
                words = f"no answer within {seconds:g} s: see to the server, or allow it more time"
            case ssl.SSLCertVerificationError(verify_message=why):
                asked = "does caSecretRef, or caFile, hold the authority that signed it?"
                words = f"its certificate can't be verified ({shown(why)}): {asked}"
            case ssl.SSLError() as cause:
                words = f"TLS fails: {shown(cause.reason or str(cause))}"
            case (
                gaierror() | UnicodeError() | urllib3.exceptions.LocationValueError() | requests.exceptions.InvalidURL()
            ):
                words = "can't be reached: its name is not known: correct the address"
            case IncompleteRead():
                words = "its answer breaks off"
            case HTTPException() | requests.RequestException() | urllib3.exceptions.HTTPError():
                words = "its answer is no HTTP, or breaks off"
            case cause:
                through = " through its proxy" if self._endpoint.proxy else ""
                why = shown(getattr(cause, "strerror", None) or str(cause))
                words = f"can't be reached{through}: {why}: see to the server, or correct the address"
        return words


class _PassingError(PrometheusError):
    """A fault that the same query may not meet again: the server's (`response`), or one on the way (`cause`)."""

    def __init__(
        self, words: str, *, cause: BaseException | None = None, response: BaseHTTPResponse | None = None
    ) -> None:
        super().__init__(words)
        self.cause, self.response = cause, response


class _Adapter(HTTPAdapter):
    """Trusts `tls` alone, and gives up an answer that comes too slowly."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        _without_reuse(with_deadlines(self.poolmanager))

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        return manager if known else _without_reuse(with_deadlines(manager))

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        place, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return place, {} if self._tls is None else {"ssl_context": self._tls}

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """By the context: this would add the usual authorities to those of the context."""


class _UsedOnce:
    """A pool that keeps no connection: a server may end one that it was asked to close without saying so, and the next
    query on it would fail.
    """

    def _put_conn(self, conn: Any) -> None:
        if conn is not None:
            conn.close()
        super()._put_conn(None)  # type: ignore[misc]


def _without_reuse(manager: Any) -> Any:
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {
        scheme: type(pool.__name__, (_UsedOnce, pool), {}) for scheme, pool in pools.items()
    }
    return manager


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    authority = endpoint.authority
    try:
        context = ssl.create_default_context(cadata=authority, cafile=None if authority else certifi.where())
    except (ssl.SSLError, ValueError):
        raise PrometheusError("caSecretRef, or caFile, holds no certificate in PEM") from None
    if endpoint.certificate is not None:
        with tempfile.TemporaryDirectory(prefix="ballast-") as folder:
            file = Path(folder, "client.pem")
            file.write_text(endpoint.certificate, encoding="utf-8")
            try:
                context.load_cert_chain(file, password="")  # otherwise it asks at the terminal
            except (ssl.SSLError, ValueError):
                raise PrometheusError(
                    "clientCertificateSecretRef, or certificateFile, holds no certificate with its key in PEM"
                ) from None
    return context


def _signature(region: str | None, environ: Mapping[str, str]) -> Any:
    """Signs each request with the credentials that botocore finds and renews, or else with the environment's."""
    if region is None:
        return None
    try:
        from requests_aws4auth import AWS4Auth  # noqa: PLC0415 -- an extra
    except ImportError:
        raise PrometheusError("requests can't be signed for AWS: install ballast-operator[aws]") from None
    try:
        from botocore.session import get_session  # noqa: PLC0415 -- roles of pods need it, and nothing else
    except ImportError:
        found = [environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
        if not all(found):
            words = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or install botocore for the role of a pod"
            raise PrometheusError(f"requests can't be signed for AWS: {words}") from None
        return AWS4Auth(*found, region, _SERVICE, session_token=environ.get("AWS_SESSION_TOKEN"))
    credentials = get_session().get_credentials()
    if credentials is None:
        raise PrometheusError("requests can't be signed for AWS: botocore finds no credentials in the environment")
    return AWS4Auth(refreshable_credentials=credentials, region=region, service=_SERVICE)


_OF_LIBRARIES = (requests.RequestException, urllib3.exceptions.HTTPError)
_TOLD = (OSError, HTTPException, UnicodeError, urllib3.exceptions.LocationValueError)


def _cause(error: BaseException) -> BaseException:
    """The innermost error that says what is wrong: libraries wrap it several times."""
    found, each = error, error.__cause__ or error.__context__
    while each is not None:
        if isinstance(each, _TOLD):
            found = each
        each = each.__cause__ or each.__context__
    return found


def _redirected(answer: requests.Response) -> str:
    try:
        target = urlsplit(answer.headers.get("Location", ""))
        place = f" to {shown(f'{target.scheme}://{target.hostname}')}" if target.hostname else ""
    except ValueError:
        place = ""
    return (
        f"it redirects{place} (HTTP {answer.status_code}), which is not followed: set url to the address that answers"
    )


def _refused(status: int, body: bytes) -> str:
    hints = {
        401: "see to the token (bearerTokenSecretRef, bearerTokenFile) or to the headers",
        403: "see to the token (bearerTokenSecretRef, bearerTokenFile) or to the headers",
        404: "there is no Prometheus at this address: correct its path",
    }
    return f"HTTP {status}: {refusal_of(body) or hints.get(status, 'see to the server')}"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03d}"
