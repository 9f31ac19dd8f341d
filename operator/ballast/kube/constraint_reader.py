"""What a pod's spec and the persistent volumes behind its claims demand of the node, read from their JSON.

Pods of one template share one value. Claims are not read: a volume names the claim that it is bound to, and any user
may create claims, thousands of them and as long as etcd takes.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ballast.kube.document import JSON
from ballast.kube.shared_values import SharedValues
from ballast.model import Constraints, Requirement, Toleration

Term = tuple[Requirement, ...]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST_DEMANDS = 100
"""Node labels that are selected, requirements of affinity and tolerations of one pod."""
MOST_VALUES = 2_000
"""Of all its requirements."""
_UNREAD = Constraints(
    unread=f"more than {MOST_DEMANDS} demands or {MOST_VALUES} values are in its node selector, node affinity and "
    "tolerations: Ballast reads none of them"
)


class ConstraintReader:
    """Not safe for threads: one reader belongs to one pass at a time."""

    def __init__(self) -> None:
        self._shared: SharedValues[Constraints] = SharedValues()

    def read(self, spec: JSON) -> Constraints:
        """Node selector, required node affinity and tolerations of a pod's spec; no volumes.

        Unread where they are too many: each costs time in every pass, and any user may create pods.
        """
        selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or ()
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get(REQUIRED) or {}
        demands, values = _size(required)
        if len(selector) + len(tolerations) + demands > MOST_DEMANDS or values > MOST_VALUES:
            return _UNREAD
        return self._shared.of(
            marshal.dumps([selector, required, tolerations], 2),
            lambda: Constraints(
                node_selector=tuple(sorted(selector.items())),
                affinity_terms=terms(required),
                tolerations=tuple(_toleration(entry) for entry in tolerations),
            ),
        )


def _size(node_selector: JSON) -> tuple[int, int]:
    """Its requirements, and their values. An empty term counts, too."""
    demands = values = 0
    for term in node_selector.get("nodeSelectorTerms") or ():
        entries = [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
        demands += max(1, len(entries))
        values += sum(len(entry.get("values") or ()) for entry in entries)
    return demands, values


def terms(node_selector: JSON | None) -> tuple[Term, ...]:
    """The terms of a v1.NodeSelector; an empty term stays, since it selects nothing."""
    return tuple(_term(term) for term in (node_selector or {}).get("nodeSelectorTerms") or ())


def _term(term: JSON) -> Term:
    on_labels = [requirement(entry) for entry in term.get("matchExpressions") or ()]
    on_fields = [requirement(entry, on_field=True) for entry in term.get("matchFields") or ()]
    return (*on_labels, *on_fields)


def requirement(entry: JSON, *, on_field: bool = False) -> Requirement:
    return Requirement(entry["key"], entry["operator"], tuple(entry.get("values") or ()), on_field)


def _toleration(entry: JSON) -> Toleration:
    return Toleration(
        key=entry.get("key") or "",
        operator=entry.get("operator") or "Equal",
        value=entry.get("value") or "",
        effect=entry.get("effect") or "",
    )


_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


@dataclass(frozen=True, slots=True)
class Volume:
    claim: tuple[str, str] | None
    """Namespace and name of the claim that it is bound to."""
    terms: tuple[Term, ...]
    """Its node affinity; empty when it can be reached from everywhere."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """The cluster's volumes, looked up by a pod's claim names."""

    terms: Mapping[tuple[str, str], tuple[Term, ...]] = field(default_factory=dict)
    """Of those that can't be reached from everywhere, by namespace and name of the claim."""
    bound: frozenset[tuple[str, str]] = frozenset()
    """Claims that have a volume."""

    @classmethod
    def of(cls, volumes: Iterable[Volume]) -> Volumes:
        bound = {each.claim: each.terms for each in volumes if each.claim is not None}
        return cls({claim: found for claim, found in bound.items() if found}, frozenset(bound))

    def all_bound(self, namespace: str, claims: tuple[str, ...]) -> bool:
        """False: where the pod can run is known only when its volume is made, which a StorageClass may do late."""
        return all((namespace, name) in self.bound for name in claims)

    def node_terms(self, namespace: str, claims: tuple[str, ...]) -> tuple[tuple[Term, ...], ...]:
        """The terms of each volume that can't be reached from everywhere. A claim not bound yet demands nothing."""
        keys = ((namespace, name) for name in claims)
        return tuple(self.terms[key] for key in keys if key in self.terms)


def read_volume(volume: JSON) -> Volume:
    spec, metadata = volume.get("spec") or {}, volume["metadata"]
    affinity = (spec.get("nodeAffinity") or {}).get("required")
    return Volume(_bound(volume), terms(affinity) or _zone_terms(metadata.get("labels") or {}))


def _bound(volume: JSON) -> tuple[str, str] | None:
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
