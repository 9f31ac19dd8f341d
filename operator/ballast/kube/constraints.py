"""A pod's own wishes as to its node, read from its JSON; pods of one template share one value."""

from __future__ import annotations

import marshal

from ballast.kube.document import JSON
from ballast.model import Constraints, Requirement, Toleration

Term = tuple[Requirement, ...]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_CACHE_LIMIT = 50_000


class ConstraintReader:
    """Not safe for threads: one reader belongs to one pass at a time."""

    def __init__(self) -> None:
        self._known: dict[bytes, Constraints] = {}

    def read(self, spec: JSON) -> Constraints:
        """Node selector, required node affinity and tolerations of a pod's spec; no volumes."""
        affinity = (spec.get("affinity") or {}).get("nodeAffinity")
        key = marshal.dumps([spec.get("nodeSelector"), affinity, spec.get("tolerations")], 2)
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _CACHE_LIMIT:
                self._known.clear()
            known = self._known[key] = Constraints(
                node_selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
                affinity_terms=terms((affinity or {}).get(REQUIRED)),
                tolerations=tuple(_toleration(entry) for entry in spec.get("tolerations") or ()),
            )
        return known


def terms(node_selector: JSON | None) -> tuple[Term, ...]:
    """The terms of a v1.NodeSelector; an empty term stays, since it selects nothing."""
    return tuple(_term(term) for term in (node_selector or {}).get("nodeSelectorTerms") or ())


def _term(term: JSON) -> Term:
    on_labels = [_requirement(entry) for entry in term.get("matchExpressions") or ()]
    on_fields = [_requirement(entry, on_field=True) for entry in term.get("matchFields") or ()]
    return (*on_labels, *on_fields)


def _requirement(entry: JSON, *, on_field: bool = False) -> Requirement:
    return Requirement(entry["key"], entry["operator"], tuple(entry.get("values") or ()), on_field)


def _toleration(entry: JSON) -> Toleration:
    return Toleration(
        key=entry.get("key") or "",
        operator=entry.get("operator") or "Equal",
        value=entry.get("value") or "",
        effect=entry.get("effect") or "",
    )
