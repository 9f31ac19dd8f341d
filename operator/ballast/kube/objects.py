"""Reading and writing Ballast's own objects: never a write without a change, never over another client's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ballast.kube.client import Client
from ballast.kube.document import JSON, ReadOnlyJSON
from ballast.kube.errors import AlreadyExists, NotFound
from ballast.kube.kinds import EXECUTOR_MOVE, GATE_SWITCH, Kind

SWITCH = "ballast"
"""Name of the one GateSwitch."""


def difference(old: ReadOnlyJSON, new: ReadOnlyJSON) -> JSON:
    """The merge patch (RFC 7386) from `old` to `new`; empty when they are equal. Lists are replaced whole."""
    changes: JSON = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := difference(before, value):
                changes[key] = inner
        elif key not in old or before != value:
            changes[key] = value
    return changes


def write_status(client: Client, kind: Kind, seen: ReadOnlyJSON, status: ReadOnlyJSON) -> JSON | None:
    """Make `status` the object's whole status, if it differs from that of `seen`, the object as it was read.

    Returns the object as it is now, or None when there was nothing to write. Raises Conflict when the object was
    changed since it was read, NotFound when it is gone.
    """
    changes = difference(seen.get("status") or {}, status)
    if not changes:
        return None
    metadata = seen["metadata"]
    guarded = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": changes}
    return client.patch(kind, metadata["name"], guarded, namespace=metadata.get("namespace"), subresource="status")


def ensure_created(client: Client, kind: Kind, body: ReadOnlyJSON) -> tuple[JSON, bool]:
    """Create the object, or take the one of this name that is there. Also returns whether it was created now."""
    metadata = body["metadata"]
    try:
        return client.create(kind, body, namespace=metadata.get("namespace")), True
    except AlreadyExists:
        return client.get(kind, metadata["name"], namespace=metadata.get("namespace")), False


def delete_object(client: Client, kind: Kind, seen: ReadOnlyJSON) -> bool:
    """Delete exactly the object that was read; False when it is gone already."""
    metadata = seen["metadata"]
    try:
        client.delete(
            kind, metadata["name"], namespace=metadata.get("namespace"), preconditions={"uid": metadata["uid"]}
        )
    except NotFound:
        return False
    return True


def approve_move(client: Client, *, namespace: str, name: str) -> JSON:
    """Let a proposed ExecutorMove begin. Doing it twice changes nothing."""
    return client.patch(EXECUTOR_MOVE, name, {"spec": {"approved": True}}, namespace=namespace)


def gate_switch(client: Client, name: str = SWITCH) -> JSON | None:
    """The switch as it is; None when there is none, which means off."""
    try:
        return client.get(GATE_SWITCH, name)
    except NotFound:
        return None


def set_gate_switch(
    client: Client, spec: Mapping[str, Any], *, status: ReadOnlyJSON | None = None, name: str = SWITCH
) -> JSON:
    """Make `spec` (gating, allNamespaces, namespaces) and, if given, `status` the switch's, creating it if need be.

    Written only where something differs. Raises Conflict when another client wrote it at the same time.
    """
    seen = gate_switch(client, name)
    if seen is None:
        body = {
            "apiVersion": GATE_SWITCH.api_version,
            "kind": GATE_SWITCH.kind,
            "metadata": {"name": name},
            "spec": dict(spec),
        }
        seen, _ = ensure_created(client, GATE_SWITCH, body)
    changes = difference(seen.get("spec") or {}, spec)
    if changes:
        guarded = {"metadata": {"resourceVersion": seen["metadata"]["resourceVersion"]}, "spec": changes}
        seen = client.patch(GATE_SWITCH, name, guarded)
    return seen if status is None else write_status(client, GATE_SWITCH, seen, status) or seen
