"""What volumes demand of nodes: those that there are, and those that a StorageClass is still to make."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.kube.volumes import Volumes, read_claim, read_storage_class, read_volume
from ballast.model import Requirement
from tests.unit.kube.builders import expression

CLAIM = {"namespace": "analytics", "name": "data", "uid": "c"}


def volumes(
    *terms: dict[str, Any], labels: dict[str, str] | None = None, phase: str = "Bound", claim: Any = CLAIM
) -> Volumes:
    """One."""
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    spec = affinity | ({"claimRef": claim} if claim else {})
    raw = {"metadata": {"name": "pv-1", "labels": labels or {}}, "spec": spec, "status": {"phase": phase}}
    return Volumes.of([read_volume(raw)])


ZONE_A = ((Requirement("zone", "In", ("a",)),),)


def test_a_bound_claim_demands_what_its_volume_demands() -> None:
    found = volumes({"matchExpressions": [expression("zone", "a")]})
    assert found.node_terms("analytics", ("data",)) == (ZONE_A,)


def test_unbound_unknown_and_everywhere_reachable_claims_demand_nothing() -> None:
    local = {"matchExpressions": [expression("zone", "a")]}
    assert volumes(local, phase="Available", claim=None).node_terms("analytics", ("data",)) == ()
    assert volumes().node_terms("analytics", ("data", "other")) == ()
    assert volumes(local).node_terms("elsewhere", ("data",)) == ()


@pytest.mark.parametrize("phase", ["Available", "Released", "Failed"])
def test_a_volume_whose_claim_is_gone_or_not_bound_yet_demands_nothing_of_a_claim_of_that_name(phase: str) -> None:
    found = volumes({"matchExpressions": [expression("zone", "a")]}, phase=phase)
    assert found.node_terms("analytics", ("data",)) == ()


def test_a_zone_label_stands_in_for_node_affinity() -> None:
    found = volumes(labels={"topology.kubernetes.io/zone": "a__b"})
    assert found.node_terms("analytics", ("data",)) == (
        ((Requirement("topology.kubernetes.io/zone", "In", ("a", "b")),),),
    )


def late(*allowed: dict[str, Any], named: str | None = "fast", **of_class: Any) -> Volumes:
    """Those of one claim without a volume, and its class."""
    spec = {"storageClassName": named} if named is not None else {}
    claim = {"metadata": {"namespace": "analytics", "name": "data"}, "spec": spec}
    raw = {"metadata": {"name": "fast"}, "provisioner": "ebs.csi.aws.com", "allowedTopologies": list(allowed)}
    return Volumes.of([], [read_claim(claim)], [read_storage_class({**raw, **of_class})])


def term(**places: list[str]) -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": key, "values": values} for key, values in places.items()]}


def test_a_claim_without_a_volume_demands_a_place_in_which_its_class_makes_volumes() -> None:
    found = late(term(zone=["a", "b"], disk=["ssd"]), term(zone=["c"]))
    either = (
        (Requirement("zone", "In", ("a", "b")), Requirement("disk", "In", ("ssd",))),
        (Requirement("zone", "In", ("c",)),),
    )
    assert found.node_terms("analytics", ("data",)) == (either,)
    assert not found.all_bound("analytics", ("data",)), "where it will be made is not known for certain"


@pytest.mark.parametrize(
    "found",
    [
        late(),
        late(term(zone=["a"]), named="slow"),
        late(term(zone=["a"]), named=None),
        late(term(zone=["a"]), provisioner="kubernetes.io/no-provisioner"),
    ],
    ids=["everywhere", "unknown class", "no class", "no provisioner"],
)
def test_a_claim_of_a_class_that_names_no_places_demands_nothing(found: Volumes) -> None:
    assert found.node_terms("analytics", ("data",)) == ()


def test_a_claim_with_a_volume_demands_what_the_volume_does_whatever_its_class_allows() -> None:
    volume = {
        "metadata": {"name": "pv-1", "labels": {"topology.kubernetes.io/zone": "b"}},
        "spec": {"claimRef": CLAIM},
        "status": {"phase": "Bound"},
    }
    claim = read_claim({"metadata": CLAIM, "spec": {"storageClassName": "fast"}})
    allowed = read_storage_class({"metadata": {"name": "fast"}, "allowedTopologies": [term(zone=["a"])]})
    found = Volumes.of([read_volume(volume)], [claim], [allowed])
    in_zone_b = ((Requirement("topology.kubernetes.io/zone", "In", ("b",)),),)
    assert found.node_terms("analytics", ("data",)) == (in_zone_b,)
