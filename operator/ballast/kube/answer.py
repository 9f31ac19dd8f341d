"""How an answer of the API server is read: in what time, up to what length, and as what."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec
import urllib3

from ballast.deadline import deadline_of
from ballast.kube.document import JSON, PAGE, Page, decoded, parsed
from ballast.kube.errors import AnswerTooLong, KubeError, Unavailable, error_of
from ballast.kube.stream import LONGEST_EVENT_BYTES

T = TypeVar("T")
FULL = "application/json"
LONGEST_PAGE_BYTES = 16 << 20
"""Of a list. Any user may create objects of a megabyte and a half: five hundred of them are more than our memory."""
_LONGEST_REFUSAL_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16


class AnswerReader:
    """Safe for threads.

    `server`: its address in messages. `within_seconds`: from the answer's head on; None waits without end.
    """

    def __init__(self, server: str, *, within_seconds: float | None) -> None:
        self._server, self._within_seconds = server, within_seconds

    def read(self, response: urllib3.BaseHTTPResponse, make: Callable[[bytes], T], *, action: str, is_page: bool) -> T:
        """What `make` makes of the body.

        Raises AnswerTooLong for a page of more than LONGEST_PAGE_BYTES; otherwise the KubeError of the status, and
        Unavailable if this is no whole answer of an API server.
        """
        data = self._body(response, action=action, is_page=is_page)
        if response.status >= 300:
            raise _refusal(action, response.status, data, response.headers)
        try:
            return make(data)
        except msgspec.DecodeError as error:
            raise Unavailable(action, "the answer is not the API server's: it is no JSON object") from error

    def _body(self, response: urllib3.BaseHTTPResponse, *, action: str, is_page: bool) -> bytes:
        deadline_of(response).set(self._within_seconds)
        data, most = bytearray(), LONGEST_PAGE_BYTES if is_page else LONGEST_EVENT_BYTES
        try:
            # Piece by piece: urllib3 would keep as many pieces, which leave the memory of each thread in fragments.
            while len(data) <= most and (piece := response.read(_PIECE_BYTES)):
                data += piece
        except (urllib3.exceptions.HTTPError, OSError) as error:
            response.close()
            raise no_answer(action, self._server, error) from error
        if len(data) > most:
            response.close()
            kind = AnswerTooLong if is_page else Unavailable
            raise kind(action, f"the answer has more than {most >> 20} MiB")
        return bytes(data)


def check_is_watch(action: str, response: urllib3.BaseHTTPResponse) -> None:
    """Raises a KubeError, and closes the response, if this is no answer to a watch. Its body is still to be read."""
    if response.status >= 300:
        try:
            data = response.read(_LONGEST_REFUSAL_BYTES)
        except (urllib3.exceptions.HTTPError, OSError):
            data = b""
        response.close()
        raise _refusal(action, response.status, data, response.headers)
    content_type = response.headers.get("Content-Type", "")
    if not content_type.startswith(FULL):
        response.close()
        raise Unavailable(action, f"the answer is not the API server's: its type is {content_type!r}")


def as_object(data: bytes) -> JSON:
    return parsed(data) if data else {}


def as_page(data: bytes) -> Page:
    return decoded(PAGE.decode, data)


class _Unread(msgspec.Struct):
    """Any object: its fields are skipped."""


_UNREAD = msgspec.json.Decoder(_Unread)
"""Built when this module is loaded, as in `document`."""


def as_nothing(data: bytes) -> None:
    if data:
        decoded(_UNREAD.decode, data)


def _refusal(action: str, status: int, data: bytes, headers: Mapping[str, str]) -> KubeError:
    try:
        body = as_object(data)
    except msgspec.DecodeError:
        text = data.decode(errors="replace")[:500]
        body = {"message": f"HTTP {status} with a web page: not the API server's" if text.startswith("<") else text}
    error = error_of(action, status, body)
    if isinstance(error, Unavailable):
        error.retry_after_seconds = _seconds(headers.get("Retry-After"))
    return error


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None


def no_answer(action: str, server: str, error: Exception) -> Unavailable:
    """`server`: its address. `error`: the HTTP library's, or the system's."""
    return Unavailable(action, f"no answer from {server}: {_in_plain_words(error)}")


def _in_plain_words(error: Exception) -> str:
    """Why there was no answer, without the HTTP library's words."""
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "its name can't be resolved"
    if isinstance(error, urllib3.exceptions.TimeoutError) and not isinstance(
        error, urllib3.exceptions.NewConnectionError
    ):
        return "it took too long"
    if isinstance(error, urllib3.exceptions.ProxyError):
        return "the proxy gave none"
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return f"TLS fails: {(cause.reason or 'unknown').replace('_', ' ').lower()}"
    system = next((cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror), None)
    return system.lower() if system else "the connection was closed"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that it came from; urllib3 keeps some of them in its arguments."""
    while error is not None:
        yield error
        nested = next((each for each in error.args if isinstance(each, BaseException)), None)
        error = error.__cause__ or nested or error.__context__
