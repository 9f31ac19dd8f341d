"""What the persistent volumes behind a pod's claims demand of the node, read from their JSON.

A volume names the claim that it is bound to. Of a claim that has no volume yet, the StorageClass says in which places
volumes are made (`allowedTopologies`), and kube-scheduler binds its pod to no node elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ballast.kube.constraint_reader import Term, terms
from ballast.kube.document import JSON
from ballast.model import Requirement

ClaimKey = tuple[str, str]
"""Namespace and name of a PersistentVolumeClaim."""

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Makes no volumes: kube-scheduler chooses among those that there are, whatever the class allows."""
_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True, slots=True)
class Volume:
    claim: ClaimKey | None
    """The claim that it is bound to."""
    terms: tuple[Term, ...]
    """Its node affinity; empty when it can be reached from everywhere."""


@dataclass(frozen=True, slots=True)
class Claim:
    key: ClaimKey
    storage_class: str
    """Empty if it names none."""


@dataclass(frozen=True, slots=True)
class StorageClass:
    name: str
    terms: tuple[Term, ...]
    """Places in which it makes volumes; empty when it makes them everywhere."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """The cluster's volumes, looked up by a pod's claim names."""

    terms: Mapping[ClaimKey, tuple[Term, ...]] = field(default_factory=dict)
    """By claim, where its volume is, or can be made; without claims whose volumes can be anywhere."""
    bound: frozenset[ClaimKey] = frozenset()
    """Claims that have a volume."""

    @classmethod
    def of(
        cls, volumes: Iterable[Volume], claims: Iterable[Claim] = (), classes: Iterable[StorageClass] = ()
    ) -> Volumes:
        """`claims`, `classes`: as far as they are known. They matter for claims without a volume."""
        bound = {each.claim: each.terms for each in volumes if each.claim is not None}
        places = {each.name: each.terms for each in classes}
        late = {each.key: places.get(each.storage_class, ()) for each in claims if each.key not in bound}
        return cls({claim: found for claim, found in (late | bound).items() if found}, frozenset(bound))

    def all_bound(self, namespace: str, claims: tuple[str, ...]) -> bool:
        """False: where the pod can run is known only when its volume is made, which a StorageClass may do late."""
        return all((namespace, name) in self.bound for name in claims)

    def node_terms(self, namespace: str, claims: tuple[str, ...]) -> tuple[tuple[Term, ...], ...]:
        """The terms of each volume that can't be reached from everywhere, and of each that can't be made everywhere."""
        keys = ((namespace, name) for name in claims)
        return tuple(self.terms[key] for key in keys if key in self.terms)


def read_volume(volume: JSON) -> Volume:
    spec, metadata = volume.get("spec") or {}, volume["metadata"]
    affinity = (spec.get("nodeAffinity") or {}).get("required")
    return Volume(_bound(volume), terms(affinity) or _zone_terms(metadata.get("labels") or {}))


def read_claim(claim: JSON) -> Claim:
    """The name of its class alone is kept: users may create any number of claims."""
    metadata = claim["metadata"]
    return Claim((metadata["namespace"], metadata["name"]), (claim.get("spec") or {}).get("storageClassName") or "")


def read_storage_class(storage_class: JSON) -> StorageClass:
    allowed = () if storage_class.get("provisioner") == _NO_PROVISIONER else storage_class.get("allowedTopologies")
    return StorageClass(storage_class["metadata"]["name"], tuple(_allowed(term) for term in allowed or ()))


def _allowed(term: JSON) -> Term:
    return tuple(
        Requirement(entry["key"], "In", tuple(entry.get("values") or ()))
        for entry in term.get("matchLabelExpressions") or ()
    )


def _bound(volume: JSON) -> ClaimKey | None:
    """A volume keeps the reference to a claim that is gone (`Released`), whose name another claim may have by now."""
    if (volume.get("status") or {}).get("phase") != "Bound":
        return None
    claim = volume["spec"]["claimRef"]
    return claim["namespace"], claim["name"]


def _zone_terms(labels: Mapping[str, str]) -> tuple[Term, ...]:
    """Volumes of old provisioners name their zones by label, several joined by `__`."""
    for label in _ZONE_LABELS:
        if labels.get(label):
            return ((Requirement(label, "In", tuple(labels[label].split("__"))),),)
    return ()
