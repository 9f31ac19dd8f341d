"""The ExecutorMove that is created for a planned move."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from ballast.api.names import decimal
from ballast.controller.context import Context
from ballast.kube import kinds
from ballast.kube.document import JSON
from ballast.kube.events import Regarding
from ballast.kube.kinds import Kind
from ballast.model import Move, MovePhase, NodeView, PlannedMove


def move_name(move: PlannedMove, known: Iterable[Move]) -> str:
    """The same for the same plan, so that a crash after the write creates no second move. `known`: all moves there are.

    It is unique for the executor and its way; the executor's uid never comes again.
    Refused or expired ones, and those that failed before it left, are followed by others: what tells these apart is
    when the last one ended. How many have would not: they are deleted in time.
    """
    own = (other for other in known if (other.namespace, other.executor_uid) == (move.namespace, move.uid))
    ends = (other.ended_at for other in own if other.phase.ended)
    last_milliseconds = round(1000 * max((end for end in ends if end is not None), default=0.0))
    digest = hashlib.sha256(f"{move.uid}/{move.source}/{move.target}/{last_milliseconds}".encode()).hexdigest()[:10]
    return f"{move.pod[:200].rstrip('-.')}-{digest}"


def move_object(context: Context, move: PlannedMove, *, name: str, source: NodeView | None, approved: bool) -> JSON:
    """The object to create. `source`: the node that the executor leaves, as the pass saw it."""
    return {
        "apiVersion": kinds.EXECUTOR_MOVE.api_version,
        "kind": kinds.EXECUTOR_MOVE.kind,
        "metadata": {"name": name, "namespace": move.namespace, "ownerReferences": _owners(context, move)},
        "spec": _spec(context, move, source=source, approved=approved),
    }


def in_the_way(found: JSON, wanted: JSON) -> bool:
    """Whether the object of that name is not the wanted move: it has ended, or a user has created it for another.

    Otherwise a process created it right before it crashed.
    """
    if MovePhase((found.get("status") or {}).get("phase") or MovePhase.PROPOSED).ended:
        return True
    there, spec = found.get("spec") or {}, wanted["spec"]
    if any(there.get(key) != spec[key] for key in ("policyName", "executor", "sourceNodeName", "targetNodeName")):
        return True
    return bool((there.get("reason") or {}).get("strategy") != spec["reason"]["strategy"])


def _owners(context: Context, move: PlannedMove) -> list[dict[str, str]]:
    """The SparkTopology if there is one, otherwise the driver's pod if there is one."""
    topology = context.topology(move.topology)
    if topology is not None:
        return [_owner(kinds.SPARK_TOPOLOGY, topology)]
    driver = context.driver(move.topology)
    return [_owner(kinds.POD, driver)] if driver is not None else []


def _owner(kind: Kind, regarding: Regarding) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": regarding.name, "uid": regarding.uid}


def _spec(context: Context, move: PlannedMove, *, source: NodeView | None, approved: bool) -> dict[str, Any]:
    return {
        "policyName": context.name,
        "topologyName": move.topology.split("/", 1)[1],
        "component": move.component,
        "executor": {"pod": move.pod, "uid": move.uid},
        "sourceNodeName": move.source,
        "targetNodeName": move.target,
        "approved": approved,
        "reason": {
            "strategy": move.strategy,
            **({"taint": move.taint} if move.taint else {"hits": _hits(move, source)}),
            **(_scores(move) if move.scored else {}),
            **({"slowness": decimal(move.slowness)} if move.slowness is not None else {}),
            **({"pressure": decimal(move.pressure_ratio)} if move.pressure_ratio is not None else {}),
        },
        **({"predicted": _predicted(move)} if move.scored else {}),
    }


def _scores(move: PlannedMove) -> dict[str, Any]:
    return {
        "scores": {"from": decimal(move.hot_score), "to": decimal(move.cold_score)},
        "difference": decimal(move.hot_score - move.cold_score),
    }


def _predicted(move: PlannedMove) -> dict[str, str]:
    return {
        "hotAfter": decimal(move.hot_after),
        "coldAfter": decimal(move.cold_after),
        "localityDelta": decimal(move.locality_delta_ratio),
    }


def _hits(move: PlannedMove, source: NodeView | None) -> dict[str, int]:
    """Of the node as this pass counted them; a strategy without thresholds has its own count only."""
    if source is None or not (source.low_hits or source.high_hits):
        return {"low": move.hits, "high": 0}
    return {"low": source.low_hits, "high": source.high_hits}
