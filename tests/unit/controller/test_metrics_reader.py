"""With which credentials a policy's Prometheus is asked."""

from __future__ import annotations

import base64
import ssl
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.ends import Rates
from ballast.controller.metrics_reader import MetricsReader
from ballast.kube import kinds
from ballast.kube.errors import error_of
from ballast.kube.kinds import Kind
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import MetricsHealth
from tests.apiserver import Answer, ApiServer, scripted
from tests.testbed.pki import Pki, create_pki
from tests.unit.kube.builders import driver, executor, node, pod, topology
from tests.unit.prometheus.server import Server, serving

NAMESPACE = "ballast-system"


class Secrets(dict[str, dict[str, bytes]]):
    """Stands in for the API server, which has nothing but these secrets in the operator's namespace."""

    def get(self, kind: Kind, name: str, *, namespace: str) -> dict[str, Any]:  # type: ignore[override]
        assert (kind, namespace) == (kinds.SECRET, NAMESPACE)
        if name not in self:
            raise error_of("get secrets", 404, {"message": f'secrets "{name}" not found'})
        return {"data": {key: base64.b64encode(value).decode() for key, value in self[name].items()}}


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def figures(secrets: Secrets) -> MetricsReader:
    return MetricsReader(secrets, namespace=NAMESPACE)  # type: ignore[arg-type]  # the one question it asks


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    """Of two authorities: `cluster_ca` signed `apiserver`, `etcd_ca` signed `etcd`."""
    return create_pki(tmp_path / "pki", control_hosts=["127.0.0.1"], node_hosts=["127.0.0.1"])


def policy(url: str, **credentials: Any) -> BalancingPolicy:
    prometheus = {"url": url, "timeout": "2s", **credentials}
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {
                "nodeSelector": {"matchLabels": {"pool": "streaming"}},
                "metrics": {"prometheus": prometheus},
            },
        }
    )


def asked(figures: MetricsReader, server: Server, **credentials: Any) -> MetricsHealth:
    """What came of one look, without what looks before it left at the server."""
    server.headers.clear()
    return figures.read(policy(server.url, **credentials), [], [], now=0.0).health


TOKEN = {"bearerTokenSecretRef": {"name": "prometheus", "key": "token"}}
HEADERS = {"headersSecretRef": {"name": "headers"}}
AUTHORITY = {"caSecretRef": {"name": "authority", "key": "ca.crt"}}


def test_a_token_goes_with_every_query(figures: MetricsReader, secrets: Secrets) -> None:
    secrets["prometheus"] = {"token": b"first\n"}
    with serving() as server:
        asked(figures, server, **TOKEN)
        assert len(server.headers) > 5
        assert server.sent("Authorization") == {"Bearer first"}


def test_a_token_in_a_file_is_read_in_each_pass_and_the_tenant_is_named(figures: MetricsReader, tmp_path: Path) -> None:
    token = tmp_path / "token"
    with serving() as server:
        for text in ("first", "second"):
            token.write_text(f"{text}\n")
            asked(figures, server, bearerTokenFile=str(token), tenant="data")
            assert server.sent("Authorization") == {f"Bearer {text}"}
            assert server.sent("X-Scope-OrgID") == {"data"}
        token.unlink()
        health = asked(figures, server, bearerTokenFile=str(token))
        assert "bearerTokenFile: " in health.message
        assert server.headers == []


