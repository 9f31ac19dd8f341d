"""Karpenter with its kwok provider: its nodes exist in the API alone; what decides about them is real."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.binaries import find_binaries, karpenter_definitions
from tests.testbed.instance import free_port
from tests.testbed.nodes import ZONE_LABEL
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]
NAME = "karpenter"
ZONES = ("a", "b", "c")
CORES = (2, 4, 8)
"""Of the types of machine; each costs by its cores, and as much in every zone."""
GIBIBYTES_PER_CORE = 4
_CLASS = "default"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_DEFINED = ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "kwoknodeclasses.karpenter.kwok.sh")
PATIENCE_SECONDS = 120.0
_KEPT_BY_PRICE = ("Can't replace with a cheaper node", "Can't remove without creating", "NodePool")


@dataclass(frozen=True, slots=True)
class Karpenter:
    testbed: Testbed
    process: subprocess.Popen[bytes]
    log: Path

    def pool(self, name: str, labels: Mapping[str, str], *, taints: Sequence[JSON] = ()) -> None:
        """A NodePool whose nodes have these labels. It disrupts none until it is told to."""
        template = {
            "metadata": {"labels": dict(labels)},
            "spec": {
                "expireAfter": "Never",
                "taints": list(taints),
                "requirements": [{"key": _CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": _CLASS},
            },
        }
        disruption = {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": "Never",
            "budgets": [{"nodes": "100%"}],
        }
        spec = {"template": template, "disruption": disruption}
        self.testbed.apply(_object("karpenter.sh/v1", "NodePool", name, spec))

    def consolidate(self, name: str, *, after: str) -> None:
        """`after`: `Never`, or how long a node must have been as it is."""
        self._patch(name, {"disruption": {"consolidateAfter": after}})

    def drift(self, name: str, labels: Mapping[str, str]) -> None:
        """Ask for other labels of its nodes, so that those that there are drift."""
        self._patch(name, {"template": {"metadata": {"labels": dict(labels)}}})

    def _patch(self, name: str, spec: JSON) -> None:
        self.testbed.kubectl("patch", "nodepool", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def nodes(self, name: str) -> list[JSON]:
        """Of that NodePool; those that are about to go are among them."""
        found = self.testbed.kubectl("get", "nodes", f"--selector=karpenter.sh/nodepool={name}", "--output=json")
        items: list[JSON] = json.loads(found)["items"]
        return items

    def claims(self, name: str) -> list[JSON]:
        found = self.testbed.kubectl("get", "nodeclaims", f"--selector=karpenter.sh/nodepool={name}", "--output=json")
        items: list[JSON] = json.loads(found)["items"]
        return items

    def clear(self, name: str) -> None:
        """Without the NodePool's nodes."""
        self.testbed.kubectl("delete", "nodeclaims", f"--selector=karpenter.sh/nodepool={name}", "--wait=false")
        wait_until(
            lambda: not self.nodes(name) and not self.claims(name),
            what=f"the nodes of {name} are gone",
            timeout_seconds=PATIENCE_SECONDS,
            poll_seconds=0.5,
            explain=self.tail,
        )

    def kept_by_pods(self, name: str) -> dict[str, str]:
        """By node that is there: why its pods can't be anywhere else, so that it is not consolidated."""
        found = self.testbed.kubectl(
            "get", "events", "--namespace=default", "--field-selector=reason=Unconsolidatable", "--output=json"
        )
        there = {node["metadata"]["name"] for node in self.nodes(name)}
        last: dict[str, str] = {}
        for event in sorted(json.loads(found)["items"], key=lambda each: str(each.get("lastTimestamp"))):
            if event["involvedObject"]["name"] in there:
                last[event["involvedObject"]["name"]] = event["message"]
        return {node: words for node, words in last.items() if not words.startswith(_KEPT_BY_PRICE)}

    def tail(self) -> str:
        return self.log.read_text()[-4000:]

    def check(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"Karpenter ended early:\n{self.tail()}")


@contextmanager
def karpenter(testbed: Testbed, folder: Path) -> Iterator[Karpenter]:
    """Karpenter at work, without a NodePool."""
    binary = find_binaries([NAME], progress=print)[NAME]
    testbed.apply(karpenter_definitions(progress=print))
    for definition in _DEFINED:
        for what in ("jsonpath={.status.conditions}", "condition=Established"):
            testbed.kubectl("wait", f"--for={what}", f"crd/{definition}")
    testbed.apply(_object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", _CLASS, {}))
    types = folder / "instance-types.json"
    types.write_text(json.dumps([_type(cores) for cores in CORES]))
    health = free_port("127.0.0.1")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KUBECONFIG": str(testbed.kubeconfig),
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "SYSTEM_NAMESPACE": "kube-system",
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(free_port("127.0.0.1")),
        "HEALTH_PROBE_PORT": str(health),
        "INSTANCE_TYPES_FILE_PATH": str(types),
    }
    log = folder / "karpenter.log"
    with log.open("wb") as output:
        process = subprocess.Popen([str(binary)], stdout=output, stderr=output, env=environment)
        try:
            yield Karpenter(testbed, process, log)
        finally:
            process.terminate()
            process.wait(timeout=60)


def _type(cores: int) -> JSON:
    resources = {"cpu": str(cores), "memory": f"{GIBIBYTES_PER_CORE * cores}Gi", "ephemeral-storage": "100Gi"}
    return {
        "name": f"m-{cores}x-amd64-linux",
        "offerings": [
            {
                "Price": 0.05 * cores,
                "Available": True,
                "Requirements": [_in(_CAPACITY_TYPE, "on-demand"), _in(ZONE_LABEL, zone)],
            }
            for zone in ZONES
        ],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {**resources, "pods": "110"},
    }


def _in(key: str, value: str) -> JSON:
    return {"key": key, "operator": "In", "values": [value]}


def _object(version: str, kind: str, name: str, spec: Mapping[str, Any]) -> JSON:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}
