"""A real Prometheus, set up to label what it scrapes as the usual installations do."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import requests
import yaml

from tests.testbed.errors import TestbedError
from tests.testbed.instance import free_port
from tests.testbed.nodes import KUBELET_PORT, METRICS_PORT, PlacedNode
from tests.testbed.process import Supervisor

# What kube-prometheus-stack's values drop from the kubelet's cAdvisor series, rule by rule.
DROPPED_CADVISOR_SERIES: Sequence[tuple[tuple[str, ...], str]] = (
    (
        ("__name__",),
        "container_cpu_(cfs_throttled_seconds_total|load_average_10s|system_seconds_total|user_seconds_total)",
    ),
    (
        ("__name__",),
        (
            "container_fs_(io_current|io_time_seconds_total|io_time_weighted_seconds_total|reads_merged_total"
            "|sector_reads_total|sector_writes_total|writes_merged_total)"
        ),
    ),
    (("__name__",), "container_memory_(mapped_file|swap)"),
    (("__name__",), "container_(file_descriptors|tasks_state|threads_max)"),
    (("__name__", "scope"), "container_memory_failures_total;hierarchy"),
    (("__name__", "interface"), "container_network_.*;(cali|cilium|cni|lxc|nodelocaldns|tunl).*"),
    (("__name__",), "container_spec.*"),
    (("id", "pod"), ".+;"),
)

KUBELET_JOB = "kubelet"
KUBELET_TARGETS = "kubelet-targets"
OTHER_TARGETS = "targets"


class ScrapeStyle(StrEnum):
    """Whose labels and rules the kubelets' series get."""

    KUBE_PROMETHEUS_STACK = "kube-prometheus-stack"
    CADVISOR = "cadvisor"
    """As in Prometheus' own chart: cAdvisor alone, nothing dropped, `instance` is the node's name."""


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint to scrape over plain HTTP; `address` is host:port, `labels` go to every series."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)
    path: str = "/metrics"

    def to_group(self, job: str) -> dict[str, Any]:
        """Its entry in a file that Prometheus discovers targets from."""
        labels = {"job": job, "__metrics_path__": self.path, **self.labels}
        return {"targets": [self.address], "labels": labels}


@dataclass(frozen=True, slots=True)
class PrometheusFolder:
    """The files by which a running Prometheus is told its targets."""

    path: Path

    def set_targets(self, job: str, targets: Sequence[Target]) -> None:
        """Replace the targets of `job`; Prometheus follows within some five seconds, without a restart."""
        folder = self.path / (KUBELET_TARGETS if job == KUBELET_JOB else OTHER_TARGETS)
        folder.mkdir(exist_ok=True)
        partial = folder / f"{job}.partial"
        partial.write_text(json.dumps([target.to_group(job) for target in targets]))
        partial.replace(folder / f"{job}.json")


@dataclass(frozen=True, slots=True)
class PrometheusSetup:
    """What it takes to start one. `extra_jobs` are entries for `scrape_configs`, taken as they are."""

    supervisor: Supervisor
    address: str
    nodes: Sequence[PlacedNode]
    scrape_interval_seconds: float = 2.0
    style: ScrapeStyle = ScrapeStyle.KUBE_PROMETHEUS_STACK
    extra_jobs: Sequence[Mapping[str, Any]] = ()

    def start(self) -> str:
        """The URL of a Prometheus that is ready to answer."""
        binary = shutil.which("prometheus")
        if binary is None:
            raise TestbedError("there is no prometheus on PATH: run scripts/setup.sh, or up without Prometheus")
        instance = self.supervisor.instance
        files = PrometheusFolder(instance.folder / "prometheus")
        files.path.mkdir()
        for job, targets in node_targets(self.nodes, self.style).items():
            files.set_targets(job, targets)
        config = files.path / "prometheus.yaml"
        config.write_text(yaml.safe_dump(self.config(files.path), sort_keys=False))
        port = free_port(self.address, preferred=9090)
        url = f"http://{self.address}:{port}"
        running = self.supervisor.start(
            "prometheus",
            [
                binary,
                f"--config.file={config}",
                f"--storage.tsdb.path={files.path / 'data'}",
                f"--web.listen-address={self.address}:{port}",
                "--web.enable-lifecycle",
                "--log.level=warn",
            ],
        )
        running.wait_for(lambda: _answers(f"{url}/-/ready"), what="ready")
        return url

    def config(self, folder: Path) -> dict[str, Any]:
        """The configuration file's content."""
        interval = f"{round(self.scrape_interval_seconds * 1000)}ms"
        return {
            "global": {"scrape_interval": interval, "scrape_timeout": interval},
            "scrape_configs": [
                {
                    "job_name": KUBELET_JOB,
                    "honor_labels": True,
                    "file_sd_configs": [{"files": [str(folder / KUBELET_TARGETS / "*.json")]}],
                    "metric_relabel_configs": self._drop_rules(),
                },
                {
                    "job_name": "targets",
                    "file_sd_configs": [{"files": [str(folder / OTHER_TARGETS / "*.json")]}],
                },
                *(dict(job) for job in self.extra_jobs),
            ],
        }

    def _drop_rules(self) -> list[dict[str, Any]]:
        if self.style is ScrapeStyle.CADVISOR:
            return []
        only = "/metrics/cadvisor;"
        return [
            {
                "action": "drop",
                "source_labels": ["metrics_path", *labels],
                "regex": f"{only}(?:{expression})",
            }
            for labels, expression in DROPPED_CADVISOR_SERIES
        ]


def node_targets(nodes: Sequence[PlacedNode], style: ScrapeStyle) -> dict[str, list[Target]]:
    """The kubelets' and node-exporters' endpoints by job, labeled as the style's installation does."""
    if style is ScrapeStyle.CADVISOR:
        return {KUBELET_JOB: [_cadvisor_target(node) for node in nodes]}
    paths = ("/metrics/cadvisor", "/metrics/resource")
    return {
        KUBELET_JOB: [_kubelet_target(node, path) for node in nodes for path in paths],
        "node-exporter": [_exporter_target(node) for node in nodes],
    }


def _kubelet_target(node: PlacedNode, path: str) -> Target:
    labels = {
        "instance": f"{node.address}:{KUBELET_PORT}",
        "node": node.spec.name,
        "metrics_path": path,
        "endpoint": "https-metrics",
        "namespace": "kube-system",
        "service": "kube-prometheus-stack-kubelet",
    }
    return Target(f"{node.address}:{METRICS_PORT}", labels, path)


def _exporter_target(node: PlacedNode) -> Target:
    """Without a `node` label, as installed: only `instance` tells node-exporter's series apart."""
    labels = {
        "instance": f"{node.address}:{METRICS_PORT}",
        "endpoint": "http-metrics",
        "container": "node-exporter",
        "namespace": "monitoring",
        "pod": f"kube-prometheus-stack-prometheus-node-exporter-{node.spec.name}",
        "service": "kube-prometheus-stack-prometheus-node-exporter",
    }
    return Target(f"{node.address}:{METRICS_PORT}", labels)


def _cadvisor_target(node: PlacedNode) -> Target:
    mapped = {_label_name(name): value for name, value in node.spec.all_labels.items()}
    labels = {**mapped, "job": "kubernetes-nodes-cadvisor", "instance": node.spec.name}
    return Target(f"{node.address}:{METRICS_PORT}", labels, "/metrics/cadvisor")


def _label_name(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name)


def _answers(url: str) -> bool:
    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.get(url, timeout=5).ok
        except requests.ConnectionError:
            return False
