"""What becomes of an answer's bytes, and what is said of those that can't be used."""

from __future__ import annotations

import json

import pytest

from ballast.errors import InvalidField
from ballast.prometheus import Endpoint, Prometheus, PrometheusError
from ballast.prometheus.client import parsed
from tests.unit.prometheus.lying import lying


def answer(kind: str, *series: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": series}}).encode()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"status": "error", "error": "query timed out"}', "query timed out"),
        (b'{"status": "success"}', "its answer is not one of Prometheus"),
        (b"<html>", "its answer is not one of Prometheus"),
        (answer("scalar", 1), "it gives a scalar, not a vector"),
    ],
)
def test_an_answer_that_is_none_is_told_in_words(body: bytes, told: str) -> None:
    with pytest.raises(PrometheusError, match=told):
        parsed(body)


WARNED = {"warnings": ["receive series from Addr: 10.0.0.7:10901: context deadline exceeded"]}
OF_VALUES = {"warnings": ['PromQL warning: bucket label "le" is missing'], "infos": ["PromQL info: not a counter"]}


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        pytest.param(WARNED, True, id="Thanos misses a store"),
        pytest.param({"isPartial": True}, True, id="VictoriaMetrics misses a node"),
        pytest.param({"isPartial": False, "warnings": None}, False, id="nothing is missing"),
        pytest.param(OF_VALUES, False, id="Prometheus 3.13.5 warns of values"),
    ],
)
def test_an_answer_whose_server_warns_of_missing_series_is_not_used(said: dict[str, object], refused: bool) -> None:
    whole = json.loads(answer("vector", {"metric": {"node": "a"}, "value": [1.0, "0.5"]}))
    body = json.dumps({**whole, **said}).encode()
    if not refused:
        assert len(parsed(body).series) == 1
        return
    with pytest.raises(PrometheusError, match="series may be missing from its answer; the server warns: "):
        parsed(body)


def test_a_vector_has_one_value_a_series_and_a_range_has_several() -> None:
    vector = parsed(answer("vector", {"metric": {"node": "a"}, "value": [1.0, "0.5"]}))
    matrix = parsed(answer("matrix", {"metric": {"node": "a"}, "values": [[1.0, "0.5"], [2.0, "0.7"]]}))
    assert [(each.values, each.ranged) for each in (*vector.series, *matrix.series)] == [
        ((0.5,), False),
        ((0.5, 0.7), True),
    ]


def test_series_without_a_value_or_with_one_that_is_no_number_are_counted_and_spoil_no_other() -> None:
    found = parsed(
        answer("vector", {"metric": {}}, {"metric": {}, "value": [1.0, "much"]}, {"metric": {}, "value": [1.0, "2"]})
    )
    assert ([each.values for each in found.series], found.malformed) == ([(2.0,)], 2)


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "HTTP 401: see to the token (bearerTokenSecretRef, bearerTokenFile) or to the headers"),
        (404, "HTTP 404: there is no Prometheus at this address: correct its path"),
        (500, "HTTP 500: see to the server"),
    ],
)
def test_a_refusal_without_words_names_what_to_look_at(status: int, hint: str) -> None:
    said = f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()
    with lying([said]) as server, pytest.raises(PrometheusError) as refused:
        Prometheus(Endpoint(server.url, timeout_seconds=5)).query("up")
    assert str(refused.value) == hint


def test_a_header_whose_name_can_not_be_one_is_named() -> None:
    with pytest.raises(InvalidField, match=r"headers.X Scope: '\*\*\*': write the name of a header"):
        Prometheus(Endpoint("http://127.0.0.1:1", headers={"X Scope": "team"}))
