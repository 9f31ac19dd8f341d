"""Several sources of what should have one: clusters, replicas of Prometheus or exporters that one server holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ballast.prometheus.endpoint import shown
from ballast.prometheus.preset import EXECUTOR_SOURCES, NODE_SOURCES
from ballast.prometheus.series import Doubled, Series, ValueByKey

_SHOWN = 3
"""How many names, labels or values a message lists."""
_OF_TARGETS = frozenset({"instance", "node", "namespace", "pod", "container", "endpoint", "service", "job"})
"""Labels that a scrape gives to each target: they don't choose a cluster or a replica."""


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Nodes and executors whose metrics come from several sources. None of their values is used."""

    nodes: tuple[str, ...]
    executors: tuple[str, ...]
    signal: str
    """Of the first of them, with the labels of the values that it has."""
    groups: tuple[Mapping[str, str], ...]

    @classmethod
    def among(
        cls, nodes: Mapping[str, ValueByKey], executors: Mapping[str, ValueByKey], *, known: Iterable[str]
    ) -> Ambiguity | None:
        """Of values by signal. `known`: the pool's nodes and executors, as the values name them."""
        wanted = frozenset(known)
        found = {
            (key, signal): labels
            for figures in (nodes, executors)
            for signal, values in figures.items()
            for key, labels in values.doubled.items()
            if key in wanted
        }
        if not found:
            return None
        of_nodes, of_executors = (
            tuple(sorted({key for key, signal in found if signal in figures})) for figures in (nodes, executors)
        )
        first = min(found, key=lambda each: (each[1] not in nodes, each[0]))
        return cls(of_nodes, of_executors, first[1], found[first])

    @property
    def found(self) -> str:
        sources = "several sources (clusters, replicas of Prometheus or exporters)"
        return f"the metrics of {self._named} come from {sources}, and are not used"

    @property
    def words(self) -> str:
        return f"{self.found}: choose one with metrics.prometheus.matchers"

    @property
    def _named(self) -> str:
        names = self.nodes or self.executors
        kind = "node" if self.nodes else "executor"
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names[:_SHOWN])}{more}"

    def told_apart(self, sources: Sequence[Mapping[str, str]]) -> str:
        """By which labels the sources of the first signal differ, and what could be written; empty where none is."""
        values = {
            name: sorted({labels.get(name, "") for labels in sources})
            for name in sorted({name for labels in sources for name in labels})
        }
        differing = {name: found for name, found in values.items() if len(found) > 1}
        if not differing:
            return ""
        ordered = sorted(differing, key=lambda name: (name in _OF_TARGETS, "cluster" not in name, name != "job", name))
        listed = "; ".join(f"{shown(name)}: {_quoted(differing[name])}" for name in ordered[:_SHOWN])
        about = f"{self.signal} of {(self.nodes or self.executors)[0]}"
        return f"sources of {about} differ by {listed}{_remedy(ordered, differing)}"


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(f'"{shown(value)}"' for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")


def _remedy(ordered: Sequence[str], differing: Mapping[str, Sequence[str]]) -> str:
    if ordered[0] not in _OF_TARGETS:
        value = next(filter(None, differing[ordered[0]]))
        return f' (such as matchers: {{{shown(ordered[0])}: "{shown(value)}"}})'
    if "job" in differing:
        return " (name one job in metrics.advanced.jobs)"
    return " (scrape them once, or add a label that a matcher can choose)"


def doubled(vectors: Mapping[str, Sequence[Series]], signal: str, counted: Iterable[str]) -> Doubled | None:
    """Which series of the signal have several sources; None if these are not counted."""
    if signal not in counted:
        return None
    return Doubled.of(vectors.get(NODE_SOURCES if signal.startswith("node") else EXECUTOR_SOURCES, ()), signal)
