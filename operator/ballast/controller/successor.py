"""Whether another replica of the same Deployment is there to lead next."""

from __future__ import annotations

from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import KubeError
from ballast.kube.objects import Query, read_list

_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")
"""By which the chart's Deployment selects its pods."""


def another_is_ready(client: Client, *, namespace: str, identity: str) -> bool:
    """False where it can't be known. `identity`: the name of this replica's pod."""
    try:
        labels = client.get(kinds.POD, identity, namespace=namespace)["metadata"].get("labels") or {}
        if not all(key in labels for key in _LABELS):
            return False
        query = Query(kinds.POD, namespace=namespace, labels=",".join(f"{key}={labels[key]}" for key in _LABELS))
        return any(each not in (identity, None) for each in read_list(client, query, _ready).items)
    except KubeError:
        return False


def _ready(pod: JSON) -> str | None:
    """Its name, if it is ready and stays."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    return metadata["name"] if ready and not metadata.get("deletionTimestamp") else None
