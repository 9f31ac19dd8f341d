"""The patch that lets a gated pod go to its place. Pure.

The API server lets a gated pod's node affinity only be tightened: requirements are appended to each required term,
and the number of terms stays (or the first one is added). An empty term selects nothing and can't be appended to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ballast.kube import names
from ballast.kube.constraints import PREFERRED, REQUIRED
from ballast.kube.document import JSON
from ballast.kube.pods import Held
from ballast.model import Levels, Pin, Placement, Reason

_NEAREST_WEIGHT = 100
"""Kubernetes' largest; each level farther away weighs half."""


@dataclass(frozen=True, slots=True)
class ReleasePatch:
    operations: list[JSON]
    """RFC 6902, guarded by the resource version."""
    pin: Pin
    """Down to which level the place is required after it; may be wider than what was asked for."""
    reason: Reason | None = None
    """Why it is not pinned as asked."""
    node_affinity: JSON | None = None
    """The pod's after it; None where it leaves that as it is."""


def release_patch(pod: Held, placement: Placement, levels: Levels) -> ReleasePatch:
    """Require the placement's location down to its pin, prefer the nearer levels, and remove our gate only.

    Levels for which the location has no value are left out. A placement without a node requires at most the zone and
    racks of its location.
    """
    node_affinity: Mapping[str, Any] = (pod.affinity or {}).get("nodeAffinity") or {}
    pin, reason = placement.pin, placement.reason
    required = _required(placement, levels)
    if required and _has_empty_term(node_affinity):
        required, pin, reason = _Demands(), Pin.NONE, Reason.EMPTY_AFFINITY_TERM
    if not required:
        pin = Pin.NONE
    preferred = _preferred(replace(placement, pin=pin), levels)
    operations: list[JSON] = [{"op": "test", "path": "/metadata/resourceVersion", "value": pod.resource_version}]
    written = _tightened(node_affinity, required, preferred) if required or preferred else None
    if written is not None:
        operations.append(_affinity_operation(pod.affinity, written))
    operations.append({"op": "remove", "path": f"/spec/schedulingGates/{pod.gates.index(names.GATE)}"})
    return ReleasePatch(operations, pin, reason, written)


@dataclass(frozen=True, slots=True)
class _Demands:
    """What is appended to every required term."""

    expressions: tuple[JSON, ...] = ()
    fields: tuple[JSON, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.expressions or self.fields)


def _required(placement: Placement, levels: Levels) -> _Demands:
    last = levels.index_of(placement.pin)
    if last is None or not placement.location:
        return _Demands()
    named = list(zip(levels.ordered, placement.location, strict=True))[: last + 1]
    if placement.pin is not Pin.NODE:
        return _Demands(tuple(_in(level.label, value) for level, value in named if value is not None))
    level, host = named[-1]
    # The host alone says everything; where the node has no such label, its name does.
    if host is not None:
        return _Demands((_in(level.label, host),))
    if placement.node is None:
        return _Demands()
    return _Demands(fields=(_in("metadata.name", placement.node),))


def _preferred(placement: Placement, levels: Levels) -> list[JSON]:
    required = levels.index_of(placement.pin)
    first = 0 if required is None else required + 1
    nearest = len(levels.ordered) - 1
    return [
        {
            "weight": max(1, _NEAREST_WEIGHT >> (nearest - index)),
            "preference": {"matchExpressions": [_in(levels.ordered[index].label, value)]},
        }
        for index, value in enumerate(placement.location)
        if index >= first and value is not None
    ]


def _in(key: str, value: str) -> JSON:
    return {"key": key, "operator": "In", "values": [value]}


def _has_empty_term(node_affinity: Mapping[str, Any]) -> bool:
    return any(not (term.get("matchExpressions") or term.get("matchFields")) for term in _terms(node_affinity))


def _terms(node_affinity: Mapping[str, Any]) -> list[JSON]:
    return list((node_affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ())


def _tightened(node_affinity: Mapping[str, Any], required: _Demands, preferred: list[JSON]) -> JSON:
    tightened = dict(node_affinity)
    if required:
        terms = [_with(term, required) for term in _terms(node_affinity) or [{}]]
        tightened[REQUIRED] = {"nodeSelectorTerms": terms}
    if preferred:
        tightened[PREFERRED] = [*(node_affinity.get(PREFERRED) or ()), *preferred]
    return tightened


def _with(term: JSON, required: _Demands) -> JSON:
    joined = {
        **term,
        "matchExpressions": [*(term.get("matchExpressions") or ()), *required.expressions],
        "matchFields": [*(term.get("matchFields") or ()), *required.fields],
    }
    return {key: value for key, value in joined.items() if value}


def _affinity_operation(affinity: Mapping[str, Any] | None, node_affinity: JSON) -> JSON:
    """`add` sets a member that is there already, too."""
    if affinity:
        return {"op": "add", "path": "/spec/affinity/nodeAffinity", "value": node_affinity}
    return {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": node_affinity}}
