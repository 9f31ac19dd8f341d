"""Amounts of what a pod asks for and a node offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU in cores, memory in bytes, pods as a count, anything else by its Kubernetes name."""

    cpu_cores: float = 0.0
    memory_bytes: float = 0.0
    pods: float = 0.0
    extended: tuple[tuple[str, float], ...] = ()
    """Sorted by name; absent means none."""

    def plus(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_cores + other.cpu_cores,
            self.memory_bytes + other.memory_bytes,
            self.pods + other.pods,
            _merged(self.extended, other.extended, 1.0),
        )

    def minus(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_cores - other.cpu_cores,
            self.memory_bytes - other.memory_bytes,
            self.pods - other.pods,
            _merged(self.extended, other.extended, -1.0),
        )

    def times(self, count: int) -> Resources:
        extended = tuple((name, amount * count) for name, amount in self.extended)
        return Resources(self.cpu_cores * count, self.memory_bytes * count, self.pods * count, extended)

    def fits_in(self, room: Resources) -> bool:
        """True when every amount asked for is there; rounding of a millionth is forgiven."""
        if self.cpu_cores > room.cpu_cores + 1e-6 or self.memory_bytes > room.memory_bytes + 1.0:
            return False
        if self.pods > room.pods + 1e-6:
            return False
        if not self.extended:
            return True
        offered = dict(room.extended)
        return all(amount <= offered.get(name, 0.0) + 1e-6 for name, amount in self.extended)


def _merged(
    left: tuple[tuple[str, float], ...], right: tuple[tuple[str, float], ...], sign: float
) -> tuple[tuple[str, float], ...]:
    if not right:
        return left
    amounts = dict(left)
    for name, amount in right:
        amounts[name] = amounts.get(name, 0.0) + sign * amount
    return tuple(sorted(amounts.items()))


# What a pod demands of the node it runs on, and whether a node meets it.


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node selector term, in Kubernetes' operators (In, NotIn, Exists, DoesNotExist, Gt, Lt)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    on_field: bool = False
    """A matchFields expression (metadata.name) instead of a label."""

    def met_by(self, labels: Mapping[str, str], name: str) -> bool:
        value = name if self.on_field else labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compares(self.operator, value, self.values)
        return False


def whole(value: str | None) -> int | None:
    """The whole number that a value of a label is; None if it is none."""
    try:
        return int(value or "")
    except ValueError:
        return None


def _compares(operator: str, value: str | None, bounds: tuple[str, ...]) -> bool:
    number, bound = whole(value), whole(bounds[0]) if bounds else None
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    """Empty with operator Exists tolerates everything."""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)


_BYTES_EACH = 400
"""What a demand counts as, next to its key and values."""
_BYTES_EACH_VALUE = 5


@dataclass(frozen=True, slots=True)
class Constraints:
    """The pod's own wishes as required of the node; hashable, so that executors of one template share a check."""

    node_selector: tuple[tuple[str, str], ...] = ()
    affinity_terms: tuple[tuple[Requirement, ...], ...] = ()
    """Required node affinity: any of these terms, all requirements of a term. Empty = no demand."""
    volume_terms: tuple[tuple[tuple[Requirement, ...], ...], ...] = ()
    """Node affinity of each bound or reusable persistent volume: every volume, any term of it."""
    tolerations: tuple[Toleration, ...] = ()
    anti_affinity: tuple[Requirement, ...] = ()
    """All hold of a node unless a pod near it keeps this one away by its required anti-affinity."""
    unread: str = ""
    """Why what it demands was not read; then no node is known to meet it."""

    @property
    def size(self) -> int:
        """About as many bytes as it is written in. A demand counts as 400 at least, since it costs time in passes."""
        requirements = (each for terms in (self.affinity_terms, *self.volume_terms) for term in terms for each in term)
        asked = sum(
            _BYTES_EACH + len(each.key) + sum(len(value) + _BYTES_EACH_VALUE for value in each.values)
            for each in requirements
        )
        named = sum(_BYTES_EACH + len(key) + len(value) for key, value in self.node_selector)
        tolerated = sum(_BYTES_EACH + len(each.key) + len(each.value) for each in self.tolerations)
        return asked + named + tolerated

    def selects(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether node selector and required affinity admit the node."""
        if self.unread or any(labels.get(key) != value for key, value in self.node_selector):
            return False
        return _any_term(self.affinity_terms, labels, name)

    def may_be_near(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether no pod near the node keeps it away."""
        return all(each.met_by(labels, name) for each in self.anti_affinity)

    def volumes_reach(self, labels: Mapping[str, str], name: str) -> bool:
        return all(_any_term(terms, labels, name) for terms in self.volume_terms)

    def untolerated(self, taints: tuple[Taint, ...]) -> Taint | None:
        """The first taint that keeps the pod off (NoSchedule or NoExecute), or None."""
        for taint in taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not any(t.covers(taint) for t in self.tolerations):
                return taint
        return None


def _any_term(terms: tuple[tuple[Requirement, ...], ...], labels: Mapping[str, str], name: str) -> bool:
    # An empty term selects nothing in Kubernetes, so bool(term).
    return not terms or any(term and all(r.met_by(labels, name) for r in term) for term in terms)
