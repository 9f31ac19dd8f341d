"""Required anti-affinity of pods. By that of a pod on a node, kube-scheduler keeps other pods away from there.

So one user's pod may keep executors of other users from its host or zone, and they would find no node if they required
that zone.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ballast.kube.constraint_reader import REQUIRED, requirement
from ballast.kube.document import JSON
from ballast.kube.shared_values import SharedValues
from ballast.model import Requirement

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AntiAffinityTerm:
    """Which pods may not be in the same place, and what a place is."""

    namespaces: frozenset[str]
    """By name, in addition to those that `namespace_selector` chooses."""
    namespace_selector: tuple[Requirement, ...] | None
    selector: tuple[Requirement, ...]
    level: str
    """The label of nodes that have the same value in one place."""

    def concerns(self, namespace: str, labels: Labels, namespaces: Mapping[str, Labels]) -> bool:
        """Whether it keeps away a pod with these labels in `namespace`. `namespaces`: labels of each."""
        there = namespace in self.namespaces or (
            self.namespace_selector is not None and _all(self.namespace_selector, namespaces.get(namespace, {}))
        )
        return there and _all(self.selector, labels)


UNREAD = AntiAffinityTerm(frozenset(), None, (), "")
"""Of a pod whose terms are not read: they may keep away any other pod."""


class AntiAffinityReader:
    """Pods of one template share what is read. Not safe for threads."""

    def __init__(self) -> None:
        self._shared: SharedValues[tuple[AntiAffinityTerm, ...]] = SharedValues()

    def read(self, namespace: str, spec: JSON) -> tuple[AntiAffinityTerm, ...]:
        written = ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(REQUIRED)
        if not written:
            return ()
        key = marshal.dumps([namespace, written], 2)
        return self._shared.of(
            key, lambda: tuple(_term(namespace, each) for each in written if "labelSelector" in each)
        )


def _term(namespace: str, written: JSON) -> AntiAffinityTerm:
    named, selector = written.get("namespaces") or (), written.get("namespaceSelector")
    return AntiAffinityTerm(
        frozenset(named) if named or selector is not None else frozenset((namespace,)),
        None if selector is None else _requirements(selector),
        _requirements(written["labelSelector"] or {}),
        written["topologyKey"],
    )


def _requirements(selector: JSON) -> tuple[Requirement, ...]:
    labels = (Requirement(key, "In", (value,)) for key, value in sorted((selector.get("matchLabels") or {}).items()))
    return (*labels, *map(requirement, selector.get("matchExpressions") or ()))


def _all(requirements: Iterable[Requirement], labels: Labels) -> bool:
    return all(each.met_by(labels, "") for each in requirements)
