from __future__ import annotations

import pytest

from ballast.errors import InvalidField
from ballast.spark.source.server import server


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
    with pytest.raises(InvalidField, match=r"\*\*\*@prometheus.*: credentials .* use bearerTokenFile") as told:
        server({"url": url})
    assert "secret" not in str(told.value)
    assert "secret" not in repr(told.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"caFile": "/ca"}, "caFile: '/ca': the url is one of http://"),
        ({"bearerTokenFile": "/token", "headers.Authorization": "Basic x"}, "bearerTokenFile: '/token': headers.Auth"),
        ({"timeout": "soon"}, "timeout: 'soon'"),
        ({"headers.": "secret"}, r"headers\.: .*the name of a header"),
        ({"headers.a b": "secret"}, r"headers\.a b: .*the name of a header"),
        ({"headers.X-Key": "secret\nx: y"}, r"headers\.x-key: .*one line"),
        ({"headers.X-Key": "secret€"}, r"headers\.x-key: .*one line"),
    ],
)
def test_an_option_that_has_no_effect_or_cannot_be_sent_is_named(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidField, match=words) as told:
        server({"url": "http://prometheus:9090", **given})
    assert "secret" not in str(told.value)
