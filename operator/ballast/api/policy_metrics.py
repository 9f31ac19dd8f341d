"""The source of a policy's metrics."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model, nested
from ballast.api.names import ObjectName, Query, Url
from ballast.api.quantity import Quantity
from ballast.api.rule import ATOMIC, Rule, matching
from ballast.enums import Preset


class Permission(StrEnum):
    """Whether something is allowed."""

    DENY = "Deny"
    ALLOW = "Allow"


_Key = Annotated[
    str,
    Field(min_length=1, max_length=253),
    matching("[-._a-zA-Z0-9]+", "write a secret's key: letters, digits, '-', '_' and '.'"),
]


class SecretKey(Model):
    """One value of a secret in the operator's own namespace."""

    name: ObjectName
    """The secret's name."""
    key: _Key
    """The key of the value in it."""


class SecretName(Model):
    """A secret in the operator's own namespace."""

    name: ObjectName
    """The secret's name."""


_Matched = Annotated[str, Field(max_length=253)]
_MATCHER = "_?[a-zA-Z][a-zA-Z0-9_]*"
_MATCHER_WORDS = "write a label's name as Prometheus has it: letters, digits and '_', such as cluster"


class Prometheus(Model):
    """A server that answers Prometheus' HTTP API."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!has(self.matchers) || self.matchers.all(name, name.matches('^{_MATCHER}$'))",
            message=_MATCHER_WORDS,
            holds=lambda prometheus: all(re.fullmatch(_MATCHER, name) for name in prometheus.matchers),
            path=".matchers",
        ),
        Rule(
            cel=(
                "[has(self.bearerTokenSecretRef), has(self.bearerTokenFile), has(self.awsRegion)]"
                ".filter(each, each).size() < 2"
            ),
            message="keep one of bearerTokenSecretRef, bearerTokenFile and awsRegion: each sets the same header",
            holds=lambda prometheus: (
                [prometheus.bearer_token_secret_ref, prometheus.bearer_token_file, prometheus.aws_region].count(None)
                > 1
            ),
        ),
    )

    url: Url
    """Its address, such as http://prometheus.monitoring:9090, without credentials. Redirects are not followed."""
    bearer_token_secret_ref: SecretKey | None = None
    """The token to send, from a secret in the operator's namespace that the chart's prometheus.secrets lists."""
    headers_secret_ref: SecretName | None = None
    """Headers to send: each key of this secret is a header's name. The chart's prometheus.secrets must list it."""
    ca_secret_ref: SecretKey | None = None
    """The certificate authority to trust, in PEM. The chart's prometheus.secrets must list the secret."""
    bearer_token_file: Annotated[str, Field(max_length=1024), matching("/.*", "write a path from /")] | None = None
    """A file in the operator's pod with the token to send, read again in each pass, because such tokens rotate.

    The token of the pod's ServiceAccount is /var/run/secrets/kubernetes.io/serviceaccount/token; the chart's
    extraVolumes mounts others.
    """
    client_certificate_secret_ref: SecretName | None = None
    """The certificate to show: a secret of the type kubernetes.io/tls that the chart's prometheus.secrets lists."""
    tenant: Annotated[str, Field(min_length=1, max_length=253), matching("[!-~]+", "write a tenant's id")] | None = None
    """Sent as X-Scope-OrgID, by which Mimir, Cortex and Thanos tell tenants apart."""
    proxy: Url | None = None
    """The HTTP proxy to go through, such as http://proxy.internal:3128. The environment's proxies are not used."""
    aws_region: (
        Annotated[str, Field(max_length=32), matching("[a-z0-9-]+", "write a region such as eu-west-1")] | None
    ) = None
    """Sign requests (SigV4) for Amazon Managed Service for Prometheus in this region.

    The credentials are those of the operator's environment (the chart's env). The image needs the extra aws.
    """
    matchers: Annotated[dict[str, _Matched], Field(max_length=16)] = Field(default_factory=dict)
    """Only series with exactly these labels are read, such as cluster: prod.

    Needed where one server holds several clusters, or replicas of one Prometheus: values of a node or an executor that
    come from several sources are not used, and the condition MetricsAvailable has the reason MetricsAmbiguous. Queries
    of your own (advanced.queries, topologies) must select by themselves.
    """
    timeout: Annotated[Duration, Between("100ms", "1m")] = Duration.parse("10s")
    """How long one query may take in all, up to the answer's last byte, from 100ms to 1m."""


