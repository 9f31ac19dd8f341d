"""What the session adds to the client, and what it keeps from it."""

from __future__ import annotations

import gzip

import pytest

from ballast.prometheus.endpoint import AnswerTooLongError, Endpoint, PrometheusError
from ballast.prometheus.session import Transport
from tests.unit.prometheus.lying import OK, lying
from tests.unit.prometheus.server import EMPTY, serving
from tests.unit.spark.faults import matrix
from tests.unit.spark.faults import serving as ranges

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def transport(url: str, *, most_bytes: int = 1 << 20, method: str = "GET", **given: object) -> Transport:
    return Transport(Endpoint(url, timeout_seconds=30.0, **given), most_bytes=most_bytes, method=method)  # type: ignore[arg-type]


def test_an_answer_that_was_asked_to_be_compressed_is_unpacked() -> None:
    packed = gzip.compress(EMPTY.encode())
    with lying([OK, b"Content-Encoding: gzip\r\n\r\n", packed]) as server:
        assert transport(server.url, headers={"accept-encoding": "gzip"}).instant("up").body == EMPTY.encode()


def test_a_short_answer_that_unpacks_to_a_long_one_is_given_up() -> None:
    packed = gzip.compress(b" " * (8 << 20))
    assert len(packed) < 1 << 16
    with (
        lying([OK, b"Content-Encoding: gzip\r\n\r\n", packed]) as server,
        pytest.raises(AnswerTooLongError, match="longer than 1048576 bytes"),
    ):
        transport(server.url, headers={"Accept-Encoding": "gzip"}).instant("up")


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving() as server:
        assert transport(server.url).instant("up").body == EMPTY.encode()


def test_a_proxy_that_is_away_is_told_as_such() -> None:
    told = "can't be reached through its proxy: Connection refused"
    with pytest.raises(PrometheusError, match=told):
        transport("http://prometheus:9090", proxy="http://127.0.0.1:1").instant("up")


def test_a_long_query_goes_in_a_form() -> None:
    query = f'up{{pod=~"{"|".join(f"pod-{number}" for number in range(10_000))}"}}'
    with ranges(matrix()) as server:
        transport(server.url, method="POST").range(query, start_ms=1_500, end_ms=2_500, step_ms=500)
        (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/query_range")
    assert asked.fields == {
        "query": query, "start": "1.500", "end": "2.500", "step": "0.500", "timeout": "30000ms",
    }  # fmt: skip


def test_a_redirect_with_a_long_body_is_not_read() -> None:
    """requests reads it before it looks whether to follow."""
    head = b"HTTP/1.1 302 Moved\r\nLocation: http://elsewhere/\r\nContent-Length: 100000000\r\n\r\n"
    with lying([head, b"x"], pause_seconds=0.01) as server, pytest.raises(PrometheusError, match="it redirects to"):
        transport(server.url).instant("up")


def test_no_cookie_of_one_answer_goes_with_the_next_query() -> None:
    said = [OK, b"Set-Cookie: node=b; Path=/\r\n\r\n", EMPTY.encode()]
    with lying(said) as server:
        client = transport(server.url)
        client.instant("up")
        client.instant("up")
    assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_are_signed_for_amazon_with_the_credentials_of_the_environment(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(KEYS, ("AKID", "hidden", "session"), strict=True):
        monkeypatch.setenv(name, value)
    with ranges(matrix()) as server:
        client = transport(server.url, method=method, region="eu-west-1")
        client.range("up", start_ms=0, end_ms=0, step_ms=1000)
        (asked,) = server.asked
    sent = {name.lower(): value for name, value in asked.headers.items()}
    assert sent["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/")
    assert "/eu-west-1/aps/aws4_request" in sent["authorization"]
    assert sent["x-amz-security-token"] == "session"
    assert "hidden" not in str(asked.headers)


def test_a_signature_without_credentials_is_refused_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(PrometheusError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        transport("http://127.0.0.1:1", region="eu-west-1")
