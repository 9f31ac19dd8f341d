"""Node by node: whether an executor could move there, what it would cost, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ballast.model import Executor, Location, Node, Phase, Policy, Reason, Resources, Snapshot
from ballast.moves.candidates import Candidates, untied
from ballast.moves.rules import Rules, worth
from ballast.placement import admission


@dataclass(frozen=True, slots=True)
class Alternative:
    node: str
    location: Location
    here: bool
    score: float | None
    """As it is projected, percent; None without fresh figures."""
    score_after: float | None
    """Had the executor moved there; on its own node: had it left."""
    locality_delta_ratio: float
    """Growth of the topology's cost of traffic; negative = cheaper."""
    reason: str | None
    """Why a move can't go there; None when it can."""
    detail: str


def alternatives(
    executor: Executor,
    snapshot: Snapshot,
    policy: Policy,
    *,
    candidates: Candidates,
    rules: Rules,
    scores: Mapping[str, float],
) -> tuple[Alternative, ...]:
    """Its own node first, then those that could take it, the coldest first, then the others by name.

    None for an executor that does not run: it is placed, not moved. `candidates` and `rules`: of the same
    snapshot. `scores`: projected scores by node, percent.
    """
    if executor.phase is not Phase.RUNNING:
        return ()
    bench = _Bench(untied(executor, policy.levels), policy, candidates, rules, scores)
    return tuple(sorted((bench.look(node) for node in snapshot.nodes), key=_rank))


def _rank(each: Alternative) -> tuple[bool, bool, float, str]:
    after = each.score_after if each.score_after is not None and each.reason is None else float("inf")
    return (not each.here, each.reason is not None, after, each.node)


@dataclass(frozen=True, slots=True)
class _Bench:
    executor: Executor
    policy: Policy
    candidates: Candidates
    rules: Rules
    scores: Mapping[str, float]

    def look(self, node: Node) -> Alternative:
        here = node.name == self.executor.node
        delta = 0.0 if here else self.candidates.locality_delta_ratio(self.executor, node.name)
        objection = None if here else self._objection(node)
        return Alternative(
            node=node.name,
            location=node.location,
            here=here,
            score=self.scores.get(node.name),
            score_after=self._after(node.name, here=here),
            locality_delta_ratio=delta,
            reason=objection[0].value if objection else None,
            detail=objection[1] if objection else "",
        )

    def _after(self, node: str, *, here: bool) -> float | None:
        if node not in self.scores:
            return None
        points = self.candidates.points_on(self.executor, node)
        return max(0.0, self.scores[node] - points if here else self.scores[node] + points)

    def _objection(self, node: Node) -> tuple[Reason, str] | None:
        refused = self.candidates.refusal(self.executor.key, node.name, ())
        if refused is not None:
            return refused, self._words(refused, node)
        way = self.candidates.way(self.executor, node.name, self.scores)
        return worth(way, self.policy.moves) or self.rules.of_precedent(way) or self.rules.of_node(node.name)

    def _words(self, reason: Reason, node: Node) -> str:
        admitted = admission.refusal(self.executor, node)
        if admitted is not None:
            return admitted[1]
        if reason is Reason.NO_ROOM:
            return _shortage(self.executor.requests, self.candidates.room(node))
        if reason is Reason.SPREAD_LIMIT:
            return f"it holds as many executors of {self.executor.component} as the policy allows"
        if reason is Reason.SEPARATED:
            return "it holds a component that must be kept apart"
        gain = self.candidates.gain_objection(self.executor, node.name)
        return gain[1] if gain is not None else ""


_GIB = float(1 << 30)


def _shortage(asked: Resources, free: Resources) -> str:
    if asked.cpu_cores > free.cpu_cores + 1e-6:
        return f"{max(0.0, free.cpu_cores):.2f} cores are free, {asked.cpu_cores:.2f} are asked for"
    if asked.memory_bytes > free.memory_bytes + 1.0:
        return f"{max(0.0, free.memory_bytes) / _GIB:.1f} GiB are free, {asked.memory_bytes / _GIB:.1f} are asked for"
    if asked.pods > free.pods + 1e-6:
        return "it holds as many pods as it may"
    return "something else that it asks for is not free"