class Queries(Model):
    """PromQL expressions that replace the preset's, one by one."""

    node_cpu: Query | None = None
    """Cores used per node."""
    node_memory: Query | None = None
    """Bytes of memory used per node (the working set)."""
    node_network_receive: Query | None = None
    """Bits per second received per node."""
    node_network_transmit: Query | None = None
    """Bits per second sent per node."""
    node_network_capacity: Query | None = None
    """Bits per second that a node's network can carry each way. No preset asks for it."""
    node_pressure: Query | None = None
    """Share of time in which something on the node waited for a CPU, from 0 to 1: see moves.minPressurePercent."""
    node_age: Query | None = None
    """Seconds since the node's last sample. Left out where nodeCpu is replaced and this is not."""
    executor_cpu: Query | None = None
    """Cores used per executor."""
    executor_memory: Query | None = None
    """Bytes of memory used per executor."""
    executor_network: Query | None = None
    """Bytes per second received and sent per executor."""
    executor_throttling: Query | None = None
    """Share of CPU periods, 0 to 1, in which each executor's CPU limit stopped it: see moves.minPressurePercent."""
    executor_task_seconds: Query | None = None
    """Mean seconds per task of each executor, by `namespace`, `pod` (the driver's), `application_id`, `executor_id`."""
    executor_slots: Query | None = None
    """Task seconds per second and task slot of each executor, with the labels of executorTaskSeconds."""
    executor_records: Query | None = None
    """Records per second read by each executor. No preset asks for it."""
    executor_bytes: Query | None = None
    """Bytes per task read by each executor, by `namespace`, `pod` (the driver's), `application_id`, `executor_id`."""
    state_bytes: Query | None = None
    """Bytes of streaming state of each application; several series of one application are added up."""
    batch_seconds: Query | None = None
    """Seconds that nineteen of twenty batches of each application stay within (the 95th percentile)."""


Weight = Annotated[int, Field(ge=0, le=1000)]


class Weights(Model):
    """How much each resource counts, in percent. A node's score is the largest of its weighted usages."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.cpuPercent + self.memoryPercent + self.networkReceivePercent + self.networkTransmitPercent > 0",
            message="give at least one resource a weight above 0, such as cpuPercent: 100",
            holds=lambda weights: any(weights.ratios()),
        ),
    )

    cpu_percent: Weight = 100
    """Weight of CPU usage. With 0 nothing is moved, because the effect of a move can't be predicted."""
    memory_percent: Weight = 0
    """Weight of memory usage."""
    network_receive_percent: Weight = 0
    """Weight of what the network receives. Needs a capacity: see networkCapacity."""
    network_transmit_percent: Weight = 0
    """Weight of what the network sends. Needs a capacity: see networkCapacity."""

    def ratios(self) -> tuple[float, float, float, float]:
        """Of CPU, memory, and what the network receives and sends."""
        percents = (self.cpu_percent, self.memory_percent, self.network_receive_percent, self.network_transmit_percent)
        cpu, memory, receive, transmit = (percent / 100 for percent in percents)
        return cpu, memory, receive, transmit


_Job = Annotated[
    str,
    Field(min_length=1, max_length=253),
    matching("[-_.:/a-zA-Z0-9]+", "write a label job as it is, such as node-exporter: it is no regular expression"),
]
_Jobs = Annotated[tuple[_Job, ...], Field(min_length=1, max_length=8), ATOMIC]


class Jobs(Model):
    """Labels `job` of the series that the preset reads."""

    node_exporter: _Jobs | None = None
    """Of node-exporter. Default: node-exporter and the names that Grafana's Alloy and the exporter's chart use."""
    cadvisor: _Jobs | None = None
    """Of what kubelets export about containers. Default: kubelet and Grafana's name; with preset Cadvisor, any."""


class MetricsAdvanced(Model):
    """What only pools with unusual metrics need."""

    queries: Queries = nested(Queries)
    """PromQL expressions that replace the preset's, one by one; `$window` stands for the policy's window.

    Each must yield an instant vector with one series per node (label `node`, else an `instance` that is an address of
    the node), per executor (labels `namespace` and `pod`) or, of Spark's own metrics, per `application_id` (the
    executors' pod label spark-app-selector) and, where that is said, `executor_id`. Spark's own also need the labels
    `namespace` and `pod` that the scrape of the driver's pod puts on: a series counts only if it was scraped from the
    application's own driver. If no driver pod is known (client mode), the namespace alone must be the executors'.
    Samples below 0 or absurdly high are not used; the condition MetricsAvailable reports them.
    """
    jobs: Jobs = nested(Jobs)
    """Labels `job` that replace those which the preset knows."""


class Metrics(Model):
    """The source of the metrics, and how long they are valid."""

    prometheus: Prometheus | None = None
    """The server to ask. Without one, executors are placed by their requests alone and nothing is moved."""
    preset: Preset = Preset.KUBE_PROMETHEUS_STACK
    """The queries to use: KubePrometheusStack or Cadvisor."""
    window: Annotated[Duration, Between("5s", "1h")] = Duration.parse("2m")
    """Values are means over this time, from 5s to 1h.

    It must hold at least three scrapes: a rate needs two samples, and Prometheus 3 leaves out one at its beginning.
    With four, one scrape may fail.
    """
    max_age: Annotated[Duration, Between("5s", "2h")] = Duration.parse("3m")
    """Older samples are ignored. A node without newer ones is excluded from moves."""
    advanced: MetricsAdvanced = nested(MetricsAdvanced)
    """Queries of your own."""
    weights: Weights = nested(Weights)
    """How much each resource counts in a node's score. The effect of a move is predicted from CPU alone."""
    network_capacity: Quantity | None = None
    """Bits per second that a node's network carries each way, such as 10G.

    A node's annotation ballast.dev/network-capacity or the query nodeNetworkCapacity sets it for a single node.
    """
    topology_queries: Permission = Permission.DENY
    """Whether queries in a SparkTopology run (Allow). They run with the operator's rights, and reveal their values."""
