"""The double's objections are those of the real API server: each shape is refused for one reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver import Asked
from tests.apiserver.strict import objections

JSON = dict[str, Any]
MOVES = "/apis/ballast.dev/v1alpha1/namespaces/ns/executormoves"
EVICTION: JSON = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "ns"}}


@pytest.mark.parametrize(
    ("method", "path", "body", "objection"),
    [
        ("PATCH", f"{MOVES}/m/status?fieldManager=ballast", {"status": {"phase": "Leaving"}}, None),
        ("PATCH", f"{MOVES}/m/status", {"status": {"phase": None}}, None),
        ("PATCH", f"{MOVES}/m/status", {"status": {"PHASE": "Leaving"}}, "PHASE is unknown"),
        ("PATCH", f"{MOVES}/m/status", {"status": {"phase": 7}}, "7 is no string"),
        ("PATCH", f"{MOVES}/m/status", {"status": {"phase": "Gone"}}, "none of"),
        ("POST", MOVES, {"metadata": {"name": "m"}}, "spec is missing"),
        ("POST", "/api/v1/namespaces/ns/pods/p/eviction", EVICTION, None),
        ("POST", "/api/v1/namespaces/ns/pods/p/eviction", {**EVICTION, "kind": "eviction"}, "none of"),
        ("POST", "/api/v1/namespaces/ns/pods", {"anything": 1}, None),
    ],
)
def test_a_write_is_objected_to(method: str, path: str, body: JSON, objection: str | None) -> None:
    found = objections(Asked(method, path, {"User-Agent": "ballast"}, body))
    assert len(found) == (objection is not None), found
    assert objection is None or objection in found[0]