def test_a_server_that_asks_for_a_certificate_gets_that_of_the_secret(
    figures: MetricsReader, secrets: Secrets, pki: Pki
) -> None:
    client = pki.cluster_ca.issue("ballast", common_name="ballast")
    secrets["authority"] = {"ca.crt": pki.cluster_ca.files.certificate.read_bytes()}
    secrets["client"] = {"tls.crt": client.certificate.read_bytes(), "tls.key": client.key.read_bytes()}
    context = pki.apiserver.server_context()
    context.load_verify_locations(pki.cluster_ca.files.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with Server(context) as server:
        assert not asked(figures, server, **AUTHORITY).available
        assert server.headers == []
        asked(figures, server, **AUTHORITY, clientCertificateSecretRef={"name": "client"})
        assert len(server.headers) > 5


def test_a_proxy_is_asked_in_the_servers_place(figures: MetricsReader) -> None:
    with serving() as proxy:
        figures.read(policy("http://prometheus.invalid:9090", proxy=proxy.url), [], [], now=0.0)
        assert proxy.sent("Host") == {"prometheus.invalid:9090"}


def test_a_renewed_token_is_used_by_the_next_look(figures: MetricsReader, secrets: Secrets) -> None:
    with serving() as server:
        for token in ("first", "second"):
            secrets["prometheus"] = {"token": token.encode()}
            asked(figures, server, **TOKEN)
            assert server.sent("Authorization") == {f"Bearer {token}"}


def test_a_policy_that_is_gone_leaves_no_server_and_no_token_behind(figures: MetricsReader, secrets: Secrets) -> None:
    secrets["prometheus"] = {"token": b"tok"}
    with serving() as server:
        asked(figures, server, **TOKEN)
        spec = policy(server.url, **TOKEN).spec.metrics.prometheus
        assert spec is not None
        before = figures.server("streaming", spec)
        figures.forget("streaming")
        assert figures.server("streaming", spec) is not before


def test_a_token_that_is_no_longer_named_is_no_longer_sent(figures: MetricsReader, secrets: Secrets) -> None:
    secrets["prometheus"] = {"token": b"first"}
    with serving() as server:
        asked(figures, server, **TOKEN)
        asked(figures, server)
        assert server.sent("Authorization") == {None}


def test_each_key_of_the_headers_secret_is_a_header(figures: MetricsReader, secrets: Secrets) -> None:
    secrets["headers"] = {"X-Scope-OrgID": b"team-a\n", "X-Extra": b"1"}
    secrets["prometheus"] = {"token": b"first"}
    with serving() as server:
        asked(figures, server, **HEADERS, **TOKEN)
        sent = {(h["X-Scope-OrgID"], h["X-Extra"], h["Authorization"]) for h in server.headers}
        assert sent == {("team-a", "1", "Bearer first")}


def test_a_server_is_trusted_by_the_authority_of_a_secret(figures: MetricsReader, secrets: Secrets, pki: Pki) -> None:
    secrets["authority"] = {"ca.crt": pki.cluster_ca.files.certificate.read_bytes()}
    with serving(pki.apiserver) as server:
        # It answers, but has nothing to tell.
        assert asked(figures, server, **AUTHORITY).reason == "NoNodeMetrics"
        assert server.headers


@pytest.mark.parametrize("named", [False, True])
def test_a_server_signed_by_another_authority_gets_no_token(
    figures: MetricsReader, secrets: Secrets, pki: Pki, *, named: bool
) -> None:
    secrets["prometheus"] = {"token": b"first"}
    secrets["authority"] = {"ca.crt": pki.etcd_ca.files.certificate.read_bytes()}
    with serving(pki.apiserver) as server:
        health = asked(figures, server, **TOKEN, **(AUTHORITY if named else {}))
        assert (health.available, health.reason) == (False, "Unreachable")
        assert "its certificate can't be verified" in health.message
        assert server.headers == []


def test_a_renewed_authority_is_trusted_by_the_next_look(figures: MetricsReader, secrets: Secrets, pki: Pki) -> None:
    for authority, certificate in ((pki.cluster_ca, pki.apiserver), (pki.etcd_ca, pki.etcd)):
        secrets["authority"] = {"ca.crt": authority.files.certificate.read_bytes()}
        with serving(certificate) as server:
            assert asked(figures, server, **AUTHORITY).reason == "NoNodeMetrics"


def test_the_old_authority_is_not_trusted_any_more(figures: MetricsReader, secrets: Secrets, pki: Pki) -> None:
    with serving(pki.apiserver) as server:
        for authority, reason in ((pki.cluster_ca, "NoNodeMetrics"), (pki.etcd_ca, "Unreachable")):
            secrets["authority"] = {"ca.crt": authority.files.certificate.read_bytes()}
            assert asked(figures, server, **AUTHORITY).reason == reason


def test_a_secret_that_may_not_be_read_is_told_with_the_chart_value_that_grants_it() -> None:
    class Refusing(Secrets):
        def get(self, kind: Kind, name: str, *, namespace: str) -> dict[str, Any]:  # type: ignore[override]
            raise error_of("get secrets", 403, {"message": "forbidden"})

    figures = MetricsReader(Refusing(), namespace=NAMESPACE)  # type: ignore[arg-type]  # the one question it asks
    health = figures.read(policy("http://127.0.0.1:1", **TOKEN), [], [], now=0.0).health
    assert (health.available, health.reason) == (False, "SecretNotRead")
    assert health.message.endswith("the operator may not read it: add prometheus to the chart's prometheus.secrets")


def test_an_authority_that_is_no_certificate_is_told(figures: MetricsReader, secrets: Secrets) -> None:
    secrets["authority"] = {"ca.crt": b"hidden"}
    health = figures.read(policy("https://127.0.0.1:1", **AUTHORITY), [], [], now=0.0).health
    assert (health.available, health.message) == (False, "caSecretRef, or caFile, holds no certificate in PEM")


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({}, 'secret ballast-system/prometheus: secrets "prometheus" not found'),
        ({"prometheus": {"other": b"x"}}, "secret ballast-system/prometheus has no key token"),
        ({"prometheus": {"token": b"\xff\xfe"}}, "secret ballast-system/prometheus: its key token is no text"),
        ({"prometheus": {"token": b"hidden\nhidden"}}, "headers.Authorization: '***': write one line"),
    ],
)
def test_a_token_that_can_not_be_had_is_told_without_its_value_and_nothing_is_asked(
    figures: MetricsReader, secrets: Secrets, stored: dict[str, dict[str, bytes]], words: str
) -> None:
    secrets.update(stored)
    with serving() as server:
        health = asked(figures, server, **TOKEN)
        assert (health.available, health.reason) == (False, "SecretNotRead")
        assert words in health.message
        assert "hidden" not in health.message
        assert server.headers == []


