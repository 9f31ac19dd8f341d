"""Applications whose executors get our gate from a pod template: without an operator nothing would release them.

A gate that admission adds is in no managed fields, because the API server notes a new object's fields before
admission changes it. One that a pod was created with is noted. A released pod has no trace of its gate; the executors'
pod template, which Spark in cluster mode writes to a ConfigMap of the driver, still has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from ballast.files import UNREADABLE, TooDeepError, yaml_documents
from ballast.kube import names
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.kinds import POD
from ballast.kube.objects import Query, read_list
from ballast.kube.submitted_conf import executor_templates
from ballast.listing import named

MOST_NAMED = 20
"""In one sentence."""
_FIELD = "k:" + json.dumps({"name": names.GATE}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class GatedPod:
    namespace: str
    name: str
    application: str
    """`namespace/id`; without an application, `namespace/name` of the pod."""
    by_template: bool


@dataclass(frozen=True, slots=True)
class TemplateGates:
    """Applications (`namespace/id`)."""

    found: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()
    """They have a pod template for executors, which may not be read."""

    def warnings(self) -> list[str]:
        """For people: a sentence each, with some of the applications that it is about; there may be thousands."""
        told = []
        if self.found:
            told.append(
                "The executors of these applications get the gate ballast.dev/placement from their pod template. Once "
                "Ballast is uninstalled, nothing releases their new executors. Take the gate out of "
                f"spec.schedulingGates of the template, and start them again: {named(self.found, most=MOST_NAMED)}"
            )
        if self.not_read:
            told.append(
                "The executors of these applications have a pod template that you may not read (ConfigMaps of the "
                f"drivers): see that it has no gate ballast.dev/placement: {named(self.not_read, most=MOST_NAMED)}"
            )
        return told


def gated_pods(client: Client) -> list[GatedPod]:
    """Raises KubeError."""
    pending = read_list(client, Query(POD, fields="status.phase=Pending,spec.nodeName="), _gated).items
    return [pod for pod in pending if pod is not None]


def template_gates(client: Client, gated: Iterable[GatedPod]) -> TemplateGates:
    """Of the applications that run. In client mode only gated executors tell. Raises KubeError."""
    templates = executor_templates(client, _has_gate)
    found = {pod.application for pod in gated if pod.by_template}
    found |= {name for name, has_gate in templates.items() if has_gate}
    not_read = {name for name, has_gate in templates.items() if has_gate is None}
    return TemplateGates(tuple(sorted(found)), tuple(sorted(not_read - found)))


def _gated(pod: JSON) -> GatedPod | None:
    metadata = pod["metadata"]
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
    if names.GATE not in gates or metadata.get("deletionTimestamp"):
        return None
    namespace, name = metadata["namespace"], metadata["name"]
    application = (metadata.get("labels") or {}).get(names.SPARK_APPLICATION) or name
    created_with = any(_notes_gate(entry) for entry in metadata.get("managedFields") or ())
    return GatedPod(namespace, name, f"{namespace}/{application}", created_with)


def _notes_gate(entry: JSON) -> bool:
    spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
    return _FIELD in (spec.get("f:schedulingGates") or {})


def _has_gate(template: str) -> bool:
    """Spark has parsed it: what can't be read here has no gate that Spark would use."""
    try:
        gates = [gate for pod in yaml_documents(template) for gate in pod["spec"]["schedulingGates"]]
        return any(gate["name"] == names.GATE for gate in gates)
    except TooDeepError:
        return True
    except UNREADABLE:
        return False
