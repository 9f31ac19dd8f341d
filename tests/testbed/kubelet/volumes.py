"""A pod's volumes as folders of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from tests.testbed.kubelet import payload
from tests.testbed.kubelet.client import ApiError, Client, Json
from tests.testbed.kubelet.environment import ConfigError, PodFacts
from tests.testbed.kubelet.payload import Content, Payload
from tests.testbed.kubelet.tokens import TokenSource

API_BACKED = ("configMap", "secret", "projected", "downwardAPI")
READ_ONLY = API_BACKED


class Objects:
    """Config maps, secrets and claims of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def get(self, collection: str, name: str) -> Json | None:
        """The object, or None when there is none."""
        try:
            path = f"/api/v1/namespaces/{self._namespace}/{collection}/{name}"
            return await self._client.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def persistent_volume(self, name: str) -> Json:
        return await self._client.get(f"/api/v1/persistentvolumes/{name}")


class Volumes:
    """The volumes of one pod. `prepare` makes them all, `refresh` brings API-backed ones up to date."""

    def __init__(self, *, folder: Path, pod: Json, objects: Objects, tokens: TokenSource) -> None:
        self._folder: Path = folder
        self._pod = pod
        self._objects = objects
        self._tokens = tokens
        self._written: dict[str, Payload] = {}
        self._settled: set[str] = set()
        self.paths: dict[str, Path] = {}

    @property
    def _gid(self) -> int | None:
        group = self._pod["spec"].get("securityContext", {}).get("fsGroup")
        return None if group is None else int(group)

    async def prepare(self, facts: PodFacts) -> None:
        """Make all volumes. Raises ConfigError while something they refer to is missing."""
        for volume in self._pod["spec"].get("volumes", []):
            self.paths[volume["name"]] = await self._make(volume, facts)

    async def refresh(self, facts: PodFacts) -> None:
        for volume in self._pod["spec"].get("volumes", []):
            if any(kind in volume for kind in API_BACKED) and volume["name"] not in self._settled:
                await self._fill(volume, facts)

    async def _make(self, volume: Json, facts: PodFacts) -> Path:
        if "hostPath" in volume:
            return host_path(volume["hostPath"])
        if "persistentVolumeClaim" in volume:
            return await self._claimed(volume["persistentVolumeClaim"]["claimName"])
        if "emptyDir" in volume:
            return self._empty(volume["name"])
        if any(kind in volume for kind in API_BACKED):
            return await self._fill(volume, facts)
        raise ConfigError(f"volume {volume['name']!r}: of {sorted(volume)} none is supported here")

    def _empty(self, name: str) -> Path:
        folder = self._folder / name
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(0o777)
            if self._gid is not None:
                os.chown(folder, -1, self._gid)
                folder.chmod(0o2777)
        return folder

    async def _claimed(self, claim_name: str) -> Path:
        claim = await self._objects.get("persistentvolumeclaims", claim_name)
        if claim is None or not claim["spec"].get("volumeName"):
            raise ConfigError(f"claim {claim_name!r} is missing or not bound")
        volume = await self._objects.persistent_volume(claim["spec"]["volumeName"])
        source = volume["spec"].get("hostPath") or volume["spec"].get("local")
        if source is None:
            raise ConfigError(f"claim {claim_name!r}: only hostPath and local volumes are supported here")
        return host_path({"path": source["path"], "type": "DirectoryOrCreate"})

    async def _fill(self, volume: Json, facts: PodFacts) -> Path:
        name: str = volume["name"]
        files = await self._files(volume, facts)
        folder = self._folder / name
        if self._written.get(name) != files:
            payload.write(folder, files, gid=self._gid)
            self._written[name] = files
        return folder

    async def _files(self, volume: Json, facts: PodFacts) -> dict[str, Content]:
        if "projected" in volume:
            projected = volume["projected"]
            mode = projected.get("defaultMode", payload.DEFAULT_MODE)
            files: dict[str, Content] = {}
            for source in projected.get("sources", []):
                files |= await self._source_files(source, mode, facts)
            return files
        kind = next(kind for kind in API_BACKED if kind in volume)
        source = volume[kind]
        mode = source.get("defaultMode", payload.DEFAULT_MODE)
        files = await self._source_files({kind: source}, mode, facts)
        if kind == "downwardAPI" or await self._immutable(kind, source):
            self._settled.add(volume["name"])
        return files

    async def _immutable(self, kind: str, source: Json) -> bool:
        found = await self._object(kind, source)
        return bool(found and found.get("immutable"))

    async def _object(self, kind: str, source: Json) -> Json | None:
        if kind == "configMap":
            return await self._objects.get("configmaps", source["name"])
        return await self._objects.get("secrets", source.get("secretName") or source["name"])

    async def _source_files(self, source: Json, mode: int, facts: PodFacts) -> dict[str, Content]:
        ((kind, reference),) = source.items()
        match kind:
            case "configMap" | "secret":
                found = await self._object(kind, reference)
                if found is not None:
                    found = {"kind": "Secret" if kind == "secret" else "ConfigMap", **found}
                return payload.object_files(found, reference, mode)
            case "downwardAPI":
                return payload.downward_files(reference, facts, mode)
            case "serviceAccountToken":
                token = await self._tokens.token(reference)
                return {reference["path"]: Content(token.encode(), 0o644)}
            case _:
                raise ConfigError(f"projected source {kind!r} is not supported here")


def host_path(source: Json) -> Path:
    """The folder or file of a hostPath volume, made if its type says so."""
    path, kind = Path(source["path"]), source.get("type", "")
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    if not path.exists():
        raise ConfigError(f"hostPath {str(path)!r} does not exist; type DirectoryOrCreate makes it")
    return path
