"""How a policy places executors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.duration import Between, Duration, comparing
from ballast.api.labels import LabelSelector
from ballast.api.meta import Model, nested
from ballast.api.names import DnsLabel, ObjectName, Percent, Points
from ballast.api.profile import Profiled, by_profile
from ballast.api.rule import SET, Rule, map_by, only_with_strategy
from ballast.enums import ExecutorOrder, Packing, Pin, PlacementMode


class PlacementStrategy(StrEnum):
    """How a node is chosen for an executor."""

    PROXIMITY = "Proximity"
    LEAST_LONG_TERM_RATE = "LeastLongTermRate"
    LEAST_RESOURCE_USAGE = "LeastResourceUsage"
    AVG_SHEDDER = "AvgShedder"
    ROUND_ROBIN = "RoundRobin"
    RESOURCE_AWARE = "ResourceAware"


class Scope(Model):
    """How far a component may spread: above the higher bound one level farther, below the lower one level nearer."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.lowerBoundPercent < self.higherBoundPercent",
            message="lowerBoundPercent must be below higherBoundPercent: lower the one or raise the other",
            holds=lambda scope: scope.lower_bound_percent < scope.higher_bound_percent,
            path=".lowerBoundPercent",
        ),
    )

    higher_bound_percent: Percent = 80
    """Used capacity of the scope above which the component spreads farther."""
    lower_bound_percent: Percent = 20
    """Used capacity of the scope below which it draws nearer."""


class Proximity(Model):
    """Near to what the executor talks to, at the least sum of traffic times distance."""

    search_time: Annotated[Duration, Between("0s", "10s")] = Duration.parse("500ms")
    """How much a placement is improved by local search, up to 10s.

    Counted in steps, 6000 or more for a second, so that every machine finds the same: it may take longer or less.
    """


class LeastLongTermRate(Model):
    """The node with the least traffic in the long run, counting what was just placed there.

    Records per second where executors report them, else bytes, else executors are counted.
    """

    overload_threshold: Points = 85
    """Nodes with a higher score are taken only if all are higher."""
    long_window: Annotated[Duration, Between("1m", "24h")] = Duration.parse("1h")
    """The time over which traffic is averaged."""


class LeastResourceUsage(Model):
    """A node whose usage, smoothed over time, is clearly below the mean."""

    min_difference: Points = 10
    """How far below the mean, in points of score."""
    history_weight_percent: Percent = 90
    """How much the past counts against the newest score."""


class ComponentLimit(Model):
    """A limit on one component."""

    component: DnsLabel
    """The component's name, in whatever topology."""
    max_per_node: Annotated[int, Field(ge=1, le=10_000)]
    """The most of its executors that one node may host."""


class PlacementAdvanced(Model):
    """Parameters of single strategies. Only the chosen strategy's block may be set; its fields have defaults."""

    proximity: Proximity | None = None
    """Parameters of Proximity."""
    least_long_term_rate: LeastLongTermRate | None = None
    """Parameters of LeastLongTermRate."""
    least_resource_usage: LeastResourceUsage | None = None
    """Parameters of LeastResourceUsage."""


class Placement(Profiled):
    """How executors are placed when they are created."""

    BLOCK = "placement"

    RULES: ClassVar[tuple[Rule, ...]] = (
        only_with_strategy("advanced.proximity"),
        only_with_strategy("advanced.leastLongTermRate"),
        only_with_strategy("advanced.leastResourceUsage"),
        Rule(
            cel=comparing("duration(self.debounce) <= duration(self.gateTimeout)", "self.debounce", "self.gateTimeout"),
            message="debounce must not be longer than gateTimeout: shorten it or raise gateTimeout",
            holds=lambda placement: placement.debounce <= placement.gate_timeout,
            path=".debounce",
        ),
        Rule(
            cel="self.packing == 'Spread' || self.strategy == 'Proximity'",
            message="only strategy Proximity packs: remove packing or choose that strategy",
            holds=lambda placement: (
                placement.packing is Packing.SPREAD or placement.strategy is PlacementStrategy.PROXIMITY
            ),
            path=".packing",
        ),
    )

    mode: PlacementMode = PlacementMode.RECOMMEND
    """Disabled, Recommend (only say what would be better) or Enforce (gate new executors and place them)."""
    scheduler_names: Annotated[tuple[ObjectName, ...], Field(min_length=1, max_length=8), SET] = ("default-scheduler",)
    """The schedulers whose executors are placed, by spec.schedulerName of their pods: profiles of kube-scheduler, and
    others that keep to scheduling gates and node affinity. Other executors are left alone."""
    strategy: PlacementStrategy = PlacementStrategy.PROXIMITY
    """How a node is chosen: near what the executor talks to (Proximity), with the least traffic in the long run
    (LeastLongTermRate), at random of those well below the mean score (LeastResourceUsage), one after the other
    (RoundRobin), where its topology is already and then where most is free (ResourceAware), or AvgShedder.

    Whichever it is, only nodes that admit the executor and have room are chosen from, within the limits below.
    AvgShedder sends the replacements of moves where the moves say, and spreads all others at random. Moves don't go by
    it: where an executor moves to is decided with the move itself, by the scores that both nodes should end in.
    """
    order: ExecutorOrder = ExecutorOrder.PROXIMITY_NEEDS
    """Which executor is placed next: down the streams, each sender followed by its receivers (ProximityNeeds), or the
    best connected component first, in turn with its neighbors (ConnectionCount).
    """
    packing: Packing = Packing.SPREAD
    """Which of equally near nodes executors use: many cool ones (Spread), or the fullest one (Pack), so that an
    autoscaler can remove the others.

    Pack is for strategy Proximity. It fills a node only as far as the node stays below the score from which nodes are
    hot.
    """
    pin: Pin = Pin.ZONE
    """The narrowest level that is required of the scheduler: None, Zone, Rack or Node. Nearer levels are preferred."""
    sticky: bool = True
    """Whether executors return to the nodes where their component ran before, unless there is a reason against."""
    scope: Scope = nested(Scope)
    """How far a component may spread: its new executors go to its own node, rack or zone, or anywhere.

    They go farther when nothing in that scope has room, and back to places that executors of theirs have left. One
    step a pass; a low higherBoundPercent lets a component spread at once, whatever the strategy.
    """
    max_executors_per_node_percent: Annotated[int, Field(ge=1, le=100)] = by_profile(
        "placement.max_executors_per_node_percent"
    )
    """The most of one component that one node may host, so that its loss is not the whole component's.

    Rounded up, and at least two of three or more: small jobs stay together, but below 100 never all on one node.
    """
    max_executors_per_zone_percent: Annotated[int, Field(ge=1, le=100)] = by_profile(
        "placement.max_executors_per_zone_percent"
    )
    """The most of one component that one zone may host, rounded down. A pool in one zone has no such limit."""
    favored_nodes: LabelSelector | None = None
    """Nodes to fill first."""
    unfavored_nodes: LabelSelector | None = None
    """Nodes to fill last. Leveling may still move executors there, where others are hot."""
    limits: Annotated[tuple[ComponentLimit, ...], Field(max_length=64), map_by("component")] = ()
    """Limits on single components."""
    debounce: Annotated[Duration, Between("0s", "10s")] = Duration.parse("300ms")
    """How long the first executors of a set wait for others that are created with them. Later ones don't wait."""
    gate_timeout: Annotated[Duration, Between("1s", "10s")] = Duration.parse("10s")
    """Maximum gating time, 1s to 10s, measured from when Ballast's is the only gate left."""
    advanced: PlacementAdvanced = nested(PlacementAdvanced)
    """Parameters of the chosen strategy."""
