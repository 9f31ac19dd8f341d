from __future__ import annotations

from pathlib import Path

import pytest
from urllib3 import HTTPResponse
from urllib3.util import Retry

from ballast.errors import InvalidField
from ballast.prometheus.server import Server
from ballast.prometheus.session import PATIENT
from ballast.spark.errors import SourceError
from ballast.spark.source.asking import asking
from ballast.spark.source.moment import Grid
from tests.testbed.pki import create_pki
from tests.unit.prometheus import server as tls
from tests.unit.prometheus.lying import lying
from tests.unit.spark.faults import Answer, failure, matrix, serving

GRID = Grid(1_767_225_600_250, 15_000, 3)
AT_ONCE: Retry = PATIENT.new(backoff_factor=0, backoff_jitter=0)
"""As patient as in use, but with no waiting between."""


def ask(server: Server) -> bytes:
    with asking(server, patience=AT_ONCE) as prometheus:
        return prometheus.range("up", start_ms=GRID.start_ms, end_ms=GRID.last_ms, step_ms=GRID.step_ms).body


def test_a_range_is_asked_for_with_its_ends_included() -> None:
    with serving(matrix()) as server:
        ask(Server(f"{server.url}/prometheus", timeout_seconds=7.5))
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/prometheus/api/v1/query_range")
    assert asked.fields == {
        "query": "up",
        "start": "1767225600.250",
        "end": "1767225630.250",
        "step": "15.000",
        "timeout": "7500ms",
    }


@pytest.mark.parametrize(
    "fault",
    [
        failure(429, "too_many_requests", "slow down", **{"Retry-After": "0"}),
        failure(503, "unavailable", "starting"),
        failure(503, "unavailable", "starting", **{"Retry-After": "soon"}),
        Answer(b"bad gateway", 502),
        failure(500, "internal", "disk"),
        Answer(b"no room for it", 507),
        Answer(b'{"status":"succ', promised_bytes=1000),
    ],
)
def test_a_passing_fault_is_asked_again(fault: Answer) -> None:
    with serving(fault, fault, matrix()) as server:
        assert ask(Server(server.url)) == matrix().body
    assert len(server.asked) == 3


def test_no_answer_in_time_is_asked_again() -> None:
    with serving(Answer(never=True), matrix()) as server:
        assert ask(Server(server.url, timeout_seconds=0.2)) == matrix().body


def test_an_answer_that_drips_is_given_up_when_its_time_is_over_and_asked_for_again() -> None:
    """The timeout was for each read: the task waited for as long as something came."""
    with serving(Answer(drips=True, promised_bytes=1 << 20), matrix()) as server:
        assert ask(Server(server.url, timeout_seconds=0.2)) == matrix().body


def test_a_fault_that_stays_is_told_in_the_servers_words() -> None:
    words = "HTTP 503: unavailable: the head is not ready"
    with (
        serving(failure(503, "unavailable", "the head is not ready")) as server,
        pytest.raises(SourceError, match=words),
    ):
        ask(Server(server.url))
    assert len(server.asked) == 7


def test_a_server_that_never_answers_is_told_with_the_time_waited() -> None:
    words = r"no answer within 0\.1 s"
    with serving(Answer(never=True)) as server, pytest.raises(SourceError, match=words):
        ask(Server(server.url, timeout_seconds=0.1))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            failure(400, "bad_data", "1:5: parse error: unclosed left parenthesis"),
            "bad_data: 1:5: parse error: unclosed",
        ),
        (
            failure(422, "execution", "query processing would load too many samples into memory"),
            "too many samples into memory .a shorter partitionSpan",
        ),
        (Answer(b"<html>sign in</html>", 401), "HTTP 401: see to the token"),
        (Answer(b"", 404), "HTTP 404: there is no Prometheus at this address"),
    ],
)
def test_a_refusal_is_not_asked_again_and_told_in_the_servers_words(fault: Answer, words: str) -> None:
    with serving(fault) as server, pytest.raises(SourceError, match=words):
        ask(Server(server.url))
    assert len(server.asked) == 1


