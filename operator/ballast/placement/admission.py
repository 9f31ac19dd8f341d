"""Whether a node would admit an executor at all, room and spread apart.

`refusal` answers for one executor and one node, with the reason. `Admission` answers for all nodes of a pool at
once: what it computes is kept per distinct template, so that many executors of few templates cost next to nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, reduce

import numpy as np

from ballast.model import Constraints, Executor, Node, Reason, Requirement, Taint, Toleration
from ballast.model.arrays import BoolArray
from ballast.model.resources import whole

_Terms = tuple[tuple[Requirement, ...], ...]


def refusal(executor: Executor, node: Node) -> tuple[Reason, str] | None:
    """The first reason why the node can't take the executor, with a sentence for users; None when it can."""
    return _closed(node) or constraint_refusal(executor.constraints, node)


def constraint_refusal(constraints: Constraints, node: Node) -> tuple[Reason, str] | None:
    """As `refusal`, by the pod's own wishes alone."""
    if constraints.unread:
        return Reason.NOT_ADMITTED, constraints.unread
    if not constraints.selects(node.labels, node.name):
        return Reason.NOT_ADMITTED, f"{node.name} does not match the pod's node selector or affinity"
    if not constraints.may_be_near(node.labels, node.name):
        return Reason.NOT_ADMITTED, f"a pod near {node.name} keeps it away by its required anti-affinity"
    if not constraints.volumes_reach(node.labels, node.name):
        return Reason.VOLUME_PINNED, f"a volume of the pod can't be mounted on {node.name}"
    taint = constraints.untolerated(node.taints)
    if taint is not None:
        return Reason.TAINTED, f"{node.name} has the taint {taint.key}:{taint.effect}, which the pod does not tolerate"
    return None


def _closed(node: Node) -> tuple[Reason, str] | None:
    if not node.ready:
        return Reason.NODE_UNAVAILABLE, f"{node.name} is not ready"
    if not node.schedulable:
        return Reason.NODE_UNAVAILABLE, f"{node.name} is cordoned"
    if node.leaving:
        return Reason.NODE_LEAVING, f"{node.name} is about to leave ({node.leaving})"
    return None


class _Field:
    """One label, or the name, of a sequence of nodes.

    It answers as `Requirement.met_by`, but does not ask about each node's value: any user may create pods with tens of
    thousands of requirements, and a pool may have as many values as nodes.
    """

    def __init__(self, values: Sequence[str | None]) -> None:
        self._index = {value: number for number, value in enumerate(dict.fromkeys(values))}
        self._which = np.array([self._index[value] for value in values], dtype=np.int64)

    def meets(self, requirement: Requirement) -> BoolArray:
        """The nodes that do."""
        accepted: BoolArray = self._accepted(requirement.operator, requirement.values)[self._which]
        return accepted

    def _accepted(self, operator: str, named: Sequence[str]) -> BoolArray:
        match operator:
            case "In":
                return self._among(named)
            case "NotIn":
                return ~self._among(named)
            case "Exists":
                return ~self._among([None])
            case "DoesNotExist":
                return self._among([None])
            case "Gt" | "Lt" if named and (bound := whole(named[0])) is not None:
                return self._beyond(bound, above=operator == "Gt")
        return np.zeros(len(self._index), dtype=np.bool_)

    def _among(self, values: Iterable[str | None]) -> BoolArray:
        found = np.zeros(len(self._index), dtype=np.bool_)
        found[[self._index[value] for value in values if value in self._index]] = True
        return found

    def _beyond(self, bound: int, *, above: bool) -> BoolArray:
        numbers, positions = self._in_order
        found = np.zeros(len(self._index), dtype=np.bool_)
        found[positions[bisect_right(numbers, bound) :] if above else positions[: bisect_left(numbers, bound)]] = True
        return found

    @cached_property
    def _in_order(self) -> tuple[list[int], list[int]]:
        """The values that are whole numbers, the lowest first, and their positions."""
        found = ((whole(value), position) for value, position in self._index.items())
        order = sorted((number, position) for number, position in found if number is not None)
        return [number for number, _ in order], [position for _, position in order]


