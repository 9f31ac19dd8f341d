from __future__ import annotations

import pickle

import pytest

from ballast.errors import InvalidField
from ballast.spark.source.moment import MOST_STEPS, Grid
from ballast.spark.source.options import Options, server

NEEDED = {"url": "http://prometheus:9090/", "query": "up", "step": "15s"}


def read(**given: str) -> Options:
    return Options.read({**NEEDED, **given})


def test_what_is_needed_is_enough() -> None:
    options = read(start="100", end="now-10")
    assert options.server.url == "http://prometheus:9090"
    assert (options.span_steps, options.trigger_steps) == (MOST_STEPS, MOST_STEPS)
    assert options.label_columns is None
    assert options.grid(now_ms=200_000) == Grid(100_000, 15_000, 7)


def test_names_are_read_whatever_their_case() -> None:
    options = Options.read(
        {
            **NEEDED,
            "url": "https://prometheus:9090",
            "partitionspan": "1h",
            "BEARERTOKENFILE": "/token",
            "caFile": "/ca",
            "certificateFile": "/certificate",
            "keyFile": "/key",
            "proxy": "http://proxy:3128/",
            "headers.X-Scope-OrgID": "team",
            "Timeout": "5s",
            "maxSpanPerTrigger": "4h",
            "partitionBy": "pod",
            "labels": "namespace, pod",
        }
    )
    assert (options.span_steps, options.trigger_steps) == (240, 960)
    assert options.server.bearer_token_file == "/token"
    assert options.server.ca_file == "/ca"
    assert (options.server.certificate_file, options.server.key_file) == ("/certificate", "/key")
    assert options.server.proxy == "http://proxy:3128"
    assert options.server.headers == {"x-scope-orgid": "team"}
    assert options.server.timeout_seconds == 5.0
    assert options.partition_by == "pod"
    assert options.label_columns == ("namespace", "pod")


def test_no_partition_asks_for_more_than_prometheus_answers() -> None:
    assert read(partitionSpan="10d").span_steps == MOST_STEPS


def test_options_travel_to_the_executors() -> None:
    assert pickle.loads(pickle.dumps(read(labels="a"))) == read(labels="a")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"query": " "}, "query: .*in PromQL"),
        ({"step": ""}, "step: .*how far apart"),
        ({"step": "often"}, "step: 'often': write a span"),
        ({"stpe": "15s"}, "stpe: .*did you mean step"),
        ({"zzz": "1"}, "zzz: .*there are url, query"),
        ({"path": "here"}, r"path: 'here': call load\(\) with nothing"),
        ({"maxSpanPerTriger": "1h"}, "did you mean maxSpanPerTrigger"),
        ({"partitionSpan": "1s"}, "partitionSpan: '1s': .*at least one step"),
        ({"maxSpanPerTrigger": "1s"}, "maxSpanPerTrigger: "),
        ({"labels": " , "}, "labels: .*names of labels"),
        ({"labels": "pod,value"}, "labels: .*value is the name of another column"),
        ({"labels": "pod,Pod"}, "labels: .*Pod is the name of another column"),
        ({"timeout": "-1"}, "timeout: "),
        ({"delay": "later"}, "delay: "),
    ],
)
def test_an_option_that_cannot_be_used_is_named_with_a_remedy(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        read(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "start: None: say where to begin"),
        ({"start": "now", "end": "now-1h"}, "end: 'now-1h': .*not before 1970-01-01T00:03:20.000Z"),
        ({"start": "whenever"}, "start: 'whenever'"),
    ],
)
def test_a_range_needs_a_start_that_is_not_after_its_end(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        read(**given).grid(now_ms=200_000)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://prometheus:9090", "http://prometheus:9090"),
        (" https://prometheus/ ", "https://prometheus"),
        ("http://prometheus:9090/api/v1", "http://prometheus:9090"),
        ("http://mimir/prometheus/api/v1/", "http://mimir/prometheus"),
        ("http://[::1]:9090", "http://[::1]:9090"),
        (
            "https://k8s/api/v1/namespaces/monitoring/services/prometheus:9090/proxy",
            "https://k8s/api/v1/namespaces/monitoring/services/prometheus:9090/proxy",
        ),
    ],
)
def test_the_address_of_the_api_is_taken_with_or_without_the_apis_own_path(url: str, base: str) -> None:
    assert server({"url": url}).url == base


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "url: '': say where Prometheus answers"),
        ("prometheus:9090", "url: .*write http://"),
        ("ftp://prometheus", "url: .*write http://"),
        ("http://", "url: .*write http://"),
        ("http://prometheus:ninety", "url: .*write http://"),
        ("http://[::1", "url: .*write http://"),
        ("http://prometheus: 9090", "url: .*write http://"),
        ("http://prometheus/api/v1/query_range", "leave out what is added to it for each request: http://prometheus$"),
        ("http://a/b/api/v1/label/pod/values/", "leave out what is added to it for each request: http://a/b$"),
        ("http://prometheus/?query=up", "url: .*leave out what follows"),
        ("http://prometheus/#graph", "url: .*leave out what follows"),
    ],
)
def test_what_is_no_address_is_refused_with_a_remedy(url: str, words: str) -> None:
    with pytest.raises(InvalidField, match=words):
        server({"url": url})


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@prometheus:9090",
        "https://user:secret@prometheus/api/v1",
        "http://secret@prometheus",
        "http://user:s/secret@prometheus",
        "http://user:s@secret@prometheus",
        "ftp://user:secret@prometheus",
        "user:secret@prometheus:9090",
    ],
)
def test_credentials_in_the_address_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidField, match=r"\*\*\*@prometheus.*: credentials .* use a file or a secret") as told:
        server({"url": url})
    assert "secret@" not in str(told.value)
    assert "secret@" not in repr(told.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"caFile": "/ca"}, "caFile: '/ca': the url is one of http://"),
        ({"bearerTokenFile": "/token", "headers.Authorization": "Basic x"}, "bearerTokenFile: '/token': headers.Auth"),
        ({"certificateFile": "/c"}, "certificateFile: '/c': the url is one of http://"),
        ({"url": "https://p", "keyFile": "/k"}, "keyFile: '/k': name the certificate, too"),
        ({"tenant": "a", "headers.X-Scope-OrgID": "b"}, "tenant: 'a': headers.X-Scope-OrgID says it, too"),
        ({"awsRegion": "eu-west-1", "headers.Authorization": "Basic x"}, "awsRegion: 'eu-west-1': headers.Auth"),
        ({"proxy": "proxy:3128"}, "proxy: .*write http://"),
        ({"timeout": "soon"}, "timeout: 'soon'"),
        ({"headers.": "secret"}, r"headers\.: .*the name of a header"),
        ({"headers.a b": "secret"}, r"headers\.a b: .*the name of a header"),
        ({"headers.X-Key": "secret\nx: y"}, r"headers\.x-key: .*one line"),
        ({"headers.X-Key": "secret€"}, r"headers\.x-key: .*one line"),
    ],
)
def test_an_option_that_has_no_effect_or_cannot_be_sent_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidField, match=words) as told:
        server({"url": "http://prometheus:9090"} | given)
    assert "secret" not in str(told.value)
