"""Kueue with topology-aware scheduling: the real controller, as a process of this machine.

Its pods, Service and Secrets have no kubelet here. So the API server calls its webhooks by address instead of by
Service, and Kueue is given certificates instead of making its own. It acts on the namespace of its peer only.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.load.pods import POOL
from tests.testbed.binaries import find_binaries, kueue_manifests
from tests.testbed.instance import free_port
from tests.testbed.nodes import HOSTNAME_LABEL, RACK_LABEL, ZONE_LABEL
from tests.testbed.pki import KeyPair, create_authority
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]
NAME = "kueue"
NAMESPACE = "kueue-system"
QUEUE = "executors"
HOST = "127.0.0.1"
PATIENCE_SECONDS = 120.0
_GROUP = "kueue.x-k8s.io"
_VERSION = f"{_GROUP}/v1beta2"
WORKLOADS = f"{_VERSION}/workloads"
"""What Kueue makes of a group of pods. It lets go of pods that are deleted once their group's one is gone."""
_OURS = ("pod", "clusterqueue", "cohort", "resourceflavor", "workload")
"""The webhooks that have something to do: no other kind of job is here."""
_CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
_METRICS_CERTIFICATES = "kueue/metrics/certs"
"""Below /etc, where Kueue looks for them, and nowhere else."""


def grouped(name: str, *, size: int, label: str) -> JSON:
    """The metadata of a pod in a group of `size`, all of which should be in one place by `label`."""
    return {
        "labels": {f"{_GROUP}/queue-name": QUEUE, f"{_GROUP}/pod-group-name": name},
        "annotations": {
            f"{_GROUP}/pod-group-total-count": str(size),
            f"{_GROUP}/podset-preferred-topology": label,
        },
    }


@dataclass(frozen=True, slots=True)
class Queue:
    """What pods of the queue may use, and where."""

    name: str = QUEUE
    """Also of its flavor and its topology."""
    cores: str = "100k"
    nodes: Mapping[str, str] = field(default_factory=lambda: POOL)
    """Labels that Kueue writes into the node selector of what it admits."""
    by_topology: bool = True
    """Kueue chooses the nodes, too."""


@contextmanager
def kueue(testbed: Testbed, folder: Path, *, namespace: str, queue: Queue | None = None) -> Iterator[None]:
    """Kueue at work, with a queue in that namespace. Default: it may use the whole pool."""
    binary = find_binaries([NAME], progress=print)[NAME]
    testbed.create_namespace(NAMESPACE)
    port, health = free_port(HOST), free_port(HOST)
    authority = create_authority(folder, f"{NAME}-ca")
    pair = authority.issue(NAME, common_name=NAME, hosts=[HOST])
    config = _configured(folder, pair, port=port, health=health)
    testbed.apply(*_manifests(namespace, f"https://{HOST}:{port}", authority.files.certificate.read_bytes()))
    _await_definitions(testbed)
    command = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" /etc && exec "$2" --config="$3"', "sh"]
    log = folder / "kueue.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(folder / "etc"), str(binary), str(config)],
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(testbed.kubeconfig)},
        )
        try:
            _make(queue or Queue(), testbed, namespace, process, log)
            yield
            _check(process, log)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _configured(folder: Path, pair: KeyPair, *, port: int, health: int) -> Path:
    for certificates in (folder / "serving", folder / "etc" / _METRICS_CERTIFICATES):
        certificates.mkdir(parents=True)
        (certificates / "tls.crt").write_bytes(pair.certificate.read_bytes())
        (certificates / "tls.key").write_bytes(pair.key.read_bytes())
    content = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": HOST, "port": port, "certDir": str(folder / "serving")},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 50, "burst": 100},  # as its releases set them
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["pod"]},
        "featureGates": {"VisibilityOnDemand": False},
    }
    config = folder / "kueue.yaml"
    config.write_text(yaml.safe_dump(content))
    return config


def _manifests(namespace: str, address: str, authority: bytes) -> Iterator[JSON]:
    """Kueue's own definitions and webhooks, called at `address`."""
    for manifest in filter(None, yaml.safe_load_all(kueue_manifests(progress=print).read_text())):
        if manifest.get("kind") == "CustomResourceDefinition":
            yield _converted(manifest, _called(f"{address}/convert", authority))
        elif "webhooks" in manifest:
            webhooks = [each for each in manifest["webhooks"] if each["name"][1:].removesuffix(".kb.io") in _OURS]
            for each in webhooks:
                each["clientConfig"] = _called(address + each["clientConfig"]["service"]["path"], authority)
                if each["name"][1:].startswith("pod"):
                    each["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            yield {**manifest, "metadata": {"name": f"kueue-{manifest['metadata']['name']}"}, "webhooks": webhooks}


def _await_definitions(testbed: Testbed) -> None:
    for kind in ("topologies", "resourceflavors", "clusterqueues", "localqueues", "workloads"):
        for what in ("jsonpath={.status.conditions}", "condition=Established"):
            testbed.kubectl("wait", f"--for={what}", f"crd/{kind}.{_GROUP}")


def _called(url: str, authority: bytes) -> JSON:
    return {"url": url, "caBundle": base64.b64encode(authority).decode()}


def _converted(definition: JSON, client: JSON) -> JSON:
    """The versions of other kinds are alike."""
    if definition["spec"]["names"]["plural"] in _CONVERTED:
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return definition


def _make(queue: Queue, testbed: Testbed, namespace: str, process: subprocess.Popen[bytes], log: Path) -> None:
    levels = [{"nodeLabel": label} for label in (ZONE_LABEL, RACK_LABEL, HOSTNAME_LABEL)]
    quotas = [{"name": name, "nominalQuota": amount} for name, amount in (("cpu", queue.cores), ("memory", "100Ti"))]
    resources = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": queue.name, "resources": quotas}]}
    by_topology = {"topologyName": queue.name} if queue.by_topology else {}
    objects = (
        _object("Topology", queue.name, {"levels": levels}),
        _object("ResourceFlavor", queue.name, {"nodeLabels": dict(queue.nodes), **by_topology}),
        _object("ClusterQueue", queue.name, {"namespaceSelector": {}, "resourceGroups": [resources]}),
        _object("LocalQueue", QUEUE, {"clusterQueue": queue.name}, namespace=namespace),
    )

    text = "\n---\n".join(map(yaml.safe_dump, objects))

    def applied() -> bool:
        """Once the webhooks answer."""
        _check(process, log)
        asked = ("apply", "--server-side", "--filename=-")
        return not testbed.kubectl_as(testbed.kubeconfig).run(*asked, input_text=text, check=False).returncode

    def active() -> bool:
        found = testbed.kubectl("get", f"clusterqueues.{_GROUP}", queue.name, "--output=jsonpath={.status.conditions}")
        return '"status":"True","type":"Active"' in found

    for condition in (applied, active):
        wait_until(
            condition,
            what="Kueue takes its queue",
            timeout_seconds=PATIENCE_SECONDS,
            poll_seconds=1.0,
            explain=lambda: log.read_text()[-4000:],
        )


def _check(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is not None:
        raise RuntimeError(f"Kueue ended early:\n{log.read_text()[-4000:]}")


def _object(kind: str, name: str, spec: Mapping[str, Any], *, namespace: str = "") -> JSON:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)}
