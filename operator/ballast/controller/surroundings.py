"""Where the pods are that topologies name: external ends, and drivers. They are looked up by a label."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from ballast.api.labels import LabelSelector, Requirement
from ballast.kube.pods import Pod
from ballast.model import Anchor, Location, Phase

_STAYING = (Phase.PENDING, Phase.RUNNING)
_Asked = tuple[str, tuple[tuple[str, str], ...], tuple[Requirement, ...]]
"""A namespace and a selector."""


class Surroundings:
    """What one pass can see around its executors.

    `pods`: by namespace, drivers and those that could be external ends. `locate`: a node's location by its name, None
    for an unknown node.
    """

    def __init__(
        self,
        pods: Mapping[str, Sequence[Pod]],
        locate: Callable[[str], Location | None],
        *,
        levels: int,
        external_namespaces: frozenset[str],
    ) -> None:
        self._pods, self._locate = pods, locate
        self.levels, self.external_namespaces = levels, external_namespaces
        self._staying: dict[str, _Pods] = {}
        self._drivers: dict[str, _Pods] = {}
        self._located: dict[str, Mapping[str, Pod]] = {}
        """By namespace and application, the first driver by name that is on a known node."""
        self._anchors: dict[_Asked, tuple[Anchor, ...]] = {}

    def driver(self, namespace: str, applications: Iterable[str]) -> Anchor | None:
        """Where the driver is: of several applications, the first one's by name that is on a known node."""
        if namespace not in self._located:
            self._located[namespace] = self._located_drivers(namespace)
        known = self._located[namespace]
        found = min((known[each] for each in applications if each in known), key=lambda pod: pod.name, default=None)
        if found is None:
            return None
        location = self._locate(found.node or "")
        return None if location is None else Anchor(location, 1.0, found.node)

    def selected_driver(self, selector: LabelSelector, namespace: str) -> Pod | None:
        """A driver that a topology's selector matches."""
        if namespace not in self._drivers:
            drivers = (pod for pod in self._pods.get(namespace, ()) if pod.is_driver and not pod.ended)
            self._drivers[namespace] = _Pods(drivers)
        found = self._drivers[namespace].candidates(selector)
        return next((pod for pod in found if selector.matches(pod.labels)), None)

    def anchors(self, selector: LabelSelector, namespace: str) -> tuple[Anchor, ...]:
        """Nodes of the pods in `namespace` that a topology selects.

        Pods that only start yet count, too: executors that come with them talk to them where they will be.
        """
        asked = (namespace, tuple(sorted(selector.match_labels.items())), selector.match_expressions)
        if asked not in self._anchors:
            if namespace not in self._staying:
                pods = (pod for pod in self._pods.get(namespace, ()) if pod.node and pod.phase in _STAYING)
                self._staying[namespace] = _Pods(pods)
            found = self._staying[namespace].candidates(selector)
            self._anchors[asked] = self._anchored(pod for pod in found if selector.matches(pod.labels))
        return self._anchors[asked]

    def _anchored(self, pods: Iterable[Pod]) -> tuple[Anchor, ...]:
        counts = Counter(pod.node for pod in pods if pod.node is not None)
        located = [(node, count, self._locate(node)) for node, count in sorted(counts.items())]
        total = sum(count for _, count, location in located if location is not None)
        return tuple(Anchor(location, count / total, node) for node, count, location in located if location is not None)

    def _located_drivers(self, namespace: str) -> Mapping[str, Pod]:
        found: dict[str, Pod] = {}
        for pod in self._pods.get(namespace, ()):
            if not pod.driven or pod.ended or not pod.node or self._locate(pod.node) is None:
                continue
            for application in pod.driven:
                first = found.get(application)
                if first is None or pod.name < first.name:
                    found[application] = pod
        return found


class _Pods:
    """Pods in order by the labels that selectors ask for."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._all = list(pods)
        self._by_label: dict[str, Mapping[str, Sequence[Pod]]] = {}

    def candidates(self, selector: LabelSelector) -> Sequence[Pod]:
        """The fewest that one of its labels leaves."""
        pods: Sequence[Pod] = self._all
        for label, value in selector.match_labels.items():
            if label not in self._by_label:
                self._by_label[label] = self._in_order(label)
            pods = min(pods, self._by_label[label].get(value, ()), key=len)
        return pods

    def _in_order(self, label: str) -> Mapping[str, Sequence[Pod]]:
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._all:
            value = pod.labels.get(label)
            if value is not None:
                found[value].append(pod)
        return found
