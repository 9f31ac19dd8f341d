from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from ballast.errors import InvalidField
from ballast.prometheus import Answer, Endpoint, Prometheus, PrometheusError, Series
from ballast.prometheus.session import Transport
from tests.testbed.pki import create_pki
from tests.unit.prometheus.lying import OK, lying
from tests.unit.prometheus.server import EMPTY, Server, serving

ANSWER_BYTES = 32 << 20
"""What the operator reads of one."""
KEY = {"X-Api-Key": "hidden"}


def asking(server: Server, *, timeout_seconds: float = 30.0, **headers: str) -> Prometheus:
    return Prometheus(Endpoint(f"{server.url}/", timeout_seconds=timeout_seconds, headers=headers))


def refusal_of(pieces: Iterable[bytes]) -> str:
    """What is said about a server that answers with these bytes."""
    with lying(pieces) as server, pytest.raises(PrometheusError) as refused:
        Prometheus(Endpoint(server.url, timeout_seconds=30.0)).query("up")
    assert server.requests
    return str(refused.value)


def test_a_slow_server_is_waited_for_no_longer_than_the_timeout() -> None:
    with serving() as server, pytest.raises(PrometheusError, match="no answer within"):
        asking(server, timeout_seconds=0.2).query("slow")


def test_a_refused_query_is_told_in_the_servers_own_words() -> None:
    with serving() as server, pytest.raises(PrometheusError, match="HTTP 400: parse error: unexpected end of input"):
        asking(server).query("bad")


def test_a_dead_server_can_not_be_reached() -> None:
    with serving() as server:
        client = asking(server)
    with pytest.raises(PrometheusError, match="can't be reached: Connection refused"):
        client.query("up")


@pytest.mark.parametrize("host", ["prometheus.invalid", "a..b", "a" * 300])
def test_a_name_that_does_not_exist_is_told(host: str) -> None:
    with pytest.raises(PrometheusError, match="can't be reached: its name is not known"):
        Prometheus(Endpoint(f"http://{host}:9090", timeout_seconds=30.0)).query("up")


def test_one_query_that_fails_takes_no_other_with_it() -> None:
    with serving() as server:
        answers, failures = asking(server).query_all({"good": "up", "bad": "bad", "cut": "cut"})
    assert answers == {"good": Answer()}
    assert set(failures) == {"bad", "cut"}


def test_where_an_answer_is_too_long_shorter_ones_are_asked_for() -> None:
    with serving() as server:
        server.said_to = dict.fromkeys(("all", "half"), EMPTY + " " * ANSWER_BYTES)
        shortened = {"a": ["half", "few", "fewer"], "b": ["few"], "c": ["half"]}
        client = Prometheus(Endpoint(server.url, timeout_seconds=20.0))
        answers, failures = client.query_all({"a": "all", "b": "up", "c": "all"}, shortened=shortened)
    assert answers == {"a": Answer(shortened=True), "b": Answer()}
    assert sorted(server.queries) == ["all", "all", "few", "half", "half", "up"]
    (why,) = failures.values()
    assert "select fewer series" in why


def test_answers_that_have_too_many_values_together_count_as_too_long() -> None:
    """However short they are as text, they would fill the memory as objects."""
    series = {"metric": {}, "values": [[1.0, "7"], [2.0, "7"], [3.0, "7"]]}
    matrix = {"status": "success", "data": {"resultType": "matrix", "result": [series] * 10}}
    with serving() as server:
        server.said_to = {"vector": _vector(*["7"] * 40), "matrix": json.dumps(matrix), "few": _vector()}
        client = Prometheus(Endpoint(server.url))
        for name in ("vector", "matrix"):
            answers, failures = client.query_all({"a": name}, shortened={"a": ["few"]}, most_values=29)
            assert (answers, failures) == ({"a": Answer(shortened=True)}, {})
            answers, failures = client.query_all({"a": name, "b": name}, most_values=70)
            assert len(answers) == len(failures) == 1
            assert all("too many values" in why for why in failures.values())
            answers, failures = client.query_all({"a": name, "b": name}, most_values=100)
            assert len(answers) == 2


