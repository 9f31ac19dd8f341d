"""The parts of a scenario's file: load and how it varies, applications and streams, nodes and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model
from ballast.api.names import DnsLabel, LabelValue, ObjectName
from ballast.api.quantity import Quantity
from ballast.api.rule import ATOMIC, SET, Rule
from ballast.api.topology import NO_SHARE, ZoneShare
from ballast.enums import Grouping, Workload

Span = Annotated[Duration, Between("1s", "8760h")]
"""A length of time above zero."""
Moment = Annotated[Duration, Between("0s", "8760h")]
"""A time, counted from the beginning of the run."""
_Factor = Annotated[float, Field(ge=0, le=1000)]


class _Vary(Model):
    """A factor on the load that changes over time."""

    shared: bool = False
    """Whether all executors of one application (or all nodes of one group) see the same chances, or each its own."""


class Diurnal(_Vary):
    """Rises and falls once a period, like a sine: 1 + amplitude at the peak, 1 − amplitude half a period later."""

    kind: Literal["Diurnal"]
    amplitude: Annotated[float, Field(ge=0, le=1)]
    """From 0 to 1."""
    period: Span = Duration.parse("24h")
    peak: Moment = Duration.parse("14h")


class Bursts(_Vary):
    """Now and then the load is multiplied for a while."""

    kind: Literal["Bursts"]
    per_hour: Annotated[float, Field(gt=0, le=3600)]
    """How many begin in an hour, in the mean."""
    factor: _Factor
    lasts: Span


class RandomWalk(_Vary):
    """Wanders, in steps that are as often up as down, and turns at its bounds."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.low < self.high",
            message="low (0.5 if absent) must be below high (1.5 if absent): there is nowhere to wander",
            holds=lambda walk: walk.low < walk.high,
        ),
    )

    kind: Literal["RandomWalk"]
    step: Annotated[float, Field(gt=0, le=10)]
    """Standard deviation of a minute's change."""
    low: _Factor = 0.5
    high: _Factor = 1.5


class Noise(_Vary):
    """Strays about 1, alike over some minutes."""

    kind: Literal["Noise"]
    deviation: Annotated[float, Field(gt=0, le=10)]
    """Standard deviation."""
    memory: Moment = Duration.parse("5m")
    """After this time a third of a deviation is left; 0s: every sample is new."""


class HeavyTail(_Vary):
    """Mostly small, rarely very large (Pareto with mean 1), drawn again at regular times."""

    kind: Literal["HeavyTail"]
    alpha: Annotated[float, Field(gt=1, le=20)]
    """The smaller, the heavier the tail; above 1."""
    renewed: Span | None = None
    """If absent, drawn once: some executors are larger than others."""
    most: _Factor = 20
    """Larger draws are cut to this."""


class Surge(_Vary):
    """Once, the load is multiplied: a flash crowd."""

    kind: Literal["Surge"]
    at: Moment
    factor: _Factor
    rise: Moment = Duration.parse("1m")
    lasts: Span
    """At its full height, after the rise."""
    fall: Moment = Duration.parse("5m")


class Series(_Vary):
    """Recorded values, one after the other; the last one stays."""

    kind: Literal["Series"]
    values: Annotated[tuple[_Factor, ...], Field(min_length=1, max_length=1_000_000), ATOMIC]
    every: Span
    """From one value to the next."""
    repeat: bool = False
    """Begin again at the end."""


Vary = Annotated[
    Diurnal | Bursts | RandomWalk | Noise | HeavyTail | Surge | Series,
    Field(discriminator="kind"),
]

_Cores = Annotated[float, Field(ge=0, le=100_000)]


class Load(Model):
    """Work per executor (or node), in cores of an ordinary machine."""

    cores: _Cores | Annotated[tuple[_Cores, ...], Field(min_length=1, max_length=100_000), ATOMIC]
    """One figure, or several that are dealt out in turn."""
    vary: Annotated[tuple[Vary, ...], Field(max_length=16), ATOMIC] = ()
    """Factors over time; all are multiplied."""

    @property
    def dealt(self) -> tuple[float, ...]:
        return self.cores if isinstance(self.cores, tuple) else (self.cores,)


# Spark applications in a scenario's file, and what talks to what.

_Homes = Annotated[dict[ObjectName, Annotated[int, Field(ge=0)]], Field(min_length=1)]


class Requests(Model):
    """What each executor asks Kubernetes for."""

    cpu: Quantity = Quantity.parse(1)
    memory: Quantity = Quantity.parse("2Gi")


class Application(Model):
    """One Spark application, or several alike."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.stops) || duration(self.starts) < duration(self.stops)",
            message="it would never run: stops must be later than starts (0s if absent)",
            holds=lambda application: application.stops is None or application.starts < application.stops,
            path=".stops",
        ),
    )

    name: DnsLabel
    """Also the name of its component; of several applications the beginning of it, with -0, -1 … behind."""
    copies: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """How many applications alike; if absent, one with just this name."""
    topology: DnsLabel | None = None
    """The topology it is a component of. Default: its own."""
    workload: Workload = Workload.STREAMING
    """Only Streaming applications are moved."""
    executors: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Of each application."""
    cores: Annotated[float, Field(gt=0, le=1024)] = 1.0
    """Tasks at once. An executor takes over the work of missing ones up to this (or its own, if that is more)."""
    requests: Requests = Field(default_factory=Requests)
    load: Load
    """Work of each executor. It stays with the executor's replacement."""
    records_per_core: Annotated[float, Field(ge=0)] = 10_000.0
    """Records per second that a core's work reads and writes; what strategies that look at rates go by."""
    bytes_per_core: Quantity = Quantity.parse("20M")
    """Bytes per second that a core's work receives and sends."""
    state: Quantity = Quantity.parse(0)
    """Bytes of state that each executor holds."""
    task_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """Mean seconds of a task on an ordinary idle machine; if absent, no task metrics are there to be judged by."""
    exchange: Quantity | None = None
    """Bytes per second among its own executors."""
    runs_on: _Homes | tuple[ObjectName, ...] = ()
    """Where executors run when the run begins: how many on which node, or nodes over which all are dealt in turn.

    The rest is placed by the policy, and so are all if this is absent.
    """
    starts: Moment = Duration.parse("0s")
    stops: Moment | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.copies is None else tuple(f"{self.name}-{i}" for i in range(self.copies))

    def homes(self, groups: Mapping[str, Sequence[str]]) -> Counter[str]:
        """How many executors run on which node when the run begins. `groups`: nodes by the name of their group."""
        if not isinstance(self.runs_on, tuple):
            return Counter(dict(self.runs_on))
        nodes = [name for subject in self.runs_on for name in groups.get(subject, (subject,))]
        return Counter(nodes[i % len(nodes)] for i in range(self.total)) if nodes else Counter()

    @property
    def total(self) -> int:
        """Executors of all copies."""
        return self.executors * (self.copies or 1)


