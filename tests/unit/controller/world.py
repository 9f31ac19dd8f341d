"""A cluster as one process of the operator sees it: an API server that keeps what is written, and a Prometheus."""

from __future__ import annotations

import copy
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.unit.controller.stage import merge
from tests.unit.controller.test_framework import NOTHING_NEW, ApiServer
from tests.unit.kube.scripted import Answer, Asked

JSON = dict[str, Any]
METRICS = "/metrics-of-nodes"
"""Below this, it answers as Prometheus does."""


class Place(NamedTuple):
    """What a path of the API names."""

    plural: str
    namespace: str
    name: str
    subresource: str


def place(path: str) -> Place:
    parts = path.partition("?")[0].strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    return Place(plural, namespace, name, subresource)


@dataclass
class Event:
    """Of a watch."""

    plural: str
    type: str
    body: JSON


class World:
    """`put` objects; `kept` has them as the operator last wrote them. Watches bring only what `happens`."""

    def __init__(self) -> None:
        self._kopf = ApiServer(NOTHING_NEW)
        self._version, self._lock = 100, threading.Lock()
        self._coming: list[Event] = []
        self.kept: dict[tuple[str, str, str], JSON] = {}
        self.cores: dict[str, float] = {}
        """Used on each node, as Prometheus has it; each executor uses half a core."""
        self.credentials: dict[str, set[str | None]] = defaultdict(set)
        """That each server was sent: Prometheus, and the API server by Ballast and by kopf."""
        self.memory: dict[str, float] = {}
        """Bytes used on each node."""

    def put(self, plural: str, *objects: JSON) -> None:
        for each in objects:
            metadata = each["metadata"]
            self.kept[plural, metadata.get("namespace", ""), metadata["name"]] = self.stamped(each)

    def one(self, plural: str, name: str, namespace: str = "") -> JSON:
        return self.kept.get((plural, namespace, name)) or {}

    def status(self, plural: str, name: str, namespace: str = "") -> JSON:
        return self.one(plural, name, namespace).get("status") or {}

    def all(self, plural: str) -> list[JSON]:
        return [each for (kind, _, _), each in list(self.kept.items()) if kind == plural]

    def happens(self, *events: Event) -> None:
        """The watches of these kinds bring them, in this order."""
        with self._lock:
            self._coming += events

    def stamped(self, found: JSON) -> JSON:
        with self._lock:
            self._version += 1
            known = {"uid": f"uid-{found['metadata']['name']}", **found["metadata"]}
            found["metadata"] = {**known, "resourceVersion": str(self._version)}
        return found

    def __call__(self, asked: Asked) -> Answer:
        if asked.path.startswith(METRICS):
            return self._measured(asked)
        of_kopf = asked.headers["User-Agent"].startswith("kopf")
        self.credentials["kopf" if of_kopf else "ballast"].add(asked.headers.get("Authorization"))
        if "watch=true" in asked.path:
            return self._watched(asked, of_kopf=of_kopf)
        if of_kopf:
            return self._kopf(asked)
        at = place(asked.path)
        if asked.method == "GET":
            return self._read(at)
        return self._write(at, asked)

    def _watched(self, asked: Asked, *, of_kopf: bool) -> Answer:
        plural = place(asked.path).plural
        with self._lock:
            found = [event for event in self._coming if event.plural == plural]
            self._coming = [event for event in self._coming if event.plural != plural]
        if found:
            lines = [json.dumps({"type": event.type, "object": event.body}) for event in found]
            return Answer(text="\n".join(lines) + "\n", headers={"Content-Type": "application/json"})
        return self._kopf(asked) if of_kopf else Answer(503, {"message": "not now"})

    def _read(self, at: Place) -> Answer:
        if at.name:
            found = self.kept.get((at.plural, at.namespace, at.name))
            return Answer(404, {"message": "none"}) if found is None else Answer(body=found)
        # In the order in which etcd keeps them.
        items = [
            each for (plural, space, _), each in sorted(self.kept.items(), key=lambda item: item[0])
            if plural == at.plural and at.namespace in ("", space)
        ]  # fmt: skip
        return Answer(body={"items": items, "metadata": {"resourceVersion": str(self._version)}})

    def _write(self, at: Place, asked: Asked) -> Answer:
        if at.subresource == "eviction":
            self.kept.pop(("pods", at.namespace, at.name))
            return Answer(201, {"status": "Success"})
        if asked.method == "POST":
            body = copy.deepcopy(asked.body)
            if at.namespace:
                body["metadata"]["namespace"] = at.namespace
            self.put(at.plural, body)
            return Answer(201, body)
        known = self.kept.get((at.plural, at.namespace, at.name))
        if known is None:
            return Answer(404, {"message": "none"})
        if asked.method == "DELETE":
            del self.kept[at.plural, at.namespace, at.name]
            return Answer(body=known)
        changed = copy.deepcopy(asked.body if asked.method == "PUT" else known)
        if asked.method == "PATCH":
            _patch(changed, asked.body, status_alone=at.subresource == "status")
        self.put(at.plural, changed)
        metadata_alone = "PartialObjectMetadata" in asked.headers.get("Accept", "")
        return Answer(body={"metadata": changed["metadata"]} if metadata_alone else changed)

    def _measured(self, asked: Asked) -> Answer:
        self.credentials["prometheus"].add(asked.headers.get("Authorization"))
        result = [{"metric": labels, "value": [0, str(cores)]} for labels, cores in self._series(asked.path)]
        return Answer(body={"status": "success", "data": {"resultType": "vector", "result": result}})

    def _series(self, query: str) -> Iterator[tuple[JSON, float]]:
        if "cores_of_nodes" in query:
            yield from (({"node": node}, cores) for node, cores in self.cores.items())
        if "memory_of_nodes" in query:
            yield from (({"node": node}, used) for node, used in self.memory.items())
        if "cores_of_executors" in query:
            for pod in self.all("pods"):
                yield {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}, 0.5


def _patch(target: JSON, patch: Any, *, status_alone: bool) -> None:
    """As much of the two kinds of patches as the operator writes."""
    if isinstance(patch, dict):
        change = {"status": patch.get("status") or {}} if status_alone else patch
        merge(target, {key: value for key, value in change.items() if key != "metadata"})
        return
    for each in patch:
        if each["op"] == "test":
            continue
        *folders, last = each["path"].strip("/").split("/")
        if "schedulingGates" in folders:
            folders, last = folders[:-1], "schedulingGates"
        for folder in folders:
            target = target.setdefault(folder, {})
        if each["op"] == "remove":
            target.pop(last, None)
        else:
            target[last] = each["value"]
