from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ballast.prometheus import Endpoint, Prometheus, PrometheusError
from tests.testbed.pki import create_pki
from tests.unit.prometheus.server import Server, serving


@contextmanager
def asking(server: Server, **headers: str) -> Iterator[Prometheus]:
    client = Prometheus(Endpoint(f"{server.url}/", timeout_seconds=0.5, headers=headers))
    try:
        yield client
    finally:
        client.close()


def test_a_slow_server_is_waited_for_no_longer_than_the_timeout() -> None:
    with serving() as server, asking(server) as client, pytest.raises(PrometheusError, match="no answer in time"):
        client.query("slow")


def test_a_refused_query_is_told_in_the_servers_own_words() -> None:
    with serving() as server, asking(server) as client, pytest.raises(PrometheusError, match="unexpected end of input"):
        client.query("bad")


def test_a_dead_server_can_not_be_reached() -> None:
    with serving() as server:
        client = Prometheus(Endpoint(server.url, timeout_seconds=0.5))
    with pytest.raises(PrometheusError, match="can't be reached"):
        client.query("up")
    client.close()


def test_one_query_that_fails_takes_no_other_with_it() -> None:
    with serving() as server, asking(server) as client:
        answers, failures = client.query_all({"good": "up", "bad": "bad", "slow": "slow"})
    assert answers == {"good": []}
    assert set(failures) == {"bad", "slow"}


def test_headers_go_with_every_query() -> None:
    with serving() as server, asking(server, Authorization="Bearer secret") as client:
        client.query("up")
        client.query("up")
    assert [headers["Authorization"] for headers in server.headers] == ["Bearer secret", "Bearer secret"]


@pytest.mark.parametrize("value", ["hidden\n", "hidden\r\nHost: elsewhere", " hidden"])
def test_a_header_that_can_not_be_sent_is_named_and_its_value_is_not_told(value: str) -> None:
    with pytest.raises(PrometheusError, match="header X-Scope") as refused:
        Prometheus(Endpoint("http://127.0.0.1:1", headers={"X-Scope": value}))
    assert "hidden" not in str(refused.value)


def test_a_server_whose_certificate_is_signed_by_no_one_known_is_told_apart_from_one_that_is_away(
    tmp_path: Path,
) -> None:
    pki = create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])
    with (
        serving(pki.apiserver) as server,
        asking(server) as client,
        pytest.raises(PrometheusError, match="its certificate can't be verified"),
    ):
        client.query("up")
