"""What a pod's spec demands of the node, read from its JSON. Pods of one template share one value."""

from __future__ import annotations

import marshal

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
