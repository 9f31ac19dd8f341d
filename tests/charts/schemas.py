"""Closed JSON schemas of the kinds that the chart makes, for kubeconform: a field that no schema names is an error.

The schemas that a cluster publishes let any field through, and refer to files that kubeconform does not find.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

JSON = dict[str, Any]

LOCATION = "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"
_PREFIX = "#/definitions/"
_ANY_AMOUNT = {"io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity"}


@dataclass(frozen=True, slots=True)
class Kubeconform:
    binary: Path
    schemas: Path

    def complaints(self, *documents: JSON) -> str:
        """What it finds; empty if every document is valid."""
        ended = subprocess.run(
            [self.binary, "-strict", "-schema-location", f"{self.schemas}/{LOCATION}", "-"],
            input=yaml.safe_dump_all(documents), capture_output=True, text=True, check=False,
        )  # fmt: skip
        return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def write_kubernetes(swagger: Path, folder: Path) -> None:
    """Of every kind of Kubernetes itself, from its OpenAPI document."""
    definitions: dict[str, JSON] = {
        name: {"type": ["string", "number"]} if name in _ANY_AMOUNT else closed(each)
        for name, each in json.loads(swagger.read_text())["definitions"].items()
    }
    for name, each in definitions.items():
        kinds: list[dict[str, str]] = each.get("x-kubernetes-group-version-kind", [])
        for kind in kinds:
            needed = {other: definitions[other] for other in _needed(name, definitions)}
            own = {**each, "definitions": needed}
            (folder / _file(kind["group"], kind["version"], kind["kind"])).write_text(json.dumps(own))


def write_custom(documents: Iterable[JSON], folder: Path) -> None:
    """Of every kind that these CustomResourceDefinitions define. Of metadata everything is let through."""
    for document in documents:
        spec = document["spec"]
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            metadata = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
            whole = closed({**schema, "properties": {**schema["properties"], **metadata}})
            (folder / _file(spec["group"], version["name"], spec["names"]["kind"])).write_text(json.dumps(whole))


class _Loader(yaml.CSafeLoader):
    """Takes a plain `=` for text, as it is meant in the operators of Alertmanager's matchers."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda _loader, node: str(node.value))


def definitions_in(file: Path) -> list[JSON]:
    """The CustomResourceDefinitions in a file."""
    documents = yaml.load_all(file.read_text(), Loader=_Loader)
    return [each for each in documents if each and each.get("kind") == "CustomResourceDefinition"]


def closed(schema: JSON) -> JSON:
    """The same with no other properties than those it names, at each level."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "number"]}
    found = dict(schema)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found[key] = closed(schema[key])
    if "properties" in schema:
        found["properties"] = {name: closed(each) for name, each in schema["properties"].items()}
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            found["additionalProperties"] = False
    return found


def _file(group: str, version: str, kind: str) -> str:
    return f"{kind}-{group or version}-{version}.json".lower()  # as kubeconform names the core group


def _needed(name: str, definitions: JSON) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for reference in _references(definitions[waiting.pop()]):
            if reference not in found:
                found.add(reference)
                waiting.append(reference)
    return found


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix(_PREFIX)
        for child in value.values():
            yield from _references(child)
    elif isinstance(value, list):
        for child in value:
            yield from _references(child)
