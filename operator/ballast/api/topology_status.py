"""The status of a SparkTopology: what Ballast sees and has done."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ballast.api.condition import Conditions
from ballast.api.meta import StatusModel
from ballast.api.names import Count, Text, Word
from ballast.api.rule import ATOMIC, map_by

_Share = Annotated[float, Field(ge=0, le=1)]
Places = Annotated[dict[str, Count], Field(max_length=5000)]
Placement = Annotated[dict[str, Places], Field(max_length=100)]


class ExecutorCounts(StatusModel):
    """How many executors there are."""

    text: Word = ""
    """Running and expected, as in 5/6."""
    running: Count = 0
    """Running executors."""
    expected: Count = 0
    """Expected executors, as far as the components say."""
    gated: Count = 0
    """Executors gated until they are placed."""


class ComponentStatus(StatusModel):
    """What is seen of one component."""

    name: Word
    """The component's name."""
    executors: Count = 0
    """Executors that exist."""
    gated: Count = 0
    """Executors gated until they are placed."""
    running: Count = 0
    """Executors that run."""
    scope: Word = ""
    """How far the component may spread now: Node, Rack, Zone or Cluster."""
    nodes: Count = 0
    """Nodes that host it."""
    zones: Count = 0
    """Zones that host it."""


class Locality(StatusModel):
    """How far traffic has to go."""

    cross_zone_ratio: _Share | None = None
    """Share of the traffic that crosses zones."""
    cross_rack_ratio: _Share | None = None
    """Share of the traffic that crosses racks."""
    cross_node_ratio: _Share | None = None
    """Share of the traffic that crosses nodes."""
    cross_zone_bytes_per_second: Annotated[float, Field(ge=0)] | None = None
    """Bytes per second that cross zones, where rates are known."""
    cost: Annotated[float, Field(ge=0)] | None = None
    """Sum of traffic times distance."""
    lower_bound: Annotated[float, Field(ge=0)] | None = None
    """No placement costs less than this."""


class Recommendation(StatusModel):
    """What placement would do, where it only recommends."""

    locality: Locality | None = None
    """Locality after it."""
    placement: Placement | None = None
    """Executors per component and node after it."""


class SizingVariable(StatusModel):
    """One computed value and where it comes from."""

    name: Word
    """What is computed."""
    value: Word
    """The value, with its unit."""
    formula: Text = ""
    """How it is computed."""
    origin: Word = ""
    """Measured, Declared or Assumed: the weakest of its inputs."""


class SizingStatus(StatusModel):
    """How the pipeline should be sized. Recommended, never applied."""

    bottleneck: Text = ""
    """What limits the pipeline, with the evidence."""
    variables: Annotated[tuple[SizingVariable, ...], Field(max_length=64), map_by("name")] = ()
    """The computed values."""
    spark_conf: Annotated[dict[str, Text], Field(max_length=64)] = Field(default_factory=dict)
    """The Spark configuration that follows."""
    warnings: Annotated[tuple[Text, ...], Field(max_length=32), ATOMIC] = ()
    """What looks wrong."""


class TopologyStatus(StatusModel):
    """What Ballast sees and has done."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The generation of the spec that this status is about; -1 before the operator has seen it."""
    conditions: Conditions = ()
    """Ready; Placed, MetricsAvailable; and, when so, Reconciling, Stalled, Paused, ExternalFound (False),
    SelectorsDisjoint (False: it selects executors of another topology), MovesLimited (limits on moves keep its
    executors on hot nodes), Sized."""
    policy: Word | None = None
    """The BalancingPolicy that steers these executors."""
    executors: ExecutorCounts | None = None
    """Executors of all components together."""
    components: Annotated[tuple[ComponentStatus, ...], Field(max_length=100), map_by("name")] = ()
    """What is seen of each component."""
    locality: Locality | None = None
    """How far traffic has to go as things are."""
    placement: Placement | None = None
    """Executors per component and node, to which replacements return."""
    recommendation: Recommendation | None = None
    """What placement would do, where it only recommends."""
    sizing: SizingStatus | None = None
    """How the pipeline should be sized, by spec.sizing alone. `ballast size` also takes measurements."""
