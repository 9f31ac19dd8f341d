"""Names of Services and pods without a DNS server: the text of each pod's hosts file.

Every ready endpoint of a headless Service is listed under the Service's names, and under its own where it has
a host name. A Service with a cluster address stands for its first endpoint, which is right where port and
target port agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]
SERVICE_LABEL = "kubernetes.io/service-name"


def names(name: str, namespace: str) -> list[str]:
    full = f"{name}.{namespace}.svc.cluster.local"
    return [full, f"{name}.{namespace}.svc", f"{name}.{namespace}"]


def service_lines(service: Json, slices: Iterable[Json]) -> list[str]:
    """Lines for one Service, from the endpoint slices that belong to it."""
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    early = service["spec"].get("publishNotReadyAddresses", False)
    lines = []
    for item in slices:
        for endpoint in item.get("endpoints") or []:
            if not early and endpoint.get("conditions", {}).get("ready") is False:
                continue
            own = [f"{endpoint['hostname']}.{n}" for n in names(name, namespace)] if endpoint.get("hostname") else []
            lines += [f"{address}\t{' '.join([*own, *names(name, namespace)])}" for address in endpoint["addresses"]]
    return lines if service["spec"].get("clusterIP") == "None" else lines[:1]


def file_text(pod: Json, address: str, shared: Iterable[str]) -> str:
    """The whole hosts file of one pod."""
    name = pod["spec"].get("hostname") or pod["metadata"]["name"]
    aliases = [f"{alias['ip']}\t{' '.join(alias['hostnames'])}" for alias in pod["spec"].get("hostAliases", [])]
    return "\n".join(["127.0.0.1\tlocalhost", f"{address}\t{name}", *aliases, *shared, ""])


class Directory:
    """Knows all Services and endpoint slices; calls `on_change` when the lines may have changed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._services: dict[str, Json] = {}
        self._slices: dict[str, Json] = {}
        self._on_change = on_change

    def changed(self, item: Json) -> None:
        self._collection(item)[item["metadata"]["uid"]] = item
        self._on_change()

    def removed(self, item: Json) -> None:
        self._collection(item).pop(item["metadata"]["uid"], None)
        self._on_change()

    def _collection(self, item: Json) -> dict[str, Json]:
        return self._slices if "addressType" in item else self._services

    def lines(self, namespace: str) -> list[str]:
        """Lines for all pods of a namespace: its own Services go by their bare names as well."""
        found = []
        for service in self._services.values():
            metadata = service["metadata"]
            mine = [
                item
                for item in self._slices.values()
                if item["metadata"].get("labels", {}).get(SERVICE_LABEL) == metadata["name"]
                and item["metadata"]["namespace"] == metadata["namespace"]
            ]
            bare = f" {metadata['name']}" if metadata["namespace"] == namespace else ""
            found += [line + bare for line in service_lines(service, mine)]
        return sorted(found)
