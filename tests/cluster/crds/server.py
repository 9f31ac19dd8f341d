"""Asking the API server what it makes of an object."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from ballast.api.crd import KINDS, Kind
from ballast.api.version import API_VERSION

NAMESPACE = "default"
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    code: int
    body: dict[str, Any]
    warnings: str

    @property
    def message(self) -> str:
        """Its words, as a person would read them in kubectl: without JSON's escapes."""
        return str(self.body.get("message", ""))


@dataclass(frozen=True, slots=True)
class Server:
    """Speaks strictly: an unknown field is an error, as it is with kubectl."""

    url: str
    session: requests.Session

    def create(self, obj: Mapping[str, Any]) -> Answer:
        """What would come of creating `obj`; nothing is stored."""
        return self._send("POST", self._path(obj), obj, dryRun="All")

    def replace(self, stored: Mapping[str, Any], obj: Mapping[str, Any]) -> Answer:
        """What would come of giving `stored` the spec of `obj`; nothing is stored."""
        changed = {**copy.deepcopy(dict(stored)), "spec": obj["spec"]}
        return self._send("PUT", self._path(obj, obj["metadata"]["name"]), changed, dryRun="All")

    def patch_status(self, obj: Mapping[str, Any], status: Mapping[str, Any]) -> Answer:
        """Merge `status` into that of the stored object."""
        return self._send("PATCH", f"{self._path(obj, obj['metadata']['name'])}/status", {"status": status})

    @contextmanager
    def existing(self, obj: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """`obj` as stored, until the end of the block."""
        created = self._send("POST", self._path(obj), obj)
        assert created.code == 201, created
        try:
            yield created.body
        finally:
            self._send("DELETE", self._path(obj, obj["metadata"]["name"]), None)

    def _path(self, obj: Mapping[str, Any], name: str | None = None) -> str:
        kind = kind_called(obj["kind"])
        scope = f"/namespaces/{NAMESPACE}" if kind.namespaced else ""
        return f"/apis/{API_VERSION}{scope}/{kind.plural}" + (f"/{name}" if name else "")

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, **parameters: str) -> Answer:
        response = self.session.request(
            method,
            f"{self.url}{path}",
            params={"fieldValidation": "Strict", **parameters},
            json=body,
            headers={"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None,
            timeout=_TIMEOUT_SECONDS,
        )
        return Answer(response.status_code, response.json(), response.headers.get("Warning", ""))


def kind_called(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)