def test_a_redirect_is_not_followed_so_that_no_header_reaches_another_host() -> None:
    with lying([b""]) as other:
        redirect = f"HTTP/1.1 307 Moved\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode()
        with (
            lying([redirect]) as server,
            pytest.raises(
                SourceError, match=r"it redirects to http://127\.0\.0\.1 \(HTTP 307\), which is not followed"
            ),
        ):
            ask(Server(server.url, headers={"X-Api-Key": "hidden"}))
        assert b"X-Api-Key: hidden" in server.requests[0]
        assert other.requests == []


def test_a_server_that_cannot_be_reached_is_named() -> None:
    with serving(matrix()) as server:
        url = server.url
    with pytest.raises(SourceError, match=f"{url}: can't be reached: Connection refused"):
        ask(Server(url))


def test_the_token_is_read_each_time_and_headers_are_sent(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with serving(matrix()) as server:
        asked = Server(server.url, headers={"X-Scope-OrgID": "team"}, bearer_token_file=str(token))
        for text in ("one\n", "two\n"):
            token.write_text(text)
            ask(asked)
    assert [one.headers["Authorization"] for one in server.asked] == ["Bearer one", "Bearer two"]
    assert all(one.headers["X-Scope-OrgID"] == "team" for one in server.asked)


def test_a_header_of_the_users_own_takes_the_place_of_ours() -> None:
    with serving(matrix()) as server:
        ask(Server(server.url, headers={"accept-encoding": "gzip"}))
    assert {name.lower(): value for name, value in server.asked[0].headers.items()}["accept-encoding"] == "gzip"


def test_a_token_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match=r"bearerTokenFile: .*can be read where the data is read"):
        ask(Server("http://127.0.0.1:1", bearer_token_file=str(tmp_path / "none")))


@pytest.mark.parametrize("text", [b"", b"\n", b"one\ntwo", b"Bearer one", b"\xff\xfe", "tökén".encode()])
def test_a_file_that_holds_no_token_is_named_and_not_shown(text: bytes, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(text)
    with pytest.raises(InvalidField, match=r"bearerTokenFile: .*/token': name a file that") as told:
        ask(Server("http://127.0.0.1:1", bearer_token_file=str(token)))
    assert "one" not in str(told.value)


def test_a_certificate_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidField, match=r"caFile: .*can be read where the data is read"):
        ask(Server("https://127.0.0.1:1", ca_file=str(tmp_path / "none")))


def test_a_server_is_trusted_by_the_certificates_named_alone(tmp_path: Path) -> None:
    pki = create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    with tls.serving(pki.apiserver) as server:
        assert ask(Server(server.url, ca_file=str(pki.cluster_ca.files.certificate))) == tls.EMPTY.encode()
        for ca_file in (None, str(pki.etcd_ca.files.certificate)):
            with pytest.raises(SourceError, match=f"^{server.url}: its certificate can't be verified"):
                ask(Server(server.url, ca_file=ca_file))
    assert len(server.headers) == 1


def test_values_of_a_label_are_asked_for_with_the_selector() -> None:
    """One that the server names twice counts once: its rows would be read twice."""
    with (
        serving(Answer(b'{"status":"success","data":["b","a","b"]}')) as server,
        asking(Server(server.url), patience=AT_ONCE) as prometheus,
    ):
        assert prometheus.label_values("pod", 'up{a="b"}', start_ms=1000, end_ms=2500) == ["a", "b"]
    (asked,) = server.asked
    assert asked.path == "/api/v1/label/pod/values"
    assert asked.fields == {"match[]": 'up{a="b"}', "start": "1.000", "end": "2.500"}


@pytest.mark.parametrize(
    ("asked", "seconds"), [("5", 5.0), ("1000000000", 60.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 60.0)]
)
def test_a_server_is_waited_for_a_minute_at_most(asked: str, seconds: float) -> None:
    assert PATIENT.get_retry_after(HTTPResponse(headers={"Retry-After": asked})) == seconds
