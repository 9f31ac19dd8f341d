"""Names of Services and pods without a DNS server: the text of each pod's hosts file.

Every ready pod that a headless Service selects is listed under the Service's names, and under its own where it
has a host name and the Service is its subdomain. A Service with a cluster address stands for its first pod,
which is right where port and target port agree. The API server takes no loopback addresses as endpoints, so the
pods of this kubelet are matched by their labels here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodEntry:
    """A pod as a possible endpoint. `hostname`, `subdomain`: of its spec, empty where not set."""

    namespace: str
    labels: Mapping[str, str]
    address: str
    ready: bool
    hostname: str = ""
    subdomain: str = ""


def names(name: str, namespace: str) -> list[str]:
    full = f"{name}.{namespace}.svc.cluster.local"
    return [full, f"{name}.{namespace}.svc", f"{name}.{namespace}"]


def selects(service: Json, pod: PodEntry) -> bool:
    selector, spec = service["spec"].get("selector") or {}, service["spec"]
    fits = service["metadata"]["namespace"] == pod.namespace and selector.items() <= pod.labels.items()
    return bool(selector) and fits and (pod.ready or spec.get("publishNotReadyAddresses", False))


def service_lines(service: Json, pods: Iterable[PodEntry]) -> list[str]:
    """Lines for one Service, by address."""
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    lines = []
    for pod in sorted((pod for pod in pods if selects(service, pod)), key=lambda pod: pod.address):
        own = [f"{pod.hostname}.{n}" for n in names(name, namespace)] if pod.hostname and pod.subdomain == name else []
        lines.append(f"{pod.address}\t{' '.join([*own, *names(name, namespace)])}")
    return lines if service["spec"].get("clusterIP") == "None" else lines[:1]


def is_api_server(service: Json) -> bool:
    metadata = service["metadata"]
    return (metadata["namespace"], metadata["name"]) == ("default", "kubernetes")


def api_server_line(service: Json) -> str:
    return f"{service['spec']['clusterIP']}\t{' '.join(names('kubernetes', 'default'))}"


def file_text(pod: Json, address: str, shared: Iterable[str]) -> str:
    """The whole hosts file of one pod."""
    name = pod["spec"].get("hostname") or pod["metadata"]["name"]
    aliases = [f"{alias['ip']}\t{' '.join(alias['hostnames'])}" for alias in pod["spec"].get("hostAliases", [])]
    return "\n".join(["127.0.0.1\tlocalhost", f"{address}\t{name}", *aliases, *shared, ""])


class Directory:
    """Knows all Services, and asks for `pods`; calls `on_change` when the lines may have changed."""

    def __init__(self, pods: Callable[[], Iterable[PodEntry]], on_change: Callable[[], None]) -> None:
        self._services: dict[str, Json] = {}
        self._pods = pods
        self._on_change = on_change

    def changed(self, item: Json) -> None:
        self._services[item["metadata"]["uid"]] = item
        self._on_change()

    def removed(self, item: Json) -> None:
        self._services.pop(item["metadata"]["uid"], None)
        self._on_change()

    def api_server(self) -> tuple[str, int] | None:
        """Cluster address and port of the API server's Service, once it is there."""
        found = next((s["spec"] for s in self._services.values() if is_api_server(s)), None)
        return (found["clusterIP"], int(found["ports"][0]["port"])) if found else None

    def pods_changed(self) -> None:
        self._on_change()

    def lines(self, namespace: str) -> list[str]:
        """Lines for all pods of a namespace: its own Services go by their bare names as well."""
        found: list[str] = []
        pods = list(self._pods())
        for service in self._services.values():
            metadata = service["metadata"]
            bare = f" {metadata['name']}" if metadata["namespace"] == namespace else ""
            listed = [api_server_line(service)] if is_api_server(service) else service_lines(service, pods)
            found += [line + bare for line in listed]
        return sorted(found)