class Admission:
    """The same answers as masks over a fixed sequence of nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._open = np.array([node.open for node in nodes], dtype=np.bool_)
        self._fields: dict[tuple[str, bool], _Field] = {}
        self._known = frozenset(key for node in nodes for key in node.labels)
        self._labels: dict[tuple[str, str], BoolArray] = {}
        self._tolerated: dict[tuple[Toleration, ...], BoolArray] = {}
        self._masks: dict[Constraints, BoolArray] = {}
        self._parts: dict[Constraints, tuple[BoolArray, BoolArray, BoolArray]] = {}

    def mask(self, constraints: Constraints) -> BoolArray:
        """True where `refusal` would be None; not to be written to."""
        known = self._masks.get(constraints)
        if known is None:
            known = self._masks[constraints] = self._compute(constraints)
        return known

    def first_objections(self, constraints: Constraints) -> list[tuple[Reason, BoolArray]]:
        """Reasons of `refusal`, each with the nodes of which it is the first one."""
        selected, reached, tolerated = self._parts_of(constraints)
        leaving = np.fromiter((bool(node.leaving) for node in self._nodes), np.bool_, count=len(self._nodes))
        usable = np.fromiter(
            (node.ready and node.schedulable for node in self._nodes), np.bool_, count=len(self._nodes)
        )
        left = np.ones(len(self._nodes), dtype=np.bool_)
        found = []
        for reason, holds in (
            (Reason.NODE_UNAVAILABLE, usable),
            (Reason.NODE_LEAVING, ~leaving),
            (Reason.NOT_ADMITTED, selected),
            (Reason.VOLUME_PINNED, reached),
            (Reason.TAINTED, tolerated),
        ):
            found.append((reason, left & ~holds))
            left = left & holds
        return found

    def _compute(self, constraints: Constraints) -> BoolArray:
        selected, reached, tolerated = self._parts_of(constraints)
        return self._open & selected & reached & tolerated

    def _parts_of(self, constraints: Constraints) -> tuple[BoolArray, BoolArray, BoolArray]:
        """Where its selector and affinity, its volumes, and its tolerations admit it."""
        known = self._parts.get(constraints)
        if known is None:
            known = self._parts[constraints] = (
                self._selects(constraints),
                self._meets_all(constraints.volume_terms),
                self._tolerates(constraints.tolerations),
            )
        return known

    def _selects(self, constraints: Constraints) -> BoolArray:
        if constraints.unread:
            return np.zeros(len(self._nodes), dtype=np.bool_)
        mask = self._meets_all((constraints.affinity_terms, *(((each,),) for each in constraints.anti_affinity)))
        for label in constraints.node_selector:
            mask &= self._labeled(label)
        return mask

    def _meets_all(self, demands: Sequence[_Terms]) -> BoolArray:
        mask = np.ones(len(self._nodes), dtype=np.bool_)
        for terms in demands:
            if terms:
                mask &= self._any_term(terms)
        return mask

    def _any_term(self, terms: _Terms) -> BoolArray:
        mask = np.zeros(len(self._nodes), dtype=np.bool_)
        for term in terms:
            if term:
                mask |= reduce(np.logical_and, (self._field(each).meets(each) for each in term))
        return mask

    def _labeled(self, label: tuple[str, str]) -> BoolArray:
        if label not in self._labels:
            self._labels[label] = self._where(lambda node: node.labels.get(label[0]) == label[1])
        return self._labels[label]

    def _field(self, requirement: Requirement) -> _Field:
        """Pods may name any number of labels that no node has; those share one answer."""
        on_field = requirement.on_field
        label = requirement.key if requirement.key in self._known else ""
        kept = ("", True) if on_field else (label, False)
        if kept not in self._fields:
            self._fields[kept] = _Field([node.name if on_field else node.labels.get(label) for node in self._nodes])
        return self._fields[kept]

    def _tolerates(self, tolerations: tuple[Toleration, ...]) -> BoolArray:
        if tolerations not in self._tolerated:
            pod = Constraints(tolerations=tolerations)
            verdicts: dict[tuple[Taint, ...], bool] = {}

            def tolerated(node: Node) -> bool:
                if node.taints not in verdicts:
                    verdicts[node.taints] = pod.untolerated(node.taints) is None
                return verdicts[node.taints]

            self._tolerated[tolerations] = self._where(tolerated)
        return self._tolerated[tolerations]

    def _where(self, holds: Callable[[Node], bool]) -> BoolArray:
        return np.fromiter((holds(node) for node in self._nodes), dtype=np.bool_, count=len(self._nodes))
