"""Which topology and component an executor belongs to, and whether it opted in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ballast.api.topology import Component, SparkTopology
from ballast.kube import names
from ballast.kube.pods import Pod

Labels = Mapping[str, str]
Pair = tuple[str, str]
_Row = tuple[SparkTopology, Component]

_LIMIT = 50_000
MOST_UNDECLARED = 32
"""Components of one topology that no SparkTopology declares: a pass compares each with each other."""
OTHERS = "others"
"""The component of executors whose topology has more of them."""


@dataclass(frozen=True, slots=True)
class Belonging:
    topology: str
    """Key: `namespace/name`, or `namespace/application` where nothing was declared."""
    component: str
    declared: SparkTopology | None
    known: bool = True
    """False: the declared topology has no such component."""
    opted_in: bool = False
    """By a label of the pod or its namespace, or because a topology selects it."""
    labeled: bool = False
    """By a label, which is what the chart's admission policies go by."""
    unknown_topology: str = ""
    """What the label names, where nothing of that name is declared."""
    lost_by: tuple[str, ...] = ()
    """Keys of the other topologies whose selectors match it, too."""


def key_of(topology: SparkTopology) -> str:
    return f"{topology.metadata.namespace}/{topology.metadata.name}"


def namespace_of(key: str) -> str:
    return key.partition("/")[0]


def profile_component(pod: Pod) -> str:
    """Name of the component that stands for a resource profile of an application."""
    return f"profile-{pod.executor.resource_profile if pod.executor else '0'}"


class Membership:
    """Looks up executors; executors that differ by their number alone are looked up once.

    `namespaces`: labels of each namespace. Selectors are tried once on executors that have the same labels as far as
    selectors of their namespace ask.
    """

    def __init__(self, topologies: Iterable[SparkTopology], namespaces: Mapping[str, Labels]) -> None:
        self._declared = {(t.metadata.namespace, t.metadata.name): t for t in topologies}
        self._namespaces = namespaces
        self._selecting: dict[str, dict[Pair | None, list[_Row]]] = defaultdict(lambda: defaultdict(list))
        """By namespace, then by one label that the selector asks for, if any: most rows need not be tried."""
        for _, topology in sorted(self._declared.items(), key=lambda item: key_of(item[1])):
            for component in topology.spec.components:
                if component.selector is not None and component.external is None:
                    pair = next(iter(sorted(component.selector.match_labels.items())), None)
                    self._selecting[topology.metadata.namespace or ""][pair].append((topology, component))
        self._known: dict[tuple[str, ...], Belonging] = {}
        self._rows: dict[tuple[str | None, ...], list[_Row]] = {}
        """Those whose selectors match, by namespace and the values of the labels that its selectors ask for."""
        self._asked = {namespace: _labels_asked(rows) for namespace, rows in self._selecting.items()}
        self._undeclared: dict[str, set[str]] = defaultdict(set)
        """By topology."""

    def of(self, pod: Pod) -> Belonging:
        key = _key(pod)
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _LIMIT:
                self._known.clear()
            known = self._known[key] = self._looked_up(pod)
        return known

    def _looked_up(self, pod: Pod) -> Belonging:
        selecting = self._matching(pod)
        found = self._find(pod, selecting)
        keys = (key_of(topology) for topology, _ in selecting)
        lost_by = tuple(dict.fromkeys(key for key in keys if key != found.topology))
        return replace(found, labeled=self._labeled(pod), lost_by=lost_by)

    def _matching(self, pod: Pod) -> list[_Row]:
        """Those whose selectors match it."""
        by_pair = self._selecting.get(pod.namespace)
        if by_pair is None:
            return []
        key = (pod.namespace, *(pod.labels.get(label) for label in self._asked[pod.namespace]))
        if key not in self._rows:
            rows = [row for pair in (None, *pod.labels.items()) for row in by_pair.get(pair, ())]
            matching = [row for row in rows if row[1].selector is not None and row[1].selector.matches(pod.labels)]
            matching.sort(key=lambda row: (key_of(row[0]), row[0].spec.components.index(row[1])))
            self._rows[key] = matching
        return self._rows[key]

    def _labeled(self, pod: Pod) -> bool:
        return pod.opted_in(self._namespaces.get(pod.namespace, {}))

    def _find(self, pod: Pod, selecting: Sequence[tuple[SparkTopology, Component]]) -> Belonging:
        named = pod.labels.get(names.TOPOLOGY)
        declared = self._declared.get((pod.namespace, named)) if named else None
        if declared is not None:
            return self._component_of(declared, pod, selecting)
        if not named and selecting:
            topology, component = selecting[0]
            return Belonging(key_of(topology), component.name, topology, opted_in=True)
        return self._implicit(pod, named=named or "")

    def _component_of(self, topology: SparkTopology, pod: Pod, selecting: Sequence[_Row]) -> Belonging:
        """By the component label, else by selectors, else the only component there is."""
        own = [component for component in topology.spec.components if component.external is None]
        named = pod.labels.get(names.COMPONENT)
        selected = {component.name for each, component in selecting if each is topology}
        for component in own:
            if component.name == named or component.name in selected:
                return Belonging(key_of(topology), component.name, topology, opted_in=True)
        if named is None and len(own) == 1 and own[0].selector is None:
            return Belonging(key_of(topology), own[0].name, topology, opted_in=True)
        stray = self._bounded(key_of(topology), named or profile_component(pod))
        return Belonging(key_of(topology), stray, topology, known=False, opted_in=True)

    def _bounded(self, topology: str, component: str) -> str:
        """The name of an undeclared component: labels of executors may name any number of them."""
        known = self._undeclared[topology]
        if component not in known and len(known) >= MOST_UNDECLARED:
            return OTHERS
        known.add(component)
        return component

    def _implicit(self, pod: Pod, *, named: str) -> Belonging:
        application = pod.executor.application if pod.executor else ""
        # A misspelled topology must not take an executor out of its component's limit.
        component = pod.labels.get(names.COMPONENT) if named else None
        key = f"{pod.namespace}/{application}"
        return Belonging(
            key,
            self._bounded(key, component or profile_component(pod)),
            None,
            opted_in=bool(named) or self._labeled(pod) or names.GATE in pod.gates,
            unknown_topology=named,
        )


def _labels_asked(rows: Mapping[Pair | None, Sequence[_Row]]) -> tuple[str, ...]:
    selectors = (component.selector for found in rows.values() for _, component in found)
    return tuple(sorted({label for selector in selectors if selector is not None for label in selector.keys}))


def _key(pod: Pod) -> tuple[str, ...]:
    labels = [text for pair in pod.labels.items() if pair[0] != names.SPARK_EXECUTOR_ID for text in pair]
    return (pod.namespace, "gated" if names.GATE in pod.gates else "", *labels)
