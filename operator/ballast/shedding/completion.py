"""Gives suggestions their destinations and predictions.

Threshold-, Overload- and UniformLoadShedder say what should leave, not where to; here the coldest node that can take
the executor is found, or the suggestion is refused: a move without a destination does not exist. Of any strategy, what
is predicted counts on the suggestions that will be followed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ballast.model.move import Gap
from ballast.model.reason import Reason
from ballast.shedding.load import Suggestion, Terms, UsageExecutor, UsageNode, UsagePool
from ballast.shedding.victims_and_destination import Effect, Refused

_LOOKED_AT = 8
"""Destinations tried for one executor, the coldest first."""


Ruling = Callable[[Suggestion], tuple[Reason, str] | None]
"""Asked once about each suggestion that could be followed, in order: why it will not be; None = it will."""


def _followed(suggestion: Suggestion) -> None:
    """The default ruling."""
    del suggestion


def completed(
    suggestions: Iterable[Suggestion], pool: UsagePool, terms: Terms, *, ruling: Ruling = _followed
) -> tuple[tuple[Suggestion, ...], tuple[Refused, ...]]:
    """The suggestions that will be followed, in order, each with a target and the scores predicted after it.

    Each counts on those before it that will be followed, and on no other. A target that the strategy named is kept or
    refused, never replaced; no target is to end hotter than its source, so what a swap would bring back stays where it
    is.
    """
    book = _Book(
        nodes={node.name: node for node in pool.nodes},
        executors={executor.name: executor for node in pool.nodes for executor in node.executors},
        scores={node.name: node.score for node in pool.nodes},
        terms=terms,
        ruling=ruling,
    )
    made: list[Suggestion] = []
    refused: list[Refused] = []
    for suggestion in suggestions:
        found = book.entered(suggestion)
        if isinstance(found, Suggestion):
            made.append(found)
        else:
            refused.append(found)
    return tuple(made), tuple(refused)


@dataclass(slots=True)
class _Book:
    nodes: Mapping[str, UsageNode]
    executors: Mapping[str, UsageExecutor]
    scores: dict[str, float]
    terms: Terms
    ruling: Ruling
    arriving: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def entered(self, suggestion: Suggestion) -> Suggestion | Refused:
        """The suggestion with everything filled in and its effect noted, or why it is not followed."""
        name, source = suggestion.executor, suggestion.source
        executor = self.executors.get(name)
        if executor is None or executor.load_cores is None:
            return Refused(name, source, suggestion.target, Reason.UNKNOWN_LOAD, "its use of CPU is not known")
        if executor.refusal is not None:
            return Refused(name, source, suggestion.target, executor.refusal)
        refused: Refused | None = None
        for target in self._targets(suggestion):
            after = self._after(executor.load_cores, source, target)
            found = self._objection(name, target, after)
            if found is None:
                return self._ruled(self._filled(suggestion, target, after), target.name, after)
            # It would have gone to the first one.
            refused = refused or Refused(name, source, target.name, *found)
        return refused or Refused(name, source, suggestion.target, Reason.NO_DESTINATION)

    def _targets(self, suggestion: Suggestion) -> Iterator[UsageNode]:
        if suggestion.target is not None:
            if suggestion.target in self.nodes:
                yield self.nodes[suggestion.target]
            return
        open_nodes = [node for node in self.nodes.values() if node.receives and node.name != suggestion.source]
        yield from sorted(open_nodes, key=lambda node: (self.scores[node.name], node.name))[:_LOOKED_AT]

    def _after(self, load_cores: float, source: str, target: UsageNode) -> Gap:
        before = Gap(self.scores[source], self.scores[target.name])
        return Effect.of(self.nodes[source], target).after(before, load_cores)

    def _objection(self, name: str, target: UsageNode, after: Gap) -> tuple[Reason, str] | None:
        if not target.receives:
            return Reason.NODE_UNAVAILABLE, ""
        if after.overshoots():
            return Reason.OVERSHOOT, f"{target.name} would end at {after.cold:.1f}, above {after.hot:.1f}"
        refused = self.terms.refusal(name, target.name, self.arriving.get(target.name, ()))
        return None if refused is None else (refused, "")

    def _filled(self, suggestion: Suggestion, target: UsageNode, after: Gap) -> Suggestion:
        # A strategy may go by smoothed scores; these are what the prediction starts from.
        hot, cold = self.scores[suggestion.source], self.scores[target.name]
        return replace(
            suggestion,
            target=target.name,
            hot_score=hot,
            cold_score=cold,
            difference=hot - cold,
            hot_after=after.hot,
            cold_after=after.cold,
        )

    def _ruled(self, filled: Suggestion, target: str, after: Gap) -> Suggestion | Refused:
        refused = self.ruling(filled)
        if refused is not None:
            return Refused(filled.executor, filled.source, target, *refused)
        self.scores |= {filled.source: after.hot, target: after.cold}
        self.arriving[target] = (*self.arriving.get(target, ()), filled.executor)
        return filled
