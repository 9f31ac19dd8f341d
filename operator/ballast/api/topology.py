"""SparkTopology: what talks to what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ballast.api.labels import LabelSelector
from ballast.api.meta import Model, Resource
from ballast.api.names import DnsLabel, Query, SeparateBy
from ballast.api.quantity import Quantity
from ballast.api.rule import ATOMIC, Rule, map_by
from ballast.api.topology_sizing import Sizing
from ballast.api.topology_status import TopologyStatus
from ballast.api.version import API_VERSION
from ballast.enums import Grouping, Shuffle, Workload


class Rate(Model):
    """How much flows: a value, or a query that gives it. Set exactly one."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.bytesPerSecond) != has(self.query)",
            message="set exactly one of bytesPerSecond and query",
            holds=lambda rate: (rate.bytes_per_second is None) != (rate.query is None),
        ),
    )

    bytes_per_second: Quantity | None = None
    """Bytes per second, such as 40Mi."""
    query: Query | None = None
    """A PromQL expression that gives bytes per second. Runs only if the policy's metrics.topologyQueries is Allow."""


NO_SHARE = "give at least one zone a share above 0"
ZoneShare = Annotated[int, Field(ge=0, le=1_000_000)]


def zone_ratios(shares: Mapping[str, int]) -> dict[str, float]:
    """Each zone's share of the whole, sorted by zone."""
    return {zone: share / sum(shares.values()) for zone, share in sorted(shares.items())}


class External(Model):
    """Something outside Spark that executors talk to. Observed, never placed, moved or touched.

    Set exactly one of selector and zones.
    """

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.selector) != has(self.zones)",
            message="set exactly one of selector (for pods) and zones (for a service without pods)",
            holds=lambda external: (external.selector is None) != (external.zones is None),
        ),
        Rule(
            cel="!has(self.namespace) || has(self.selector)",
            message="namespace goes with selector: remove it or set selector",
            holds=lambda external: external.namespace is None or external.selector is not None,
            path=".namespace",
        ),
        Rule(
            cel="!has(self.zones) || self.zones.map(zone, self.zones[zone]).sum() > 0",
            message=NO_SHARE,
            holds=lambda external: external.zones is None or sum(external.zones.values()) > 0,
            path=".zones",
        ),
    )

    selector: LabelSelector | None = None
    """The pods to observe."""
    namespace: DnsLabel | None = None
    """Their namespace: one of the policy's externalNamespaces. Default: this topology's own."""
    zones: Annotated[dict[str, ZoneShare], Field(min_length=1, max_length=16)] | None = None
    """For a managed service without pods: each zone's part of the traffic, against the others': {eu-1a: 1, eu-1b: 1}
    is half each."""


class Component(Model):
    """One Spark application (or one of its resource profiles), or something external that executors talk to."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.external) || !(has(self.selector) || has(self.workload) || has(self.executors)"
            " || has(self.exchange) || has(self.shuffle))",
            message="an external component can't have selector, workload, executors, exchange or shuffle: remove them"
            " (its pods are chosen by external.selector)",
            holds=lambda component: (
                component.external is None
                or not any(
                    (
                        component.selector,
                        component.workload,
                        component.executors,
                        component.exchange,
                        component.shuffle,
                    )
                )
            ),
        ),
    )

    name: DnsLabel
    """The component's name, unique in the topology."""
    selector: LabelSelector | None = None
    """The component's executors, among the pods of this namespace.

    Default: those with the label ballast.dev/topology that names this topology and ballast.dev/component that names
    this component. Where this is the only component that is not external, the label ballast.dev/topology is enough.
    """
    workload: Workload | None = None
    """Streaming, RealTime, Batch or Interactive. Only Streaming executors are moved to level nodes. RealTime ones, of
    queries with Spark's real-time trigger, are placed and never moved. Others are placed, and moved off nodes that are
    about to go if `shuffle` allows it."""
    executors: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """How many executors to expect. The zone of the first one is chosen for so many; none waits for the others."""
    exchange: Rate | None = None
    """What the component's executors send one another (an all-to-all shuffle), in total.

    With a remote shuffle service, set 0, and declare its workers as an external component with streams to and from it.
    """
    shuffle: Shuffle | None = None
    """Where shuffle files are once an executor has left: Local (lost with it), Migrated (to other executors, by
    spark.storage.decommission.enabled=true) or Remote (a remote shuffle service). Default: Local.

    A Batch or Interactive executor is moved off a node that is about to go if this is Migrated or Remote.
    """
    retained_departures: Annotated[int, Field(ge=0, le=100_000)] = 0
    """The value of spark.scheduler.maxRetainedRemovedDecommissionExecutors.

    Spark's default is 0: then the fourth executor that leaves within one stage ends the job, and no more than three
    leave by drains within an hour, or for Streaming within two batches, or 5 minutes where those are not measured.
    """
    external: External | None = None
    """Set for what lies outside Spark, such as Kafka."""