@pytest.mark.parametrize(
    "labels", [{f"a{number}": "b" for number in range(1_000)}, {"a": "b" * 100_000}], ids=["many", "long"]
)
def test_labels_count_as_values_where_they_are_many_or_long(labels: dict[str, str]) -> None:
    """A server may answer one series with as many as an answer holds, to each query."""
    result = [{"metric": labels, "value": [1.0, "7"]}]
    with serving() as server:
        server.said = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})
        client = Prometheus(Endpoint(server.url))
        answers, failures = client.query_all(dict.fromkeys("ab", "up"), most_values=200)
        assert len(answers) == len(failures) == 1
        assert all("too many values" in why for why in failures.values())
        assert len(client.query_all(dict.fromkeys("ab", "up"), most_values=500)[0]) == 2


def test_users_queries_give_one_value_each_and_none_begins_late() -> None:
    """A user may write any number of queries, and the pass waits for their answers."""
    with serving() as server:
        server.said = _vector("7")
        found = asking(server).single_all({"a": "up", "bad": "bad"}, at=1.0, within_seconds=30.0)
        assert found == {"a": Answer((Series({}, (7.0,)),))}
        server.said = _vector("7", "8")
        assert asking(server).single_all({"two": "up"}, at=1.0, within_seconds=30.0) == {"two": Answer()}
        server.said = _vector(*["7"] * 5000)
        assert asking(server).single_all({"long": "up"}, at=1.0, within_seconds=30.0) == {}
        before = len(server.queries)
        many = {f"slow-{number}": "slow" for number in range(40)}
        assert asking(server, timeout_seconds=0.5).single_all(many, at=1.0, within_seconds=0.2) == {}
        assert len(server.queries) - before <= 6


def _vector(*values: str) -> str:
    result = [{"metric": {"pod": "a"}, "value": [1.0, value]} for value in values]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def test_headers_go_with_every_query() -> None:
    with serving() as server:
        client = asking(server, Authorization="Bearer secret")
        client.query("up")
        client.query("up")
    assert [headers["Authorization"] for headers in server.headers] == ["Bearer secret", "Bearer secret"]


def test_a_path_before_the_api_is_kept() -> None:
    with lying([OK, b"\r\n", EMPTY.encode()]) as server:
        assert Prometheus(Endpoint(f"{server.url}/select/0/prometheus/")).query("a b") == Answer()
    assert server.requests[0].startswith(b"GET /select/0/prometheus/api/v1/query?query=a+b HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "value", ["hidden\n", "hidden\r\nHost: elsewhere", " hidden", "hidden\x00", "hidden\N{SNOWMAN}"]
)
def test_a_header_that_can_not_be_sent_is_named_and_its_value_is_not_told(value: str) -> None:
    with pytest.raises(InvalidField, match=r"headers\.X-Scope: .*: write one line") as refused:
        Prometheus(Endpoint("http://127.0.0.1:1", headers={"X-Scope": value}))
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://me:hidden@prometheus:9090", "url: .*credentials don't belong into an address"),
        ("https://hidden@prometheus", "url: .*credentials don't belong into an address"),
        ("http://prometheus?token=hidden", "url: 'http://prometheus': leave out what follows"),
        ("http://prometheus:99999", "url: .*write http:// or https:// and a host"),
        ("file:///prometheus", "url: .*write http:// or https:// and a host"),
    ],
)
def test_an_address_is_only_an_address_and_credentials_in_it_are_not_repeated(url: str, message: str) -> None:
    with pytest.raises(InvalidField, match=message) as refused:
        Prometheus(Endpoint(url))
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_so_that_no_header_reaches_another_host(status: int) -> None:
    with serving() as other:
        redirect = f"HTTP/1.1 {status} Moved\r\nLocation: {other.url}/api/v1/query?query=up\r\n\r\n".encode()
        with lying([redirect]) as server, pytest.raises(PrometheusError) as refused:
            Prometheus(Endpoint(server.url, timeout_seconds=30.0, headers=KEY)).query("up")
        assert other.headers == []
    assert b"X-Api-Key: hidden" in server.requests[0]
    assert f"it redirects to http://127.0.0.1 (HTTP {status}), which is not followed" in str(refused.value)
    assert "set url to the address that answers" in str(refused.value)


