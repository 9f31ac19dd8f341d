"""As much of the API server's discovery as kopf reads."""

from __future__ import annotations

from typing import Any

from ballast.api.version import GROUP, VERSION

JSON = dict[str, Any]


def _resource(plural: str) -> JSON:
    verbs = ["get", "list", "watch", "patch"]
    return {"name": plural, "singularName": plural, "kind": plural, "namespaced": True, "verbs": verbs}


def _group(name: str, version: str) -> JSON:
    return {"name": name, "versions": [{"version": version}], "preferredVersion": {"version": version}}


_OURS = ("balancingpolicies", "sparktopologies", "executormoves")
DISCOVERY: dict[str, JSON] = {
    "/version": {"major": "1"},
    "/api": {"versions": ["v1"]},
    "/apis": {"groups": [_group("apiextensions.k8s.io", "v1"), _group(GROUP, VERSION)]},
    "/api/v1": {"resources": [_resource("pods"), _resource("namespaces")]},
    "/apis/apiextensions.k8s.io/v1": {"resources": [_resource("customresourcedefinitions")]},
    f"/apis/{GROUP}/{VERSION}": {"resources": [_resource(plural) for plural in _OURS]},
}