class Stream(Model):
    """What one component sends another."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.from != self.to",
            message="a stream joins two components: for traffic among a component's own executors use its exchange",
            holds=lambda stream: stream.from_ != stream.to,
            path=".to",
        ),
    )

    from_: DnsLabel
    """The sending component's name."""
    to: DnsLabel
    """The receiving component's name."""
    grouping: Grouping = Grouping.SHUFFLE
    """How records are spread over the receivers: Shuffle, LocalOrShuffle, Fields, All, Global or LoadAware."""
    rate: Rate | None = None
    """How much flows. If unset, all such streams count alike."""


def _names(spec: TopologySpec) -> set[str]:
    return {component.name for component in spec.components}


def _streams_meet_components(spec: TopologySpec) -> bool:
    names = _names(spec)
    return all(stream.from_ in names and stream.to in names for stream in spec.streams)


class TopologySpec(Model):
    """What talks to what, and how much."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                "!has(self.streams) || self.streams.all(s, self.components.exists(c, c.name == s.from)"
                " && self.components.exists(c, c.name == s.to))"
            ),
            message="every stream's from and to must be one of spec.components: correct the name or add the component",
            holds=_streams_meet_components,
            path=".streams",
        ),
        Rule(
            cel=(
                "!has(self.separate) ||"
                " self.separate.all(group, group.all(name, self.components.exists(c, c.name == name)))"
            ),
            message="every name in separate must be one of spec.components: correct the name or add the component",
            holds=lambda spec: all(name in _names(spec) for group in spec.separate for name in group),
            path=".separate",
        ),
        Rule(
            cel=(
                "!has(self.sizing) || !has(self.sizing.stages) ||"
                " self.sizing.stages.all(s, self.components.exists(c, c.name == s.component))"
            ),
            message="every stage's component must be one of spec.components: correct the name or add the component",
            holds=lambda spec: (
                spec.sizing is None or all(stage.component in _names(spec) for stage in spec.sizing.stages)
            ),
            path=".sizing",
        ),
    )

    components: Annotated[tuple[Component, ...], Field(min_length=1, max_length=100), map_by("name")]
    """The applications and external ends, each by its name."""
    streams: Annotated[tuple[Stream, ...], Field(max_length=300), map_by("from_", "to")] = ()
    """Data flows: sender, receiver, rate and partitioning. At most one stream from one component to another."""
    separate: Annotated[
        tuple[Annotated[tuple[DnsLabel, ...], Field(min_length=2, max_length=8), ATOMIC], ...],
        Field(max_length=16),
        ATOMIC,
    ] = ()
    """Groups of components that must not share a node (see separateBy), such as an application and its standby."""
    separate_by: SeparateBy = SeparateBy.NODE
    """What separated components must not share: Node, Rack or Zone."""
    sizing: Sizing | None = None
    """What is known of the pipeline, for computing its parallelism, batch sizes and memory: see status.sizing."""


class SparkTopology(Resource):
    """What Spark applications and external systems send one another, so that executors can be placed near it."""

    api_version: Literal["ballast.dev/v1alpha1"] = API_VERSION
    kind: Literal["SparkTopology"] = "SparkTopology"
    spec: TopologySpec
    """What talks to what. Yours: Ballast never writes it."""
    status: TopologyStatus = Field(default_factory=TopologyStatus)
    """What Ballast sees and has done."""
