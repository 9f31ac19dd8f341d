"""Whose clock counts."""

from __future__ import annotations

import time
from email.utils import formatdate
from pathlib import Path

import pytest

from ballast.http_date import ahead_seconds
from ballast.kube.client import Client, Limits
from ballast.kube.clock import TOLERANCE_SECONDS, ServerClock
from ballast.kube.connection import Connection
from ballast.kube.kinds import POD
from ballast.moves.arriving import CLOCK_SKEW_SECONDS
from tests.apiserver import Answer, kubeconfig, scripted

NOW = 1_700_000_000.0
HOUR_SECONDS = 3600.0
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("date", "took_seconds", "ahead"),
    [
        pytest.param(formatdate(NOW, usegmt=True), 0.0, 0.0, id="the same second"),
        pytest.param(formatdate(NOW - 1, usegmt=True), 0.0, 0.0, id="rounded down"),
        pytest.param(formatdate(NOW + 5, usegmt=True), 5.0, 0.0, id="the answer took long"),
        pytest.param(formatdate(NOW + 9, usegmt=True), 5.0, 4.0, id="ahead"),
        pytest.param(formatdate(NOW - 9, usegmt=True), 5.0, -8.0, id="behind, at least"),
        pytest.param(None, 0.0, None, id="no header"),
        pytest.param("yesterday", 0.0, None, id="no date"),
        pytest.param("Sat, 99 Nov 99999 00:00:00 GMT", 0.0, None, id="no date that there is"),
    ],
)
def test_what_a_date_says_about_a_clock(date: str | None, took_seconds: float, ahead: float | None) -> None:
    assert ahead_seconds(date, asked_at=NOW, answered_at=NOW + took_seconds) == ahead


@pytest.mark.parametrize("wrong_seconds", [HOUR_SECONDS, -HOUR_SECONDS, TOLERANCE_SECONDS + 2.0])
def test_a_clock_that_is_wrong_is_corrected_until_it_is_right(wrong_seconds: float) -> None:
    own = [NOW + wrong_seconds]
    clock = ServerClock(lambda: own[0])
    clock.heard({**JSON, "Date": formatdate(NOW, usegmt=True)}, asked_at=clock())
    assert clock() == pytest.approx(NOW, abs=1.0)
    own[0] = NOW
    clock.heard({**JSON, "Date": formatdate(NOW, usegmt=True)}, asked_at=clock())
    assert clock() == pytest.approx(NOW, abs=1.0)


@pytest.mark.parametrize(
    ("headers", "server"),
    [
        pytest.param(JSON, NOW + TOLERANCE_SECONDS, id="wrong by little"),
        pytest.param({**JSON, "Age": "3600"}, NOW - HOUR_SECONDS, id="from a cache"),
        pytest.param({"Content-Type": "text/html"}, NOW - HOUR_SECONDS, id="a gateway's page"),
    ],
)
def test_a_clock_is_left_alone_by_what_does_not_show_that_it_is_wrong(headers: dict[str, str], server: float) -> None:
    clock = ServerClock(lambda: NOW)
    clock.heard({**headers, "Date": formatdate(server, usegmt=True)}, asked_at=NOW)
    assert clock() == NOW


def test_a_replacement_is_still_recognized_by_a_clock_that_is_wrong_by_what_is_not_corrected() -> None:
    """Date and creationTimestamp are rounded down by up to a second each."""
    assert TOLERANCE_SECONDS + 1.0 + 1.0 <= CLOCK_SKEW_SECONDS


def test_a_client_tells_the_clock_of_every_answer(tmp_path: Path) -> None:
    with scripted(Answer(headers=JSON)) as server:
        clock = ServerClock(lambda: time.time() + HOUR_SECONDS)
        client = Client(Connection.from_kubeconfig(kubeconfig(tmp_path, server.url)), Limits(), clock=clock)
        client.get(POD, "p", namespace="ns")
        client.close()
    assert clock.behind_seconds == pytest.approx(-HOUR_SECONDS, abs=2.0)
