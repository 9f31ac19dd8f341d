"""What volumes demand of the node: the node affinity of the persistent volumes behind a pod's claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ballast.kube.constraints import Term, terms
from ballast.kube.document import JSON
from ballast.model import Requirement

_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True, slots=True)
class Claim:
    namespace: str
    name: str
    volume: str | None
    """The persistent volume it is bound to."""


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    terms: tuple[Term, ...]
    """Its node affinity; empty when it can be reached from everywhere."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """Claims and volumes of the cluster, looked up by a pod's claim names."""

    claims: Mapping[tuple[str, str], Claim]
    volumes: Mapping[str, Volume]

    @classmethod
    def of(cls, claims: Iterable[Claim], volumes: Iterable[Volume]) -> Volumes:
        return cls({(c.namespace, c.name): c for c in claims}, {v.name: v for v in volumes})

    def node_terms(self, namespace: str, claims: tuple[str, ...]) -> tuple[tuple[Term, ...], ...]:
        """The terms of each volume that can't be reached from everywhere. A claim not bound yet demands nothing."""
        found = []
        for name in claims:
            claim = self.claims.get((namespace, name))
            volume = self.volumes.get(claim.volume) if claim and claim.volume else None
            if volume is not None and volume.terms:
                found.append(volume.terms)
        return tuple(found)


def read_claim(claim: JSON) -> Claim:
    metadata = claim["metadata"]
    return Claim(
        namespace=metadata["namespace"],
        name=metadata["name"],
        volume=(claim.get("spec") or {}).get("volumeName") or None,
    )


def read_volume(volume: JSON) -> Volume:
    affinity = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return Volume(volume["metadata"]["name"], terms(affinity) or _zone_terms(volume["metadata"].get("labels") or {}))


def _zone_terms(labels: Mapping[str, str]) -> tuple[Term, ...]:
    """Volumes of old provisioners name their zones by label, several joined by `__`."""
    for label in _ZONE_LABELS:
        if labels.get(label):
            return ((Requirement(label, "In", tuple(labels[label].split("__"))),),)
    return ()