ENDLESS = 10_000


@pytest.mark.parametrize(
    "pieces",
    [
        [OK, *[b"X"] * ENDLESS],
        [OK, *[b"X-A: b\r\n"] * 90, *[b"X"] * ENDLESS],
        [OK, b"\r\n", *[b" "] * ENDLESS],
        [OK, b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * ENDLESS],
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * ENDLESS,
    ],
    ids=["status line", "header", "body", "chunks", "continue"],
)
def test_a_server_that_drips_is_left_at_the_deadline(pieces: list[bytes]) -> None:
    """Each byte comes in time; all of them together would take hundreds of seconds."""
    with lying(pieces, pause_seconds=0.02) as server, pytest.raises(PrometheusError, match="no answer within"):
        Prometheus(Endpoint(server.url, timeout_seconds=0.4)).query("up")


def test_a_server_that_never_ends_the_tls_handshake_is_left_at_the_deadline() -> None:
    with lying([b""], pause_seconds=30.0) as server, pytest.raises(PrometheusError, match="no answer within"):
        Prometheus(Endpoint(server.url.replace("http", "https"), timeout_seconds=0.5)).query("up")


def test_a_resolver_that_hangs_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(30) and [])
    try:
        with pytest.raises(PrometheusError, match="no answer within"):
            Prometheus(Endpoint("http://prometheus.monitoring:9090", timeout_seconds=0.2)).query("up")
    finally:
        ended.set()


def test_no_more_is_read_of_an_answer_than_the_cap() -> None:
    pieces = [OK, b"\r\n", *[b" " * 4096] * 100]
    with lying(pieces) as server, pytest.raises(PrometheusError, match="longer than 1000 bytes: select fewer series"):
        Transport(Endpoint(server.url, timeout_seconds=30.0), most_bytes=1000).instant("up")


def test_a_compressed_answer_that_was_not_asked_for_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * (8 * ANSWER_BYTES))
    assert len(bomb) < ANSWER_BYTES
    said = refusal_of([OK, b"Content-Encoding: gzip\r\n\r\n", bomb])
    assert said == "its answer is compressed although it was asked not to compress"


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([OK, b"Content-Length: 100\r\n\r\n", b"{}"], "its answer breaks off"),
        ([OK, b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\n{}"], "its answer breaks off"),
        ([b""], "its answer is no HTTP, or breaks off"),
        ([b"220 mail\r\n\r\n"], "its answer is no HTTP, or breaks off"),
        ([OK, b"\r\n", b"<html>Sign in</html>"], "its answer is not one of Prometheus"),
        ([b"HTTP/1.1 401 No\r\n\r\n", b"<html>"], "HTTP 401: see to the token (bearerTokenSecretRef, bearer"),
        ([b"HTTP/1.1 503 No\r\n\r\n", b'{"error":"\\u001b[2J%b"}' % (b"x" * 999)], "HTTP 503: \ufffd[2Jxx"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_told_plainly(pieces: list[bytes], message: str) -> None:
    said = refusal_of(pieces)
    assert said.startswith(message)
    assert len(said) < 300


def test_a_server_without_tls_is_told_apart_from_one_that_is_away() -> None:
    with lying([b"HTTP/1.1 400 Bad Request\r\n\r\n"]) as server, pytest.raises(PrometheusError, match="TLS fails: "):
        Prometheus(Endpoint(server.url.replace("http", "https"), timeout_seconds=30.0)).query("up")


def test_an_authority_that_is_none_is_told() -> None:
    with pytest.raises(PrometheusError, match="caSecretRef, or caFile, holds no certificate in PEM"):
        Prometheus(Endpoint("https://127.0.0.1", authority="what"))


def test_a_server_whose_certificate_is_signed_by_no_one_known_is_told_apart_from_one_that_is_away(
    tmp_path: Path,
) -> None:
    pki = create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    with serving(pki.apiserver) as server, pytest.raises(PrometheusError, match="its certificate can't be verified"):
        asking(server).query("up")
