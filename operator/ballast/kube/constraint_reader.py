"""What a pod's spec demands of the node, read from its JSON. Pods of one template share one value."""

from __future__ import annotations

import marshal

from ballast.kube.document import JSON, LONGEST_KEPT_BYTES
from ballast.kube.shared_values import SharedValues
from ballast.model import Constraints, Requirement, Toleration

Term = tuple[Requirement, ...]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_UNREAD = Constraints(
    unread=f"its node selector, node affinity and tolerations are longer than {LONGEST_KEPT_BYTES >> 10} KiB: Ballast "
    "reads none of them"
)


class ConstraintReader:
    """Not safe for threads: one reader belongs to one pass at a time."""

    def __init__(self) -> None:
        self._shared: SharedValues[Constraints] = SharedValues()

    def read(self, spec: JSON) -> Constraints:
        """Node selector, required node affinity and tolerations of a pod's spec; no volumes.

        Unread where they are longer than what is kept of one object.
        """
        selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or ()
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get(REQUIRED) or {}
        key = marshal.dumps([selector, required, tolerations], 2)
        if len(key) > LONGEST_KEPT_BYTES:
            return _UNREAD
        return self._shared.of(
            key,
            lambda: Constraints(
                node_selector=tuple(sorted(selector.items())),
                affinity_terms=terms(required),
                tolerations=tuple(_toleration(entry) for entry in tolerations),
            ),
        )


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
