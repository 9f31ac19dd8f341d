from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ballast.prometheus.client import Prometheus
from ballast.prometheus.endpoint import PrometheusError
from ballast.prometheus.series import Answer, Series
from ballast.spark.routing import PrometheusLoad
from ballast.spark.routing.loads import HALF_LIFE_SECONDS, Calls, _client_of


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def each_with_its_own_client() -> Iterator[None]:
    yield
    _client_of.cache_clear()


def loads(monkeypatch: pytest.MonkeyPatch, *series: tuple[dict[str, str], float]) -> dict[str, float]:
    answer = Answer(tuple(Series(labels, (value,)) for labels, value in series))
    monkeypatch.setattr(Prometheus, "query", lambda server, text: answer)
    return dict(PrometheusLoad("http://prometheus", "busy").read())


def test_a_load_is_found_with_and_without_the_port_of_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loads(monkeypatch, ({"instance": "10.0.0.1:9404"}, 0.5)) == {"10.0.0.1:9404": 0.5, "10.0.0.1": 0.5}


def test_an_ipv6_address_without_its_port_has_no_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ServiceEndpoints names it where the exporter has another port."""
    assert loads(monkeypatch, ({"instance": "[fd00::1]:9404"}, 0.5)) == {"[fd00::1]:9404": 0.5, "fd00::1": 0.5}


def test_a_load_lies_between_idle_and_full_and_what_is_no_number_or_has_no_label_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"a": 7.0, "b": -1.0, "c": float("nan")}
    series = [({"instance": name}, value) for name, value in values.items()]
    assert loads(monkeypatch, *series, ({"job": "d"}, 0.5)) == {"a": 1.0, "b": 0.0}


def test_a_series_without_a_value_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Answer((Series({"instance": "a"}, (), ranged=True),))
    monkeypatch.setattr(Prometheus, "query", lambda server, text: empty)
    assert not PrometheusLoad("http://prometheus", "busy").read()


def test_a_prometheus_that_does_not_answer_gives_no_load(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(server: Prometheus, text: str) -> Answer:
        raise PrometheusError("connection refused")

    monkeypatch.setattr(Prometheus, "query", refuse)
    assert not PrometheusLoad("http://prometheus", "busy").read()
    assert "no load is known from Prometheus at http://prometheus: connection refused" in caplog.text


def call(calls: Calls, clock: Clock, seconds: float, *, times: int = 1) -> None:
    for _ in range(times):
        with calls.timed("near"):
            clock.now += seconds


def test_a_load_is_how_long_recent_calls_took_as_a_share() -> None:
    clock = Clock()
    calls = Calls(1.0, clock=clock)
    call(calls, clock, 0.25, times=100)
    assert calls.load("near") == pytest.approx(0.25)
    call(calls, clock, 3.0, times=20)
    assert calls.load("near") > 0.9
    assert calls.load("never called") == 0.0


def test_a_target_that_is_no_longer_called_is_idle_again() -> None:
    clock = Clock()
    calls = Calls(0.1, clock=clock)
    call(calls, clock, 0.1, times=4)
    assert calls.load("near") == pytest.approx(1.0)
    clock.now += 5 * HALF_LIFE_SECONDS
    assert calls.load("near") < 0.2


def test_a_call_in_flight_counts_by_how_long_it_has_taken() -> None:
    clock = Clock()
    calls = Calls(10.0, clock=clock)
    with calls.timed("near"):
        clock.now += 5.0
        assert calls.load("near") == 0.5
        clock.now += 50.0
        assert calls.load("near") == 1.0


def test_a_call_that_raises_at_once_counts_as_full() -> None:
    clock = Clock()
    calls = Calls(1.0, clock=clock)
    with pytest.raises(ConnectionRefusedError), calls.timed("near"):
        raise ConnectionRefusedError
    assert calls.load("near") == 1.0
