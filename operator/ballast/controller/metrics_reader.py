"""Asking a policy's Prometheus, with the credentials that the policy names."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from zlib import crc32

from ballast.api import BalancingPolicy
from ballast.api.policy_metrics import Metrics as MetricsSpec
from ballast.api.policy_metrics import Permission, SecretKey, SecretName
from ballast.api.policy_metrics import Prometheus as PrometheusSpec
from ballast.api.topology import Rate, SparkTopology
from ballast.controller.ends import Rates
from ballast.controller.membership import key_of
from ballast.errors import BallastError
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.errors import Forbidden, KubeError
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import ConditionReason, MetricsHealth
from ballast.prometheus import (
    MOST_VALUES,
    Ambiguity,
    Endpoint,
    ExecutorFrame,
    Jobs,
    NodeFrame,
    Prometheus,
    PrometheusError,
    Queries,
    Reading,
    clock_ahead_seconds,
    queries,
    reading,
    settled,
    single,
)
from ballast.prometheus.endpoint import TENANT
from ballast.prometheus.server import token_in

NOT_CONFIGURED = MetricsHealth(
    available=False, reason=ConditionReason.NOT_CONFIGURED, message="metrics.prometheus is not set: nothing is moved"
)
MOST_QUERIES = 5_000
"""Of topologies, in one pass: a namespace may have 100 000."""
_SOURCES_SHOWN = 5
"""Of a value with several sources, the labels of so many are compared."""
_VALUES_OF_EACH = 20
"""In addition to MOST_VALUES, for each node and pod that a reading is about."""


class SecretNotReadError(BallastError):
    """A secret that a policy names is missing, or lacks the key."""


class MetricsReader:
    """Asks each policy's Prometheus server. `namespace`: the operator's own, the only one whose secrets are read.
    Without a client no secret can be read.

    `more`: queries in addition to those of the policy's preset. `clock`: seconds since the epoch; where a server's
    clock disagrees with it, the server's metrics are not used.
    """

    def __init__(
        self,
        client: Client | None,
        *,
        namespace: str,
        more: Queries | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._namespace, self._more, self._clock = client, namespace, more or Queries(), clock
        self._servers: dict[str, tuple[Endpoint, Prometheus]] = {}

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], pods: list[Pod], *, now: float) -> Reading:
        """What Prometheus has about these nodes and the executors among these pods; its health says why it has nothing.

        The drivers' pods must be among `pods`: Spark's own series count only when scraped from one of these.
        """
        spec = policy.spec.metrics
        if spec.prometheus is None:
            return Reading(health=NOT_CONFIGURED)
        try:
            server = self.server(policy.metadata.name, spec.prometheus)
        except BallastError as error:
            return Reading(
                health=MetricsHealth(available=False, reason=ConditionReason.SECRET_NOT_READ, message=str(error))
            )
        wanted = queries_of_policy(spec).with_more(self._more)
        at, most_values = settled(now), MOST_VALUES + _VALUES_OF_EACH * (len(nodes) + len(pods))
        answers, failures = server.ask(wanted, spec.window.seconds, at=at, most_values=most_values)
        found = reading(
            answers,
            nodes=[_node_frame(node, spec) for node in nodes],
            executors=[_executor_frame(pod) for pod in pods if pod.executor is not None and not pod.ended],
            drivers=_drivers(pods),
            max_age_seconds=spec.max_age.seconds,
            failures=failures,
            counted=wanted.sources.keys(),
        )
        if found.ambiguity is not None:
            apart = found.ambiguity.told_apart(_sources(server, wanted, found.ambiguity, at=at))
            message = "; ".join(filter(None, (found.health.message, apart)))
            found = replace(found, health=replace(found.health, message=message))
        if found.health.available:
            return replace(found, at=at)
        health = replace(found.health, message=f"metrics.prometheus.url {spec.prometheus.url}: {found.health.message}")
        return replace(found, at=at, health=health)

    def rates(self, policy: BalancingPolicy, topologies: list[SparkTopology], *, now: float) -> Rates:
        """Answers to the topologies' own queries, if the policy allows them.

        Of very many, another part each time, and none begins after half of metrics.prometheus.timeout.
        """
        spec = policy.spec.metrics
        if spec.prometheus is None or spec.topology_queries is not Permission.ALLOW:
            return {}
        wanted = [(key_of(topology), text) for topology in topologies for text in queries_of(topology)]
        asked = sorted(wanted, key=lambda each: crc32(f"{int(now)}{each}".encode()))[:MOST_QUERIES]
        try:
            answers = self.server(policy.metadata.name, spec.prometheus).single_all(
                {f"{key}\n{text}": text for key, text in asked},
                at=settled(now),
                within_seconds=spec.prometheus.timeout.seconds / 2,
            )
        except BallastError:
            return {}
        if clock_ahead_seconds(answers.values()) is not None:
            return {}
        values = {tuple(name.split("\n", 1)): answer for name, answer in answers.items()}
        found = {(key, text): single(answer) for (key, text), answer in values.items()}
        return {asked: figure for asked, figure in found.items() if figure is not None}

    def forget(self, policy: str) -> None:
        """Forget the server of a policy that is gone, and the credentials with it."""
        self._servers.pop(policy, None)

    def close(self) -> None:
        """Forget the servers, and the credentials with them."""
        self._servers.clear()

    def server(self, policy: str, spec: PrometheusSpec) -> Prometheus:
        """Raises BallastError where a secret can't be read or the endpoint can't be used."""
        endpoint = self._endpoint(spec)
        known = self._servers.get(policy)
        if known is None or known[0] != endpoint:
            known = self._servers[policy] = endpoint, Prometheus(endpoint, clock=self._clock)
        return known[1]

    def _endpoint(self, spec: PrometheusSpec) -> Endpoint:
        headers: dict[str, str] = {}
        if spec.headers_secret_ref is not None:
            headers |= self._secret(spec.headers_secret_ref.name)
        if spec.bearer_token_secret_ref is not None:
            headers["Authorization"] = f"Bearer {self._value(spec.bearer_token_secret_ref)}"
        if spec.bearer_token_file is not None:
            headers["Authorization"] = f"Bearer {token_in(spec.bearer_token_file)}"
        if spec.tenant is not None:
            headers[TENANT] = spec.tenant
        authority = self._value(spec.ca_secret_ref) if spec.ca_secret_ref is not None else None
        certificate = self._certificate(spec.client_certificate_secret_ref)
        return Endpoint(spec.url, spec.timeout.seconds, headers, authority, certificate, spec.proxy, spec.aws_region)

    def _certificate(self, named: SecretName | None) -> str | None:
        if named is None:
            return None
        keys = ("tls.crt", "tls.key")
        return "\n".join(self._value(SecretKey(name=named.name, key=key)) for key in keys)

    def _value(self, chosen: SecretKey) -> str:
        values = self._secret(chosen.name)
        if chosen.key not in values:
            raise SecretNotReadError(f"secret {self._namespace}/{chosen.name} has no key {chosen.key}")
        return values[chosen.key]

    def _secret(self, name: str) -> dict[str, str]:
        if self._client is None:
            raise SecretNotReadError(f"secret {self._namespace}/{name}: no cluster is asked")
        try:
            secret = self._client.get(kinds.SECRET, name, namespace=self._namespace)
        except Forbidden as error:
            words = f"the operator may not read it: add {name} to the chart's prometheus.secrets"
            raise SecretNotReadError(f"secret {self._namespace}/{name}: {words}") from error
        except KubeError as error:
            raise SecretNotReadError(f"secret {self._namespace}/{name}: {error.message}") from error
        return {key: self._text(name, key, value) for key, value in (secret.get("data") or {}).items()}

    def _text(self, name: str, key: str, value: str) -> str:
        """Without the line break that ends many a file: HTTP can't carry it."""
        try:
            return base64.b64decode(value).decode().strip()
        except UnicodeDecodeError as error:
            raise SecretNotReadError(f"secret {self._namespace}/{name}: its key {key} is no text") from error


