from __future__ import annotations

from typing import Any

from ballast.kube.constraint_reader import Volumes, read_claim, read_volume
from ballast.model import Requirement
from tests.unit.kube.builders import expression


def claim(name: str = "data", *, volume: str | None = "pv-1") -> dict[str, Any]:
    spec = {"volumeName": volume} if volume else {}
    return {"metadata": {"namespace": "analytics", "name": name}, "spec": spec}


def volume(*terms: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    return {"metadata": {"name": "pv-1", "labels": labels or {}}, "spec": affinity}


def volumes(a_claim: dict[str, Any], a_volume: dict[str, Any]) -> Volumes:
    return Volumes.of([read_claim(a_claim)], [read_volume(a_volume)])


ZONE_A = ((Requirement("zone", "In", ("a",)),),)


def test_a_bound_claim_demands_what_its_volume_demands() -> None:
    found = volumes(claim(), volume({"matchExpressions": [expression("zone", "a")]}))
    assert found.node_terms("analytics", ("data",)) == (ZONE_A,)


def test_unbound_unknown_and_everywhere_reachable_claims_demand_nothing() -> None:
    local = volume({"matchExpressions": [expression("zone", "a")]})
    assert volumes(claim(volume=None), local).node_terms("analytics", ("data",)) == ()
    assert volumes(claim(), volume()).node_terms("analytics", ("data", "other")) == ()
    assert volumes(claim(), local).node_terms("elsewhere", ("data",)) == ()


def test_a_zone_label_stands_in_for_node_affinity() -> None:
    found = volumes(claim(), volume(labels={"topology.kubernetes.io/zone": "a__b"}))
    assert found.node_terms("analytics", ("data",)) == (
        ((Requirement("topology.kubernetes.io/zone", "In", ("a", "b")),),),
    )
