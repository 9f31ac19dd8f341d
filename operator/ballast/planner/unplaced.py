"""The one table of opted-in executors that are not placed, and why: status, commands, doctor and metrics read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ballast.model import (
    Cause,
    ConditionReason,
    Executor,
    Hold,
    Phase,
    Placement,
    PlacementMode,
    Plan,
    Policy,
    Reason,
    Snapshot,
    Unplaced,
)
from ballast.placement.aside import never_placed
from ballast.placement.tie import tied_levels

_RELEASED_SECONDS = 5.0
"""After the gate timeout: until an executor has surely been released, or its release is refused."""
_ASIDE = {Reason.FOREIGN_SCHEDULER: Cause.FOREIGN_SCHEDULER, Reason.GANG: Cause.GANG}
_FULL = frozenset({Reason.NO_ROOM, Reason.POOL_FULL})
_WAITING = {
    Reason.WAITING_FOR_SET: "for a moment, for others that are created with it",
    Reason.WAITING_FOR_TURN: "until other sets are placed",
    Reason.IN_FLIGHT: "until it is known whether a move waits for it",
}
_NOT_GATED = (
    "no gate of Ballast was seen in it: it came before it opted in, before the operator ran, or while its policy did "
    "not place it"
)
_NOT_SEEN = (
    "it has no gate and no place of Ballast; why is not known from here: see the policy's condition ExecutorsPlaced "
    "and the executor's Events"
)
_UNASKED = (ConditionReason.NOT_CONFIGURED, ConditionReason.NO_ANSWER_YET)


def unplaced(snapshot: Snapshot, policy: Policy, decided: Plan) -> tuple[Unplaced, ...]:
    """One row for each executor that opted in and is not placed, or not as its pod asks for.

    None while the policy does not enforce placement: then no executor is to be placed.
    """
    if policy.placement.mode is not PlacementMode.ENFORCE:
        return ()
    last = max(0, len(policy.levels.ordered) - 1)
    table = _Table(
        snapshot,
        policy,
        {each.uid: each for each in decided.placements},
        {each.uid: each for each in decided.holds},
        frozenset(snapshot.gate_missing or ()),
        tuple(len({node.location[level] for node in snapshot.nodes} - {None}) > 1 for level in range(last)),
    )
    found = ((each, table.cause(each)) for each in snapshot.executors if each.enforced)
    return tuple(
        Unplaced(executor.key, *why) for executor, why in found if why is not None and executor.phase is not Phase.ENDED
    )


_Why = tuple[Cause, str]


@dataclass(frozen=True, slots=True)
class _Table:
    snapshot: Snapshot
    policy: Policy
    placements: Mapping[str, Placement]
    """By uid, as the holds."""
    holds: Mapping[str, Hold]
    gate_missing: frozenset[str]
    spreads: tuple[bool, ...]
    """By level, without the node's own: whether the pool has several values of it, so that a spread is possible."""

    def cause(self, executor: Executor) -> _Why | None:
        aside = never_placed(executor, self.policy.placement.scheduler_names)
        if aside is not None:
            return _ASIDE[aside[0]], aside[1]
        if executor.phase is Phase.GATED:
            return self._gated(executor)
        if executor.node is None and executor.gates:
            return Cause.FOREIGN_GATE, _waits_for(executor)
        if executor.node is None and executor.unschedulable_since is not None:
            return Cause.NO_ROOM, "kube-scheduler finds no node for it that has room and that it may run on"
        return self._released(executor)

    def _gated(self, executor: Executor) -> _Why | None:
        refused = self.snapshot.ungated_namespaces.get(executor.namespace)
        if refused is not None:
            return Cause.RELEASE_REFUSED, f"the API server refuses its release: {refused}"
        if executor.gates:
            return Cause.FOREIGN_GATE, _waits_for(executor)
        hold, placement = self.holds.get(executor.uid), self.placements.get(executor.uid)
        if self._is_overdue(executor):
            words = "its gate timeout is over: its release is refused (see its Events), or no operator runs"
            return Cause.OVERDUE, words
        if hold is not None:
            return Cause.WAITING, f"it is gated {_WAITING.get(hold.reason, 'for a moment')} ({hold.reason})"
        return None if placement is None else self._being_released(executor, placement)

    def _is_overdue(self, executor: Executor) -> bool:
        since, patience = executor.last_gate_since, self.policy.placement.gate_timeout_seconds
        return since is not None and self.snapshot.taken_at - since > patience + _RELEASED_SECONDS

    def _being_released(self, executor: Executor, placement: Placement) -> _Why | None:
        if placement.node is None and placement.reason is not None:
            return _of_release(placement.reason, placement.detail)
        health = self.snapshot.metrics
        if not health.available and health.reason not in _UNASKED:
            return Cause.METRICS_MISSING, f"it is placed by requests alone, without metrics: {health.reason}"
        nearest = self.policy.levels.index_of(placement.pin)
        return self._overruled(executor, 0 if nearest is None else nearest + 1)

    def _released(self, executor: Executor) -> _Why | None:
        """Of one that has no gate of Ballast, or none any more."""
        released = (self.snapshot.released_as_is or {}).get(executor.uid)
        if released is not None and (executor.node is None or not executor.pinned):
            return _of_release(released, "")
        if executor.placed or executor.nominated is not None:
            # Most executors have no such keys, and what they are tied to need not be worked out.
            required = tied_levels(executor, self.policy.levels) if executor.soft_spread_keys else 0
            return self._overruled(executor, required)
        refused = self.snapshot.ungated_namespaces.get(executor.namespace)
        if refused is not None:
            return Cause.RELEASE_REFUSED, f"its namespace is not gated for now: {refused}"
        if executor.key in self.gate_missing:
            return Cause.GATE_MISSING, (
                "it came without Ballast's gate: a mutating webhook drops gates, or adds the label that opts in after "
                "the gate's policy was asked (kubectl get mutatingwebhookconfigurations), or the chart's gate is "
                "missing (kubectl ballast doctor)"
            )
        seen = self.snapshot.released_as_is is not None and self.snapshot.gate_missing is not None
        return Cause.NOT_GATED, _NOT_GATED if seen else _NOT_SEEN

    def _overruled(self, executor: Executor, required: int) -> _Why | None:
        """`required`: how many levels its place fixes, from the farthest on."""
        levels = zip(self.policy.levels.ordered[:required], self.spreads, strict=False)
        keys = [level.label for level, spreads in levels if spreads and level.label in executor.soft_spread_keys]
        if not keys:
            return None
        return Cause.CONSTRAINTS_OVERRULED, (
            f"the place that Ballast requires overrules what its pod prefers, a spread over {', '.join(keys)}: "
            f"{self._remedy(keys)}"
        )

    def _remedy(self, keys: Sequence[str]) -> str:
        if self.policy.levels.ordered[0].label not in keys:
            return "set placement.pin: Zone, which requires nothing nearer"
        ratio = self.policy.placement.max_executors_per_zone_ratio
        if ratio < 1.0:
            return f"lower placement.maxExecutorsPerZonePercent, which is {ratio:.0%}, or set placement.pin: None"
        return "set placement.maxExecutorsPerZonePercent to spread executors, or placement.pin: None"


def _waits_for(executor: Executor) -> str:
    return f"it waits for the gates of others: {', '.join(executor.gates)}"


def _of_release(reason: Reason, detail: str) -> _Why:
    words = f"{reason}: {detail}" if detail else reason.value
    if reason in _FULL:
        return Cause.NO_ROOM, f"no node of the pool has room for it: {words}"
    return Cause.RELEASED_AS_IS, f"it was released without a decided place: {words}"
