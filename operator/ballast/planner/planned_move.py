"""A strategy's suggestion as a planned move."""

from __future__ import annotations

from ballast.model import Executor, Gap, PlannedMove
from ballast.shedding.suggestion import Suggestion


def planned(suggestion: Suggestion, executor: Executor, *, strategy: str, load_cores: float) -> PlannedMove:
    """The figures of the suggestion; where it predicts nothing, scores stay as they are and nothing is gained."""
    cold = suggestion.cold_score or 0.0
    hot_after = suggestion.hot_score if suggestion.hot_after is None else suggestion.hot_after
    cold_after = cold if suggestion.cold_after is None else suggestion.cold_after
    return PlannedMove(
        executor=executor.key,
        uid=executor.uid,
        topology=executor.topology,
        component=executor.component,
        source=suggestion.source,
        target=suggestion.target or suggestion.source,
        strategy=strategy,
        hot_score=suggestion.hot_score,
        cold_score=cold,
        hot_after=hot_after,
        cold_after=cold_after,
        gain=Gap(suggestion.hot_score, cold).narrowed(Gap(hot_after, cold_after)),
        hits=suggestion.hits,
        load_cores=load_cores,
    )
