"""Places from which pods on nodes keep executors away by their required anti-affinity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ballast.kube.anti_affinity import UNREAD, AntiAffinityTerm, Labels
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import Requirement

NodesByTerm = Mapping[tuple[str, AntiAffinityTerm], Iterable[str]]
"""By namespace and term, the nodes of its pods that have it."""
_PlacesByTerm = dict[str, dict[AntiAffinityTerm, set[str]]]
"""By namespace of the terms, and by term."""


class AntiAffinity:
    """Of `pods`, and of further pods by `others`. `namespaces`: labels of each.

    Executors are looked up once that have the same labels as far as terms ask.
    """

    def __init__(
        self, pods: Iterable[Pod], others: NodesByTerm, nodes: Iterable[NodeFacts], namespaces: Mapping[str, Labels]
    ) -> None:
        self._namespaces = namespaces
        self._by_name: dict[str, _PlacesByTerm] = defaultdict(dict)
        """First by the namespace that terms name: most name their own."""
        self._by_selector: _PlacesByTerm = {}
        self._known: dict[tuple[object, ...], tuple[Requirement, ...]] = {}
        found = [*_keeping_away(pods), *((*key, node) for key, on in others.items() for node in on)]
        labels = {node.name: node.labels for node in nodes} if found else {}
        self._some_unread = any(term == UNREAD and node in labels for _, term, node in found)
        for namespace, term, node in found:
            if (place := labels.get(node, {}).get(term.level)) is not None:
                self._add(namespace, term, place)
        tables = chain(self._by_selector.values(), *(table.values() for table in self._by_name.values()))
        self._asked = sorted({each.key for terms in tables for term in terms for each in term.selector})

    def _add(self, namespace: str, term: AntiAffinityTerm, place: str) -> None:
        if term.namespace_selector is not None:
            _note(self._by_selector, namespace, term, place)
            return
        for name in term.namespaces:
            _note(self._by_name[name], namespace, term, place)

    def demands(self, pod: Pod) -> tuple[Requirement, ...]:
        """What has to hold of a node so that no pod there keeps this one away.

        Terms that the pod has itself do not count: with required anti-affinity, it is placed by preference.
        """
        if not self._by_selector and pod.namespace not in self._by_name:
            return ()
        key = (pod.namespace, pod.anti_affinity, *map(pod.labels.get, self._asked))
        if key not in self._known:
            self._known[key] = self._looked_up(pod)
        return self._known[key]

    @property
    def unsure(self) -> bool:
        """Whether further pods may keep executors away, because not all terms were read."""
        return self._some_unread

    def _looked_up(self, pod: Pod) -> tuple[Requirement, ...]:
        barred: dict[str, set[str]] = defaultdict(set)
        for table in (self._by_name.get(pod.namespace, {}), self._by_selector):
            for term, places in chain.from_iterable(terms.items() for terms in table.values()):
                if term not in pod.anti_affinity and term.concerns(pod.namespace, pod.labels, self._namespaces):
                    barred[term.level] |= places
        return tuple(Requirement(level, "NotIn", tuple(sorted(barred[level]))) for level in sorted(barred))


def _note(table: _PlacesByTerm, namespace: str, term: AntiAffinityTerm, place: str) -> None:
    table.setdefault(namespace, {}).setdefault(term, set()).add(place)


def _keeping_away(pods: Iterable[Pod]) -> Iterator[tuple[str, AntiAffinityTerm, str]]:
    for pod in pods:
        if pod.node is not None:
            yield from ((pod.namespace, term, pod.node) for term in pod.keeps_away_by)