NODES = [NodeReader().read(node("node-1"))]
NOW = 1_767_571_200.0
ASKING = topology(components=[{"name": "ingest", "exchange": {"query": "sum(x)"}}])


def answer(kind: str, result: list[Any]) -> Answer:
    return Answer(body={"status": "success", "data": {"resultType": kind, "result": result}})


def vector(*values: str) -> Answer:
    return answer("vector", [{"metric": {"node": "node-1"}, "value": [1.0, value]} for value in values])


SCALAR = answer("scalar", [1.0, "7"])
RANGE = answer("matrix", [{"metric": {}, "values": [[1.0, "7"]]}])


def policy_asking(server: ApiServer, **metrics: Any) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {"nodeSelector": {}, "metrics": {"prometheus": {"url": server.url}, **metrics}},
        }
    )


def rates(server: ApiServer, folder: Path, **metrics: Any) -> Rates:
    figures = MetricsReader(server.client(folder), namespace="ballast-system")
    try:
        return figures.rates(policy_asking(server, **metrics), [ASKING], now=NOW)
    finally:
        figures.close()


def test_queries_of_topologies_do_not_run_unless_the_policy_allows_them(tmp_path: Path) -> None:
    with scripted(vector("7")) as server:
        assert rates(server, tmp_path) == {}
        assert server.asked == []
        assert rates(server, tmp_path, topologyQueries="Allow") == {("analytics/clicks", "sum(x)"): 7.0}


