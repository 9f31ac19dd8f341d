"""How a policy chooses what should leave which node."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model, nested
from ballast.api.names import Hits, Percent, Points
from ballast.api.profile import Profile, Profiled, by_profile
from ballast.api.quantity import Quantity
from ballast.api.rule import Rule, only_with_strategy
from ballast.enums import LoadUnit


class SheddingStrategy(StrEnum):
    """How a hot node is found, and what should leave it."""

    AVG_SHEDDER = "AvgShedder"
    THRESHOLD_SHEDDER = "ThresholdShedder"
    OVERLOAD_SHEDDER = "OverloadShedder"
    UNIFORM_LOAD_SHEDDER = "UniformLoadShedder"
    TRANSFER_SHEDDER = "TransferShedder"
    NONE = "None"


class AvgShedder(Profiled):
    """Pairs the hottest node with the coldest, the next with the next; moves when a pair's gap has lasted."""

    BLOCK = "shedding.avg_shedder"

    unit: LoadUnit = LoadUnit.USAGE
    """What is leveled: Usage (points of score, by prediction) or Traffic (rates, as Pulsar does)."""
    low_threshold: Points = by_profile("shedding.avg_shedder.low_threshold")
    """A gap of so many points counts as a low hit. With unit Usage, lowThreshold and highThreshold rise by the points
    by which load other than executors' comes and goes."""
    high_threshold: Points = by_profile("shedding.avg_shedder.high_threshold")
    """A gap of so many points counts as a high hit as well."""
    low_hits: Hits = by_profile("shedding.avg_shedder.low_hits")
    """Low hits in a row that start a move."""
    high_hits: Hits = by_profile("shedding.avg_shedder.high_hits")
    """High hits in a row that start a move."""
    min_hot_score: Points = by_profile("shedding.avg_shedder.min_hot_score")
    """A node below this score is not hot, whatever the gap, unless the gap has persisted (persistentHits)."""
    persistent_hits: Annotated[int, Field(ge=0, le=1000)] = by_profile("shedding.avg_shedder.persistent_hits")
    """How many times metrics.window a small gap must last before it starts a move; 0: small gaps are left as they are.

    A gap is small if it is below lowThreshold, but at least 60 % of it, or if its hot node is below minHotScore, but at
    least at 75 % of it. Only with unit Usage and packing Spread, and while no wider gap is left; it must last twice as
    long while other moves delay those of a wider gap (Cooldown, Budget, MaxConcurrent)."""
    max_unload_percent: Annotated[int, Field(ge=1, le=100)] = 50
    """How much of the gap to close, at most."""
    min_rate: Quantity = Quantity.parse(1000)
    """With unit Traffic: records per second that a move must be worth."""
    min_throughput: Quantity = Quantity.parse("1Mi")
    """With unit Traffic: bytes per second that a move must be worth, where records are too few."""


class ThresholdShedder(Model):
    """Unloads nodes whose smoothed usage lies above the mean by a threshold."""

    threshold: Points = 10
    """A node so many points above the mean is unloaded."""
    history_weight_percent: Percent = 90
    """How much the past counts against the newest score."""
    min_throughput: Quantity = Quantity.parse("10Mi")
    """Bytes per second that an unload must be worth."""
    lower_boundary: bool = False
    """Whether the most used node is unloaded also when another lies below the mean by the threshold."""


class OverloadShedder(Model):
    """Unloads nodes above a fixed usage."""

    threshold: Points = 85
    """The score from which a node is overloaded."""


class UniformLoadShedder(Model):
    """Levels the traffic of the busiest and the least busy node."""

    rate_difference_percent: Annotated[int, Field(ge=0, le=10_000)] = 50
    """How much the busiest node may have more records than the least busy one; 0 switches this test off."""
    throughput_percent: Annotated[int, Field(ge=0, le=1_000_000)] = 400
    """What the busiest node's bytes may be of the least busy one's; 0 switches this test off."""
    max_unload_percent: Annotated[int, Field(ge=1, le=100)] = 20
    """How much of the difference to unload, at most."""
    min_rate: Quantity = Quantity.parse(1000)
    """Records per second that an unload must be worth."""
    min_throughput: Quantity = Quantity.parse("1Mi")
    """Bytes per second that an unload must be worth."""
    max_executors: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Executors to unload in one pass, at most. Default: no limit."""


class TransferShedder(Model):
    """Transfers from the most to the least loaded nodes until the standard deviation is on target.

    As with every strategy, no move makes its destination the hotter node, so nothing is taken back in exchange.
    """

    target_std_dev: Points = 25
    """The standard deviation of scores to reach, in points."""
    hits: Hits = 3
    """Passes in a row that must agree before one acts."""
    max_nodes_per_pass: Annotated[int, Field(ge=1, le=1000)] = 3
    """Nodes to unload in one pass, at most."""
    overload_threshold: Points = 85
    """The score above which a node that also exceeds the mean by the target is unloaded in any case."""
    history_weight_percent: Percent = 90
    """How much the past counts against the newest score."""
    delay: Annotated[Duration, Between("0s", "1h")] = Duration.parse("3m")
    """Wait so long after an unload before the next."""
    max_age: Annotated[Duration, Between("10s", "24h")] = Duration.parse("30m")
    """Older values of a node don't count."""
    max_candidates: Annotated[int, Field(ge=1, le=1000)] = 10
    """Executors of a node to consider, the most loaded first."""


class SheddingAdvanced(Model):
    """Parameters of strategies other than AvgShedder. Only the chosen strategy's block may be set."""

    threshold_shedder: ThresholdShedder | None = None
    """Parameters of ThresholdShedder."""
    overload_shedder: OverloadShedder | None = None
    """Parameters of OverloadShedder."""
    uniform_load_shedder: UniformLoadShedder | None = None
    """Parameters of UniformLoadShedder."""
    transfer_shedder: TransferShedder | None = None
    """Parameters of TransferShedder."""


class Shedding(Profiled):
    """What should leave a hot node. Only the chosen strategy's block may be set; its fields have defaults."""

    BLOCK = "shedding"

    RULES: ClassVar[tuple[Rule, ...]] = (
        only_with_strategy("avgShedder"),
        only_with_strategy("advanced.thresholdShedder"),
        only_with_strategy("advanced.overloadShedder"),
        only_with_strategy("advanced.uniformLoadShedder"),
        only_with_strategy("advanced.transferShedder"),
    )

    strategy: SheddingStrategy = SheddingStrategy.AVG_SHEDDER
    """What is unloaded: the hot end of pairs whose gap lasts (AvgShedder), nodes above the mean (ThresholdShedder) or
    above a score (OverloadShedder), the node with the most traffic (UniformLoadShedder), nodes until the scores'
    standard deviation is small (TransferShedder), or nothing (None).
    """
    avg_shedder: AvgShedder | None = None
    """Parameters of AvgShedder."""
    advanced: SheddingAdvanced = nested(SheddingAdvanced)
    """Parameters of the chosen strategy, if it is not AvgShedder."""

    def under(self, profile: Profile) -> Self:
        """With AvgShedder's parameters, if it is chosen."""
        if self.strategy is not SheddingStrategy.AVG_SHEDDER:
            return self
        filled = self.model_copy(update={"avg_shedder": (self.avg_shedder or AvgShedder()).under(profile)})
        if "avg_shedder" not in self.model_fields_set:
            filled.model_fields_set.discard("avg_shedder")
        return filled

    def left_to_profile(self) -> Iterator[str]:
        return iter(() if "avg_shedder" in self.model_fields_set else ("avg_shedder",))
