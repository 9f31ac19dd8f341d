"""Where pods that are on nodes let executors not be, by required anti-affinity of theirs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ballast.kube import names
from ballast.kube.anti_affinity import Labels, Term
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import Requirement

MOST_TRIED = 20_000
"""Times that terms of one namespace's pods are tried on others in a pass. Then they are left out: both are a tenant's
to create, and gated executors of others wait for the pass.
"""
_Alike = tuple[object, ...]


class KeptAway:
    """`namespaces`: labels of each. Executors that differ by their number alone are looked up once."""

    def __init__(self, pods: Iterable[Pod], nodes: Iterable[NodeFacts], namespaces: Mapping[str, Labels]) -> None:
        self._namespaces = namespaces
        self._places: dict[str, dict[Term, set[str]]] = defaultdict(lambda: defaultdict(set))
        """By namespace and term, the places in which pods have it."""
        self._tried: Counter[str] = Counter()
        """By namespace of the terms."""
        self._known: dict[_Alike, tuple[Requirement, ...]] = {}
        keeping = [pod for pod in pods if pod.anti_affinity and pod.node is not None and not pod.ended]
        labels = {node.name: node.labels for node in nodes} if keeping else {}
        for pod in keeping:
            there = labels.get(pod.node or "", {})
            for term in pod.anti_affinity:
                if term.level in there:
                    self._places[pod.namespace][term].add(there[term.level])

    def demands(self, pod: Pod) -> tuple[Requirement, ...]:
        """What has to hold of a node for this pod to be there.

        Not by terms that it has as well: it keeps away those that are like it, and is placed by preference.
        """
        if not self._places:
            return ()
        labels = (pair for pair in pod.labels.items() if pair[0] != names.SPARK_EXECUTOR_ID)
        key = (pod.namespace, pod.anti_affinity, *labels)
        if key not in self._known:
            self._known[key] = self._looked_up(pod)
        return self._known[key]

    def _looked_up(self, pod: Pod) -> tuple[Requirement, ...]:
        barred: dict[str, set[str]] = defaultdict(set)
        for namespace, terms in self._places.items():
            self._tried[namespace] += len(terms)
            if self._tried[namespace] > MOST_TRIED:
                continue
            for term, places in terms.items():
                if term not in pod.anti_affinity and term.concerns(pod.namespace, pod.labels, self._namespaces):
                    barred[term.level] |= places
        return tuple(Requirement(level, "NotIn", tuple(sorted(barred[level]))) for level in sorted(barred))