def test_of_very_many_namespaces_each_has_its_queries_asked_at_some_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One user may have as many namespaces as queries are asked, with names that come first."""
    monkeypatch.setattr("ballast.controller.metrics_reader.MOST_QUERIES", 4)
    components = [{"name": "c", "exchange": {"query": "x"}}]
    many = [topology(namespace=each, components=components) for each in ("a1", "a2", "a3", "a4", "web")]
    with scripted(vector("7")) as server:
        figures = MetricsReader(server.client(tmp_path), namespace="ballast-system")
        asking = policy_asking(server, topologyQueries="Allow")
        found = [figures.rates(asking, many, now=NOW + 60 * number) for number in range(20)]
        figures.close()
    assert {len(each) for each in found} == {4}
    assert ("web/clicks", "x") in set().union(*found)


@pytest.mark.parametrize(
    "given", [vector("NaN"), vector("+Inf"), vector("1", "2"), vector(), SCALAR, RANGE, Answer(422)]
)
def test_what_is_not_one_finite_figure_is_no_rate(tmp_path: Path, given: Answer) -> None:
    with scripted(given) as server:
        assert rates(server, tmp_path, topologyQueries="Allow") == {}
        assert server.asked


def test_a_prometheus_whose_clock_disagrees_gives_no_rates(tmp_path: Path) -> None:
    with scripted(vector("7")) as server:
        client = server.client(tmp_path)
        figures = MetricsReader(client, namespace="ballast-system", clock=lambda: time.time() - 3600.0)
        assert figures.rates(policy_asking(server, topologyQueries="Allow"), [ASKING], now=NOW) == {}
        figures.close()
        assert server.asked


@pytest.mark.parametrize(
    ("source", "counts"),
    [("spark-1-driver", True), ("stranger", False)],
    ids=["its driver", "another pod of the namespace"],
)
def test_the_batch_times_of_an_application_are_those_that_were_scraped_from_its_driver(
    source: str, tmp_path: Path, *, counts: bool
) -> None:
    reader = PodReader()
    pods = [reader.read(each) for each in (executor(1, node="node-1"), driver(), pod("web", node="node-1"))]
    series = {"metric": {"namespace": "analytics", "pod": source, "application_id": "spark-1"}, "value": [NOW, "4"]}
    with scripted(answer("vector", [series])) as server:
        figures = MetricsReader(server.client(tmp_path), namespace="ballast-system")
        asking = policy_asking(server, advanced={"queries": {"batchSeconds": "max(x)"}})
        found = figures.read(asking, NODES, pods, now=NOW)
        figures.close()
    assert found.batch_p95_seconds == ({("analytics", "spark-1"): 4.0} if counts else {})


@pytest.mark.parametrize("given", [SCALAR, RANGE])
def test_a_policys_query_of_another_kind_gives_no_figures_and_ends_no_pass(tmp_path: Path, given: Answer) -> None:
    with scripted(given) as server:
        figures = MetricsReader(server.client(tmp_path), namespace="ballast-system")
        found = figures.read(policy_asking(server), NODES, [], now=NOW)
        figures.close()
    assert (found.nodes, found.health.available) == ({}, False)


def test_all_queries_of_a_look_are_about_one_moment_that_can_be_asked_about_again(tmp_path: Path) -> None:
    """A whole second, of which everything is stored."""
    with scripted(vector("7")) as server:
        figures = MetricsReader(server.client(tmp_path), namespace="ballast-system")
        found = figures.read(policy_asking(server), NODES, [], now=NOW + 0.7)
        figures.rates(policy_asking(server, topologyQueries="Allow"), [ASKING], now=NOW + 0.7)
        figures.close()
    moments = {text for asked in server.asked for text in parse_qs(urlparse(asked.path).query)["time"]}
    assert (found.at, {float(text) for text in moments}) == (NOW - 1.0, {NOW - 1.0})
