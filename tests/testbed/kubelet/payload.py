"""The files of API-backed volumes, and how they are replaced as a whole."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.kubelet.environment import ConfigError, PodFacts, field_value, resource_value

Json = dict[str, Any]
DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Content:
    data: bytes
    mode: int = DEFAULT_MODE


Payload = Mapping[str, Content]
"""Relative path → content."""


def object_data(found: Json) -> dict[str, bytes]:
    """Keys and contents of a config map or a secret."""
    if found.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}
    texts = {key: value.encode() for key, value in found.get("data", {}).items()}
    return texts | {key: base64.b64decode(value) for key, value in found.get("binaryData", {}).items()}


def object_files(found: Json | None, source: Json, mode: int) -> dict[str, Content]:
    """Files of a config map or secret: all its keys, or those that `items` names."""
    name = source.get("name") or source.get("secretName")
    if found is None:
        if source.get("optional"):
            return {}
        raise ConfigError(f"no config map or secret {name!r}")
    data = object_data(found)
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    files = {}
    for item in items:
        if item["key"] in data:
            files[item["path"]] = Content(data[item["key"]], item.get("mode", mode))
        elif not source.get("optional"):
            raise ConfigError(f"no key {item['key']!r} in {name!r}")
    return files


def downward_files(source: Json, facts: PodFacts, mode: int) -> dict[str, Content]:
    files = {}
    for item in source.get("items", []):
        if "fieldRef" in item:
            value = field_value(item["fieldRef"]["fieldPath"], facts)
        else:
            reference = item["resourceFieldRef"]
            containers = facts.pod["spec"]["containers"]
            owner = next(c for c in containers if c["name"] == reference["containerName"])
            value = resource_value(reference, owner, facts)
        files[item["path"]] = Content(value.encode(), item.get("mode", mode))
    return files


def write(folder: Path, payload: Payload, *, gid: int | None) -> None:
    """Replace the files of a volume at once: readers see all old ones or all new ones."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="..data-", dir=folder))
    fresh.chmod(0o755)
    for relative, content in payload.items():
        path = fresh / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.data)
        # A group that the pod asks for gets at it even where the mode says owner only.
        path.chmod(content.mode | (0o040 if gid is not None else 0))
        if gid is not None:
            os.chown(path, -1, gid)
    current = folder / "..data"
    previous = current.resolve() if current.is_symlink() else None
    link = folder / "..data.new"
    link.symlink_to(fresh.name)
    link.replace(current)
    _link_entries(folder, payload)
    if previous is not None:
        shutil.rmtree(previous, ignore_errors=True)


def _link_entries(folder: Path, payload: Payload) -> None:
    wanted = {relative.split("/")[0] for relative in payload}
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and entry.name not in wanted:
            entry.unlink()
    for name in wanted:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