def queries_of_policy(spec: MetricsSpec) -> Queries:
    """What a policy asks its Prometheus."""
    chosen = spec.advanced.jobs
    return queries(
        spec.preset,
        spec.advanced.queries.to_dict(),
        matchers=spec.prometheus.matchers if spec.prometheus is not None else {},
        jobs=Jobs(chosen.node_exporter or (), chosen.cadvisor or ()),
    )


def _sources(server: Prometheus, wanted: Queries, about: Ambiguity, *, at: float) -> list[Mapping[str, str]]:
    """Labels of some sources of one value; none if Prometheus does not answer."""
    try:
        return [
            labels
            for group in about.groups[:_SOURCES_SHOWN]
            for labels in server.labels(wanted.sources_of(about.signal, group, most=_SOURCES_SHOWN), at=at)
        ]
    except PrometheusError:
        return []


def queries_of(topology: SparkTopology) -> list[str]:
    """The PromQL in a SparkTopology."""
    rates: list[Rate | None] = [component.exchange for component in topology.spec.components]
    rates += [stream.rate for stream in topology.spec.streams]
    return sorted({rate.query for rate in rates if rate is not None and rate.query})


def _node_frame(node: NodeFacts, spec: MetricsSpec) -> NodeFrame:
    declared = float(spec.network_capacity) if spec.network_capacity is not None else None
    own: Mapping[str, str] = node.labels
    return NodeFrame(
        name=node.name,
        addresses=tuple({own.get("kubernetes.io/hostname", node.name), *node.addresses}),
        cpu_cores=node.allocatable.cpu_cores,
        memory_bytes=node.allocatable.memory_bytes,
        network_bits_per_second=node.network_capacity_bits_per_second or declared,
    )


def _executor_frame(pod: Pod) -> ExecutorFrame:
    facts = pod.executor
    application, executor_id = (facts.application, facts.executor_id) if facts else ("", "")
    return ExecutorFrame(pod.namespace, pod.name, application, executor_id)


def _drivers(pods: Iterable[Pod]) -> dict[tuple[str, str], set[str]]:
    """Names of the driver pods by namespace and application."""
    found: dict[tuple[str, str], set[str]] = {}
    for pod in pods:
        for application in pod.driven:
            found.setdefault((pod.namespace, application), set()).add(pod.name)
    return found