class Stream(Model):
    """What one application sends another. Both must be of one topology."""

    from_: DnsLabel
    """An application, or an external end."""
    to: DnsLabel
    bytes_per_second: Quantity | None = None
    grouping: Grouping = Grouping.SHUFFLE


class External(Model):
    """Something fixed that the applications of one topology talk to."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.zones.map(zone, self.zones[zone]).sum() > 0",
            message=NO_SHARE,
            holds=lambda external: sum(external.zones.values()) > 0,
            path=".zones",
        ),
    )

    name: DnsLabel
    topology: DnsLabel
    zones: Annotated[dict[str, ZoneShare], Field(min_length=1)]
    """Each zone's part of it, against the others': {a: 1, b: 1} is half each."""


# Nodes in a scenario's file, and what happens to them.

_Places = Annotated[tuple[LabelValue, ...], Field(max_length=1000)]


class Machines(Model):
    """Nodes of one kind."""

    name: ObjectName
    """The node's name; of several nodes the beginning of it, with -0, -1 … behind."""
    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """If absent, one node with just this name."""
    cores: Annotated[float, Field(gt=0, le=100_000)]
    """What executors may use."""
    memory: Quantity = Quantity.parse("256Gi")
    speed: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Work done per second and core, against an ordinary machine."""
    contention: Annotated[float, Field(ge=0, lt=1)] = 0.8
    """How much busy cores slow tasks: each takes 1 / (1 - contention × share of busy cores) times as long.

    By shared caches and memory, hardware threads of one core, and bursts that find no free core. 0: not at all until
    cores are missing. Close to 1: as if the node were one processor that all share.
    """
    zones: _Places = ()
    """Dealt out in turn."""
    racks: _Places = ()
    """Dealt out in turn."""
    neighbor: Load | None = None
    """What else runs there, in cores; nothing if absent."""
    joins: Moment | None = None
    """When they join; there from the beginning if absent."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.count is None else tuple(f"{self.name}-{i}" for i in range(self.count))

    @property
    def joins_later(self) -> bool:
        return self.joins is not None and self.joins.seconds > 0


_Names = Annotated[tuple[ObjectName, ...], Field(min_length=1, max_length=100_000), SET]

_DEEDS = ("fail", "leave", "restart")


class Event(Model):
    """Something that happens to nodes, or to the metrics. Set exactly one of fail, leave, restart and blackout."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="[has(self.fail), has(self.leave), has(self.restart), has(self.blackout)].filter(x, x).size() == 1",
            message="set exactly one of fail, leave, restart (nodes or groups of nodes) and blackout (of metrics)",
            holds=lambda event: sum(bool(getattr(event, deed)) for deed in (*_DEEDS, "blackout")) == 1,
        ),
        Rule(
            cel="!has(self.restart) || has(self.lasts)",
            message="say with lasts how long each node is away while it restarts",
            holds=lambda event: not event.restart or event.lasts is not None,
            path=".lasts",
        ),
        Rule(
            cel="!has(self.blackout) || has(self.lasts)",
            message="say with lasts how long there are no metrics",
            holds=lambda event: not event.blackout or event.lasts is not None,
            path=".lasts",
        ),
        Rule(
            cel="!has(self.notice) || has(self.leave) || has(self.restart)",
            message="only leave and restart are announced: remove notice",
            holds=lambda event: event.notice is None or bool(event.leave or event.restart),
            path=".notice",
        ),
        Rule(
            cel="!has(self.every) || has(self.restart)",
            message="only restart goes from node to node: remove every, or write one event for each node",
            holds=lambda event: event.every is None or bool(event.restart),
            path=".every",
        ),
    )

    at: Moment
    fail: _Names | None = None
    """Nodes that die without warning."""
    leave: _Names | None = None
    """Nodes that are drained: no new executors at once, gone after the notice."""
    restart: _Names | None = None
    """Nodes that are drained and come back, one after the other."""
    blackout: bool = False
    """Prometheus does not answer."""
    notice: Moment | None = None
    """From the warning until a node is gone (leave, restart); 30s if absent."""
    lasts: Span | None = None
    """How long they are away; for good if absent."""
    every: Span | None = None
    """From one node's restart to the next one's; 5m if absent."""

    @property
    def notice_seconds(self) -> float:
        return 30.0 if self.notice is None else self.notice.seconds

    @property
    def every_seconds(self) -> float:
        return 300.0 if self.every is None else self.every.seconds

    @property
    def subjects(self) -> tuple[str, ...]:
        """Nodes or groups of nodes."""
        return self.fail or self.leave or self.restart or ()
