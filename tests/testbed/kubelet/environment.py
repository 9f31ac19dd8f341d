"""A container's environment: literal values, references into the pod, config maps and secrets."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ballast.errors import BallastError
from tests.testbed.kubelet import quantity

Json = dict[str, Any]
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class ConfigError(BallastError):
    """The pod refers to something that isn't there: CreateContainerConfigError in its status."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What fields of a pod can be referred to: the object, and what only its kubelet knows."""

    pod: Json
    pod_ip: str
    host_ip: str
    node_capacity: Mapping[str, str]
    config_maps: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, Json] = field(default_factory=dict)


def field_value(path: str, facts: PodFacts) -> str:
    """The value at a fieldRef's path."""
    metadata, spec = facts.pod["metadata"], facts.pod["spec"]
    plain = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
    }
    if path in plain:
        return str(plain[path])
    if keyed := _KEYED.fullmatch(path):
        return str(metadata.get(keyed[1], {}).get(keyed[2], ""))
    if path in {"metadata.labels", "metadata.annotations"}:
        items = metadata.get(path.removeprefix("metadata."), {})
        return "\n".join(f'{key}="{value}"' for key, value in sorted(items.items()))
    raise ConfigError(f"fieldRef {path!r} is not supported")


def resource_value(reference: Json, container: Json, facts: PodFacts) -> str:
    """The value of a resourceFieldRef. A limit that isn't set is the node's capacity."""
    kind, _, name = reference["resource"].partition(".")
    resources = container.get("resources", {})
    fallback = facts.node_capacity.get(name, "0") if kind == "limits" else "0"
    value = resources.get(kind, {}).get(name, fallback)
    return quantity.divided(str(value), str(reference.get("divisor") or "1"))


def secret_text(secret: Json, key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


def keyed_value(kind: str, reference: Json, facts: PodFacts) -> str | None:
    """The value of a configMapKeyRef or secretKeyRef; None for a missing optional one."""
    objects = facts.config_maps if kind == "configMapKeyRef" else facts.secrets
    found, key = objects.get(reference["name"]), reference["key"]
    if found is None or key not in found.get("data", {}):
        if reference.get("optional"):
            return None
        raise ConfigError(f"{kind}: no key {key!r} in {reference['name']!r}")
    return secret_text(found, key) if kind == "secretKeyRef" else str(found["data"][key])


def source_value(source: Json, container: Json, facts: PodFacts) -> str | None:
    ((kind, reference),) = source.items()
    if kind == "fieldRef":
        return field_value(reference["fieldPath"], facts)
    if kind == "resourceFieldRef":
        named = reference.get("containerName") or container["name"]
        spec = facts.pod["spec"]
        owner = next(c for c in [*spec["containers"], *spec.get("initContainers", [])] if c["name"] == named)
        return resource_value(reference, owner, facts)
    return keyed_value(kind, reference, facts)


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; an unknown name stays as it is, $$ is a single $."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def bulk(source: Json, facts: PodFacts) -> dict[str, str]:
    """The variables of one envFrom entry."""
    prefix = source.get("prefix", "")
    kind = "configMapRef" if "configMapRef" in source else "secretRef"
    reference = source[kind]
    objects = facts.config_maps if kind == "configMapRef" else facts.secrets
    found = objects.get(reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f"envFrom: no {kind.removesuffix('Ref')} {reference['name']!r}")
    data = found.get("data", {})
    return {prefix + key: secret_text(found, key) if kind == "secretRef" else str(value) for key, value in data.items()}


def references(container: Json) -> set[tuple[str, str]]:
    """What a container's environment needs from the API: (collection, name)."""
    needed = set()
    for variable in container.get("env", []):
        source = variable.get("valueFrom") or {}
        if "configMapKeyRef" in source:
            needed.add(("configmaps", source["configMapKeyRef"]["name"]))
        if "secretKeyRef" in source:
            needed.add(("secrets", source["secretKeyRef"]["name"]))
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            needed.add(("configmaps", source["configMapRef"]["name"]))
        if "secretRef" in source:
            needed.add(("secrets", source["secretRef"]["name"]))
    return needed


def resolve(container: Json, facts: PodFacts, *, image: Mapping[str, str]) -> dict[str, str]:
    """The whole environment: the image's, then envFrom, then env in order, each seeing those before it."""
    environment = dict(image)
    for source in container.get("envFrom", []):
        environment |= bulk(source, facts)
    for variable in container.get("env", []):
        if variable.get("valueFrom"):
            value = source_value(variable["valueFrom"], container, facts)
        else:
            value = expand(variable.get("value", ""), environment)
        if value is not None:
            environment[variable["name"]] = value
    return environment
