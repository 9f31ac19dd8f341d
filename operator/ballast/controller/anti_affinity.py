"""Places from which pods on nodes keep executors away by their required anti-affinity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from ballast.controller.quota import Usage
from ballast.kube import names
from ballast.kube.anti_affinity import UNREAD, AntiAffinityTerm, Labels
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import Requirement

MOST_TRIED = 20_000
"""How often a pass tries terms of one namespace's pods on executors. Then those terms are left out, and executors that
they may concern are tied to no place. A tenant may create any number of both, and gated executors of others wait for
the pass.
"""
NodesByTerm = Mapping[tuple[str, AntiAffinityTerm], Iterable[str]]
"""By namespace and term, the nodes of its pods that have it."""
_PlacesByTerm = dict[str, dict[AntiAffinityTerm, set[str]]]
"""By namespace of the terms, and by term."""


class _Kept(NamedTuple):
    demands: tuple[Requirement, ...]
    unsure: bool


_NOTHING = _Kept((), unsure=False)


class AntiAffinity:
    """Of `pods`, and of further pods by `others`. `namespaces`: labels of each.

    Executors that differ by their number alone are looked up once.
    """

    def __init__(
        self, pods: Iterable[Pod], others: NodesByTerm, nodes: Iterable[NodeFacts], namespaces: Mapping[str, Labels]
    ) -> None:
        self._namespaces = namespaces
        self._by_name: dict[str, _PlacesByTerm] = defaultdict(dict)
        """First by the namespace that terms name: most name their own."""
        self._by_selector: _PlacesByTerm = {}
        self._tries = Usage(MOST_TRIED)
        """By namespace of the terms."""
        self._known: dict[tuple[object, ...], _Kept] = {}
        found = [*_keeping_away(pods), *((*key, node) for key, on in others.items() for node in on)]
        labels = {node.name: node.labels for node in nodes} if found else {}
        self._some_unread = any(term == UNREAD and node in labels for _, term, node in found)
        for namespace, term, node in found:
            if (place := labels.get(node, {}).get(term.level)) is not None:
                self._add(namespace, term, place)

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
        return self._of(pod).demands

    def unsure(self, pod: Pod) -> bool:
        """Whether further pods may keep it away, because not all terms were read and tried."""
        return self._some_unread or self._of(pod).unsure

    def _of(self, pod: Pod) -> _Kept:
        if not self._by_selector and pod.namespace not in self._by_name:
            return _NOTHING
        labels = (pair for pair in pod.labels.items() if pair[0] != names.SPARK_EXECUTOR_ID)
        key = (pod.namespace, pod.anti_affinity, *labels)
        if key not in self._known:
            self._known[key] = self._looked_up(pod)
        return self._known[key]

    def _looked_up(self, pod: Pod) -> _Kept:
        barred: dict[str, set[str]] = defaultdict(set)
        unsure = False
        for table in (self._by_name.get(pod.namespace, {}), self._by_selector):
            for namespace, terms in table.items():
                unsure |= len(terms) > self._tries.left(namespace)
                for term, places in self._to_try(namespace, terms):
                    if term not in pod.anti_affinity and term.concerns(pod.namespace, pod.labels, self._namespaces):
                        barred[term.level] |= places
        demands = tuple(Requirement(level, "NotIn", tuple(sorted(barred[level]))) for level in sorted(barred))
        return _Kept(demands, unsure)

    def _to_try(
        self, namespace: str, terms: Mapping[AntiAffinityTerm, set[str]]
    ) -> Iterator[tuple[AntiAffinityTerm, set[str]]]:
        """As many of the terms as MOST_TRIED leaves for this namespace."""
        most = min(self._tries.left(namespace), len(terms))
        self._tries.add(namespace, most)
        return islice(terms.items(), most)


def _note(table: _PlacesByTerm, namespace: str, term: AntiAffinityTerm, place: str) -> None:
    table.setdefault(namespace, {}).setdefault(term, set()).add(place)


def _keeping_away(pods: Iterable[Pod]) -> Iterator[tuple[str, AntiAffinityTerm, str]]:
    for pod in pods:
        if pod.node is not None:
            yield from ((pod.namespace, term, pod.node) for term in pod.keeps_away_by)
