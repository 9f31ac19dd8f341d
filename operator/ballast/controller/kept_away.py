"""Where pods that are on nodes let executors not be, by required anti-affinity of theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from ballast.kube import names
from ballast.kube.anti_affinity import Labels, Term
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import Requirement

MOST_TRIED = 20_000
"""Times that terms of one namespace's pods are tried on others in a pass. Then they are left out, and executors are
tied to no place for that: both are a tenant's to create, and gated executors of others wait for the pass.
"""
Keeping = Mapping[tuple[str, Term], Iterable[str]]
"""By namespace and term, the nodes of pods that have it."""
_Places = dict[str, dict[Term, set[str]]]
"""By namespace of the terms, and by term."""


class _Kept(NamedTuple):
    demands: tuple[Requirement, ...]
    unsure: bool


_NOTHING = _Kept((), unsure=False)


class KeptAway:
    """`namespaces`: labels of each. Executors that differ by their number alone are looked up once."""

    def __init__(
        self, pods: Iterable[Pod], others: Keeping, nodes: Iterable[NodeFacts], namespaces: Mapping[str, Labels]
    ) -> None:
        self._namespaces = namespaces
        self._by_name: dict[str, _Places] = defaultdict(dict)
        """By the namespace that terms are about: most are about their own."""
        self._by_selector: _Places = {}
        self._tried: Counter[str] = Counter()
        """By namespace of the terms."""
        self._known: dict[tuple[object, ...], _Kept] = {}
        found = [*_keeping(pods), *((*key, node) for key, on in others.items() for node in on)]
        labels = {node.name: node.labels for node in nodes} if found else {}
        for namespace, term, node in found:
            if (place := labels.get(node, {}).get(term.level)) is not None:
                self._add(namespace, term, place)

    def _add(self, namespace: str, term: Term, place: str) -> None:
        if term.namespace_selector is not None:
            _note(self._by_selector, namespace, term, place)
            return
        for name in term.namespaces:
            _note(self._by_name[name], namespace, term, place)

    def demands(self, pod: Pod) -> tuple[Requirement, ...]:
        """What has to hold of a node for this pod to be there.

        Not by terms that it has as well: it keeps away those that are like it, and is placed by preference.
        """
        return self._of(pod).demands

    def unsure(self, pod: Pod) -> bool:
        """Whether more may keep it away: not all terms were tried."""
        return self._of(pod).unsure

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
                unsure |= self._tried[namespace] + len(terms) > MOST_TRIED
                for term, places in self._to_try(namespace, terms):
                    if term not in pod.anti_affinity and term.concerns(pod.namespace, pod.labels, self._namespaces):
                        barred[term.level] |= places
        demands = tuple(Requirement(level, "NotIn", tuple(sorted(barred[level]))) for level in sorted(barred))
        return _Kept(demands, unsure)

    def _to_try(self, namespace: str, terms: Mapping[Term, set[str]]) -> Iterator[tuple[Term, set[str]]]:
        """As many as are left of MOST_TRIED."""
        left = max(0, MOST_TRIED - self._tried[namespace])
        self._tried[namespace] += min(left, len(terms))
        return islice(terms.items(), left)


def _note(table: _Places, namespace: str, term: Term, place: str) -> None:
    table.setdefault(namespace, {}).setdefault(term, set()).add(place)


def _keeping(pods: Iterable[Pod]) -> Iterator[tuple[str, Term, str]]:
    for pod in pods:
        if pod.anti_affinity and pod.node is not None and not pod.ended:
            yield from ((pod.namespace, term, pod.node) for term in pod.anti_affinity)
